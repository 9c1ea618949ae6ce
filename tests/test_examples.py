"""The examples run, and give answers that agree with the known truth."""

import runpy
from pathlib import Path

from average_dice.estimators import RECOMMENDED
from average_dice.problem import Estimand
from average_dice.testing.clinic import clinic

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_the_clinic(tmp_path, capsys):
    found = runpy.run_path(str(EXAMPLES / "clinic.py"))["main"](num_patients=150, bootstrap=4, folder=tmp_path)
    printed = capsys.readouterr().out
    assert list(found) == ["cautious", "greedy"]
    for name, evaluation in found.items():
        truth = clinic().value(clinic().targets[name], 1.0)
        assert f"The {name} policy (its true value is {truth:.3f})" in printed
        assert evaluation.estimand is Estimand.TOTAL
        assert evaluation.dataset["episodes"] == evaluation.dataset["terminated"] == 150
        assert RECOMMENDED in (tmp_path / f"clinic_{name}.html").read_text(encoding="utf-8")
    # The cautious policy is close to the clinician's: 150 patients suffice for a rough answer.
    cautious = found["cautious"].recommended_estimate
    assert abs(cautious.value - clinic().value(clinic().targets["cautious"], 1.0)) < 0.3
