"""The result store: no row is lost or counted twice, whichever process is killed at whatever moment."""

import errno
import json
import multiprocessing
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from average_dice.errors import SettingError
from average_dice.experiments import runner
from average_dice.experiments.ablation import ABLATION, AblationPlan
from average_dice.experiments.jobs import Job
from average_dice.experiments.main import MAIN, MainPlan
from average_dice.experiments.measurements import versions
from average_dice.experiments.registry import EXPERIMENTS
from average_dice.experiments.runner import run_experiment
from average_dice.experiments.store import SCHEMA, read_rows
from average_dice.notes import NoteCode
from made_up import what_is_run

PLAN = AblationPlan(tasks=("CartPole-v1", "Hopper-v5"), logs=2, seeds=2, steps=10, every=10)
JOBS = list(ABLATION.jobs(PLAN))
VERSIONS = {"average-dice": "0", "jax": "1"}


def made_up(job: Job, versions=VERSIONS) -> list[dict[str, object]]:
    """Rows that look like real ones and depend only on the job."""
    return [
        {
            **what_is_run(job, seed),
            "value": job.log + 0.1 * seed,
            "truth": 1.0,
            "curve_step": [0, 10],
            "curve_value": [0.0, 1.0],
            "versions": json.dumps(versions, sort_keys=True),
        }
        for seed in range(job.num_seeds)
    ]


def opened(directory, plan=PLAN, versions=VERSIONS):
    return ABLATION.store(directory, plan, versions)


def everything(directory):
    store = opened(directory)
    for job in JOBS:
        store.add(job, made_up(job))
    store.gather()
    return read_rows(directory, "ablation")


def test_no_two_jobs_share_a_key():
    keys = [job.key for job in JOBS]
    assert len(set(keys)) == len(JOBS) == 8
    assert replace(JOBS[0], log=7).key not in keys
    assert replace(JOBS[0], policy="another").key not in keys
    assert [job.key for job in ABLATION.jobs(PLAN)] == keys


def test_rows_come_back_as_they_were_written_whatever_the_order_and_however_often(tmp_path):
    whole = everything(tmp_path / "whole")
    assert len(whole) == 16
    store = opened(tmp_path / "odd")
    for job in reversed(JOBS[3:]):
        store.add(job, made_up(job))
    store.gather()
    assert store.done() == {job.key for job in JOBS[3:]}
    for job in JOBS[:5]:  # two of them again
        store.add(job, made_up(job))
    assert store.done() == {job.key for job in JOBS}
    assert read_rows(tmp_path / "odd", "ablation").equals(whole)  # some gathered, some not, some both
    store.gather()
    assert read_rows(tmp_path / "odd", "ablation").equals(whole)
    assert not list(store.parts.iterdir())


def test_a_file_that_was_not_finished_does_not_count(tmp_path):
    store = opened(tmp_path)
    store.add(JOBS[0], made_up(JOBS[0]))
    (store.parts / f".{JOBS[1].key}.parquet.abc.partial").write_bytes(b"PAR1 half of a file")
    assert store.done() == {JOBS[0].key}
    assert len(read_rows(tmp_path, "ablation")) == 2


def test_rows_of_a_replaced_policy_or_default_are_moved_away(tmp_path, monkeypatch):
    store = opened(tmp_path)
    (method,) = JOBS[0].methods
    stale = (replace(JOBS[0], policy="old"), replace(JOBS[0], methods=(replace(method, settings="old"),)))
    for job in (*stale, JOBS[0]):
        store.add(job, made_up(job))
    before = replace(store, keys=store.keys | {job.key for job in stale})
    before.gather()  # of a process with the old jobs, which ends after we have started: our rows must stay
    assert len(store.done()) == 3
    assert store.gather() == 4  # of two seeds each
    assert store.done() == {JOBS[0].key}
    aside = set(pq.read_table(store.replaced)["unit"].to_pylist())
    assert aside == {job.key for job in stale}
    later = replace(JOBS[1], policy="old")  # a file of a slow process
    store.add(later, made_up(later))
    assert store.gather() == 2
    assert set(pq.read_table(store.replaced)["unit"].to_pylist()) == aside | {later.key}
    assert store.gather() == 0
    store.add(stale[0], made_up(stale[0]))
    monkeypatch.setattr(runner, "versions", lambda: VERSIONS)
    with pytest.warns(UserWarning, match="2 rows belong to target policies or defaults that have been replaced"):
        run_experiment(ABLATION, PLAN, tmp_path, lambda work, jobs: iter(()))
    assert len(pq.read_table(store.replaced)) == 6  # each once


def test_a_damaged_file_counts_as_not_done_and_is_replaced(tmp_path):
    store = opened(tmp_path)
    store.add(JOBS[0], made_up(JOBS[0]))
    whole = (store.parts / f"{JOBS[0].key}.parquet").read_bytes()
    for damaged in (b"", whole[:50], whole[:-40] + bytes(32) + whole[-8:]):
        (store.parts / f"{JOBS[1].key}.parquet").write_bytes(damaged)
        assert store.done() == {JOBS[0].key}
        assert len(read_rows(tmp_path, "ablation")) == 2
    store.add(JOBS[1], made_up(JOBS[1]))
    assert len(read_rows(tmp_path, "ablation")) == 4
    store.gathered.write_bytes(whole[:50])
    with pytest.raises(SettingError, match="damaged"):
        read_rows(tmp_path, "ablation")


def test_a_file_that_could_not_be_read_is_not_removed(tmp_path):
    store = opened(tmp_path)
    for job in JOBS[:2]:
        store.add(job, made_up(job))
    path = store.parts / f"{JOBS[1].key}.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[:50])  # as from a disk that fails for a moment
    store.gather()
    assert store.done() == {JOBS[0].key}
    path.write_bytes(whole)
    store.gather()
    assert store.done() == {job.key for job in JOBS[:2]}
    assert not path.exists()


def test_rows_of_a_worker_with_other_versions_are_refused(tmp_path):
    with pytest.raises(SettingError, match="a worker has other versions"):
        opened(tmp_path).add(JOBS[0], made_up(JOBS[0], VERSIONS | {"jax": "3"}))
    assert opened(tmp_path).done() == set()


def test_foreign_files_stay(tmp_path):
    (tmp_path / "ablation").mkdir()
    precious = tmp_path / "ablation" / "precious.parquet"
    precious.write_text("mine")
    with pytest.raises(SettingError, match="without a manifest"):
        opened(tmp_path)
    assert precious.read_text() == "mine"
    precious.unlink()
    store = opened(tmp_path)
    precious.write_text("mine")
    store.add(JOBS[0], made_up(JOBS[0]))
    store.gather()
    assert precious.read_text() == "mine"


def _adds(directory, jobs):
    for _ in range(3):
        store = opened(directory)
        for job in jobs:
            store.add(job, made_up(job))
            store.gather()


def test_two_processes_on_one_folder_do_not_disturb_each_other(tmp_path):
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_adds, args=(tmp_path / "both", jobs)) for jobs in (JOBS, JOBS[::-1])]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    assert read_rows(tmp_path / "both", "ablation").equals(everything(tmp_path / "whole"))


def test_an_interrupted_run_continues_to_the_same_rows(tmp_path):
    asked = []

    def executor(work, jobs):
        for job in jobs:
            asked.append(job)
            yield job, made_up(job, versions())

    def interrupted(work, jobs):
        yield from list(executor(work, jobs[:3]))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_experiment(ABLATION, PLAN, tmp_path / "broken", interrupted)
    run_experiment(ABLATION, PLAN, tmp_path / "broken", executor)
    assert asked == JOBS  # each once
    run_experiment(ABLATION, PLAN, tmp_path / "whole", executor)
    assert read_rows(tmp_path / "broken", "ablation").equals(read_rows(tmp_path / "whole", "ablation"))


def test_a_full_disk_loses_no_finished_job(tmp_path, monkeypatch):
    def executor(work, jobs):
        yield from ((job, made_up(job, versions())) for job in jobs)

    write = pq.write_table

    def until_it_is_full(table, where, **options):
        if len(list(tmp_path.rglob("*.parquet"))) == 3:
            Path(where).write_bytes(b"half of")
            raise OSError(errno.ENOSPC, "No space left on device")
        write(table, where, **options)

    folder = tmp_path / "full"
    monkeypatch.setattr(pq, "write_table", until_it_is_full)
    with pytest.raises(OSError, match=r"No space left.*full/ablation/\w+\.parquet"):
        run_experiment(ABLATION, PLAN, folder, executor)
    monkeypatch.undo()
    assert [path.suffix for path in (folder / "ablation").iterdir()] == [".parquet"] * 3  # nothing half written
    assert opened(folder, versions=versions()).done() == {job.key for job in JOBS[:3]}
    run_experiment(ABLATION, PLAN, folder, executor)
    run_experiment(ABLATION, PLAN, tmp_path / "whole", executor)
    assert read_rows(folder, "ablation").equals(read_rows(tmp_path / "whole", "ablation"))


def test_methods_and_logs_added_later_are_all_that_is_run(tmp_path):
    def plan(estimators, steps, logs=2):
        return MainPlan(("CartPole-v1",), estimators, logs, trained_logs=1, seeds=2, every=5, steps=steps)

    asked = []

    def executor(work, jobs):
        for job in jobs:
            asked.append((job.log, [method.estimator for method in job.methods]))
            yield job, [row for one in job.each() for row in made_up(one, versions())]

    few = plan(("wpdis", "td"), {"td": 10})
    more = plan(("wpdis", "fqe", "td", "mwl"), {"td": 10, "mwl": 10}, logs=3)
    run_experiment(MAIN, few, tmp_path / "grown", executor)
    asked.clear()
    run_experiment(MAIN, more, tmp_path / "grown", executor)
    assert asked == [(0, ["fqe"]), (0, ["mwl"]), (1, ["fqe"]), (2, ["wpdis", "fqe"])]
    run_experiment(MAIN, more, tmp_path / "whole", executor)
    grown, whole = (read_rows(tmp_path / name, "main") for name in ("grown", "whole"))
    assert grown.drop(["config"]).equals(whole.drop(["config"]))
    older = replace(MAIN.store(tmp_path / "other", few, versions()), directory=tmp_path / "grown")
    older.gather()  # of a process that started before the methods were added
    assert read_rows(tmp_path / "grown", "main").equals(grown)
    for other in (
        few,
        plan(few.estimators, few.steps, logs=3),  # fewer methods
        plan(more.estimators, more.steps),  # fewer logs
        plan(more.estimators, {"td": 11, "mwl": 10}, logs=3),  # another length
    ):
        with pytest.raises(SettingError, match="another preset"):
            run_experiment(MAIN, other, tmp_path / "grown", executor)


def test_rows_written_twice_with_other_methods_count_once(tmp_path):
    """By two processes: for one of them, one of the methods was already done."""
    plan = MainPlan(("CartPole-v1",), ("wpdis", "fqe"), 1, 0, 1, 5)
    (job,) = MAIN.jobs(plan)
    store = MAIN.store(tmp_path, plan, VERSIONS)
    for part in (job, *job.each()):
        store.add(part, [row for one in part.each() for row in made_up(one)])
    assert len(read_rows(tmp_path, "main")) == 2
    assert store.done() == {one.key for one in job.each()}
    assert not job.without(store.done()).methods


def test_another_preset_another_version_and_other_files_are_refused_and_nothing_is_touched(tmp_path):
    before = everything(tmp_path)
    with pytest.raises(SettingError, match="another preset"):
        opened(tmp_path, plan=replace(PLAN, steps=11))
    with pytest.raises(SettingError, match="jax 1 there, 2 here"):
        opened(tmp_path, versions=VERSIONS | {"jax": "2"})
    manifest = tmp_path / "ablation.json"
    manifest.write_text(manifest.read_text().replace('"format": 2', '"format": 1'))
    with pytest.raises(SettingError, match="has format 1, this version writes format 2"):
        opened(tmp_path)
    good = json.loads(manifest.read_text())
    for damaged in ([], {**good, "versions": None}, {**good, "plan": {**good["plan"], "logs": "2"}}):
        manifest.write_text(json.dumps(damaged))
        with pytest.raises(SettingError, match="not a manifest"):
            opened(tmp_path)
    assert read_rows(tmp_path, "ablation").equals(before)


def test_a_folder_that_cannot_be_written_is_an_error_before_any_work(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(SettingError, match="cannot be written"):
        opened(tmp_path / "file")


def test_every_column_is_documented():
    text = (Path(__file__).parents[2] / "docs" / "benchmark.md").read_text()
    assert [name for name in SCHEMA.names if f"`{name}`" not in text] == []


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_note_of_the_committed_results_has_a_code(experiment):
    rows = read_rows(Path(__file__).parents[2] / "results" / "standard", experiment)
    for notes, codes in zip(rows["notes"].to_pylist(), rows["note_codes"].to_pylist(), strict=True):
        assert len(codes) == len(notes.split("; ") if notes else [])
        assert all(NoteCode(code) for code in codes)
