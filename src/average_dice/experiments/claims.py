"""The paper's claims, each judged by the results in a folder: what was said, whether it holds here, the numbers.

Errors are root mean squared errors of J(π) over logs, seeds and, of methods that train, the looks in the last fifth of
training or its last 1,000 steps: what swings is right at one of them by luck. One below a thousandth of |J| counts as
that. "Comparable" means within a factor of 2. The average reward, the behaviour policy's own, is not among the rivals:
where every reward is 1, it is right by accident. A claim is judged when the experiment that it is about has been run to
the end. It is open if it holds for trainings as long as they were here and not for equally long ones, or the other way.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich.table import Table

from average_dice.errors import SettingError
from average_dice.experiments.jobs import DISCOUNT
from average_dice.experiments.plans import PAPER
from average_dice.experiments.store import keys_of
from average_dice.experiments.summaries import (
    END,
    RELATIVE_FLOOR,
    Row,
    beside,
    error_at_the_end,
    grouped,
    plan_of,
    results,
)
from average_dice.files import write_text_whole
from average_dice.tasks.task import TASKS

COMPARED = ("td", "cop-td", "best-dice", "sr-dice")  # what learns in the paper's own figure
OTHER_RATIOS = ("cop-td", "dual-dice", "gen-dice", "gradient-dice", "best-dice", "mwl")
COMPARABLE = 2.0
STABLE = 0.1  # a value is stable once it stays within so much of the truth's size of its last one
TOO_SHORT = "its slow copy would need about"  # in the notes of a run

HOLDS, FAILS, OPEN, NOT_RUN = "holds", "does not hold", "is open", "not run"


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, the verdict on it, the numbers, and unless it holds, how we explain that."""

    claim: str
    verdict: str
    evidence: str
    explanation: str


Verdict = tuple[str, str]  # and the evidence
Errors = Mapping[str, Mapping[str, float]]  # task → estimator → root mean squared error


def judge(directory: Path) -> list[Claim]:
    """Every claim, from whatever results the folder has."""
    rows = {name: results(directory, name) for name in ("main", "robustness", "ablation")}
    if not any(rows.values()):
        raise SettingError(f"{directory}: no results there. Run main, robustness and ablation first.")
    unfinished = {name: _unfinished(directory, name, found) for name, found in rows.items()}
    claims = []
    for text, experiment, judgement, explanation in CLAIMS:
        if why := unfinished[experiment]:
            claims.append(Claim(text, NOT_RUN, why, ""))
            continue
        verdict, evidence = judgement(rows[experiment])
        if verdict != NOT_RUN:
            rivals = (*COMPARED, *OTHER_RATIOS) if experiment == "main" else ()
            evidence = f"{evidence} ({_scale(rows[experiment], (PAPER, *rivals))})"
        claims.append(Claim(text, verdict, evidence, explanation if verdict in (FAILS, OPEN) else ""))
    return claims


def _unfinished(directory: Path, experiment: str, rows: Sequence[Row]) -> str:
    """What is missing of an experiment, in words; nothing if it is all there."""
    if not rows:
        return "not all that it takes was run"
    asked = keys_of(experiment, plan_of(directory, experiment))
    missing = len(asked - {row["unit"] for row in rows})
    return f"unfinished: {missing:,} of {len(asked):,} runs are missing" if missing else ""


def _scale(rows: Sequence[Row], names: Sequence[str]) -> str:
    """How much stands behind it: logs and seeds of the paper's method, and who says that it had too few steps."""
    ours = [row for row in rows if row["estimator"] == PAPER]
    logs, seeds = (len({row[name] for row in ours}) for name in ("log", "seed"))
    words = f"{logs} log{'s' if logs > 1 else ''}, {seeds} seed{'s' if seeds > 1 else ''}"
    short = {row["estimator"] for row in rows if row["estimator"] in names and _too_short(row)}
    return f"{words}; too few steps by their own account: {', '.join(sorted(short))}" if short else words


def _too_short(row: Row) -> bool:
    return TOO_SHORT in (row["notes"] or "")


def dominant(rows: list[Row]) -> Verdict:
    errors = _errors(rows, (*COMPARED, PAPER))
    best = {
        task: min(of_task, key=of_task.__getitem__) if np.isfinite(min(of_task.values())) else "nobody"
        for task, of_task in errors.items()
    }
    won = [task for task, name in best.items() if name == PAPER]
    shown = ", ".join(f"{task} {name}" for task, name in best.items())
    off, swing = _average_and_swing(rows)
    evidence = (
        f"smallest error on {len(won)} of {len(best)} tasks: {shown}; averaged over the second half of training its "
        f"value is off by {off:.0%} of |J|, and it swings about that by {swing:.0%}"
    )
    return _verdict(errors, len(won) > len(best) / 2, evidence)


def comparable_on_two(rows: list[Row]) -> Verdict:
    named = ("Hopper-v5", "CartPole-v1")
    errors = _errors((row for row in rows if row["task"] in named), (PAPER, *COMPARED))
    if len(errors) < len(named):
        return _verdict((), False, "")
    factors = {}
    for task, of_task in errors.items():
        best = min(COMPARED, key=of_task.__getitem__)
        factors[task] = (of_task[PAPER] / of_task[best], best)
    shown = "; ".join(f"{task}: {factor:.3g} times that of {best}" for task, (factor, best) in factors.items())
    return _verdict(errors, all(factor <= COMPARABLE for factor, _ in factors.values()), shown)


def fastest(rows: list[Row]) -> Verdict:
    names = (PAPER, *COMPARED)
    needed = {}
    for task, of_task in grouped(rows, lambda row: row["task"]).items():
        runs = grouped(of_task, lambda row: row["estimator"])
        if all(name in runs for name in names):
            needed[task] = {name: float(np.median([_steps_to_stability(row) for row in runs[name]])) for name in names}
    first = [task for task, steps in needed.items() if all(steps[PAPER] < steps[name] for name in COMPARED)]
    medians = {name: float(np.median([steps[name] for steps in needed.values()])) for name in names if needed}
    lengths = {row["estimator"]: row["curve_step"][-1] for row in rows if row["curve_step"]}
    shown = ", ".join(
        f"{name} {f'{steps:,.0f}' if np.isfinite(steps) else 'never'} of {lengths.get(name, 0):,}"
        for name, steps in medians.items()
    )
    evidence = (
        f"first to be stable on {len(first)} of {len(needed)} tasks; median steps: {shown}; "
        f"in the second half of training the value of {PAPER} swings by {_average_and_swing(rows)[1]:.0%} of |J|"
    )
    return _verdict(needed, len(first) > len(needed) / 2, evidence)


def others_below_td(rows: list[Row]) -> Verdict:
    ratios = {name: _geometric_mean(_over_td(rows, name)) for name in OTHER_RATIOS}
    ratios = {name: ratio for name, ratio in ratios.items() if not np.isnan(ratio)}
    steps = {name: _steps(rows, name) for name in (*ratios, "td")}
    equally = {name: _geometric_mean(_over_td(rows, name, steps[name])) for name in ratios}
    shown = ", ".join(f"{name} {ratio:.2g} after {steps[name]:,}" for name, ratio in ratios.items())
    shown_equally = ", ".join(f"{name} {ratio:.2g}" for name, ratio in equally.items())
    evidence = (
        f"error over that of TD after {steps['td']:,} steps, geometric mean over tasks: {shown}; "
        f"over that of TD after as many steps: {shown_equally}"
    )
    most, most_equally = (sum(ratio > 1 for ratio in found.values()) > len(found) / 2 for found in (ratios, equally))
    return _verdict(ratios, most, evidence, most_equally)


def sr_dice_comparable(rows: list[Row]) -> Verdict:
    steps = _steps(rows, "sr-dice")
    ratios, equally = _over_td(rows, "sr-dice"), _over_td(rows, "sr-dice", steps)
    close, close_equally = (
        [task for task, ratio in found.items() if 1 / COMPARABLE <= ratio <= COMPARABLE] for found in (ratios, equally)
    )
    shown = ", ".join(f"{task} {ratio:.2g}" for task, ratio in ratios.items())
    evidence = (
        f"within a factor of 2 on {len(close)} of {len(ratios)} tasks; error over that of TD: {shown}; over that of TD "
        f"after as many steps as its successor features had, {steps:,}, on {len(close_equally)} of {len(equally)}"
    )
    half = len(ratios) / 2
    return _verdict(ratios, len(close) > half, evidence, len(close_equally) > half)


def sensitive_to_discount(rows: list[Row]) -> Verdict:
    """Beside fitted Q, in closed form what TD converges to: networks would need far longer at discounts near 1.

    Each over all the logs that it has: fitted Q has more, and on a single one its error may be small by luck.
    """
    along = grouped(beside(rows, "discount"), lambda row: row["discount"])
    ratios = {}
    for discount in sorted(along):
        ours, other = (_errors(along[discount], (name,)) for name in (PAPER, "fqe"))
        errors = {task: {**ours[task], **other[task]} for task in ours if task in other}
        ratios[discount] = _geometric_mean(
            {task: found[PAPER] / found["fqe"] for task, found in errors.items() if np.isfinite(found["fqe"])}
        )
    ratios = {discount: ratio for discount, ratio in ratios.items() if not np.isnan(ratio)}
    elsewhere = {discount: ratio for discount, ratio in ratios.items() if discount != DISCOUNT}
    known = elsewhere if DISCOUNT in ratios else {}
    shown = ", ".join(f"{ratio:.2g} at {discount:g}" for discount, ratio in ratios.items())
    return _verdict(
        known,
        bool(known) and max(elsewhere.values()) > COMPARABLE * ratios[DISCOUNT],
        f"error over that of fqe at the same discount, geometric mean over tasks: {shown}",
    )


def worse_when_long(rows: list[Row]) -> Verdict:
    along = beside(rows, "max_steps")
    errors = {length: _errors((row for row in along if row["max_steps"] == length), (PAPER,)) for length in (100, 200)}
    ratios = {task: errors[200][task][PAPER] / errors[100][task][PAPER] for task in errors[200] if task in errors[100]}
    worse = [task for task, ratio in ratios.items() if ratio > 1]
    shown = ", ".join(f"{task} {ratio:.2g}" for task, ratio in ratios.items())
    return _verdict(ratios, len(worse) > len(ratios) / 2, f"error at 200 steps over that at 100: {shown}")


def nothing_without_regulariser(rows: list[Row]) -> Verdict:
    """Learnt: the error is less than half of what the value 0 would make, that is, of the truth itself."""
    without = _errors((row for row in rows if json.loads(row["options"])["mass_weight"] == 0), (PAPER,))
    sizes = {row["task"]: abs(row["truth"]) for row in rows}
    relative = {task: error[PAPER] / sizes[task] for task, error in without.items()}
    if "CartPole-v1" not in relative or len(relative) == 1:
        return _verdict((), False, "")  # an exception, and something that it is an exception to
    learnt = [task for task, error in relative.items() if error < 0.5]
    shown = ", ".join(f"{task} {error:.2g}" for task, error in relative.items())
    evidence = f"error over the size of the truth without it: {shown}"
    return _verdict(relative, learnt == ["CartPole-v1"], evidence)


SWINGS = (
    "labels are products of up to a hundred ratios, a few rows have nearly all of their sum: what is learnt from them "
    "never settles, and the value is not divided by the mass that is found"
)
OFF = (
    "labels are products of up to a hundred ratios, a few rows have nearly all of their sum: what is learnt from them "
    "is off, and never settles"
)
STRONGER = (
    "; and its rivals are stronger here than in the paper, by flow normalisation, optimistic steps and averages of "
    "what they find, while it is taken literally"
)
SETTLED = (
    "with flow normalisation, optimistic steps and averages of what they find, saddle points need far fewer steps here "
    "than TD, whose slow copy takes thousands to forget where it began"
)
ON_ITS_WAY = (
    "its successor features are still on their way, later than TD by the steps of its encoder; its own paper trains "
    "them for 100,000"
)

CLAIMS: tuple[tuple[str, str, Callable[[list[Row]], Verdict], str], ...] = (
    ("Dominant on most tasks at γ = 0.95", "main", dominant, OFF + STRONGER),
    ("Comparable on Hopper and CartPole", "main", comparable_on_two, OFF + STRONGER),
    ("Fastest to a stable error", "main", fastest, SWINGS + STRONGER),
    ("Most other ratio methods are worse than TD", "main", others_below_td, SETTLED),
    ("SR-DICE is comparable to TD", "main", sr_dice_comparable, ON_ITS_WAY),
    ("Sensitive to the discount", "robustness", sensitive_to_discount, f"it is as wrong at every discount: {OFF}"),
    ("Worse when episodes are 200 steps long", "robustness", worse_when_long, f"it is as wrong at 100: {OFF}"),
    (
        "Without the regulariser nothing is learnt, except on CartPole",
        "ablation",
        nothing_without_regulariser,
        "to count errors below half of the truth's size as learnt is our choice; tasks near it fall on either side",
    ),
)


def as_table(claims: Iterable[Claim]) -> Table:
    """For a terminal."""
    table = Table("the paper says", "here it", "because", "we think", title="Claims of the paper", title_justify="left")
    for claim in claims:
        table.add_row(claim.claim, claim.verdict, claim.evidence, claim.explanation)
    return table


def write_claims(claims: Iterable[Claim], directory: Path) -> Path:
    """Writes `claims.md` and `claims.json`."""
    found = list(claims)
    lines = ["| the paper says | here it | because | we think |", "| --- | --- | --- | --- |"]
    cells = ([text.replace("|", "\\|") for text in asdict(claim).values()] for claim in found)
    lines += ["| " + " | ".join(line) + " |" for line in cells]
    for name, text in (
        ("claims.md", "\n".join(lines)),
        ("claims.json", json.dumps([asdict(claim) for claim in found], indent=2, ensure_ascii=False)),
    ):
        write_text_whole(directory / name, text + "\n")
    return directory / "claims.md"


def _errors(rows: Iterable[Row], names: Sequence[str], td_after: int | None = None) -> dict[str, dict[str, float]]:
    """Errors on the tasks where all these methods ran, from the logs that all of them had; TD's after so many steps."""
    errors = {}
    for task, of_task in grouped(rows, lambda row: row["task"]).items():
        runs = grouped((row for row in of_task if row["estimator"] in names), lambda row: row["estimator"])
        if set(runs) != set(names):
            continue
        common = set.intersection(*({row["log"] for row in found} for found in runs.values()))
        compared = {name: [row for row in found if row["log"] in common] for name, found in runs.items()}
        if common:
            errors[task] = {name: _error(compared[name], td_after if name == "td" else None) for name in names}
    return {task: errors[task] for task in TASKS if task in errors}


def _error(runs: Sequence[Row], after: int | None = None) -> float:
    """A run without a value is an error without bound: who falls must not win by it. Nor must luck, hence the floor."""
    error = error_at_the_end(runs, after)
    return max(error, RELATIVE_FLOOR * abs(runs[0]["truth"])) if np.isfinite(error) else np.inf


def _over_td(rows: Iterable[Row], name: str, td_after: int | None = None) -> dict[str, float]:
    """The error of a method over that of TD, or of TD after so many steps, by task."""
    errors = _errors(rows, (name, "td"), td_after)
    return {task: of_task[name] / of_task["td"] for task, of_task in errors.items() if np.isfinite(of_task["td"])}


def _geometric_mean(ratios: Mapping[str, float]) -> float:
    """NaN if there are none."""
    return float(np.exp(np.mean(np.log(list(ratios.values()))))) if ratios else float("nan")


def _steps(rows: Iterable[Row], name: str) -> int:
    """How long a method trains; SR-DICE, its successor features: its looks begin after the encoder."""
    looks = (row["curve_step"] for row in rows if row["estimator"] == name and row["curve_step"])
    return max((steps[-1] - steps[0] for steps in looks), default=0)


def _average_and_swing(rows: Iterable[Row]) -> tuple[float, float]:
    """Of the paper's value in the second half of training, over |J|: how far off its mean is, and its deviation.

    Both are medians over runs.
    """
    runs = [row for row in rows if row["estimator"] == PAPER and row["curve_step"]]
    halves = [np.array(row["curve_value"], float)[len(row["curve_value"]) // 2 :] / row["truth"] for row in runs]
    if not halves:
        return np.nan, np.nan
    return float(np.median([abs(np.mean(one) - 1) for one in halves])), float(
        np.median([np.std(one) for one in halves])
    )


def _steps_to_stability(row: Row) -> float:
    """The first step after which the value stays within STABLE · |truth| of where it ends.

    Never, if it does so only for the last fifth of its training, if it diverged, or if it says itself that it had too
    few steps: what hardly moves is not stable.
    """
    values = np.array(row["curve_value"] or [], float)
    if not len(values) or not np.isfinite(values[-1]) or _too_short(row):
        return float("inf")
    near = np.abs(values - values[-1]) <= STABLE * abs(row["truth"])  # never of what is not a number
    away = np.flatnonzero(~near)
    first = row["curve_step"][away[-1] + 1 if len(away) else 0]
    return float(first) if first <= (1 - END) * row["curve_step"][-1] else float("inf")


def _verdict(known: Sized, holds: bool, evidence: str, holds_equally: bool | None = None) -> Verdict:
    if not known:
        return NOT_RUN, "not all that it takes was run"
    if holds_equally is not None and holds_equally != holds:
        return OPEN, evidence
    return (HOLDS if holds else FAILS), evidence
