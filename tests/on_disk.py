"""Logs on disk for the tests of blocks: whole ones, and their rows in odd orders over row groups and files."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import average_dice as ad
from average_dice.data.columns import OPTIONAL, REQUIRED
from average_dice.data.names import Names


def uneven_log(lengths=(3, 1, 7, 2, 12, 1, 5), *, seed=0, **changes):
    """Episodes of these lengths with odd numbers, of which every other one terminates."""
    generator = np.random.default_rng(seed)
    number = sum(lengths)
    last = np.zeros(number, bool)
    last[np.cumsum(lengths) - 1] = True
    terminated = last & np.repeat(np.arange(len(lengths)) % 2 == 0, lengths)
    observation = generator.standard_normal((number + 1, 3))
    observation[:, 2] = generator.integers(0, 4, number + 1)
    columns = {
        "episode": np.repeat(7 * np.arange(len(lengths)) - 11, lengths),
        "observation": observation[:-1],
        "action": generator.integers(0, 3, number),
        "reward": generator.standard_normal(number),
        "next_observation": observation[1:],
        "terminated": terminated,
        "truncated": last & ~terminated,
        "behaviour_log_prob": np.log(generator.uniform(0.1, 1.0, number)),
    }
    return ad.LoggedDataset.from_arrays(**columns | changes)


def with_everything(lengths=(3, 1, 7, 2, 12, 1, 5)):
    """A log with every optional column and declaration."""
    number, generator = sum(lengths), np.random.default_rng(1)
    action = generator.integers(0, 3, number)
    mask = generator.random((number, 4)) < 0.5
    mask[np.arange(number), action] = True
    return uneven_log(
        lengths,
        action=action,
        action_mask=mask,
        target_log_prob=np.where(np.arange(number) % 5 == 0, -np.inf, -0.5),
        metadata={"task": "made up"},
        categorical=[2],
        action_features=[[0.0, 1.0], [2.0, 3.0], [4.0, 5.5], [0.1, 0.2]],
        names=Names(("x", "y", "ward"), ("wait", "treat", "operate", "send home"), {2: ("a", "b", "c", "d")}),
        extra={
            "cost": generator.standard_normal(number),
            "site": np.array(["north", "süd"])[np.arange(number) % 2],
            "episode_name": np.repeat([f"patient {one}" for one in range(len(lengths))], lengths),
        },
        behaviour_estimated=True,
    )


def continuous_log():
    """Continuous actions, without probabilities."""
    return uneven_log(action=np.linspace(-1, 1, 62).reshape(31, 2), behaviour_log_prob=None)


def table_of(log, tmp_path):
    """The log as the table that `write_dataset` writes, with its metadata."""
    ad.write_dataset(log, tmp_path / "whole.parquet")
    table = pq.read_table(tmp_path / "whole.parquet")
    (tmp_path / "whole.parquet").unlink()
    return table


def write_parts(table, folder, parts, row_group=4):
    """Writes a file for each list of rows."""
    folder.mkdir(exist_ok=True)
    for number, rows in enumerate(parts):
        path = folder / f"part-{number}.parquet"
        pq.write_table(table.take(pa.array(rows, pa.int64())), path, row_group_size=row_group)
    return folder


def check_the_same(blocks, whole, rows):
    """One pass gives the episodes of the log in its order, to the last bit, in blocks as large as documented."""
    found = list(blocks)
    assert [block.num_transitions for block in found] == sizes(whole.lengths, rows)
    assert list(blocks.ends) == np.cumsum([block.num_transitions for block in found]).tolist()
    for name in (*REQUIRED, *OPTIONAL):
        expected = getattr(whole, name)
        for block in found:
            values = getattr(block, name)
            assert (values is None) == (expected is None)
            assert values is None or (values.dtype == expected.dtype and not values.flags.writeable)
        if expected is not None:
            joined = np.concatenate([getattr(block, name) for block in found])
            assert joined.shape == expected.shape
            assert joined.tobytes() == expected.tobytes()
    for block in found:
        assert set(block.extra) == set(whole.extra)
        for name in ("metadata", "categorical", "names", "estimated_behaviour"):
            assert getattr(block, name) == getattr(whole, name)
        np.testing.assert_equal(block.action_features, whole.action_features)
        encoded = whole.encoding.encode(whole.observation)
        assert block.encoding.encode(block.observation).shape[1] == encoded.shape[1]
    joined = np.concatenate([block.encoding.encode(block.observation) for block in found])
    np.testing.assert_array_equal(joined, encoded)
    for name, expected in whole.extra.items():
        np.testing.assert_array_equal(np.concatenate([block.extra[name] for block in found]), expected)
        assert all(block.extra[name].dtype == expected.dtype for block in found)


def sizes(lengths, rows):
    """The rows of blocks, one episode at a time: as many episodes as fit, and at least one."""
    found = []
    for length in map(int, lengths):
        if found and found[-1] + length <= rows:
            found[-1] += length
        else:
            found.append(length)
    return found
