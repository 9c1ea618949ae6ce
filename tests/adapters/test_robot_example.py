"""The example with Stable-Baselines3 runs, and its estimate agrees with new episodes of the model."""

import runpy
from pathlib import Path

import pytest

pytest.importorskip("stable_baselines3")
pytest.importorskip("gymnasium")
pytest.importorskip("torch")

EXAMPLE = Path(__file__).parents[2] / "examples" / "robot.py"


def test_the_robot(tmp_path, capsys):
    example = runpy.run_path(str(EXAMPLE))
    found, truth = example["main"](tmp_path, steps=(2_048, 2_048), episodes=20, bootstrap=2)
    assert f"earns {truth:.3f}" in capsys.readouterr().out
    assert found.dataset["episodes"] == 20
    assert found.dataset["terminated"] == 0  # a pendulum never ends: time limits are truncation
    assert found.log == "Pendulum-v1"
    assert found.value == pytest.approx(truth, abs=2)  # the standard error of 20 start states is 0.5
    page = (tmp_path / "robot.html").read_text(encoding="utf-8")
    assert "<h1>Is the newer model better?</h1>" in page
    assert "newer model" in page
