"""claims: the paper's claims, each judged by the results in a folder, with the evidence.

Errors are root mean squared errors of J(π) over logs, seeds and, for methods that train, the checkpoints in the last
fifth of training or in its last 1,000 steps: a value that oscillates is right at a single checkpoint by luck. An error
below a thousandth of |J| counts as a thousandth. "Comparable" means within a factor of 2. The average reward is not
compared: if every reward is 1, it is right by accident. A claim is judged when its experiment is complete. It is open
if it holds for the training lengths used here but not for equal lengths, or the other way round.

Each claim is judged twice: of the method as printed, and of the method as the authors released it.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from average_dice.errors import SettingError
from average_dice.experiments.ablation import ABLATION, mass_weight
from average_dice.experiments.base import Analysis, Experiment, Summary
from average_dice.experiments.jobs import DISCOUNT, PAPER, RELEASED_METHOD, Row
from average_dice.experiments.main import MAIN, RELEASED
from average_dice.experiments.robustness import ROBUSTNESS
from average_dice.experiments.summaries import (
    END,
    RELATIVE_FLOOR,
    beside,
    error_at_the_end,
    grouped,
    markdown_table,
    terminal_table,
)
from average_dice.notes import NoteCode
from average_dice.tasks import TASKS

COMPARED = ("td", "cop-td", "best-dice", "sr-dice")  # the trained methods in the paper's own figure
OTHER_RATIOS = ("cop-td", "dual-dice", "gen-dice", "gradient-dice", "best-dice", "mwl")
# The paper gives no numbers for these words. They are our choice:
COMPARABLE = 2.0  # errors are comparable within this factor
STABLE = 0.1  # a value is stable once it stays within this share of |J| of its last value
LEARNT = 0.5  # a value is learnt if its error is below this share of |J|, the error of the value 0

HOLDS, FAILS, OPEN, NOT_RUN = "holds", "does not hold", "is open", "not run"
NOT_ALL = "some of the results that it needs are missing"
_HEADINGS = ("claim of the paper", "as printed", "as released", "evidence", "explanation")


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, the verdict on it, the numbers, and our explanation unless it holds.

    `verdict` is of the method as printed, `as_released` of what the authors released, with its own numbers.
    """

    claim: str
    verdict: str
    evidence: str
    explanation: str
    as_released: str = NOT_RUN
    released_evidence: str = ""

    @property
    def line(self) -> tuple[str, str, str, str, str]:
        """As in the table."""
        released = "" if self.as_released == NOT_RUN else f"; as released: {self.released_evidence}"
        return self.claim, self.verdict, self.as_released, self.evidence + released, self.explanation


Judgement = tuple[str, str]  # the verdict and the evidence


class Claims(Analysis):
    """A table of the paper's claims, each judged by the stored results."""

    name = "claims"
    description = "Judges the paper's claims, as printed and as released, by the results in the folder. Runs nothing."

    def summary(self, directory: Path) -> Summary:
        claims = judge_claims(directory)
        found, lines = [asdict(claim) for claim in claims], [claim.line for claim in claims]
        return Summary(
            terminal_table("Claims of the paper", _HEADINGS, lines),
            {
                "claims.md": markdown_table(_HEADINGS, lines),
                "claims.json": json.dumps(found, indent=2, ensure_ascii=False) + "\n",
            },
        )


def judge_claims(directory: Path) -> list[Claim]:
    """Every claim, by the results in the folder."""
    rows = {one.name: one.results(directory) for one in (MAIN, ROBUSTNESS, ABLATION, RELEASED)}
    if not any(rows.values()):
        raise SettingError(f"{directory}: no results. Run main, robustness and ablation first.")
    claims = []
    for text, experiment, judgement, explanation in CLAIMS:
        verdict, evidence = _judged_by(directory, experiment, rows[experiment.name], judgement)
        # The released code has logs of its own, too. Without results on them, the logs of the experiment serve.
        source = RELEASED if experiment is MAIN and rows[RELEASED.name] else experiment
        released = _judged_by(directory, source, rows[source.name], judgement, RELEASED_METHOD)
        claims.append(
            Claim(text, verdict, evidence, explanation if verdict in (FAILS, OPEN) else "", released[0], released[1])
        )
    return claims


def _judged_by(
    directory: Path, experiment: Experiment[Any], rows: list[Row], judgement: "Judge", method: str = PAPER
) -> Judgement:
    """The verdict on a method: its rows take the place of those of the paper's method, so the same rules apply."""
    if why := _incomplete(directory, experiment, rows):
        return NOT_RUN, why
    if method != PAPER:
        if not any(row["estimator"] == method for row in rows):
            return NOT_RUN, f"{experiment.name} has no results of {method}"
        others = [row for row in rows if row["estimator"] != PAPER]
        rows = [{**row, "estimator": PAPER} if row["estimator"] == method else row for row in others]
    verdict, evidence = judgement(rows)
    if verdict == NOT_RUN:
        return verdict, evidence
    rivals = (*COMPARED, *OTHER_RATIOS) if experiment in (MAIN, RELEASED) else ()
    evidence = f"{evidence} ({_size(rows, (PAPER, *rivals))})"
    if method != PAPER:
        evidence = evidence.replace(PAPER, method) + (" on logs as released" if experiment is RELEASED else "")
    return verdict, evidence


def _incomplete(directory: Path, experiment: Experiment[Any], rows: Sequence[Row]) -> str:
    """What is missing from an experiment, in words; empty if it is complete."""
    if not rows:
        return NOT_ALL
    asked = experiment.keys(experiment.stored_plan(directory))
    missing = len(asked - {row["unit"] for row in rows})
    return f"incomplete: {missing:,} of {len(asked):,} runs are missing" if missing else ""


def _size(rows: Sequence[Row], names: Sequence[str]) -> str:
    """The logs and seeds of the paper's method, and which methods report too few training steps."""
    ours = [row for row in rows if row["estimator"] == PAPER]
    logs, seeds = (len({row[name] for row in ours}) for name in ("log", "seed"))
    words = f"{logs} log{'s' if logs > 1 else ''}, {seeds} seed{'s' if seeds > 1 else ''}"
    short = {row["estimator"] for row in rows if row["estimator"] in names and _too_short(row)}
    return f"{words}; too few training steps: {', '.join(sorted(short))}" if short else words


def _too_short(row: Row) -> bool:
    return NoteCode.SHORT_TRAINING in (row["note_codes"] or ())


def dominant(rows: list[Row]) -> Judgement:
    """The paper's method has the smallest error on more than half of the tasks."""
    errors = _errors(rows, (*COMPARED, PAPER))
    best = {
        task: min(of_task, key=of_task.__getitem__) if np.isfinite(min(of_task.values())) else "none"
        for task, of_task in errors.items()
    }
    won = [task for task, name in best.items() if name == PAPER]
    shown = ", ".join(f"{task} {name}" for task, name in best.items())
    off, deviation = _mean_error_and_deviation(rows)
    evidence = (
        f"smallest error on {len(won)} of {len(best)} tasks: {shown}; over the second half of training, the mean of "
        f"its value differs from J by {off:.0%} of |J|, with a standard deviation of {deviation:.0%}"
    )
    return _judged(errors, len(won) > len(best) / 2, evidence)


def comparable_on_two(rows: list[Row]) -> Judgement:
    """On Hopper and CartPole the paper's method is within a factor of 2 of the best other."""
    named = ("Hopper-v5", "CartPole-v1")
    errors = _errors((row for row in rows if row["task"] in named), (PAPER, *COMPARED))
    if len(errors) < len(named):
        return _judged((), False, "")
    factors = {}
    for task, of_task in errors.items():
        best = min(COMPARED, key=of_task.__getitem__)
        factors[task] = (of_task[PAPER] / of_task[best], best)
    shown = "; ".join(f"{task}: {factor:.3g} times the error of {best}" for task, (factor, best) in factors.items())
    return _judged(errors, all(factor <= COMPARABLE for factor, _ in factors.values()), shown)


def fastest(rows: list[Row]) -> Judgement:
    """The paper's method is the first to be stable on more than half of the tasks."""
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
        f"first to be stable on {len(first)} of {len(needed)} tasks; median steps: {shown}; over the second half of "
        f"training, the value of {PAPER} has a standard deviation of {_mean_error_and_deviation(rows)[1]:.0%} of |J|"
    )
    return _judged(needed, len(first) > len(needed) / 2, evidence)


def others_below_td(rows: list[Row]) -> Judgement:
    """Most other ratio methods have larger errors than TD."""
    ratios = {name: _geometric_mean(_over_td(rows, name)) for name in OTHER_RATIOS}
    ratios = {name: ratio for name, ratio in ratios.items() if not np.isnan(ratio)}
    steps = {name: _steps(rows, name) for name in (*ratios, "td")}
    equally = {name: _geometric_mean(_over_td(rows, name, steps[name])) for name in ratios}
    shown = ", ".join(f"{name} {ratio:.2g} after {steps[name]:,}" for name, ratio in ratios.items())
    shown_equally = ", ".join(f"{name} {ratio:.2g}" for name, ratio in equally.items())
    evidence = (
        f"error over that of TD after {steps['td']:,} steps, geometric mean over tasks: {shown}; "
        f"over that of TD after equally many steps: {shown_equally}"
    )
    most, most_equally = (sum(ratio > 1 for ratio in found.values()) > len(found) / 2 for found in (ratios, equally))
    return _judged(ratios, most, evidence, most_equally)


def sr_dice_comparable(rows: list[Row]) -> Judgement:
    """SR-DICE is within a factor of 2 of TD on most tasks."""
    steps = _steps(rows, "sr-dice")
    ratios, equally = _over_td(rows, "sr-dice"), _over_td(rows, "sr-dice", steps)
    close, close_equally = (
        [task for task, ratio in found.items() if 1 / COMPARABLE <= ratio <= COMPARABLE] for found in (ratios, equally)
    )
    shown = ", ".join(f"{task} {ratio:.2g}" for task, ratio in ratios.items())
    evidence = (
        f"within a factor of 2 on {len(close)} of {len(ratios)} tasks; error over that of TD: {shown}; compared with "
        f"TD after {steps:,} steps, as many as its successor features had, on {len(close_equally)} of {len(equally)}"
    )
    half = len(ratios) / 2
    return _judged(ratios, len(close) > half, evidence, len(close_equally) > half)


def sensitive_to_discount(rows: list[Row]) -> Judgement:
    """Compared with fitted Q, the closed form of TD: networks would need far longer at discounts near 1.

    Each method on all of its logs: fitted Q has more, and its error on a single log may be small by luck.
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
    return _judged(
        known,
        bool(known) and max(elsewhere.values()) > COMPARABLE * ratios[DISCOUNT],
        f"error over that of fqe at the same discount, geometric mean over tasks: {shown}",
    )


def worse_when_long(rows: list[Row]) -> Judgement:
    """On most tasks the error of the paper's method is larger with episodes of 200 steps than with 100."""
    along = beside(rows, "max_steps")
    errors = {length: _errors((row for row in along if row["max_steps"] == length), (PAPER,)) for length in (100, 200)}
    ratios = {task: errors[200][task][PAPER] / errors[100][task][PAPER] for task in errors[200] if task in errors[100]}
    worse = [task for task, ratio in ratios.items() if ratio > 1]
    shown = ", ".join(f"{task} {ratio:.2g}" for task, ratio in ratios.items())
    return _judged(ratios, len(worse) > len(ratios) / 2, f"error at 200 steps over that at 100: {shown}")


def nothing_without_regulariser(rows: list[Row]) -> Judgement:
    """Learnt: the error is below `LEARNT` times |J|. The value 0 has an error of |J|."""
    without = _errors((row for row in rows if mass_weight(row) == 0), (PAPER,))
    sizes = {row["task"]: abs(row["truth"]) for row in rows}
    relative = {task: error[PAPER] / sizes[task] for task, error in without.items()}
    if "CartPole-v1" not in relative or len(relative) == 1:
        return _judged((), False, "")  # the claim needs CartPole and at least one other task
    learnt = [task for task, error in relative.items() if error < LEARNT]
    shown = ", ".join(f"{task} {error:.2g}" for task, error in relative.items())
    evidence = f"error over |J| without it: {shown}"
    return _judged(relative, learnt == ["CartPole-v1"], evidence)


_HEAVY_LABELS = "labels are products of up to 100 importance ratios, and a few rows have nearly all of their sum: "
POOR_FIT = f"{_HEAVY_LABELS}the network fits them poorly and does not converge"
NOT_STABLE = f"{_HEAVY_LABELS}the network does not converge, and the value is not divided by the mass of the ratio"
STRONGER = (
    "; and its rivals are stronger here than in the paper: they use flow normalisation, optimistic updates and running "
    "averages of the parameters, while the paper's method is implemented literally"
)
FASTER = (
    "with flow normalisation, optimistic updates and running averages of the parameters, saddle-point methods need far "
    "fewer steps here than TD, whose target network needs thousands of steps to forget its initial values"
)
NOT_CONVERGED = (
    "its successor features have not converged: they start after the encoder is trained, and its own paper trains them "
    "for 100,000 steps"
)
CHOSEN_LIMIT = "an error below half of the truth counts as learnt, by our choice; some tasks are close to that limit"

Judge = Callable[[list[Row]], Judgement]
CLAIMS: tuple[tuple[str, Experiment[Any], Judge, str], ...] = (
    ("Dominant on most tasks at γ = 0.95", MAIN, dominant, POOR_FIT + STRONGER),
    ("Comparable on Hopper and CartPole", MAIN, comparable_on_two, POOR_FIT + STRONGER),
    ("Fastest to a stable error", MAIN, fastest, NOT_STABLE + STRONGER),
    ("Most other ratio methods are worse than TD", MAIN, others_below_td, FASTER),
    ("SR-DICE is comparable to TD", MAIN, sr_dice_comparable, NOT_CONVERGED),
    ("Sensitive to the discount", ROBUSTNESS, sensitive_to_discount, f"wrong at every discount: {POOR_FIT}"),
    ("Worse when episodes are 200 steps long", ROBUSTNESS, worse_when_long, f"wrong at 100 steps: {POOR_FIT}"),
    (
        "Without the regulariser nothing is learnt, except on CartPole",
        ABLATION,
        nothing_without_regulariser,
        CHOSEN_LIMIT,
    ),
)


def _errors(rows: Iterable[Row], names: Sequence[str], td_after: int | None = None) -> dict[str, dict[str, float]]:
    """Errors on the tasks where all these methods ran, on their common logs; TD's error after `td_after` steps."""
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
    """Infinite if a run has no value, so that a failure never wins; at least the floor, so that luck never wins."""
    error = error_at_the_end(runs, after)
    return max(error, RELATIVE_FLOOR * abs(runs[0]["truth"])) if np.isfinite(error) else np.inf


def _over_td(rows: Iterable[Row], name: str, td_after: int | None = None) -> dict[str, float]:
    """The error of a method over that of TD, or of TD after `td_after` steps, by task."""
    errors = _errors(rows, (name, "td"), td_after)
    return {task: of_task[name] / of_task["td"] for task, of_task in errors.items() if np.isfinite(of_task["td"])}


def _geometric_mean(ratios: Mapping[str, float]) -> float:
    """NaN if there are none."""
    return float(np.exp(np.mean(np.log(list(ratios.values()))))) if ratios else float("nan")


def _steps(rows: Iterable[Row], name: str) -> int:
    """The training length of a method. For SR-DICE, that of its successor features, which start after the encoder."""
    curves = (row["curve_step"] for row in rows if row["estimator"] == name and row["curve_step"])
    return max((steps[-1] - steps[0] for steps in curves), default=0)


def _mean_error_and_deviation(rows: Iterable[Row]) -> tuple[float, float]:
    """The paper's value over the second half of training: the error of its mean and its standard deviation.

    Both relative to |J|, as medians over runs.
    """
    runs = [row for row in rows if row["estimator"] == PAPER and row["curve_step"]]
    halves = [np.array(row["curve_value"], float)[len(row["curve_value"]) // 2 :] / row["truth"] for row in runs]
    if not halves:
        return np.nan, np.nan
    return float(np.median([abs(np.mean(one) - 1) for one in halves])), float(
        np.median([np.std(one) for one in halves])
    )


def _steps_to_stability(row: Row) -> float:
    """The first step after which the value stays within STABLE · |truth| of its last value.

    Infinite if that is only in the last fifth of training, if training diverged, or if the run notes that it had too
    few steps: a value that hardly moves yet is not stable.
    """
    values = np.array(row["curve_value"] or [], float)
    if not len(values) or not np.isfinite(values[-1]) or _too_short(row):
        return float("inf")
    near = np.abs(values - values[-1]) <= STABLE * abs(row["truth"])  # false for NaN
    away = np.flatnonzero(~near)
    first = row["curve_step"][away[-1] + 1 if len(away) else 0]
    return float(first) if first <= (1 - END) * row["curve_step"][-1] else float("inf")


def _judged(known: Sized, holds: bool, evidence: str, holds_equally: bool | None = None) -> Judgement:
    if not known:
        return NOT_RUN, NOT_ALL
    if holds_equally is not None and holds_equally != holds:
        return OPEN, evidence
    return (HOLDS if holds else FAILS), evidence


CLAIMS_ANALYSIS = Claims()
