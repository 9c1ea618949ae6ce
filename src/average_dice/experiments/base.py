"""Experiments and analyses: what `average-dice benchmark NAME` runs, shows, writes and draws.

- An `Experiment` turns a plan (the sizes in a preset) into jobs. Their rows are in a result store.
- An `Analysis` runs nothing: it reads the results of experiments. Every experiment is also an analysis of its own rows.

A new one is a file with a subclass, and a line in `registry.py`.
"""

import json
import shlex
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np
from rich.console import RenderableType

from average_dice.errors import SettingError
from average_dice.estimators import REGISTRY
from average_dice.experiments.jobs import Job, Method, Row, Setting
from average_dice.experiments.store import FORMAT, Store, read_rows
from average_dice.experiments.summaries import overview
from average_dice.files import write_text_whole
from average_dice.tasks import policy_hash, true_value

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Summary:
    """What the terminal shows, and the text files to write, by name."""

    shown: RenderableType
    files: Mapping[str, str] = field(default_factory=dict)

    def write(self, directory: Path) -> list[Path]:
        """Writes the files into a folder and returns their paths."""
        for name, text in self.files.items():
            write_text_whole(directory / name, text)
        return [directory / name for name in self.files]


class Analysis(ABC):
    """An analysis of the results in a folder."""

    name: ClassVar[str]
    description: ClassVar[str]  # one line, for --help

    @abstractmethod
    def summary(self, directory: Path) -> Summary:
        """The tables, from the results in the folder."""

    def figures(self, directory: Path) -> "dict[str, Figure]":
        """The figures by name, from the results in the folder. Only here may Matplotlib be imported."""
        return {}

    @property
    def has_figures(self) -> bool:
        """Whether `figures` is overridden, which needs Matplotlib."""
        return type(self).figures is not Analysis.figures


@dataclass(frozen=True)
class Plan:
    """The size of an experiment. Its fields are those of the experiment's section in a preset."""

    def check(self) -> None:
        """Raises `SettingError` if values are out of range or contradict each other."""


P = TypeVar("P", bound=Plan)


class Experiment(Analysis, Generic[P]):
    """An analysis of rows that it can also produce."""

    plan_type: type[P]

    @abstractmethod
    def jobs(self, plan: P) -> Iterator[Job]:
        """The jobs of a plan."""

    def job(self, task: str, setting: Setting, log: int, num_seeds: int, *methods: Method) -> Job:
        """A job of this experiment, with the target policy that is shipped now."""
        return Job(self.name, task, policy_hash(task), setting, log, num_seeds, methods)

    def keys(self, plan: P) -> frozenset[str]:
        """The keys of all rows of a plan, with the current target policies and defaults."""
        return frozenset(one.key for job in self.jobs(plan) for one in job.each())

    def store(self, directory: Path, plan: P, versions: Mapping[str, str]) -> Store:
        """Creates or continues the result store in the folder."""
        return Store.open(directory, self.name, plan, self.keys(plan), versions)

    def stored_plan(self, directory: Path) -> P:
        """The plan of the rows in the folder."""
        path = directory / f"{self.name}.json"
        try:
            manifest = json.loads(path.read_text(encoding="utf-8"))
            if manifest["format"] != FORMAT:
                raise SettingError(f"{path}: has format {manifest['format']}, this version reads format {FORMAT}.")
            plan = self.read_plan(manifest["plan"])
        except (OSError, KeyError, TypeError, AttributeError, json.JSONDecodeError, UnicodeDecodeError):
            raise SettingError(f"{path}: missing, or not the manifest of a result store.") from None
        if unknown := set(getattr(plan, "estimators", ())) - set(REGISTRY):
            raise SettingError(f"{path}: has unknown methods: {', '.join(sorted(unknown))}. Is it of another version?")
        return plan

    def read_plan(self, content: Mapping[str, Any]) -> P:
        """A plan from its JSON form."""
        return self.plan_type(**{name: tuple(v) if isinstance(v, list) else v for name, v in content.items()})

    def results(self, directory: Path) -> list[Row]:
        """The rows in the folder, with `error` = value − truth, NaN where there is no value.

        The truth is the current one, which may be more precise than when the row was written. Rows of target policies
        or defaults that have been replaced since are left out.
        """
        rows = read_rows(directory, self.name).to_pylist()
        keys = self.keys(self.stored_plan(directory)) if rows else frozenset()
        rows = [row for row in rows if row["unit"] in keys]
        for row in rows:
            row["truth"], row["truth_standard_error"] = true_value(row["task"], row["discount"])
            row["error"] = np.nan if row["value"] is None else row["value"] - row["truth"]
        return rows

    def some_results(self, directory: Path) -> list[Row]:
        """The same; raises if there are none."""
        if rows := self.results(directory):
            return rows
        raise SettingError(
            f"{directory}: no results of {self.name}. "
            f"Run it first: average-dice benchmark {self.name} --out {shlex.quote(str(directory))}"
        )

    def summary(self, directory: Path) -> Summary:
        return Summary(overview(self.some_results(directory), self.name))
