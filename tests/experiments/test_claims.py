"""Claims and figures from made-up results whose verdicts are known."""

import io
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from average_dice.errors import SettingError
from average_dice.experiments import choices, experiments
from average_dice.experiments.claims import (
    FAILS,
    HOLDS,
    NOT_RUN,
    OPEN,
    _average_and_swing,
    _error,
    _steps_to_stability,
    judge,
    others_below_td,
    sr_dice_comparable,
    write_claims,
)
from average_dice.experiments.figures import draw, tuning_figure
from average_dice.experiments.measurements import true_value
from average_dice.experiments.plans import Ablation, Main, Robustness
from average_dice.experiments.store import Store
from average_dice.experiments.summaries import overview, results, rmse
from average_dice.experiments.tuning import chosen, write_choices
from average_dice.tasks.task import TASKS
from made_up import PAPER, PLANS, fill


def as_the_paper_says(unit, method):
    if unit.experiment == "ablation":
        return 0.1 if unit.task == "CartPole-v1" or method.options["mass_weight"] > 0 else 1.9
    if unit.experiment == "robustness" and method.estimator == PAPER:
        return 0.1 * (1 + 5 * (unit.setting.discount == 0.8) + (unit.setting.max_steps == 200))
    return {PAPER: 0.1, "td": 0.3, "sr-dice": 0.4}.get(method.estimator, 0.9)


def the_opposite(unit, method):
    if unit.experiment == "ablation":
        return 0.1
    if unit.experiment == "robustness":
        return 0.1 if unit.setting.max_steps == 200 else 0.2
    return {PAPER: 1.5, "td": 0.5, "sr-dice": 1.6}.get(method.estimator, 0.1)


@pytest.mark.parametrize(
    ("error", "quick", "verdict"), [(as_the_paper_says, PAPER, HOLDS), (the_opposite, "td", FAILS)]
)
def test_each_claim_is_judged_by_the_numbers(tmp_path, error, quick, verdict):
    for experiment in ("main", "robustness", "ablation"):
        fill(tmp_path, experiment, error, quick)
    claims = judge(tmp_path)
    assert [claim for claim in claims if claim.verdict != verdict] == []
    assert f"{7 if verdict == HOLDS else 0} of 7 tasks" in claims[0].evidence
    assert f"{quick} 50" in claims[2].evidence
    assert "after 100 steps, geometric mean over tasks: cop-td" in claims[3].evidence
    assert all(bool(claim.explanation) == (verdict == FAILS) for claim in claims)
    text = write_claims(claims, tmp_path).read_text()
    assert text.count(f"| {verdict} |") == 8
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in text.splitlines()} == {5}  # |J| is no border


def test_nobody_is_fastest_where_all_are(tmp_path):
    fill(tmp_path, "main", as_the_paper_says, quick="nobody")
    assert judge(tmp_path)[2].verdict == FAILS


def test_claims_about_named_tasks_wait_for_all_of_them(tmp_path):
    alone = ("CartPole-v1",)
    fill(tmp_path, "main", as_the_paper_says, plan=replace(PLANS["main"], tasks=alone))
    fill(tmp_path, "ablation", as_the_paper_says, plan=replace(PLANS["ablation"], tasks=alone))
    claims = judge(tmp_path)
    assert claims[0].verdict == HOLDS
    assert [claims[1].verdict, claims[7].verdict] == [NOT_RUN, NOT_RUN]


def test_a_run_that_diverged_is_never_stable(tmp_path):
    """The paper's method would be first, but on two of three logs it has no value."""
    fill(tmp_path, "main", lambda unit, method: None if method.estimator == PAPER and unit.log else 0.1)
    claim = judge(tmp_path)[2]
    assert (claim.verdict, "average-dice-paper never" in claim.evidence) == (FAILS, True)


def test_what_had_too_few_steps_is_never_stable_and_is_named(tmp_path):
    fill(tmp_path, "main", as_the_paper_says, quick="cop-td", notes={"cop-td": "its slow copy would need about 9"})
    claims = judge(tmp_path)
    assert "cop-td never" in claims[2].evidence
    assert all("(3 logs, 1 seed; too few steps by their own account: cop-td)" in one.evidence for one in claims[:5])


def test_an_unfinished_experiment_is_not_judged(tmp_path):
    plan = PLANS["main"]
    fill(tmp_path, "main", as_the_paper_says, plan=replace(plan, logs=2, trained_logs=2))
    Store.open(tmp_path, "main", plan, {})  # somebody goes on, with a third log
    claims = judge(tmp_path)
    assert {claim.verdict for claim in claims} == {NOT_RUN}
    assert claims[0].evidence == "unfinished: 56 of 168 runs are missing"


def test_rows_of_another_target_policy_do_not_count(tmp_path, monkeypatch):
    fill(tmp_path, "ablation", as_the_paper_says)
    fill(tmp_path, "main", as_the_paper_says, plan=replace(PLANS["main"], tasks=("Ant-v5",)))
    original = experiments.policy_hash
    monkeypatch.setattr(experiments, "policy_hash", lambda task: original(task) + "new" * (task == "Hopper-v5"))
    assert {row["task"] for row in results(tmp_path, "ablation")} == set(TASKS) - {"Hopper-v5"}
    claims = judge(tmp_path)
    assert [claims[0].verdict, claims[7].verdict] == [HOLDS, NOT_RUN]
    assert claims[7].evidence == "unfinished: 4 of 28 runs are missing"


def test_a_manifest_that_cannot_be_read_is_named(tmp_path):
    fill(tmp_path, "main", as_the_paper_says, plan=replace(PLANS["main"], tasks=("Ant-v5",)))
    manifest = tmp_path / "main.json"
    whole = manifest.read_text()
    manifest.write_text(whole.replace('"wpdis"', '"my-own"'))
    with pytest.raises(SettingError, match="methods that are not known here: my-own"):
        results(tmp_path, "main")
    for damaged in ("", "{}", '{"plan": {"colour": 1}}'):
        manifest.write_text(damaged)
        with pytest.raises(SettingError, match=r"main\.json: not there, or not the manifest"):
            results(tmp_path, "main")


def test_what_is_stable_only_at_the_end_is_not(tmp_path):
    """Looked at ten times: where it ends for the last fifth of its steps, or for a little longer."""
    fill(tmp_path, "main", as_the_paper_says)
    row = next(row for row in results(tmp_path, "main") if row["estimator"] == PAPER)
    far = row["truth"] * 1.2
    for stays, expected in ((1, np.inf), (2, np.inf), (3, 800.0), (10, 100.0)):
        values = [*[row["value"] + far] * (10 - stays), *[row["value"]] * stays]
        curve = {"curve_step": list(range(100, 1_100, 100)), "curve_value": values}
        assert _steps_to_stability({**row, **curve}) == expected


def test_what_turns_with_the_length_of_training_is_open(tmp_path):
    """TD is better than all others by training ten times as long; after as many steps as they, it is worse."""
    fill(tmp_path, "main", as_the_paper_says)
    rows = results(tmp_path, "main")
    assert [others_below_td(rows)[0], sr_dice_comparable(rows)[0]] == [HOLDS, HOLDS]
    for row in rows:
        if row["estimator"] == "td":
            row["curve_step"] = [0, 100, 1_000]
            row["curve_value"][1] = row["truth"] * 2.8
    verdict, evidence = others_below_td(rows)
    assert verdict == OPEN
    ratios = (
        f"cop-td {0.9 / 0.3:.2g} after 100, dual-dice {0.9 / 0.3:.2g} after 100, best-dice {0.9 / 0.3:.2g} after 100"
    )
    assert f"TD after 1,000 steps, geometric mean over tasks: {ratios}; over" in evidence
    assert "after as many steps: cop-td 0.5, dual-dice 0.5, best-dice 0.5" in evidence
    verdict, evidence = sr_dice_comparable(rows)
    assert (verdict, "had, 100, on 0 of 7" in evidence) == (OPEN, True)
    for row in rows:
        if row["estimator"] == "sr-dice":  # the first thousand steps are its encoder's
            row["curve_step"] = [1_000, 1_500, 2_000]
    assert sr_dice_comparable(rows)[0] == HOLDS


def test_what_swings_is_not_right_by_one_look(tmp_path):
    """Errors of −0.3, 0.3, −0.1 and 0.1 in the last fifth of training, or in its last 1,000 steps."""
    fill(tmp_path, "main", as_the_paper_says)
    row = next(row for row in results(tmp_path, "main") if row["estimator"] == PAPER)
    values = [9.0] * 17 + [0.7, 1.3, 0.9, 1.1]
    for every in (50, 250):  # up to 1,000 and to 5,000 steps
        steps = list(range(0, 21 * every, every))
        curve = {"curve_step": steps, "curve_value": values, "truth": 1.0, "value": 1.1}
        assert _error([{**row, **curve}]) == pytest.approx(np.sqrt((0.3**2 + 0.3**2 + 0.1**2 + 0.1**2) / 4))
    off, swing = _average_and_swing([{**row, **curve}])
    assert (off, swing) == pytest.approx((np.mean(values[10:]) - 1, np.std(values[10:])))
    longer = {**curve, "curve_step": list(range(0, 21 * 400, 400))}
    assert _error([{**row, **longer}]) == pytest.approx(np.sqrt((0.3**2 + 0.1**2 + 0.1**2) / 3))
    lost = {**row, **curve, "curve_value": [1.0] * 20 + [np.nan]}
    assert _error([lost]) == np.inf
    assert _error([{**row, "curve_step": [], "value": 1.25, "truth": 1.0}]) == pytest.approx(0.25)


def test_an_error_that_is_small_by_luck_counts_as_a_thousandth(tmp_path):
    """On one of its logs fitted Q is right to the sixth digit; it is judged by all of them, and by the floor."""
    plan = replace(PLANS["robustness"], tasks=("Hopper-v5",), trained_logs=1)

    def error(unit, method):
        return 0.05 if method.estimator == PAPER else 1e-6

    fill(tmp_path, "robustness", error, plan=plan)
    claim = judge(tmp_path)[5]
    assert (claim.verdict, "50 at 0.8, 50 at 0.9" in claim.evidence) == (FAILS, True)
    fill(tmp_path / "two", "robustness", lambda unit, method: 0.1 if unit.log else 1e-6, plan=plan)
    assert f"{1e-3 / (0.1 / 2**0.5):.2g} at 0.8" in judge(tmp_path / "two")[5].evidence


def test_where_all_diverged_nobody_wins(tmp_path):
    fill(tmp_path, "main", lambda unit, method: None)
    claim = judge(tmp_path)[0]
    assert (claim.verdict, "CartPole-v1 nobody" in claim.evidence) == (FAILS, True)


def test_who_falls_does_not_win_by_it(tmp_path):
    """TD has the smallest errors, but on one log of each task none at all."""

    def error(unit, method):
        if method.estimator != "td":
            return as_the_paper_says(unit, method)
        return None if unit.log == 1 else 1e-6

    fill(tmp_path, "main", error)
    assert judge(tmp_path)[0].verdict == HOLDS
    assert draw(tmp_path, "main")


@pytest.mark.parametrize("experiment", PLANS)
def test_figures_and_tables_of_runs_without_values(tmp_path, experiment):
    plan = replace(PLANS[experiment], tasks=("CartPole-v1",))
    fill(tmp_path, experiment, lambda unit, method: None if unit.log == 0 else 0.1, plan=plan)
    assert draw(tmp_path, experiment)
    with Console(file=io.StringIO()) as console:
        console.print(overview(tmp_path, experiment))


def test_a_claim_is_not_judged_without_those_it_names(tmp_path):
    fill(tmp_path, "main", as_the_paper_says, plan=Main(("Ant-v5",), ("wpdis", PAPER), 1, 1, 1, 50, {PAPER: 100}))
    fill(
        tmp_path,
        "robustness",
        as_the_paper_says,
        plan=Robustness(("CartPole-v1",), (PAPER, "td"), 1, 1, 1, 50, {PAPER: 100, "td": 100}, ("transitions",)),
    )
    fill(tmp_path, "ablation", as_the_paper_says, plan=Ablation(("Ant-v5",), 1, 1, 100, 50, (0.5,)))
    assert {claim.verdict for claim in judge(tmp_path)} == {NOT_RUN}


def test_what_was_not_run_is_not_judged(tmp_path):
    with pytest.raises(SettingError, match="no results"):
        judge(tmp_path)
    fill(tmp_path, "main", as_the_paper_says)
    assert [claim.verdict for claim in judge(tmp_path)][5:] == [NOT_RUN] * 3


def test_figures_are_drawn_from_the_store_alone_and_are_the_same_each_time(tmp_path):
    for experiment, plan in PLANS.items():
        fill(tmp_path, experiment, as_the_paper_says, plan=replace(plan, tasks=("CartPole-v1", "Hopper-v5")))
        (path,) = draw(tmp_path, experiment)
        drawn = path.read_bytes()
        assert draw(tmp_path, experiment) == [path]
        assert path.read_bytes() == drawn
        assert experiment == "tuning" or b"Hopper-v5" in drawn


def test_all_that_trains_is_in_the_figure_of_robustness(tmp_path):
    plan = Robustness(("Ant-v5",), ("wis", "best-dice", "fqe"), 1, 1, 1, 50, {"best-dice": 100}, ("discount",))
    fill(tmp_path, "robustness", as_the_paper_says, plan=plan)
    drawn = draw(tmp_path, "robustness")[0].read_text()
    assert ["best-dice (1 log)" in drawn, "fqe (1 log)" in drawn, "wis (1 log)" in drawn] == [True, True, False]


def test_a_combination_without_a_value_on_some_log_is_blank_in_the_heat_map(tmp_path):
    def error(unit, method):
        falls = unit.log == 1 and method.options["ridge"] == 0 and method.options["mass_weight"] == 0.5
        return None if falls else 0.1

    fill(tmp_path, "tuning", error)
    figure = tuning_figure(results(tmp_path, "tuning"))["tuning"]
    image = np.ma.filled(figure.axes[0].images[0].get_array(), np.nan)
    assert np.isnan(image).tolist() == [[True, False], [False, False]]


def test_errors_are_root_mean_squares_over_runs_with_a_value(tmp_path):
    fill(tmp_path, "main", as_the_paper_says)
    rows = results(tmp_path, "main")
    of_td = [row for row in rows if row["estimator"] == "td" and row["task"] == "Hopper-v5"]
    expected = 0.3 * true_value("Hopper-v5", 0.95)[0]
    assert rmse(of_td) == pytest.approx(expected)
    of_td[0]["error"] = np.nan
    assert rmse(of_td) == pytest.approx(expected)
    assert np.isnan(rmse([]))
    with pytest.raises(SettingError, match="no results of tuning"):
        overview(tmp_path, "tuning")


def test_hyperparameters_chosen_with_and_without_the_truth(tmp_path):
    """(0.1, 2, 1e-4) is second on both tasks, so best for all; each task has a best of its own; losses mislead."""
    first = {"CartPole-v1": (0.0, 0.5, 1e-4), "Hopper-v5": (0.0, 2.0, 1e-3)}
    misled = (0.1, 0.5, 1e-3)

    def combination(method):
        return tuple(method.options[name] for name in ("ridge", "mass_weight", "learning_rate"))

    def error(unit, method):
        if combination(method) == (0.0, 0.5, 1e-3):
            return None  # diverged: never chosen, though its loss is the smallest
        return {first[unit.task]: 0.1, (0.1, 2.0, 1e-4): 0.2, misled: 0.7}.get(combination(method), 0.9)

    def loss(unit, method):
        return {(0.0, 0.5, 1e-3): float("nan"), misled: 0.5}.get(combination(method), 1.0)

    fill(tmp_path, "tuning", error, loss=loss)
    lines = {line[0]: line[1:] for line in chosen(tmp_path)}
    for task, (ridge, weight, rate) in first.items():
        size = abs(true_value(task, 0.95)[0])
        common, own, blind, published = lines[task]
        assert common == f"0.1, 2, 0.0001 → {0.2 * size:.3g}"
        assert own == f"{ridge:g}, {weight:g}, {rate:g} → {0.1 * size:.3g}"
        assert blind == f"0.1, 0.5, 0.001 → {0.7 * size:.3g}"
        assert published == "–"  # not in this grid
    assert len(write_choices(chosen(tmp_path), tmp_path).read_text().splitlines()) == 4
    with pytest.raises(SettingError, match="no results of tuning"):
        chosen(tmp_path / "nothing")


def test_a_choice_is_not_judged_by_the_log_it_was_made_by(tmp_path):
    """On each of the two logs another combination is best, by luck, and the worst on the other."""

    def error(unit, method):
        lucky = (unit.log == 0) == (method.options["ridge"] == 0)
        return 0.1 if lucky else 0.9

    fill(tmp_path, "tuning", error, loss=lambda unit, method: method.options["learning_rate"])
    for task, common, own, blind, _ in chosen(tmp_path):
        size = abs(true_value(task, 0.95)[0])
        assert common == own == f"2 different → {0.9 * size:.3g}"
        assert blind == f"0, 0.5, 0.0001 → {np.sqrt((0.1**2 + 0.9**2) / 2) * size:.3g}"
    fill(tmp_path / "one", "tuning", error, plan=replace(PLANS["tuning"], logs=1))
    assert {line[1:3] for line in chosen(tmp_path / "one")} == {("–", "–")}


def test_a_combination_that_is_right_at_its_last_look_by_luck_is_not_chosen(tmp_path, monkeypatch):
    fill(tmp_path, "tuning", lambda unit, method: 0.3 if method.options["ridge"] else 0.01)
    rows = results(tmp_path, "tuning")
    for row in rows:
        if json.loads(row["options"])["ridge"] == 0:  # right at the end of training, and far off shortly before
            row["curve_step"] = [0, 90, 100]
            row["curve_value"][1] = row["truth"] * 1.9
    monkeypatch.setattr(choices, "results", lambda directory, experiment: rows)
    for task, common, own, blind, _ in chosen(tmp_path):
        size = abs(true_value(task, 0.95)[0])
        assert common == own == f"0.1, 0.5, 0.0001 → {0.3 * size:.3g}"
        assert blind == f"0, 0.5, 0.0001 → {np.sqrt((0.9**2 + 0.01**2) / 2) * size:.3g}"


def test_a_log_that_is_yet_to_be_run_has_not_diverged(tmp_path, monkeypatch):
    """The second log of Hopper is not there, and on CartPole's nothing of the chosen combination has a value."""

    def error(unit, method):
        return None if unit.log == 1 and unit.task == "CartPole-v1" else 0.1

    fill(tmp_path, "tuning", error)
    rows = [row for row in results(tmp_path, "tuning") if (row["task"], row["log"]) != ("Hopper-v5", 1)]
    monkeypatch.setattr(choices, "results", lambda directory, experiment: rows)
    of_cart_pole, of_hopper = chosen(tmp_path)
    assert of_cart_pole[3] == "diverges on 1 of 2 logs"
    rows += [row for row in results(tmp_path, "tuning") if (row["task"], row["log"]) == ("Hopper-v5", 1)][:1]
    assert chosen(tmp_path)[1] == of_hopper  # nor has one that is half run
    assert of_hopper[3] == f"0, 0.5, 0.0001 → {0.1 * abs(true_value('Hopper-v5', 0.95)[0]):.3g}"
