"""What the README shows runs, and gives the numbers that it says."""

import re
import shutil
from pathlib import Path

import pytest

import average_dice as ad
from average_dice.demo import cartpole

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
DEMO = Path(ad.__file__).parent / "demo"


def test_the_python_runs(tmp_path, monkeypatch, capsys):
    shutil.copy(DEMO / "cartpole.parquet", tmp_path / "log.parquet")
    shutil.copy(DEMO / "cartpole.safetensors", tmp_path / "policy.safetensors")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL):
        exec(block, names)
    assert (tmp_path / "result.json").exists()
    assert "average-dice-features" in capsys.readouterr().out


def test_the_numbers_are_those_of_the_demo():
    demo = cartpole()
    found = ad.evaluate(demo.dataset, demo.policy, demo.truth["discount"]).estimates
    rows = dict(re.findall(r"^\| ([a-z-]+)(?: ★)? \| ([0-9.]+) \|", README, flags=re.MULTILINE))
    assert set(rows) == set(found)
    for name, value in rows.items():
        assert float(value) == pytest.approx(found[name].value, abs=6e-5)


def test_every_link_leads_somewhere():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for link in re.findall(r"\]\((?!http)([^)#]+)", page.read_text()):
            assert (page.parent / link).exists(), (page, link)
