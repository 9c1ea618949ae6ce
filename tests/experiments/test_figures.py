"""Figures from made-up results: the same each time, and without rows that do not exist."""

import io
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from average_dice.estimators import REGISTRY
from average_dice.experiments import plotting
from average_dice.experiments.main import MAIN
from average_dice.experiments.plotting import colour_of, draw, drawn
from average_dice.experiments.ranking import COMPARISON
from average_dice.experiments.registry import ANALYSES, EXPERIMENTS
from average_dice.experiments.robustness import ROBUSTNESS, RobustnessPlan
from average_dice.experiments.tuning import TUNING, heat_maps
from made_up import PLANS, as_the_paper_says, fill


@pytest.mark.parametrize("experiment", PLANS)
def test_figures_and_tables_of_runs_without_values(tmp_path, experiment):
    plan = replace(PLANS[experiment], tasks=("CartPole-v1",))
    fill(tmp_path, experiment, lambda job, method: None if job.log == 0 else 0.1, plan=plan)
    assert draw(EXPERIMENTS[experiment], tmp_path)
    with Console(file=io.StringIO()) as console:
        console.print(EXPERIMENTS[experiment].summary(tmp_path).shown)


@pytest.mark.parametrize("experiment", PLANS)
def test_figures_where_no_run_has_a_value(tmp_path, experiment):
    """No warning, and no legend without lines."""
    plan = replace(PLANS[experiment], tasks=("CartPole-v1",))
    fill(tmp_path, experiment, lambda job, method: None, plan=plan)
    (figure,) = EXPERIMENTS[experiment].figures(tmp_path).values()
    assert not figure.legends
    with Console(file=io.StringIO()) as console:
        console.print(EXPERIMENTS[experiment].summary(tmp_path).shown)


def test_figures_are_drawn_from_the_store_alone_and_are_the_same_each_time(tmp_path):
    for experiment, plan in PLANS.items():
        fill(tmp_path, experiment, as_the_paper_says, plan=replace(plan, tasks=("CartPole-v1", "Hopper-v5")))
        (path,) = draw(EXPERIMENTS[experiment], tmp_path)
        first = path.read_bytes()
        assert draw(EXPERIMENTS[experiment], tmp_path) == [path]
        assert path.read_bytes() == first
        assert experiment == "tuning" or b"Hopper-v5" in first


def test_the_figure_of_robustness_shows_all_trained_methods_and_some_closed_forms(tmp_path):
    plan = RobustnessPlan(("Ant-v5",), ("wis", "best-dice", "fqe"), 1, 1, 1, 50, {"best-dice": 100}, ("discount",))
    fill(tmp_path, "robustness", as_the_paper_says, plan=plan)
    text = draw(ROBUSTNESS, tmp_path)[0].read_text()
    assert ["best-dice (1 log)" in text, "fqe (1 log)" in text, "wis (1 log)" in text] == [True, True, False]


def test_an_estimator_added_to_the_registry_needs_no_other_change(tmp_path, monkeypatch):
    """It has rows in one store and none in the other: it is drawn in the one and absent from the other."""
    monkeypatch.setitem(REGISTRY, "of-my-own", replace(REGISTRY["wis"], in_figures=True, colour=None))
    plan = RobustnessPlan(("Ant-v5",), ("wis", "of-my-own"), 2, 0, 1, 50, axes=("discount",))
    fill(tmp_path / "with", "robustness", as_the_paper_says, plan=plan)
    fill(tmp_path / "without", "robustness", as_the_paper_says, plan=replace(plan, estimators=("wis", "fqe")))
    assert drawn(ROBUSTNESS.results(tmp_path / "with")) == ["of-my-own"]
    assert drawn(ROBUSTNESS.results(tmp_path / "without")) == ["fqe"]
    assert colour_of("of-my-own") in plotting.PALETTE
    for folder, shown in (("with", True), ("without", False)):
        text = draw(ROBUSTNESS, tmp_path / folder)[0].read_text()
        assert ("of-my-own (2 logs)" in text) == shown
        assert draw(COMPARISON, tmp_path / folder)


def test_every_estimator_has_a_colour():
    assert all(colour_of(name) for name in REGISTRY)


def test_a_combination_without_a_value_on_some_log_is_blank_in_the_heat_map(tmp_path):
    def error(job, method):
        fails = job.log == 1 and method.options["ridge"] == 0 and method.options["mass_weight"] == 0.5
        return None if fails else 0.1

    fill(tmp_path, "tuning", error)
    figure = heat_maps(TUNING.results(tmp_path))
    image = np.ma.filled(figure.axes[0].images[0].get_array(), np.nan)
    assert np.isnan(image).tolist() == [[True, False], [False, False]]


def test_tables_need_no_matplotlib(tmp_path):
    fill(tmp_path, "main", as_the_paper_says, plan=replace(PLANS["main"], tasks=("Ant-v5",)))
    script = (
        "import sys; from pathlib import Path; from average_dice.experiments.registry import ANALYSES\n"
        f"[ANALYSES[name].summary(Path({str(tmp_path)!r})) for name in ('claims', 'main')]\n"
        "print('matplotlib' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "False"
    assert [name for name, one in ANALYSES.items() if not one.has_figures] == ["trust", "claims"]
    assert MAIN.has_figures
