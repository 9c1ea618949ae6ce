"""`--policy` on the command line: files of rules and tables, ready-made policies, and the user's own module."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import average_dice as ad
from named_log import named_log

RULES = {"rules": [{"if": {"age": [60, None]}, "then": {"treat": 0.9, "wait": 0.1}}], "otherwise": "wait"}
MODULE = """
import numpy as np

class policies:
    def old(rows):
        treat = np.where(rows[:, 0] >= 60, 0.9, 0.0)
        return np.column_stack([1 - treat, treat])
"""
SOURCES = str(Path(ad.__file__).parents[1])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("policies")
    ad.write_dataset(named_log(), folder / "log.parquet")
    (folder / "rules.json").write_text(json.dumps(RULES))
    (folder / "mymodule.py").write_text(MODULE)
    return folder


def run(folder, *arguments, code=0):
    """In the folder, with the sources that these tests use."""
    command = [sys.executable, "-m", "average_dice.cli", *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": SOURCES}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=environment)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout if code == 0 else done.stderr


def value(folder, policy):
    """The value by per-decision importance sampling, and what was printed."""
    options = ("--discount", 0.9, "--estimators", "pdis", "--bootstrap", 0, "--json", "result.json")
    text = run(folder, "evaluate", "log.parquet", "--policy", policy, *options)
    return json.loads((folder / "result.json").read_text())["estimates"][0]["value"], text


def test_rules_and_the_users_own_module_agree(folder):
    expected = ad.evaluate(named_log(), RULES, 0.9, estimators="pdis", bootstrap=0).estimates["pdis"].value
    by_rules, text = value(folder, "rules.json")
    assert by_rules == pytest.approx(expected, rel=1e-12)
    assert "Importing" not in text
    by_module, text = value(folder, "mymodule:policies.old")
    assert by_module == pytest.approx(expected, rel=1e-12)
    assert "Importing mymodule, which executes its code." in text


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("mymodule:missing", "has no attribute 'missing'"),
        ("nomodule:policy", "no module nomodule"),
        ("nowhere", "neither a policy file nor a task"),
    ],
)
def test_policies_that_are_not_there(folder, policy, message):
    text = run(folder, "evaluate", "log.parquet", "--policy", policy, "--discount", 0.9, code=2)
    assert message in text.replace("\n", " ")


def test_ready_made_policies(folder):
    log = named_log()
    expected = ad.evaluate(log, ad.policies.uniform(log), 0.9, estimators="pdis", bootstrap=0).estimates["pdis"].value
    assert value(folder, "uniform")[0] == pytest.approx(expected, rel=1e-12)  # μ, too, is uniform
    assert value(folder, "behaviour")[0] == pytest.approx(expected, rel=1e-12)
