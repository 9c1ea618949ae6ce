"""The commands `sensitivity` and `distribution`, as a person uses them: in a process of their own."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import average_dice as ad
from average_dice.testing.exact_mdps import tiny

COMMAND = Path(sys.executable).with_name("average-dice")


def run(*arguments, code=0):
    done = subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout if code == 0 else done.stderr


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """With π in its target_log_prob column."""
    mdp = tiny()
    sampled = mdp.sample(60, seed=0)
    path = tmp_path_factory.mktemp("log") / "log.parquet"
    state = sampled.observation.argmax(axis=1)
    columns = {"target_log_prob": np.log(mdp.target[state, sampled.action])}
    ad.write_dataset(mdp.sample(60, seed=0, **columns), path)
    return path


def test_sensitivity_writes_what_the_function_returns(log, tmp_path):
    settings = ("--discount", 0.9, "--gammas", "1,2", "--bootstrap", 5, "--against", 0.1)
    text = run("sensitivity", log, *settings, "--json", tmp_path / "found.json", "--report", tmp_path / "page.html")
    found = ad.sensitivity(ad.read_dataset(log), None, 0.9, (1, 2), bootstrap=5, against=0.1)
    content = json.loads((tmp_path / "found.json").read_text())
    assert content["curves"] == json.loads(json.dumps(found.to_dict()["curves"]))
    assert f"{found.curves[0].bounds[1].lower:.4f}" in text
    assert "average-dice sensitivity" in (tmp_path / "page.html").read_text()


def test_distribution_writes_what_the_function_returns(log, tmp_path):
    settings = ("--discount", 0.9, "--thresholds", "-1,0.5", "--costs", "--cvar", 0.2, "--bootstrap", 50)
    text = run("distribution", log, *settings, "--json", tmp_path / "found.json")
    found = ad.distribution(ad.read_dataset(log), None, 0.9, thresholds=[-1, 0.5], costs=True, cvar=0.2, bootstrap=50)
    content = json.loads((tmp_path / "found.json").read_text())
    assert content["statistics"] == json.loads(json.dumps(found.to_dict()["statistics"]))
    assert f"{found.find('cvar').value:.4f}" in text
    assert "highest 20%" in text


def test_wrong_numbers_are_refused(log):
    assert "--gammas takes numbers separated by commas" in run(
        "sensitivity", log, "--discount", 0.9, "--gammas", "1,x", code=2
    )
    assert "at least 1" in run("sensitivity", log, "--discount", 0.9, "--gammas", "0.5", code=2)
    assert "discount of 1 needs episodes that terminate" in run("distribution", log, "--discount", 1, code=2)


def test_probabilities_can_be_estimated(tmp_path):
    """What the message recommends works."""
    path = tmp_path / "log.parquet"
    ad.write_dataset(replace(tiny().sample(30, seed=0), behaviour_log_prob=None), path)
    command = ("distribution", path, "--policy", "uniform", "--discount", 0.9, "--bootstrap", 2)
    assert "--estimate-behaviour" in run(*command, code=2)
    assert "Return of an episode" in run(*command, "--estimate-behaviour")
