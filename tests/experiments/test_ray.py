"""A Ray cluster on this machine: the same numbers as local processes, also when a worker is killed."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from average_dice import ray_cluster as joining
from average_dice.errors import SettingError
from average_dice.experiments.ablation import ABLATION, AblationPlan
from average_dice.experiments.executors import local, ray_cluster
from average_dice.experiments.runner import run_experiment
from average_dice.experiments.store import read_rows
from processes import started

ray = pytest.importorskip("ray", reason="needs the extra `ray`: make test-benchmark")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # Ray's own, of sockets and of its future
]

PLAN = AblationPlan(tasks=("CartPole-v1",), logs=2, seeds=2, steps=50, every=25)


def values(directory):
    return read_rows(directory, "ablation").drop_columns(["seconds"])


def _descends_from_us(process):
    while process > 1:
        if process == os.getpid():
            return True
        try:
            process = int((Path("/proc") / str(process) / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:  # it has ended meanwhile
            return False
    return False


def kill_the_first_worker(killed, over):
    """Waits until a Ray worker runs one of our jobs, and kills it; or until all is over."""
    while not over.is_set():
        for process in Path("/proc").glob("[0-9]*"):
            try:
                name = (process / "cmdline").read_bytes()
                parent = int((process / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError):
                continue
            if name.startswith(b"ray::run") and _descends_from_us(parent):
                os.kill(int(process.name), signal.SIGKILL)
                killed.append(int(process.name))
                return
        time.sleep(0.05)


def test_ray_gives_the_numbers_of_local_processes_although_a_worker_is_killed(tmp_path):
    run_experiment(ABLATION, PLAN, tmp_path / "local", local(2))
    killed: list[int] = []
    over = threading.Event()
    killer = threading.Thread(target=kill_the_first_worker, args=(killed, over))
    killer.start()
    try:
        run_experiment(ABLATION, PLAN, tmp_path / "ray", ray_cluster())
    finally:
        over.set()
        killer.join()
    assert killed
    assert len(values(tmp_path / "ray")) == 8
    assert values(tmp_path / "ray").equals(values(tmp_path / "local"))


def test_an_error_in_a_job_is_raised_after_all_others_are_done():
    jobs = list(ABLATION.jobs(PLAN))

    def fails_at_first(job):  # within: workers cannot import this file
        if job.key == first:
            raise ValueError("a bug")
        return []

    first = jobs[0].key
    found = ray_cluster()(fails_at_first, jobs)
    assert {next(found)[0].key for _ in jobs[1:]} == {job.key for job in jobs[1:]}
    with pytest.raises(ValueError, match="a bug"):
        next(found)


@pytest.fixture
def short_folder():
    """The names of Ray's sockets must be short."""
    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as folder:
        yield folder


def test_a_running_cluster_is_joined(tmp_path, short_folder):
    (tmp_path / "mine.toml").write_text(
        '[ablation]\ntasks = ["CartPole-v1"]\nlogs = 1\nseeds = 1\nsteps = 10\nevery = 10\n'
    )
    start = [str(Path(sys.executable).parent / "ray"), "start", "--head", "--port=0", "--num-cpus=1", "--block"]
    command = [*start, "--include-dashboard=false", f"--temp-dir={short_folder}"]
    with started(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as head:
        address = next(line.split("'")[1] for line in head.stdout if "--address=" in line)
        ours = [sys.executable, "-m", "average_dice.cli", "benchmark", "ablation", "--executor", "ray"]
        folders = ["--preset", str(tmp_path / "mine.toml"), "--out", str(tmp_path / "out")]
        subprocess.run([*ours, "--address", address, *folders], check=True)
        assert len(values(tmp_path / "out")) == 2
        head.terminate()
        head.wait(timeout=60)


def test_an_address_where_something_else_answers_is_an_error(monkeypatch):
    monkeypatch.setattr(joining, "TO_JOIN", 10)
    with socket.create_server(("", 0)) as listening, pytest.raises(SettingError, match="no Ray cluster"):
        ray_cluster(f"127.0.0.1:{listening.getsockname()[1]}")


def test_a_job_that_crashes_its_workers_does_not_stop_the_others():
    jobs = list(ABLATION.jobs(PLAN))

    def crashes_at_first(job):
        if job.key == first:
            os.kill(os.getpid(), signal.SIGKILL)
        return []

    first = jobs[0].key
    found = ray_cluster()(crashes_at_first, jobs)
    assert {next(found)[0].key for _ in jobs[1:]} == {job.key for job in jobs[1:]}
    with pytest.raises(SettingError, match="this run crashed 4 workers"):
        next(found)


def test_an_address_where_nothing_answers_is_an_error_at_once():
    for address in ("127.0.0.1:1", "nonsense", "127.0.0.1:port"):
        with pytest.raises(SettingError, match="nothing answers"):
            ray_cluster(address)


def test_a_space_in_the_path_of_python_is_an_error_and_not_a_hang(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/a folder/bin/python")
    with pytest.raises(SettingError, match="because of the space in this path"):
        ray_cluster()
