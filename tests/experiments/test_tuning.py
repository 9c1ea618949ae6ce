"""The hyperparameters that tuning chooses, from made-up results whose best combinations are known."""

import json
from dataclasses import replace

import numpy as np
import pytest

from average_dice.errors import SettingError
from average_dice.experiments.tuning import TUNING, chosen, combination
from average_dice.tasks import true_value
from made_up import PLANS, fill


def test_hyperparameters_chosen_with_and_without_the_truth(tmp_path):
    """(0.1, 2, 1e-4) is second on both tasks, so best for all; each task has its own best; losses mislead."""
    first = {"CartPole-v1": (0.0, 0.5, 1e-4), "Hopper-v5": (0.0, 2.0, 1e-3)}
    misled = (0.1, 0.5, 1e-3)

    def combination_of(method):
        return tuple(method.options[name] for name in ("ridge", "mass_weight", "learning_rate"))

    def error(job, method):
        if combination_of(method) == (0.0, 0.5, 1e-3):
            return None  # diverged: never chosen, though its loss is the smallest
        return {first[job.task]: 0.1, (0.1, 2.0, 1e-4): 0.2, misled: 0.7}.get(combination_of(method), 0.9)

    def loss(job, method):
        return {(0.0, 0.5, 1e-3): float("nan"), misled: 0.5}.get(combination_of(method), 1.0)

    fill(tmp_path, "tuning", error, loss=loss)
    rows = TUNING.results(tmp_path)
    assert {combination(row) for row in rows if row["value"] is None} == {(0.0, 0.5, 1e-3)}
    lines = {line[0]: line[1:] for line in chosen(rows)}
    for task, (ridge, weight, rate) in first.items():
        size = abs(true_value(task, 0.95)[0])
        common, own, blind, published = lines[task]
        assert common == f"0.1, 2, 0.0001 → {0.2 * size:.3g}"
        assert own == f"{ridge:g}, {weight:g}, {rate:g} → {0.1 * size:.3g}"
        assert blind == f"0.1, 0.5, 0.001 → {0.7 * size:.3g}"
        assert published == "–"  # not in this grid
    (path,) = TUNING.summary(tmp_path).write(tmp_path)
    assert path.name == "tuning.md"
    assert len(path.read_text().splitlines()) == 4
    with pytest.raises(SettingError, match="no results of tuning"):
        TUNING.summary(tmp_path / "nothing")


def test_a_choice_is_not_judged_by_the_log_it_was_made_by(tmp_path):
    """On each of the two logs another combination is best, by luck, and the worst on the other."""

    def error(job, method):
        lucky = (job.log == 0) == (method.options["ridge"] == 0)
        return 0.1 if lucky else 0.9

    fill(tmp_path, "tuning", error, loss=lambda job, method: method.options["learning_rate"])
    for task, common, own, blind, _ in chosen(TUNING.results(tmp_path)):
        size = abs(true_value(task, 0.95)[0])
        assert common == own == f"2 different → {0.9 * size:.3g}"
        assert blind == f"0, 0.5, 0.0001 → {np.sqrt((0.1**2 + 0.9**2) / 2) * size:.3g}"
    fill(tmp_path / "one", "tuning", error, plan=replace(PLANS["tuning"], logs=1))
    assert {line[1:3] for line in chosen(TUNING.results(tmp_path / "one"))} == {("–", "–")}


def test_a_combination_that_is_right_at_its_last_checkpoint_by_luck_is_not_chosen(tmp_path):
    fill(tmp_path, "tuning", lambda job, method: 0.3 if method.options["ridge"] else 0.01)
    rows = TUNING.results(tmp_path)
    for row in rows:
        if json.loads(row["options"])["ridge"] == 0:  # right at the end of training, and far off shortly before
            row["curve_step"] = [0, 90, 100]
            row["curve_value"][1] = row["truth"] * 1.9
    for task, common, own, blind, _ in chosen(rows):
        size = abs(true_value(task, 0.95)[0])
        assert common == own == f"0.1, 0.5, 0.0001 → {0.3 * size:.3g}"
        assert blind == f"0, 0.5, 0.0001 → {np.sqrt((0.9**2 + 0.01**2) / 2) * size:.3g}"


def test_a_log_that_is_not_finished_has_not_diverged(tmp_path):
    """The second log of Hopper is missing, and on CartPole's nothing of the chosen combination has a value."""

    def error(job, method):
        return None if job.log == 1 and job.task == "CartPole-v1" else 0.1

    fill(tmp_path, "tuning", error)
    everything = TUNING.results(tmp_path)
    rows = [row for row in everything if (row["task"], row["log"]) != ("Hopper-v5", 1)]
    of_cart_pole, of_hopper = chosen(rows)
    assert of_cart_pole[3] == "diverges on 1 of 2 logs"
    rows += [row for row in everything if (row["task"], row["log"]) == ("Hopper-v5", 1)][:1]
    assert chosen(rows)[1] == of_hopper  # nor has one that is half finished
    assert of_hopper[3] == f"0, 0.5, 0.0001 → {0.1 * abs(true_value('Hopper-v5', 0.95)[0]):.3g}"
