"""Errors by task and method, and rows that do not count."""

from dataclasses import replace

import numpy as np
import pytest

from average_dice.errors import SettingError
from average_dice.experiments.main import MAIN
from average_dice.experiments.registry import ANALYSES, EXPERIMENTS, find_analysis
from average_dice.experiments.summaries import rmse
from average_dice.experiments.tuning import TUNING
from average_dice.tasks import true_value
from made_up import PLANS, as_the_paper_says, fill


def test_errors_are_root_mean_squares_over_runs_with_a_value(tmp_path):
    fill(tmp_path, "main", as_the_paper_says)
    rows = MAIN.results(tmp_path)
    of_td = [row for row in rows if row["estimator"] == "td" and row["task"] == "Hopper-v5"]
    expected = 0.3 * true_value("Hopper-v5", 0.95)[0]
    assert rmse(of_td) == pytest.approx(expected)
    of_td[0]["error"] = np.nan
    assert rmse(of_td) == pytest.approx(expected)
    assert np.isnan(rmse([]))
    with pytest.raises(SettingError, match="no results of tuning"):
        TUNING.summary(tmp_path)


def test_a_manifest_that_cannot_be_read_is_named(tmp_path):
    fill(tmp_path, "main", as_the_paper_says, plan=replace(PLANS["main"], tasks=("Ant-v5",)))
    manifest = tmp_path / "main.json"
    whole = manifest.read_text()
    manifest.write_text(whole.replace('"wpdis"', '"my-own"'))
    with pytest.raises(SettingError, match="has unknown methods: my-own"):
        MAIN.results(tmp_path)
    manifest.write_text(whole.replace('"format": 2', '"format": 1'))
    with pytest.raises(SettingError, match="has format 1, this version reads format 2"):
        MAIN.results(tmp_path)
    for damaged in ("", "{}", '{"plan": {"colour": 1}}', '{"format": 2, "plan": {"colour": 1}}', "[1]"):
        manifest.write_text(damaged)
        with pytest.raises(SettingError, match=r"main\.json: missing, or not the manifest"):
            MAIN.results(tmp_path)


def test_every_experiment_has_a_name_and_a_line_of_help():
    assert list(EXPERIMENTS) == ["main", "released", "robustness", "tuning", "ablation", "trust"]
    assert list(ANALYSES) == [*EXPERIMENTS, "claims", "comparison"]
    for name, one in ANALYSES.items():
        assert find_analysis(name) is one
        assert one.description.endswith(".")
        assert "\n" not in one.description
    with pytest.raises(SettingError, match=r"unknown experiment 'mian'\. Known are main, "):
        find_analysis("mian")
