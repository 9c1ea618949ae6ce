"""Blocks of a large log take little memory, as the operating system counts it, however its rows are stored."""

import json
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import average_dice as ad

TOOL = Path(__file__).parents[2] / "tools" / "make_large_log.py"
LIMIT = 600 * 2**20  # beyond the import of the library
NUM_ROWS = 4_000_000

PASSES = """
import json, re, sys
from pathlib import Path
import jax
import average_dice as ad
from average_dice.data import LogBlocks
def peak():  # ru_maxrss would start with that of the process that started this one
    return 1024 * int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
before = peak()
with LogBlocks.open(sys.argv[1]) as blocks:
    rows, episodes, reward = [], [], []
    for _ in range(2):
        sums = [(block.num_transitions, block.num_episodes, block.reward.sum()) for block in blocks]
        rows.append(sum(one[0] for one in sums))
        episodes.append(sum(one[1] for one in sums))
        reward.append(sum(one[2] for one in sums))
    print(json.dumps({"rows": rows, "episodes": episodes, "reward": reward, "peak": peak() - before,
                      "sorted": blocks.copy is not None, "blocks": len(blocks)}))
"""


@pytest.fixture(scope="module")
def tool():
    return runpy.run_path(str(TOOL))


@pytest.mark.parametrize("unsorted", [False, True])
def test_the_tool_writes_valid_logs_of_any_size(tmp_path, tool, unsorted):
    for number in (1, 99, 5_000, 250_000):
        folder = tmp_path / str(number)
        tool["write_log"](folder, number, part=100_000, unsorted=unsorted)
        log = ad.read_dataset(folder / "log")
        assert log.num_transitions == number
        assert len(list((folder / "log").iterdir())) == -(-number // 100_000)
    assert log.observation.shape[1] == 17
    assert (len(np.unique(log.action)), log.lengths.max()) == (6, 100)
    assert 0.15 < log.terminated.sum() / log.num_episodes < 0.3
    policy = ad.load_policy(folder / "behaviour.safetensors")
    np.testing.assert_allclose(policy.log_prob(log.observation, log.action), log.behaviour_log_prob, atol=1e-12)
    target = ad.load_policy(folder / "target.safetensors")
    ratio = np.exp(target.log_prob(log.observation, log.action) - log.behaviour_log_prob)
    assert abs(ratio.mean() - 1) < 4 * ratio.std() / len(ratio) ** 0.5
    assert ratio.std() > 0.1
    short = ad.read_dataset(tmp_path / "5000" / "log")
    np.testing.assert_array_equal(short.observation, log.observation[:5_000])  # a longer log starts with the shorter


def test_the_tool_has_a_seed_and_overwrites_nothing(tmp_path, tool):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        tool["write_log"](tmp_path / name, 500, seed=seed)
    first, again, other = (ad.read_dataset(tmp_path / name / "log").sha256 for name in "abc")
    assert first == again != other
    with pytest.raises(SystemExit, match="Give an empty folder"):
        tool["write_log"](tmp_path / "a", 500)


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read from /proc")
@pytest.mark.parametrize("layout", ["sorted", "unsorted", "one row group"])
def test_the_peak_of_four_million_rows(tmp_path, tool, layout):
    tool["write_log"](tmp_path, NUM_ROWS, unsorted=layout == "unsorted")
    if layout == "one row group":
        table = pq.read_table(tmp_path / "log")
        for path in (tmp_path / "log").iterdir():
            path.unlink()
        pq.write_table(table, tmp_path / "log" / "all.parquet", row_group_size=NUM_ROWS)
    columns = pq.read_table(tmp_path / "log", columns=["step", "reward"])
    expected = (columns["step"].to_numpy() == 0).sum(), columns["reward"].to_numpy().sum()
    done = subprocess.run(
        [sys.executable, "-c", PASSES, tmp_path / "log"], capture_output=True, text=True, check=True, timeout=900
    )
    found = json.loads(done.stdout)
    assert found["rows"] == [NUM_ROWS] * 2
    assert found["episodes"] == [expected[0]] * 2
    np.testing.assert_allclose(found["reward"], expected[1], rtol=1e-9)
    assert found["sorted"] == (layout == "unsorted")
    assert found["blocks"] > 20
    assert found["peak"] > 2**20 * 50, "a block alone takes more"
    assert found["peak"] < LIMIT, f"{found['peak'] / 2**20:.0f} MiB"
    print(f"{layout}: {found['peak'] / 2**20:.0f} MiB")
