"""The result store: a folder of Parquet files, one row for each run. Killing a run at any moment loses nothing.

    DIR/main.json              the plan of the rows, its hash, the hash of its jobs, versions
    DIR/main.parquet           the rows gathered so far
    DIR/main/KEY.parquet       the rows of one job, not yet gathered
    DIR/main.replaced.parquet  rows of target policies or defaults that have been replaced since

The rows of a job are written whole or not at all, under a name that only this job has. Writing them again writes the
same rows. Each row has the key of its job with only its own method: by this key the row counts as done. Gathering holds
a lock and writes the large file before it removes the small ones; readers read the small ones first. So no row is lost
or counted twice, with any number of processes on one folder.
"""

import fcntl
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from average_dice.errors import SettingError
from average_dice.experiments.jobs import Job, Row
from average_dice.files import write_text_whole, written_whole

FORMAT = 2  # 2 added note_codes; tools/translate_stores.py translated the committed stores of format 1

SCHEMA = pa.schema(
    [
        ("unit", pa.string()),
        ("experiment", pa.string()),
        ("task", pa.string()),
        ("estimator", pa.string()),
        ("options", pa.string()),
        ("discount", pa.float64()),
        ("transitions", pa.int64()),
        ("max_steps", pa.int64()),
        ("noise", pa.float64()),
        ("log", pa.int64()),
        ("seed", pa.int64()),
        ("value", pa.float64()),
        ("truth", pa.float64()),
        ("truth_standard_error", pa.float64()),
        ("seconds", pa.float64()),
        ("notes", pa.string()),
        ("note_codes", pa.list_(pa.string())),
        ("diagnostics", pa.string()),
        ("curve_step", pa.list_(pa.int64())),
        ("curve_value", pa.list_(pa.float64())),
        ("curve_loss", pa.list_(pa.float64())),
        ("config", pa.string()),
        ("versions", pa.string()),
    ]
)
ORDER = [(name, "ascending") for name in ("task", "estimator", "options", "discount", "transitions", "max_steps")] + [
    (name, "ascending") for name in ("noise", "log", "seed")
]


@dataclass(frozen=True)
class Store:
    """The rows of one experiment in a folder."""

    directory: Path
    experiment: str
    config: str
    keys: frozenset[str]  # of the jobs, one for each method
    versions: Mapping[str, str]

    @staticmethod
    def open(directory: Path, experiment: str, plan: Any, keys: frozenset[str], versions: Mapping[str, str]) -> "Store":
        """Creates a store or continues one; raises if it was written by another plan or by other versions.

        `plan` is a dataclass. A plan that only adds methods or logs may continue the store.
        """
        content = {"format": FORMAT, "experiment": experiment, "plan": json.loads(json.dumps(asdict(plan)))}
        config = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
        store = Store(directory, experiment, config, keys, dict(versions))
        manifest = {**content, "config": config, "units": store.units, "versions": dict(versions)}
        try:
            store.parts.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SettingError(f"{directory}: cannot be written to: {error.strerror}.") from None
        if not os.access(store.parts, os.W_OK):
            raise SettingError(f"{directory}: no permission to write there.")
        with store._locked():
            if store.manifest.exists():
                _check_same(store.manifest, manifest)
            elif store.gathered.exists() or any(store.parts.iterdir()):
                raise SettingError(f"{directory}: has results of {experiment} without a manifest. Give another folder.")
            write_text_whole(store.manifest, json.dumps(manifest, indent=2) + "\n")
        return store

    @property
    def units(self) -> str:
        """The hash of all jobs: with other defaults or target policies, the same plan has other jobs."""
        return hashlib.sha256("".join(sorted(self.keys)).encode()).hexdigest()[:16]

    @property
    def manifest(self) -> Path:
        """The file with the plan and its hash."""
        return self.directory / f"{self.experiment}.json"

    @property
    def gathered(self) -> Path:
        """The file with the rows of all finished runs."""
        return self.directory / f"{self.experiment}.parquet"

    @property
    def replaced(self) -> Path:
        """The file with rows that no longer count."""
        return self.directory / f"{self.experiment}.replaced.parquet"

    @property
    def parts(self) -> Path:
        """The folder with one file for each finished job, during a run."""
        return self.directory / self.experiment

    def add(self, job: Job, rows: Sequence[Row]) -> None:
        """Writes the rows of a job."""
        here = json.dumps(dict(self.versions), sort_keys=True)
        if other := [row["versions"] for row in rows if row["versions"] != here]:
            raise SettingError(f"a worker has other versions: {other[0]} there, {here} here. Install the same ones.")
        table = pa.Table.from_pylist([{**row, "config": self.config} for row in rows], schema=SCHEMA)
        with written_whole(self.parts / f"{job.key}.parquet") as temporary:
            pq.write_table(table, temporary)

    def done(self) -> set[str]:
        """The keys of all stored rows."""
        return set(read_rows(self.directory, self.experiment)["unit"].to_pylist())

    def gather(self) -> int:
        """Moves the rows of our jobs into one file, in an order that does not depend on the order of finishing.

        Rows of other jobs belong to target policies or defaults that have been replaced since. They are moved to the
        file `replaced`; returns their number. If another process has opened the store with other jobs in the meantime,
        all rows stay.
        """
        with self._locked():
            parts = {path: part for path in _parts(self.parts) if (part := _read(path)) is not None}
            found = _once([*_gathered(self.gathered), *parts.values()])
            rows, others = found, found.slice(0, 0)
            if json.loads(self.manifest.read_text(encoding="utf-8"))["units"] == self.units:
                ours = pc.is_in(found["unit"], pa.array(sorted(self.keys), pa.string()))
                rows, others = found.filter(ours), found.filter(pc.invert(ours))
            if len(others):
                _write(_once([*_gathered(self.replaced), others]), self.replaced)
            if parts or len(others):
                _write(rows, self.gathered)
            for path in parts:  # files that could not be read stay
                path.unlink(missing_ok=True)
            return len(others)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with open(self.directory / ".lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # the system releases it if this process is killed
            yield


def read_rows(directory: Path, experiment: str) -> pa.Table:
    """All rows of an experiment, gathered or not, each once, in a fixed order."""
    parts = [part for path in _parts(directory / experiment) if (part := _read(path)) is not None]
    return _once([*_gathered(directory / f"{experiment}.parquet"), *parts])


def _once(tables: Sequence[pa.Table]) -> pa.Table:
    """All their rows, each once, in a fixed order."""
    rows = pa.concat_tables([SCHEMA.empty_table(), *tables])
    runs = zip(rows["unit"].to_pylist(), rows["seed"].to_pylist(), strict=True)
    first = {run: index for index, run in reversed(list(enumerate(runs)))}
    return rows.take(pa.array(sorted(first.values()), pa.int64())).sort_by(ORDER).combine_chunks()


def _gathered(path: Path) -> list[pa.Table]:
    """The table in a large file, if there is one."""
    if not path.exists():
        return []
    try:
        return [pq.read_table(path, schema=SCHEMA)]
    except (OSError, pa.ArrowInvalid) as error:
        raise SettingError(
            f"{path}: damaged ({error}). Move it away; the same command then runs its jobs again."
        ) from None


def _write(rows: pa.Table, path: Path) -> None:
    with written_whole(path) as temporary:
        pq.write_table(rows, temporary, compression="zstd")


def _parts(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.parquet") if re.fullmatch("[0-9a-f]{16}", path.stem))


def _read(path: Path) -> pa.Table | None:
    """None if the file is damaged (its job runs again) or was gathered meanwhile (the large file has its rows)."""
    try:
        return pq.read_table(path, schema=SCHEMA)
    except (OSError, pa.ArrowInvalid):
        return None


def _check_same(path: Path, expected: Mapping[str, Any]) -> None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        format_, plan, versions = found["format"], dict(found["plan"]), dict(found["versions"])
        continues = _continues(plan, expected["plan"])
    except (ValueError, KeyError, TypeError, AttributeError):
        raise SettingError(f"{path}: not a manifest of a result store. Give another folder.") from None
    if format_ != FORMAT:
        raise SettingError(f"{path}: has format {format_}, this version writes format {FORMAT}. Give another folder.")
    if not continues:
        raise SettingError(f"{path}: written with another preset. Give another folder, or the preset of this one.")
    if versions != expected["versions"]:
        changed = [
            f"{name} {versions.get(name, 'none')} there, {expected['versions'].get(name, 'none')} here"
            for name in sorted(versions.keys() | expected["versions"].keys())
            if versions.get(name) != expected["versions"].get(name)
        ]
        raise SettingError(f"{path}: written with other versions ({'; '.join(changed)}). Give another folder.")


def _continues(before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether a plan differs from an earlier one only in more methods or more logs."""
    may_grow = ("estimators", "steps", "logs", "trained_logs")
    steps = before.get("steps")
    return (
        {name: value for name, value in before.items() if name not in may_grow}
        == {name: value for name, value in now.items() if name not in may_grow}
        and set(before.get("estimators", ())) <= set(now.get("estimators", ()))
        and all(before.get(name, 0) <= now.get(name, 0) for name in ("logs", "trained_logs"))
        and (steps.items() <= now["steps"].items() if isinstance(steps, dict) else steps == now.get("steps"))
    )
