"""The smoke preset from the command line: every experiment, its figures, and the claims."""

import json
import subprocess
import sys

import pytest

from average_dice.experiments.presets import load_plan
from average_dice.experiments.registry import EXPERIMENTS
from average_dice.experiments.store import read_rows
from average_dice.notes import NoteCode


def average_dice(*arguments):
    command = [sys.executable, "-m", "average_dice.cli", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.slow
def test_every_experiment_runs_and_the_claims_are_judged(tmp_path):
    for experiment, one in EXPERIMENTS.items():
        shown = average_dice("benchmark", experiment, "--preset", "smoke", "--out", str(tmp_path))
        plan = load_plan("smoke", one)
        rows = read_rows(tmp_path, experiment).to_pylist()
        assert {row["unit"] for row in rows} == one.keys(plan)
        assert len(rows) == sum(job.num_seeds * len(job.methods) for job in one.jobs(plan))
        assert all(row["value"] is not None or NoteCode.NOT_APPLICABLE in row["note_codes"] for row in rows)
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
