"""Categorical columns and features of actions on the command line."""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import average_dice as ad
from average_dice.testing.exact_mdps import early_termination, integer_codes

COMMAND = (sys.executable, "-m", "average_dice.cli")
WIDE = {**os.environ, "COLUMNS": "200"}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A log of integer codes without a declaration, a policy, and features of its two actions."""
    folder = tmp_path_factory.mktemp("declared")
    mdp = integer_codes(early_termination())
    log = mdp.sample(30, seed=0, categorical=())
    ad.write_dataset(log, folder / "log.parquet")
    network = ad.policies.Network(weights=(np.array([[0.1], [-0.1]]),), biases=(np.zeros(2),))
    ad.save_policy(ad.CategoricalPolicy(network), folder / "policy.safetensors")
    (folder / "actions.csv").write_text("dose\n1\n2\n")
    return folder, log


def run(*arguments, code=0) -> str:
    command = [*COMMAND, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=WIDE)
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


def test_validate_says_that_a_column_looks_categorical(files):
    folder, log = files
    advice = "observation column 0 holds only integers (6 different values). If they are codes, declare it: "
    assert log.categorical_advice == f"{advice}--categorical 0".replace("(6", f"({len(np.unique(log.observation))}")
    assert log.categorical_advice in run("validate", folder / "log.parquet")
    options = ("--categorical", "0", "--action-features", folder / "actions.csv")
    assert "1 for each of 2 actions" in run("validate", folder / "log.parquet", *options)
    declared = run("validate", folder / "log.parquet", *options[:2])
    assert "categorical, 6 different values" in declared
    assert "If they are codes" not in declared
    assert replace(log, categorical=(0,)).sha256[:32] in declared


def test_evaluate_and_compare_take_the_declarations(files):
    folder, log = files
    policy = ad.load_policy(folder / "policy.safetensors")
    declared = replace(log, categorical=(0,), action_features=np.array([[1.0], [2.0]]))
    options = ("--discount", 0.9, "--categorical", 0, "--action-features", folder / "actions.csv")
    expected = ad.evaluate(declared, policy, 0.9, estimators=["fqe"], bootstrap=0).estimates["fqe"].value
    common = (folder / "log.parquet", "--policy", folder / "policy.safetensors", *options)
    run("evaluate", *common, "--estimators", "fqe", "--bootstrap", 0, "--json", folder / "a.json")
    content = (folder / "a.json").read_text()
    assert f'"value": {expected}' in content
    assert declared.sha256 in content
    assert expected != ad.evaluate(log, policy, 0.9, estimators=["fqe"], bootstrap=0).estimates["fqe"].value
    run("compare", *common, "--bootstrap", 2, "--json", folder / "b.json")
    assert declared.sha256 in (folder / "b.json").read_text()


def test_wrong_options(files):
    folder, _ = files
    for option, value, message in (
        ("--categorical", "first", "separated by commas"),
        ("--categorical", "0,7", "column 7, but columns are numbered 0 to 0"),
        ("--action-features", folder / "none.csv", "none.csv: no such file"),
    ):
        text = run("validate", folder / "log.parquet", option, value, code=2)
        assert message in text
        assert text.count("\n") == 1
