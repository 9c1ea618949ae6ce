"""The scripts in speed/: what they compute from measurements, and what they give to other libraries."""

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from average_dice.testing.exact_mdps import early_termination

ROOT = Path(__file__).parents[1]


@pytest.fixture
def script(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(ROOT / "speed"), *sys.path])
    return import_module


def measurement(rows: int, power: float) -> dict[str, float]:
    numbers = {"seconds": 2.0 * rows**power, "busy": 3.0 * rows**power, "product_busy": 1e-3 * rows}
    return {**numbers, "MiB": 100.0, "MiB_before": 50.0, "load": 1.0, "rounds": 3}


def test_the_exponent_of_a_power_law_without_the_smallest_log(script):
    growth = script("growth")
    results = {growth.name_of("fit", "disk", rows): measurement(rows, 0.9) for rows in (400_000, 40_000, 4_000_000)}
    results[growth.name_of("fit", "disk", 4_000)] = measurement(4_000, 3.0)
    assert growth.exponent(results, "fit", "disk", "seconds") == pytest.approx(0.9)
    assert growth.exponent(results, "fit", "memory", "seconds") is None
    assert "| 40,000 | disk | " in growth.table(results)


def test_logs_above_a_million_rows_stay_on_disk(script):
    found = script("growth").every([4_000_000, 4_000])
    assert [(where, rows) for what, where, rows in found if what == "fit"] == [
        ("memory", 4_000),
        ("disk", 4_000),
        ("disk", 4_000_000),
    ]


def test_tables_replace_what_stands_between_markers(script, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before <!-- a -->old<!-- end --> after", encoding="utf-8")
    for _ in range(2):
        script("measuring").write_between(page, "<!-- a -->", "<!-- end -->", "new")
        assert page.read_text(encoding="utf-8") == "before <!-- a -->\nnew\n<!-- end --> after"


def test_peaks_of_memory_are_forgotten(script):
    measuring = script("measuring")
    found, _ = measuring.measured(lambda: np.ones(20_000_000).sum())  # 153 MiB
    assert found["MiB"] - found["MiB_before"] > 100
    found, _ = measuring.measured(lambda: None)
    assert found["MiB"] - found["MiB_before"] < 50


def test_errors_of_peers_are_root_mean_squares_and_times_the_least(script):
    fits = [{"value": 1.5, "seconds": 3.0, "load": 9.0}, {"value": 0.5, "seconds": 2.0, "load": 1.0}]
    assert script("peers").summary(fits, 1.0) == {"seconds": 2.0, "error": 0.5}


def test_errors_are_not_shown_more_precisely_than_the_truth_is_known(script):
    shown = script("peers").shown_error
    assert (shown(0.00001, 0.0002), shown(0.003, 0.0002), shown(0.0, 0.0)) == ("< 0.0004", "0.0030", "0.0000")


def test_inputs_of_scope_rl_give_the_same_importance_sampling(script):
    """Padded rows have no reward and a ratio of 1, so that weighted per-decision importance sampling is unchanged."""
    problem = early_termination().problem(40, seed=1)
    inputs = script("scope_rl_inputs").inputs_of(problem)
    length = inputs["step_per_trajectory"]
    probability = inputs["evaluation_policy_action_dist"][np.arange(len(inputs["action"])), inputs["action"]]
    products = np.cumprod((probability / inputs["pscore"]).reshape(-1, length), axis=1)
    rewards = inputs["reward"].reshape(-1, length)
    by_step = (products * rewards).sum(axis=0) / products.sum(axis=0)
    data = problem.dataset
    after = np.exp(problem.log_product + problem.log_ratio)
    for step in range(length):
        here = data.step == step
        ended = data.terminated & (data.step < step)
        assert by_step[step] == pytest.approx((after * data.reward)[here].sum() / after[here | ended].sum(), rel=1e-9)
