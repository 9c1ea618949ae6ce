"""Local processes: jobs are done although workers crash, and workers end with the process that started them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from average_dice.errors import SettingError
from average_dice.experiments.ablation import ABLATION, AblationPlan
from average_dice.experiments.executors import RETRIES, find_executor, local
from processes import members, started

JOBS = list(ABLATION.jobs(AblationPlan(tasks=("CartPole-v1",), logs=3, seeds=1, steps=10, every=10)))


def threads(job):
    return [{"log": job.log, "threads": os.environ["NPROC"]}]


def crashes_once(job):
    """The first process to get here kills itself."""
    marker = Path(os.environ["MARKER"])
    if not marker.exists():
        marker.write_text("was here")
        os.kill(os.getpid(), signal.SIGKILL)
    return [{"log": job.log}]


def always_crashes(job):
    os.kill(os.getpid(), signal.SIGKILL)


def crashes_at_first(job):
    if job == JOBS[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.2)
    return [{"log": job.log}]


def fails_at_first(job):
    if job == JOBS[0]:
        raise ValueError("a bug")
    return []


def test_every_job_comes_back_once_from_workers_with_one_thread():
    found = list(local(2)(threads, JOBS))
    assert sorted(job.key for job, _ in found) == sorted(job.key for job in JOBS)
    assert all(rows == [{"log": job.log, "threads": "1"}] for job, rows in found)


@pytest.mark.slow
def test_the_jobs_of_a_crashed_worker_run_again(tmp_path, monkeypatch):
    monkeypatch.setenv("MARKER", str(tmp_path / "marker"))
    found = list(local(2)(crashes_once, JOBS))
    assert (tmp_path / "marker").exists()
    assert sorted(job.key for job, _ in found) == sorted(job.key for job in JOBS)


@pytest.mark.slow
def test_a_run_whose_workers_always_crash_ends():
    with pytest.raises(SettingError, match=f"crashed {RETRIES + 1} times in a row"):
        list(local(1)(always_crashes, JOBS))


@pytest.mark.slow
def test_a_job_that_crashes_its_workers_does_not_stop_the_others():
    found = local(2)(crashes_at_first, JOBS)
    assert {next(found)[0].key for _ in JOBS[1:]} == {job.key for job in JOBS[1:]}
    with pytest.raises(SettingError, match=f"this run crashed {RETRIES + 1} workers") as raised:
        next(found)
    assert raised.value.__notes__[0].startswith(f"log 0 of {JOBS[0].task}, ")


def test_an_error_in_a_job_is_raised_after_all_others_are_done():
    found = local(1)(fails_at_first, JOBS)
    assert [next(found)[0] for _ in JOBS[1:]] == JOBS[1:]
    with pytest.raises(ValueError, match="a bug") as raised:
        next(found)
    first, last = raised.value.__notes__[-2:]
    assert first.startswith(f"log 0 of {JOBS[0].task}, ")
    assert last == "1 of the jobs failed; all others are done."


def test_unknown_executors_and_options_of_the_other_are_named():
    with pytest.raises(SettingError, match="unknown executor 'cloud'"):
        find_executor("cloud")
    with pytest.raises(SettingError, match="--executor ray"):
        find_executor("local", address="127.0.0.1:6379")
    with pytest.raises(SettingError, match="--executor local"):
        find_executor("ray", processes=2)


PRESET = """[ablation]
tasks = ["CartPole-v1"]
logs = 3
seeds = 2
steps = 30
every = 15
"""


@pytest.mark.slow
def test_a_run_that_was_killed_continues_to_the_same_rows(tmp_path):
    """`kill -9`, then the same command: the same rows as an undisturbed run, and no worker is left behind."""
    from average_dice.experiments.store import read_rows

    (tmp_path / "mine.toml").write_text(PRESET)
    command = [
        sys.executable,
        "-m",
        "average_dice.cli",
        "benchmark",
        "ablation",
        "--preset",
        str(tmp_path / "mine.toml"),
    ]
    broken, whole = tmp_path / "broken", tmp_path / "whole"
    with started([*command, "--out", str(broken)], stdout=subprocess.DEVNULL) as first:
        while not list((broken / "ablation").glob("[!.]*.parquet")):
            assert first.poll() is None
            time.sleep(0.02)
        assert len(members(first.pid)) > 1
        first.kill()
        first.wait()
        wait_until_gone(first.pid)
    assert 1 <= len(list((broken / "ablation").glob("[!.]*.parquet"))) < 6
    for directory in (broken, whole):
        subprocess.run([*command, "--out", str(directory)], check=True, stdout=subprocess.DEVNULL)
    found = [read_rows(directory, "ablation").drop_columns(["seconds"]) for directory in (broken, whole)]
    assert len(found[0]) == 12
    assert found[0].equals(found[1])
    assert (whole / "ablation.svg").exists()


@pytest.mark.slow
def test_ctrl_c_ends_an_experiment_and_its_workers_with_one_line(tmp_path):
    """A terminal sends SIGINT to all processes of the group at once: no worker may show a traceback."""
    (tmp_path / "mine.toml").write_text(PRESET)
    command = [sys.executable, "-m", "average_dice.cli", "benchmark", "ablation", "--preset", tmp_path / "mine.toml"]
    with started([*command, "--out", tmp_path / "out"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        while len(members(process.pid)) < 3:  # workers have begun
            assert process.poll() is None
            time.sleep(0.02)
        time.sleep(1)
        os.killpg(process.pid, signal.SIGINT)
        _, complaint = process.communicate(timeout=60)
        assert process.returncode == 130
        assert len(complaint.splitlines()) == 1, complaint
        wait_until_gone(process.pid)


def wait_until_gone(group, seconds=30):
    """Workers end by themselves when the process that started them is gone."""
    end = time.monotonic() + seconds
    while left := members(group):
        assert time.monotonic() < end, left
        time.sleep(0.05)
