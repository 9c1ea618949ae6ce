"""Passes by a Ray cluster on this machine: the numbers of threads, also when a worker is killed, and our own errors."""

import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pyarrow.parquet as pq
import pytest

import average_dice as ad
from average_dice import passes, ray_cluster
from average_dice.blocked_problem import BlockedProblem
from average_dice.data import LogBlocks
from average_dice.estimators import Blend
from average_dice.estimators.blend._counts import PoissonCounts
from average_dice.estimators.blend.streamed import StreamedBlend
from average_dice.policies import Network
from average_dice.ray_cluster import RayTasks, executor_named
from average_dice.testing.exact_mdps import early_termination
from on_disk import table_of, uneven_log, write_parts
from processes import started

ray = pytest.importorskip("ray", reason="needs the extra `ray`: make test-benchmark")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # Ray's own, of sockets and of its future
]

SETTINGS = replace(Blend().streamed_settings, num_features=30)
LOG = early_termination().problem(100, seed=1).dataset
WEIGHTS = np.random.default_rng(0).normal(0, 0.3, (int(LOG.action.max()) + 1, LOG.observation.shape[1]))
POLICY = ad.CategoricalPolicy(Network((WEIGHTS,), (np.zeros(len(WEIGHTS)),)))


@pytest.fixture(scope="module")
def cluster():
    """As a user has it who started Ray: with two workers."""
    with ray_cluster.joined(ray_cluster.checked(None), None):
        yield RayTasks(ray)


@pytest.fixture
def blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(passes, "GROUP_ROWS", 400)
    ad.write_dataset(LOG, tmp_path / "log.parquet")
    found = LogBlocks.open(tmp_path / "log.parquet", rows=150)
    assert len(passes.groups(found)) >= 4
    return found


def numbers(blocks, policy, executor):
    problem = BlockedProblem.of(blocks, policy, 0.9, executor=executor)
    found = StreamedBlend.fit(SETTINGS, problem, key=jax.random.key(0))
    return np.array([found.value, *found.diagnostics.values(), *found.replicates(PoissonCounts(10, 0))])


def test_a_cluster_gives_the_numbers_of_threads(blocks, cluster):
    assert numbers(blocks, POLICY, cluster).tobytes() == numbers(blocks, POLICY, passes.THREADS).tobytes()


def test_a_killed_worker_changes_nothing(blocks, cluster, tmp_path):
    marker, here = tmp_path / "marker", os.getpid()

    class Deadly(ad.CategoricalPolicy):  # within: workers cannot import this file
        """Kills the first worker that uses it, in its second block."""

        calls = 0

        def log_prob(self, observations, actions):
            Deadly.calls += 1
            if os.getpid() != here and Deadly.calls > 1 and not marker.exists():
                marker.write_text("was here")
                os.kill(os.getpid(), signal.SIGKILL)
            return super().log_prob(observations, actions)

    found = numbers(blocks, Deadly(POLICY.logits), cluster)
    assert marker.exists()
    assert found.tobytes() == numbers(blocks, POLICY, passes.THREADS).tobytes()


def test_a_group_that_kills_every_worker_is_an_error_with_a_remedy(blocks, cluster):
    def kills(piece):
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(ad.SettingError, match=r"crashed 4 workers.*--num-cpus"):
        list(cluster.parts(passes.Work(kills, max), blocks))


def test_a_mistake_in_the_log_is_our_own_error(tmp_path, cluster, monkeypatch):
    monkeypatch.setattr(passes, "GROUP_ROWS", 400)
    table = table_of(LOG, tmp_path)
    reward = table.column("reward").to_numpy().copy()
    reward[1_000] = np.nan
    table = table.set_column(table.schema.get_field_index("reward"), "reward", [reward])
    pq.write_table(table, tmp_path / "log.parquet", row_group_size=100)
    with LogBlocks.open(tmp_path / "log.parquet", rows=150) as blocks:
        messages = []
        for executor in (passes.THREADS, cluster):
            with pytest.raises(ad.DatasetError) as caught:
                numbers(blocks, POLICY, executor)
            assert type(caught.value) is ad.DatasetError
            messages.append((str(caught.value), caught.value.problems))
        assert messages[0] == messages[1]
        assert "reward" in messages[0][0]


def test_an_error_of_the_policy_keeps_its_kind(blocks, cluster):
    here = os.getpid()

    def broken(observations):
        if os.getpid() != here:
            raise ZeroDivisionError("in my policy")
        return np.full((len(observations), 2), 0.5)

    with pytest.raises(ZeroDivisionError, match="in my policy"):
        numbers(blocks, ad.as_policy(broken, output="probabilities"), cluster)


def test_a_node_that_does_not_see_the_log_says_so(blocks, cluster, tmp_path):
    (tmp_path / "log.parquet").rename(tmp_path / "moved.parquet")
    blocks.source.parts.__dict__["group_sizes"] = ((LOG.num_transitions,),)
    with pytest.raises(ad.DatasetError, match=r"log\.parquet: .* a node of the cluster, does not see this file"):
        numbers(blocks, POLICY, cluster)


def test_a_node_with_other_versions_is_refused(blocks, cluster, monkeypatch):
    monkeypatch.setattr(ray_cluster, "_versions", lambda: {"average-dice": "0.0.1"})
    with pytest.raises(ad.SettingError, match=r"a node of the cluster, has .*you have .*0\.0\.1.*Install the same"):
        numbers(blocks, POLICY, cluster)


def test_a_temporary_sorted_copy_is_refused_on_a_cluster_that_others_may_have_joined(tmp_path, cluster):
    folder = write_parts(table_of(uneven_log(), tmp_path), tmp_path / "log", [range(30, -1, -1)])
    with (
        LogBlocks.open(folder) as unsorted,
        pytest.raises(ad.SettingError, match=r"not sorted.*folder"),
        executor_named("ray", None, unsorted),
    ):
        pass
    with executor_named("ray", None, LogBlocks.open(folder, folder=tmp_path / "shared")) as found:
        assert isinstance(found, RayTasks)
    assert ray.is_initialized()  # it remains the user's


def test_evaluate_joins_a_running_cluster(blocks, tmp_path):
    """In a process of its own, so that Ray starts and ends there."""
    ad.save_policy(POLICY, tmp_path / "policy.safetensors")
    here = ad.evaluate(blocks, tmp_path / "policy.safetensors", 0.9, bootstrap=0)
    ours = (
        "import sys, average_dice as ad; from average_dice import passes; passes.GROUP_ROWS = 400\n"
        "blocks = ad.LogBlocks.open('log.parquet', rows=150)\n"
        "found = ad.evaluate(blocks, 'policy.safetensors', 0.9, bootstrap=0, executor='ray', address=sys.argv[1])\n"
        "print(found.value.hex())"
    )
    start = [str(Path(sys.executable).parent / "ray"), "start", "--head", "--port=0", "--num-cpus=1", "--block"]
    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as short:  # for the names of sockets
        command = [*start, "--include-dashboard=false", f"--temp-dir={short}"]
        with started(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as head:
            address = next(line.split("'")[1] for line in head.stdout if "--address=" in line)
            run = [sys.executable, "-c", ours, address]
            found = subprocess.run(run, cwd=tmp_path, check=True, capture_output=True, text=True)
            assert found.stdout.split()[-1] == here.value.hex()
            head.terminate()
            head.wait(timeout=60)
