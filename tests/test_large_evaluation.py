"""evaluate on logs in blocks: the same numbers as in memory, bounded memory, and clear refusals."""

import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import average_dice as ad
from average_dice.cli.logs import read_log_or_blocks
from average_dice.data.columns import OPTIONAL, REQUIRED
from average_dice.demo import load_demo
from average_dice.errors import DatasetError, NotEnoughMemory, SettingError
from average_dice.estimators.blend import blend as blend_module
from average_dice.testing.exact_mdps import early_termination, random_mdp
from test_cli import run

SMALL = {"bootstrap": 20, "seed": 3}


@pytest.fixture
def on_disk(tmp_path: Path) -> tuple[Path, ad.Problem]:
    """A log in three parts, with its policy."""
    demo = load_demo("CartPole-v1")
    problem = ad.Problem(demo.dataset.select_episodes(np.arange(45)), demo.policy, 0.9)
    (tmp_path / "log").mkdir()
    for part, episodes in enumerate(np.array_split(np.arange(45), 3)):
        log = problem.dataset.select_episodes(episodes)
        log = ad.LoggedDataset(**{**log_fields(log), "episode": log.episode + 15 * part})
        ad.write_dataset(log, tmp_path / "log" / f"part-{part}.parquet")
    ad.save_policy(demo.policy, tmp_path / "policy.safetensors")
    return tmp_path, problem


def log_fields(log: ad.LoggedDataset) -> dict[str, np.ndarray | None]:
    return {name: getattr(log, name) for name in (*REQUIRED, *OPTIONAL)}


def test_a_log_on_disk_is_the_log_in_memory(on_disk):
    folder, problem = on_disk
    from_disk = ad.evaluate(ad.LogBlocks.open(folder / "log"), problem.policy, problem.discount, **SMALL)
    in_memory = ad.evaluate(ad.LogBlocks.of_dataset(problem.dataset), problem.policy, problem.discount, **SMALL)
    assert from_disk.value == pytest.approx(in_memory.value, abs=1e-12)
    assert from_disk.interval.lower == pytest.approx(in_memory.interval.lower, abs=1e-12)
    assert from_disk.against_behaviour.value == pytest.approx(in_memory.against_behaviour.value, abs=1e-12)
    methods = {"b": ad.Blend(tables=False)}
    whole = ad.evaluate(problem.dataset, problem.policy, problem.discount, estimators=methods, bootstrap=0, seed=3)
    assert from_disk.value == pytest.approx(whole["b"].value, abs=1e-8)
    assert from_disk.dataset["transitions"] == problem.dataset.num_transitions
    assert from_disk.dataset["episodes"] == 45
    assert "to first order" in from_disk.interval.kind
    assert any("read in blocks" in str(note) for note in from_disk["average-dice-blend"].notes)
    from_disk.to_html(folder / "page.html")
    from_disk.to_json(folder / "result.json")


def test_the_behaviour_policy_where_every_reward_is_logged():
    problem = ad.Problem.up_to(early_termination().problem(100, seed=2).dataset, early_termination().policy, 1.0, 5)
    found = ad.evaluate(ad.LogBlocks.of_dataset(problem.dataset), problem.policy, 1.0, **SMALL)
    returns = problem.by_episode(problem.dataset.reward)
    assert found.behaviour.value == pytest.approx(returns.mean())
    reach = 1.9842169515 * returns.std(ddof=1) / 10  # Student's t with 99 degrees of freedom
    assert found.behaviour.interval.upper == pytest.approx(returns.mean() + reach)


def test_a_large_log_in_memory_gives_the_same_with_or_without_blocks(monkeypatch):
    monkeypatch.setattr(blend_module, "LARGE_WITH_MANY_EPISODES", 500)
    monkeypatch.setattr(blend_module, "MANY_EPISODES", 100)
    problem = random_mdp().problem(150, seed=1)
    methods = {"b": ad.Blend(tables=False)}
    found = ad.evaluate(problem.dataset, problem.policy, problem.discount, estimators=methods, **SMALL)
    blocks = ad.evaluate(ad.LogBlocks.of_dataset(problem.dataset), problem.policy, problem.discount, **SMALL)
    assert found.value == pytest.approx(blocks.value, abs=1e-12)
    assert "to first order" in found.interval.kind


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("estimators", "fqe"),
        ("rewards", "cost"),
        ("by", "site"),
        ("horizon", 5),
        ("estimate_behaviour", True),
        ("distribution", True),
        ("refute", True),
    ],
)
def test_what_needs_all_rows_is_refused_by_name(option, value):
    problem = random_mdp().problem(20, seed=1)
    with pytest.raises(SettingError, match=f"{option}: not available for a log that is read in blocks"):
        ad.evaluate(ad.LogBlocks.of_dataset(problem.dataset), problem.policy, 0.9, **{option: value})


def test_without_a_policy():
    with pytest.raises(SettingError, match="give a policy"):
        ad.evaluate(ad.LogBlocks.of_dataset(random_mdp().problem(20, seed=1).dataset), None, 0.9)


def test_the_command_streams(on_disk):
    folder, problem = on_disk
    out = folder / "out.json"
    arguments = ["evaluate", folder / "log", "--policy", folder / "policy.safetensors", "--stream", "--bootstrap", 20]
    arguments += ["--discount", problem.discount, "--seed", 3, "--json", out]
    run(*arguments)
    expected = ad.evaluate(ad.LogBlocks.open(folder / "log"), problem.policy, problem.discount, **SMALL)
    assert json.loads(out.read_text())["estimates"][0]["value"] == pytest.approx(expected.value, abs=1e-9)
    assert "average-dice convert" in run(*arguments, "--columns", "reward=outcome", code=2)


def test_a_log_that_does_not_fit_is_read_in_blocks():
    console = Console(record=True)
    blocks = ad.LogBlocks.of_dataset(random_mdp().problem(5, seed=1).dataset)

    def too_large():
        raise NotEnoughMemory("reading it needs 80 GiB.")

    def found(**options):
        return read_log_or_blocks(console, too_large, lambda memory: blocks, stream=False, memory=None, **options)

    assert found(mapped=False) is blocks
    assert "read in blocks" in console.export_text()
    with pytest.raises(NotEnoughMemory):
        found(mapped=True)


def test_a_missing_folder_is_not_an_unknown_kind_of_file(tmp_path):
    with pytest.raises(DatasetError, match="no such file or folder"):
        ad.LogBlocks.open(tmp_path / "nothing")
    with pytest.raises(DatasetError, match="no such file or folder"):
        ad.read_dataset(tmp_path / "nothing")


def test_a_damaged_part_is_named(on_disk):
    folder, problem = on_disk
    part = folder / "log" / "part-1.parquet"
    part.write_bytes(part.read_bytes()[:-200])
    with pytest.raises(DatasetError, match=r"part-1\.parquet"):
        ad.evaluate(ad.LogBlocks.open(folder / "log"), problem.policy, problem.discount, **SMALL)
