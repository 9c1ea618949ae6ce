"""Names and extra columns of a log."""

import numpy as np
import pytest

import average_dice as ad
from average_dice.data.names import Names

NAMES = Names(("age", "ward"), ("wait", "treat"), {1: ("north", "south")})


def log(**changes: object) -> ad.LoggedDataset:
    """Two episodes, given in the wrong order."""
    columns: dict[str, object] = {
        "episode": [1, 0, 0],
        "step": [0, 1, 0],
        "observation": [[50.0, 1], [61.0, 0], [60.0, 1]],
        "action": [1, 0, 0],
        "reward": [1.0, 0.0, 2.0],
        "next_observation": [[0.0, 0], [0.0, 0], [61.0, 0]],
        "terminated": [True, True, False],
        "truncated": [False] * 3,
    }
    extra = {"cost": [3, 2, 1], "episode_name": ["b", "a", "a"]}
    return ad.LoggedDataset.from_columns(columns | changes, categorical=[1], names=NAMES, extra=extra)


def test_extra_columns_are_sorted_with_the_rows() -> None:
    assert log().extra["cost"].tolist() == [1.0, 2.0, 3.0]
    assert log().extra["episode_name"].tolist() == ["a", "a", "b"]
    chosen = log().select_episodes(np.array([1, 0]))
    assert chosen.extra["cost"].tolist() == [3.0, 1.0, 2.0]
    assert chosen.names == NAMES
    assert log().up_to(1).extra["cost"].tolist() == [1.0, 3.0]
    assert log().up_to(1).names.observations == ("age", "ward", "step")


def test_messages_use_the_names_of_episodes() -> None:
    assert log().place(2) == "episode b, step 0"
    with pytest.raises(ad.DatasetError, match=r"^episode b, step 0: reward is nan"):
        log(reward=[float("nan"), 0.0, 0.0])


@pytest.mark.parametrize("suffix", [".parquet", ".npz"])
def test_files_keep_names_and_extra_columns(tmp_path, suffix: str) -> None:
    path = tmp_path / f"log{suffix}"
    ad.write_dataset(log(), path)
    again = ad.read_dataset(path, extra=["cost"])
    assert again.names == NAMES
    assert again.sha256 == log().sha256
    assert {name: values.tolist() for name, values in again.extra.items()} == {
        "cost": [1.0, 2.0, 3.0],
        "episode_name": ["a", "a", "b"],
    }
    assert set(ad.read_dataset(path).extra) == {"episode_name"}
    with pytest.raises(ad.DatasetError, match=r"no column price\. The columns are episode, step, .*cost"):
        ad.read_dataset(path, extra=["price"])


def test_wrong_names_are_refused() -> None:
    with pytest.raises(ad.DatasetError, match="1 names of observations are given for 2 columns"):
        ad.data.dataset.replace(log(), names=Names(("age",)))
    with pytest.raises(ad.DatasetError, match="1 names of actions are given, and the log needs 2"):
        ad.data.dataset.replace(log(), names=Names(actions=("wait",)))
    with pytest.raises(ad.DatasetError, match="reward is a column of every log"):
        ad.data.dataset.replace(log(), extra={"reward": np.zeros(3)})
    with pytest.raises(ad.DatasetError, match="names of columns and actions are not readable"):
        Names.from_json('{"observations": [1]}')


def test_what_has_no_name_is_called_by_its_number() -> None:
    assert (NAMES.action(1), Names().action(1)) == ("treat", "1")
    assert (NAMES.observation(0), Names().observation(0)) == ("age", "column 0")
    assert (NAMES.category(1, 1.0), NAMES.category(1, 7.0)) == ("south", "7")
