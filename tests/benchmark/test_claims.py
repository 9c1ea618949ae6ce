"""Claims and figures from made-up results whose verdicts are known."""

import json

import numpy as np
import pytest

from average_dice.benchmark.claims import FAILS, HOLDS, NOT_RUN, judge, write_claims
from average_dice.benchmark.experiments import Ablation, Main, Robustness, Tuning
from average_dice.benchmark.figures import draw
from average_dice.benchmark.store import Store
from average_dice.benchmark.summaries import overview, results, rmse
from average_dice.benchmark.tasks import TASKS
from average_dice.errors import SettingError

PAPER = "average-dice-paper"
METHODS = (PAPER, "td", "cop-td", "best-dice", "sr-dice", "dual-dice", "average-reward", "wpdis")
STEPS = dict.fromkeys(METHODS[:6], 100)
PLANS = {
    "main": Main(tuple(TASKS), METHODS, logs=3, trained_logs=3, seeds=1, records=2, steps=STEPS),
    "robustness": Robustness(tuple(TASKS), (PAPER, "td"), 2, 2, 1, 2, {PAPER: 100, "td": 100}),
    "ablation": Ablation(tuple(TASKS), logs=2, seeds=2, steps=100, records=2),
    "tuning": Tuning(("CartPole-v1", "Hopper-v5"), 1, 1, 100, (0.0, 0.1), (0.5, 2.0), (1e-4, 1e-3)),
}


def curve(method, off):
    """The paper's method is where it ends after 50 of 100 steps, the others only at the end."""
    if method.num_steps is None:
        return []
    return [0.0, 2.0 + off if method.estimator == PAPER else 1.0, 2.0 + off]


def fill(directory, experiment, error):
    """A store in which `error(unit, method)` is the error of every run; the truth is 2."""
    plan = PLANS[experiment]
    units = list(plan.units(experiment))
    store = Store.open(directory, experiment, plan, {})
    for unit in units:
        rows = []
        for method in unit.methods:
            off = error(unit, method)
            for seed in range(unit.num_seeds):
                rows.append(
                    {
                        "unit": unit.key,
                        "experiment": experiment,
                        "task": unit.task,
                        "estimator": method.estimator,
                        "options": json.dumps(dict(method.options)),
                        "discount": unit.setting.discount,
                        "transitions": unit.setting.transitions,
                        "max_steps": unit.setting.max_steps,
                        "noise": unit.setting.noise,
                        "log": unit.log,
                        "seed": seed,
                        "value": 2.0 + off * (-1) ** unit.log,
                        "truth": 2.0,
                        "notes": "",
                        "diagnostics": json.dumps({"held_out_loss": 1 + off**2}),
                        "curve_step": [0, 50, 100] if method.num_steps else [],
                        "curve_value": curve(method, off),
                    }
                )
        store.add(unit, rows)
    store.gather(units)


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


@pytest.mark.parametrize(("error", "verdict"), [(as_the_paper_says, HOLDS), (the_opposite, FAILS)])
def test_each_claim_is_judged_by_the_numbers(tmp_path, error, verdict):
    for experiment in ("main", "robustness", "ablation"):
        fill(tmp_path, experiment, error)
    claims = judge(tmp_path)
    wrong = [claim for claim in claims if claim.verdict != verdict and claim.claim != "Fastest to a stable error"]
    assert not wrong
    assert "2 of 7" not in claims[0].evidence
    (fastest,) = [claim for claim in claims if claim.claim == "Fastest to a stable error"]
    assert fastest.verdict == HOLDS
    assert "average-dice-paper 50, td 100" in fastest.evidence
    text = write_claims(claims, tmp_path).read_text()
    assert text.count(f"| {verdict} |") >= 7


def test_what_was_not_run_is_not_judged(tmp_path):
    with pytest.raises(SettingError, match="no results"):
        judge(tmp_path)
    fill(tmp_path, "main", as_the_paper_says)
    assert [claim.verdict for claim in judge(tmp_path)][5:] == [NOT_RUN] * 3


def test_figures_are_drawn_from_the_store_alone_and_are_the_same_each_time(tmp_path):
    for experiment in PLANS:
        fill(tmp_path, experiment, as_the_paper_says)
        (path,) = draw(tmp_path, experiment)
        drawn = path.read_bytes()
        assert draw(tmp_path, experiment) == [path]
        assert path.read_bytes() == drawn
        for task in TASKS if experiment in ("main", "ablation", "robustness") else ():
            assert task.encode() in drawn


def test_errors_are_root_mean_squares_over_runs_with_a_value(tmp_path):
    fill(tmp_path, "main", as_the_paper_says)
    rows = results(tmp_path, "main")
    of_td = [row for row in rows if row["estimator"] == "td"]
    assert rmse(of_td) == pytest.approx(0.3)
    of_td[0]["error"] = np.nan
    assert rmse(of_td) == pytest.approx(0.3)
    assert np.isnan(rmse([]))
    with pytest.raises(SettingError, match="no results of tuning"):
        overview(tmp_path, "tuning")
