"""The smoke preset from the command line: every experiment, its figures, and the claims."""

import json
import subprocess
import sys

import pytest

from average_dice.experiments.plans import EXPERIMENTS
from average_dice.experiments.presets import load_plan
from average_dice.experiments.store import read_rows


def average_dice(*arguments):
    command = [sys.executable, "-m", "average_dice.cli", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.slow
def test_every_experiment_runs_and_the_claims_are_judged(tmp_path):
    for experiment in EXPERIMENTS:
        shown = average_dice("benchmark", experiment, "--preset", "smoke", "--out", str(tmp_path))
        units = list(load_plan("smoke", experiment).units(experiment))
        rows = read_rows(tmp_path, experiment).to_pylist()
        assert {row["unit"] for row in rows} == {one.key for unit in units for one in unit.each()}
        assert len(rows) == sum(unit.num_seeds * len(unit.methods) for unit in units)
        assert all(row["value"] is not None or "not applicable" in row["notes"] for row in rows)
        if experiment == "trust":
            assert "Verdicts where the truth is known" in shown
            assert (tmp_path / "trust.md").read_text().startswith("| tasks |")
        else:
            assert (tmp_path / f"{experiment}.svg").read_text().startswith("<?xml")
            assert "root mean squared error" in shown
    average_dice("benchmark", "claims", "--out", str(tmp_path))
    claims = json.loads((tmp_path / "claims.json").read_text())
    assert len(claims) == 8
    assert {claim["verdict"] for claim in claims} <= {"holds", "does not hold", "not run"}
