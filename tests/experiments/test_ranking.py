"""The recommended estimator against others, from made-up results with known ratios."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from average_dice.errors import SettingError
from average_dice.estimators import RECOMMENDED
from average_dice.experiments.plotting import draw
from average_dice.experiments.ranking import (
    COMPARISON,
    FIRST_UNSEEN_LOG,
    UNSEEN_TASKS,
    is_unseen,
    is_unseen_setting,
    rank,
)
from average_dice.experiments.robustness import RobustnessPlan
from made_up import fill

PLAN = RobustnessPlan(("CartPole-v1", "Walker2d-v5"), (RECOMMENDED, "fqe", "wpdis"), 2, 0, 1, 50)


def test_ratios_worst_cases_and_intervals(tmp_path):
    """Ours is 0.1 throughout; fqe is 0.2, but 0.02 on one of 30 settings; wpdis has no value on half of the logs."""

    def error(job, method):
        if method.estimator == "fqe":
            return 0.02 if job.task == "CartPole-v1" and job.setting.discount == 0.8 else 0.2
        return 0.1 if method.estimator == RECOMMENDED else 0.4 if job.log == 0 else None

    fill(tmp_path, "robustness", error, plan=PLAN)
    found = rank(tmp_path)
    fqe, wpdis = found.rivals  # the best first
    assert (fqe.estimator, wpdis.estimator) == ("fqe", "wpdis")
    assert fqe.ratio == pytest.approx(np.exp((29 * np.log(0.5) + np.log(5)) / 30))
    cart_pole = np.exp((14 * np.log(0.5) + np.log(5)) / 15)
    assert (fqe.mujoco, fqe.others) == (pytest.approx(0.5), pytest.approx(cart_pole))
    reach = stats.t.ppf(0.975, 1) * np.std(np.log([0.5, cart_pole]), ddof=1) / np.sqrt(2)  # over two tasks
    assert (fqe.lower, fqe.upper) == (
        pytest.approx(fqe.ratio / np.exp(reach)),
        pytest.approx(fqe.ratio * np.exp(reach)),
    )
    assert wpdis.lower == pytest.approx(wpdis.ratio)  # the ratio is the same on every task
    assert fqe.unseen_tasks == pytest.approx(0.5)
    assert (fqe.cells, fqe.logs, wpdis.logs) == (30, 2, 1)
    assert wpdis.ratio == pytest.approx(0.25)
    (far,) = found.far
    assert far.startswith("CartPole-v1, γ = 0.8")
    assert "5.0 times fqe" in far
    assert found.far_share == pytest.approx(1 / 30)
    table, content = COMPARISON.summary(tmp_path).write(tmp_path)
    assert [table.name, content.name] == ["comparison.md", "comparison.json"]
    assert "1 of 30 settings (3 %)" in table.read_text()
    assert json.loads(content.read_text())["num_cells"] == 30
    (drawn,) = draw(COMPARISON, tmp_path)
    text = drawn.read_text()
    assert RECOMMENDED in text
    assert "average-dice-paper" not in text  # not run here


def test_errors_below_a_thousandth_count_as_that(tmp_path):
    def error(job, method):
        return 0.002 if method.estimator == RECOMMENDED else 1e-9

    fill(tmp_path, "robustness", error, plan=PLAN)
    assert rank(tmp_path).rivals[0].ratio == pytest.approx(2.0)


def test_unseen_tasks_settings_and_logs():
    seen = {"task": "Hopper-v5", "discount": 0.95, "transitions": 4000, "max_steps": 100, "noise": 2.0, "log": 0}
    assert not is_unseen(seen)
    assert is_unseen(seen | {"log": FIRST_UNSEEN_LOG})
    assert all(is_unseen(seen | {"task": task}) for task in UNSEEN_TASKS)
    for change in ({"discount": 0.9}, {"transitions": 8000}, {"max_steps": 50}, {"noise": 1.8}):
        assert is_unseen_setting(seen | change)
    assert len(UNSEEN_TASKS) >= 2


def test_without_results_is_an_error(tmp_path):
    with pytest.raises(SettingError, match="no results of robustness"):
        rank(tmp_path)


def test_a_single_task_has_no_interval(tmp_path):
    fill(tmp_path, "robustness", lambda job, method: 0.1, plan=replace(PLAN, tasks=("CartPole-v1",)))
    assert np.isnan(rank(tmp_path).rivals[0].lower)


def test_a_method_with_few_logs_is_compared_with_our_error_on_all_logs(tmp_path):
    """Ours is 0.1 on log 0 and 0.5 on the others; theirs is 0.01 on log 0, its only log: possibly luck."""

    def error(job, method):
        if method.estimator == RECOMMENDED:
            return 0.1 if job.log == 0 else 0.5
        return 0.01 if job.log == 0 else None

    fill(tmp_path, "robustness", error, plan=replace(PLAN, logs=4, estimators=(RECOMMENDED, "wpdis")))
    found = rank(tmp_path)
    (rival,) = found.rivals
    ours = np.sqrt((0.1**2 + 3 * 0.5**2) / 4)
    assert rival.ratio == pytest.approx(ours / 0.01)
    assert rival.logs == 1
    assert found.far == ()
