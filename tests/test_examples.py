"""The examples run, and give answers that agree with the known truth."""

import json
import os
import runpy
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import average_dice as ad
from average_dice.data.names import Names
from average_dice.estimators import RECOMMENDED
from average_dice.problem import Estimand
from average_dice.testing.clinic import VITAL_SIGNS, clinic

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


def test_the_clinic_from_a_csv_file(tmp_path, capsys):
    """The script, and the command in its docstring, give the same numbers; they agree with the truth."""
    example = runpy.run_path(str(EXAMPLES / "clinic_csv.py"))
    found = example["main"](folder=tmp_path, num_patients=40, bootstrap=0)
    printed = capsys.readouterr().out
    assert list(found.rewards) == ["outcome", "cost"]
    assert list(found.groups) == ["north", "south", "university"]
    assert sum(group.episodes for group in found.groups.values()) == 40
    assert found.behaviour_estimate is not None
    assert abs(found.rewards["outcome"].value - 0.539) < 0.3
    assert abs(found.rewards["cost"].value - 32.1) < 12
    assert "   outcome:  0.539, estimated" in printed
    assert "P-000" in (tmp_path / "clinic_csv.html").read_text(encoding="utf-8")  # episodes by the patients' names

    text = example["__doc__"].split("average-dice evaluate ")[1].split("\n\n")[0]
    command = ["evaluate", *shlex.split(text), "--bootstrap", "0", "--json", "again.json"]
    (tmp_path / "clinic_csv.html").unlink()
    done = subprocess.run(
        [sys.executable, "-m", "average_dice.cli", *command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=os.environ | {"COLUMNS": "200"},
    )
    assert done.returncode == 0, done.stderr
    again = json.loads((tmp_path / "again.json").read_text(encoding="utf-8"))
    for one in again["rewards"]:
        assert one["value"] == pytest.approx(found.rewards[one["reward"]].value, rel=1e-6)
    for one in again["groups"]:
        assert one["value"] == pytest.approx(found.groups[one["group"]].value, rel=1e-6)
    page = (tmp_path / "clinic_csv.html").read_text(encoding="utf-8")
    assert "<h1>A protocol for doses</h1>" in page
    assert "<h2>Groups by site</h2>" in page


def test_the_truth_of_the_clinic_as_csv():
    """By sites it averages to the whole, and simulated patients who are treated by the rules agree with it."""
    example = runpy.run_path(str(EXAMPLES / "clinic_csv.py"))
    stays = clinic().sample(300, seed=0)
    log = replace(stays, names=Names(tuple(example["SIGNS"]), tuple(example["DOSES"])))
    truth = example["true_values"](log)
    share = clinic().start @ example["chance_of_site"](VITAL_SIGNS.table)
    assert share @ [truth[site] for site in example["SITES"]] == pytest.approx(truth["outcome"])
    rules = ad.as_policy(example["RULES"], log)
    table = np.exp(rules.log_probabilities(VITAL_SIGNS.table))
    treated = clinic().sample(4_000, seed=1, policy=table)
    assert treated.reward.sum() / 4_000 == pytest.approx(truth["outcome"], abs=0.05)  # four standard errors
    assert example["COST"][treated.action].sum() / 4_000 == pytest.approx(truth["cost"], rel=0.06)


def test_recommendations(tmp_path, capsys):
    example = runpy.run_path(str(EXAMPLES / "recommendation.py"))
    found = example["main"](folder=tmp_path, num_rows=3_000, bootstrap=4)
    printed = capsys.readouterr().out
    old = (example["OLD_POLICY"] * example["CLICKS"]).sum(axis=1).mean()
    assert f"old policy: {old:.4f}" in printed
    for name in ("clicked before", "click model"):
        line = next(one for one in printed.splitlines() if one.strip().startswith(f"{name}: "))
        truth = float(line.split(": ")[1].split(",")[0])
        value = found.evaluations[name].value
        assert truth > old
        assert value == pytest.approx(truth, abs=0.02)
        assert found.evaluations[name].dataset["action_features"] == 5
    page = (tmp_path / "recommendation.html").read_text(encoding="utf-8")
    assert "<h1>Which recommendations?</h1>" in page
    assert "clicked before" in page


def test_the_truth_of_recommendations():
    """A policy that always shows one item has the mean of its click probabilities, by the same function."""
    example = runpy.run_path(str(EXAMPLES / "recommendation.py"))
    frame = example["recommendations"](500, seed=0)
    log = ad.from_dataframe(
        frame,
        episode=None,
        action="item",
        reward="click",
        behaviour_prob="propensity",
        observations=list(example["FEATURES"]),
        actions=example["ITEMS"],
    )
    jacket = ad.policies.constant("jacket-03", log)
    assert example["true_click_rate"](jacket, log) == pytest.approx(example["CLICKS"][:, 23].mean())
    user = example["USERS"].reset_index().merge(frame)
    item = [example["ITEMS"].index(one) for one in user["item"]]
    np.testing.assert_allclose(example["OLD_POLICY"][user["index"], item], user["propensity"])
