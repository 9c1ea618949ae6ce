"""The paper's claims, each judged by the results in a folder: what was said, whether it holds here, the numbers.

Errors are root mean squared errors of J(π) over logs and seeds. "Comparable" means within a factor of 2. The average
reward, the behaviour policy's own, is not among the rivals: where every reward is 1, it is right by accident.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from ..errors import SettingError
from ..files import written_whole
from .experiments import PAPER
from .summaries import Row, grouped, results, rmse, tasks_of
from .units import DISCOUNT

COMPARED = ("td", "cop-td", "best-dice", "sr-dice")  # what learns in the paper's own figure
OTHER_RATIOS = ("cop-td", "dual-dice", "gen-dice", "gradient-dice", "best-dice", "mwl")
COMPARABLE = 2.0
STABLE = 0.1  # a value is stable once it stays within so much of the truth's size of its last one

HOLDS, FAILS, NOT_RUN = "holds", "does not hold", "not run"


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, the verdict on it, and why."""

    claim: str
    verdict: str
    evidence: str


Errors = Mapping[tuple[str, str], float]  # (task, estimator) → root mean squared error


def judge(directory: Path) -> list[Claim]:
    """Every claim, from whatever results the folder has."""
    rows = {name: results(directory, name) for name in ("main", "robustness", "ablation")}
    if not any(rows.values()):
        raise SettingError(f"{directory}: no results there. Run main, robustness and ablation first.")
    return [
        Claim(text, *(verdict(rows[experiment]) if rows[experiment] else (NOT_RUN, f"no results of {experiment}")))
        for text, experiment, verdict in CLAIMS
    ]


def dominant(rows: list[Row]) -> tuple[str, str]:
    errors, tasks = _errors(rows), tasks_of(rows)
    best = {task: _best(errors, task, (PAPER, *COMPARED)) for task in tasks}
    won = [task for task in tasks if best[task] == PAPER]
    shown = ", ".join(f"{task} {best[task]}" for task in tasks)
    return _verdict(len(won) > len(tasks) / 2), f"smallest error on {len(won)} of {len(tasks)} tasks: {shown}"


def comparable_on_two(rows: list[Row]) -> tuple[str, str]:
    errors = _errors(rows)
    factors = {}
    for task in ("Hopper-v5", "CartPole-v1"):
        if (task, PAPER) in errors:
            best = _best(errors, task, COMPARED)
            factors[task] = (errors[task, PAPER] / errors[task, best], best)
    evidence = "; ".join(f"{task}: {factor:.3g} times that of {best}" for task, (factor, best) in factors.items())
    return _verdict(all(factor <= COMPARABLE for factor, _ in factors.values())), evidence


def fastest(rows: list[Row]) -> tuple[str, str]:
    steps: dict[str, list[float]] = {name: [] for name in (PAPER, *COMPARED)}
    first = []
    for task in tasks_of(rows):
        needed = {
            name: float(np.median([_steps_to_stability(row) for row in runs if row["curve_step"]]))
            for name, runs in grouped((r for r in rows if r["task"] == task), lambda row: row["estimator"]).items()
            if name in steps and any(row["curve_step"] for row in runs)
        }
        for name, number in needed.items():
            steps[name].append(number)
        if needed and min(needed, key=needed.__getitem__) == PAPER:
            first.append(task)
    medians = ", ".join(f"{name} {np.median(found):,.0f}" for name, found in steps.items() if found)
    number = len(tasks_of(rows))
    return (
        _verdict(len(first) > number / 2),
        f"first to be stable on {len(first)} of {number} tasks{_listed(first)}; median steps: {medians}",
    )


def others_below_td(rows: list[Row]) -> tuple[str, str]:
    errors = _errors(rows)
    ratios = {name: _geometric_ratio(errors, name, "td") for name in OTHER_RATIOS}
    ratios = {name: ratio for name, ratio in ratios.items() if np.isfinite(ratio)}
    worse = [name for name, ratio in ratios.items() if ratio > 1]
    shown = ", ".join(f"{name} {ratio:.2g}" for name, ratio in ratios.items())
    return _verdict(len(worse) > len(ratios) / 2), f"error over that of TD, geometric mean over tasks: {shown}"


def sr_dice_comparable(rows: list[Row]) -> tuple[str, str]:
    ratio = _geometric_ratio(_errors(rows), "sr-dice", "td")
    return _verdict(
        1 / COMPARABLE <= ratio <= COMPARABLE
    ), f"{ratio:.2g} times the error of TD, geometric mean over tasks"


def sensitive_to_discount(rows: list[Row]) -> tuple[str, str]:
    ratios = {}
    for discount in sorted({row["discount"] for row in rows}):
        ratios[discount] = _geometric_ratio(_errors(_beside(rows, "discount", discount)), PAPER, "td")
    if not np.isfinite(list(ratios.values())).all():
        return NOT_RUN, "TD was not run at every discount"
    elsewhere = [ratio for discount, ratio in ratios.items() if discount != DISCOUNT]
    shown = ", ".join(f"{ratio:.2g} at {discount:g}" for discount, ratio in ratios.items())
    return (
        _verdict(max(elsewhere) > COMPARABLE * ratios[DISCOUNT]),
        f"error over that of TD at the same discount, geometric mean over tasks: {shown}",
    )


def worse_when_long(rows: list[Row]) -> tuple[str, str]:
    errors = {length: _errors(_beside(rows, "max_steps", length)) for length in (100, 200)}
    ratios = {
        task: errors[200][task, PAPER] / errors[100][task, PAPER]
        for task in tasks_of(rows)
        if (task, PAPER) in errors[200] and (task, PAPER) in errors[100]
    }
    if not ratios:
        return NOT_RUN, "no task was run at 200 steps"
    worse = [task for task, ratio in ratios.items() if ratio > 1]
    shown = ", ".join(f"{task} {ratio:.2g}" for task, ratio in ratios.items())
    return _verdict(len(worse) > len(ratios) / 2), f"error at 200 steps over that at 100: {shown}"


def nothing_without_regulariser(rows: list[Row]) -> tuple[str, str]:
    """Learnt: the error is less than half of what the value 0 would make, that is, of the truth itself."""
    without = [row for row in rows if json.loads(row["options"])["mass_weight"] == 0]
    learnt = [
        task
        for task, runs in grouped(without, lambda row: row["task"]).items()
        if rmse(runs) < 0.5 * abs(runs[0]["truth"])
    ]
    relative = ", ".join(
        f"{task} {rmse(runs) / abs(runs[0]['truth']):.2g}"
        for task, runs in grouped(without, lambda row: row["task"]).items()
    )
    return _verdict(learnt == ["CartPole-v1"]), f"error over the size of the truth without it: {relative}"


CLAIMS: tuple[tuple[str, str, Callable[[list[Row]], tuple[str, str]]], ...] = (
    ("Dominant on most tasks at γ = 0.95", "main", dominant),
    ("Comparable on Hopper and CartPole", "main", comparable_on_two),
    ("Fastest to a stable error", "main", fastest),
    ("Most other ratio methods are worse than TD", "main", others_below_td),
    ("SR-DICE is comparable to TD", "main", sr_dice_comparable),
    ("Sensitive to the discount", "robustness", sensitive_to_discount),
    ("Worse when episodes are 200 steps long", "robustness", worse_when_long),
    ("Without the regulariser nothing is learnt, except on CartPole", "ablation", nothing_without_regulariser),
)


def as_table(claims: Iterable[Claim]) -> Table:
    """For a terminal."""
    table = Table("the paper says", "here it", "because", title="Claims of the paper", title_justify="left")
    for claim in claims:
        table.add_row(claim.claim, claim.verdict, claim.evidence)
    return table


def write_claims(claims: Iterable[Claim], directory: Path) -> Path:
    """Writes `claims.md` and `claims.json`."""
    found = list(claims)
    lines = ["| the paper says | here it | because |", "| --- | --- | --- |"]
    lines += [f"| {claim.claim} | {claim.verdict} | {claim.evidence} |" for claim in found]
    for name, text in (
        ("claims.md", "\n".join(lines)),
        ("claims.json", json.dumps([asdict(claim) for claim in found], indent=2, ensure_ascii=False)),
    ):
        with written_whole(directory / name) as temporary:
            temporary.write_text(text + "\n")
    return directory / "claims.md"


def _errors(rows: Iterable[Row]) -> dict[tuple[str, str], float]:
    cells = grouped(rows, lambda row: (row["task"], row["estimator"]))
    errors = {cell: rmse(runs) for cell, runs in cells.items()}
    return {cell: error for cell, error in errors.items() if np.isfinite(error)}


def _best(errors: Errors, task: str, names: Iterable[str]) -> str:
    return min((name for name in names if (task, name) in errors), key=lambda name: errors[task, name])


def _geometric_ratio(errors: Errors, above: str, below: str) -> float:
    tasks = [task for task, name in errors if name == above and (task, below) in errors]
    if not tasks:
        return float("nan")
    return float(np.exp(np.mean([np.log(errors[task, above] / errors[task, below]) for task in tasks])))


def _beside(rows: Iterable[Row], axis: str, value: float | int) -> list[Row]:
    """The rows with that value on one axis, and elsewhere the setting that most rows have."""
    names = [name for name in ("discount", "transitions", "max_steps") if name != axis]
    rows = list(rows)
    usual = {name: _most_common([row[name] for row in rows]) for name in names}
    noises = {
        task: _most_common([r["noise"] for r in found]) for task, found in grouped(rows, lambda r: r["task"]).items()
    }
    return [
        row
        for row in rows
        if row[axis] == value
        and row["noise"] == noises[row["task"]]
        and all(row[name] == usual[name] for name in names)
    ]


def _most_common(values: list[Any]) -> Any:
    return max(set(values), key=values.count)


def _steps_to_stability(row: Row) -> float:
    """The first step after which the value stays within STABLE · |truth| of the last one."""
    values = np.array(row["curve_value"], float)
    away = np.abs(values - values[-1]) > STABLE * abs(row["truth"])
    last_away = int(np.flatnonzero(away)[-1]) if away.any() else -1
    return float(row["curve_step"][last_away + 1])


def _verdict(holds: bool) -> str:
    return HOLDS if holds else FAILS


def _listed(names: list[str]) -> str:
    return f" ({', '.join(names)})" if names else ""
