"""The recommended estimator against others, from made-up results whose ratios are known."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from average_dice.errors import SettingError
from average_dice.estimators import RECOMMENDED
from average_dice.experiments.figures import draw
from average_dice.experiments.plans import Robustness
from average_dice.experiments.ranking import (
    FIRST_UNSEEN_LOG,
    UNSEEN_TASKS,
    compare,
    is_unseen,
    is_unseen_setting,
    render,
    write_comparison,
)
from made_up import fill

PLAN = Robustness(("CartPole-v1", "Walker2d-v5"), (RECOMMENDED, "fqe", "wpdis"), 2, 0, 1, 50)


def test_ratios_worst_cases_and_intervals(tmp_path):
    """Ours is 0.1 throughout; fqe is 0.2, but 0.02 on one of 30 settings; wpdis has no value on half of the logs."""

    def error(unit, method):
        if method.estimator == "fqe":
            return 0.02 if unit.task == "CartPole-v1" and unit.setting.discount == 0.8 else 0.2
        return 0.1 if method.estimator == RECOMMENDED else 0.4 if unit.log == 0 else None

    fill(tmp_path, "robustness", error, plan=PLAN)
    found = compare(tmp_path)
    fqe, wpdis = found.rivals  # the nearest first
    assert (fqe.estimator, wpdis.estimator) == ("fqe", "wpdis")
    assert fqe.ratio == pytest.approx(np.exp((29 * np.log(0.5) + np.log(5)) / 30))
    cart_pole = np.exp((14 * np.log(0.5) + np.log(5)) / 15)
    assert (fqe.mujoco, fqe.others) == (pytest.approx(0.5), pytest.approx(cart_pole))
    reach = stats.t.ppf(0.975, 1) * np.std(np.log([0.5, cart_pole]), ddof=1) / np.sqrt(2)  # over two tasks
    assert (fqe.lower, fqe.upper) == (
        pytest.approx(fqe.ratio / np.exp(reach)),
        pytest.approx(fqe.ratio * np.exp(reach)),
    )
    assert wpdis.lower == pytest.approx(wpdis.ratio)  # every task says the same
    assert fqe.unseen_tasks == pytest.approx(0.5)
    assert (fqe.cells, fqe.logs, wpdis.logs) == (30, 2, 1)
    assert wpdis.ratio == pytest.approx(0.25)
    (far,) = found.far
    assert far.startswith("CartPole-v1, γ = 0.8")
    assert "5.0 times fqe" in far
    assert found.far_share == pytest.approx(1 / 30)
    text = write_comparison(found, tmp_path).read_text()
    assert "1 of 30 settings (3 %)" in text
    assert json.loads((tmp_path / "comparison.json").read_text())["num_cells"] == 30
    render(found)
    (drawn,) = draw(tmp_path, "comparison")
    text = drawn.read_text()
    assert RECOMMENDED in text
    assert "average-dice-paper" not in text  # not run here


def test_errors_below_a_thousandth_count_as_that(tmp_path):
    def error(unit, method):
        return 0.002 if method.estimator == RECOMMENDED else 1e-9

    fill(tmp_path, "robustness", error, plan=PLAN)
    assert compare(tmp_path).rivals[0].ratio == pytest.approx(2.0)


def test_what_was_kept_apart():
    seen = {"task": "Hopper-v5", "discount": 0.95, "transitions": 4000, "max_steps": 100, "noise": 2.0, "log": 0}
    assert not is_unseen(seen)
    assert is_unseen(seen | {"log": FIRST_UNSEEN_LOG})
    assert all(is_unseen(seen | {"task": task}) for task in UNSEEN_TASKS)
    for change in ({"discount": 0.9}, {"transitions": 8000}, {"max_steps": 50}, {"noise": 1.8}):
        assert is_unseen_setting(seen | change)
    assert len(UNSEEN_TASKS) >= 2


def test_without_results_it_says_so(tmp_path):
    with pytest.raises(SettingError, match="no results of robustness"):
        compare(tmp_path)


def test_a_single_task_has_no_interval(tmp_path):
    fill(tmp_path, "robustness", lambda unit, method: 0.1, plan=replace(PLAN, tasks=("CartPole-v1",)))
    assert np.isnan(compare(tmp_path).rivals[0].lower)


def test_who_ran_on_few_logs_is_set_against_our_error_on_all(tmp_path):
    """Ours is 0.1 on log 0 and 0.5 on the others; theirs is 0.01 on log 0, the only one it has: luck, perhaps."""

    def error(unit, method):
        if method.estimator == RECOMMENDED:
            return 0.1 if unit.log == 0 else 0.5
        return 0.01 if unit.log == 0 else None

    fill(tmp_path, "robustness", error, plan=replace(PLAN, logs=4, estimators=(RECOMMENDED, "wpdis")))
    found = compare(tmp_path)
    (rival,) = found.rivals
    ours = np.sqrt((0.1**2 + 3 * 0.5**2) / 4)
    assert rival.ratio == pytest.approx(ours / 0.01)
    assert rival.logs == 1
    assert found.far == ()
