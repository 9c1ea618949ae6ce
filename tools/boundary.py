"""Where the printed method stops working: `make boundary`. It continues after an interruption.

The second moment of a product of t ratios is (E ρ²)ᵗ, so K episodes have an effective sample size of about K/(E ρ²)ᵗ at
step t. For Gaussian policies of equal means and d dimensions, whose variance is x times as large in the log,

    E_μ[ρ²] = (x/√(2x − 1))ᵈ.

The effective sample size falls below 5 at t* = ln(K/5) / ln E ρ². The method works if that is after the steps that
count, min(L, ln 20 / ln(1/γ)): L is the truncation length, and after ln 20 / ln(1/γ) steps γᵗ is below 0.05.

Logs of several tasks, noises and lengths go into `results/boundary.parquet`, one row for each log and discount; the
figure is `docs/images/boundary.svg`, and the numbers go into `docs/paper.md`, between their markers.
"""

import os
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

os.environ.setdefault("NPROC", "1")  # XLA's threads
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import jax
import matplotlib as mpl
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.progress import track

from average_dice.estimators import AverageDICE, label_on_state, plain_value
from average_dice.experiments.measurements import log_of
from average_dice.experiments.plotting import PALETTE, STYLE
from average_dice.experiments.summaries import grouped
from average_dice.files import write_text_whole, written_whole
from average_dice.labels import as_logged, plain
from average_dice.models import FourierFeatures
from average_dice.problem import Problem
from average_dice.tasks import fastest_envs, find_task, target_policy
from average_dice.tasks.collection import episode_returns

LEAST = 5.0  # effective episodes
NEGLIGIBLE = 0.05  # steps with a smaller γᵗ do not count
DIMENSIONS = {"MountainCarContinuous-v0": 1, "Hopper-v5": 3, "HalfCheetah-v5": 6, "Ant-v5": 8}
TASKS = ("CartPole-v1", "Acrobot-v1", *DIMENSIONS)
NOISES = {True: (0.05, 0.1, 0.3, 0.5), False: (1.1, 1.4, 2.0, 2.8)}  # of discrete actions, of continuous ones
LENGTHS, DISCOUNTS = (20, 50, 100, 200), (0.8, 0.95, 0.99)
TRANSITIONS, LOGS, ON_POLICY_EPISODES = 4_000, 5, 256
NICENESS = 10
ROOT = Path(__file__).parents[1]
STORE, PAGE = ROOT / "results" / "boundary.parquet", ROOT / "docs" / "paper.md"
FIGURE = ROOT / "docs" / "images" / "boundary.svg"
START, FINISH = "<!-- boundary -->\n", "<!-- end of boundary -->"
# The printed regression of the label on the state, in closed form.
METHOD = AverageDICE(FourierFeatures(), plain, as_logged, label_on_state, value=plain_value)

SCHEMA = pa.schema(
    [("task", pa.string()), ("noise", pa.float64()), ("length", pa.int32()), ("log", pa.int32())]
    + [(name, pa.float64()) for name in ("discount", "episodes", "second_moment", "reward_size")]
    + [("collapse", pa.float64())]  # the first step with fewer than 5 effective episodes; null if there is none
    + [(name, pa.float64()) for name in ("effective", "truth", "truth_standard_error", "value")]
)
Row = dict[str, Any]


def second_moment(noise: float, dimensions: int = 1) -> float:
    """E_μ[ρ²] of a Gaussian π with a μ of the same mean and `noise` times the variance; infinite up to a half."""
    return float((noise / np.sqrt(2 * noise - 1)) ** dimensions) if noise > 0.5 else float("inf")


def collapse_step(episodes: float, second_moment: float) -> float:
    """t*: after this many steps fewer than 5 of the episodes are effective; infinite if π = μ."""
    if episodes <= LEAST:
        return 0.0
    return float(np.log(episodes / LEAST) / np.log(second_moment)) if second_moment > 1 else float("inf")


def steps_that_count(length: float, discount: float) -> float:
    """The steps before truncation at which γᵗ is at least 0.05."""
    return min(length, np.log(NEGLIGIBLE) / np.log(discount))


def effective_by_step(problem: Problem) -> np.ndarray:
    """(Σ p)² / Σ p² over the episodes, p the product of the ratios before each step; after the end, of all ratios."""
    data = problem.dataset
    logs = np.repeat(problem.final_log_product[:, None], data.lengths.max(), axis=1)
    logs[problem.episode_index, data.step] = problem.log_product
    products = np.exp(logs - logs.max(axis=0))
    return products.sum(axis=0) ** 2 / (products**2).sum(axis=0)


def rows_of(task: str, noise: float, length: int, log: int, truths: dict[float, tuple[float, float]]) -> list[Row]:
    """One row for each discount."""
    data = log_of(task, TRANSITIONS, length, noise, log)
    rows = []
    for discount in DISCOUNTS:
        problem = Problem(data, target_policy(task), discount)
        effective = effective_by_step(problem)
        below = np.flatnonzero(effective < LEAST)
        rows.append(
            {
                "task": task,
                "noise": noise,
                "length": length,
                "log": log,
                "discount": discount,
                "episodes": float(data.num_episodes),
                "second_moment": float(np.mean(problem.ratio**2)),
                "reward_size": float(np.mean(np.abs(data.reward))),
                "collapse": float(below[0]) if len(below) else None,
                "effective": float(effective[min(int(steps_that_count(length, discount)), len(effective) - 1)]),
                "truth": truths[discount][0],
                "truth_standard_error": truths[discount][1],
                "value": METHOD.fit(problem, key=jax.random.key(log)).value,
            }
        )
    return rows


def truths_before_truncation(task: str, length: int) -> dict[float, tuple[float, float]]:
    """(1 − γ) E_π[Σ_{t<length} γᵗ r_t] for each discount, with its standard error, from rollouts of π."""
    sizes = {"num_episodes": ON_POLICY_EPISODES, "max_steps": length, "seed": 10_000}
    sums = episode_returns(find_task(task), target_policy(task), discounts=DISCOUNTS, make_envs=fastest_envs(), **sizes)
    errors = sums.std(axis=0, ddof=1) / ON_POLICY_EPISODES**0.5
    found = zip(DISCOUNTS, sums.mean(axis=0), errors, strict=True)
    return {one: ((1 - one) * float(mean), (1 - one) * float(error)) for one, mean, error in found}


def every_setting() -> Iterator[tuple[str, int, float]]:
    for task, length in product(TASKS, LENGTHS):
        for noise in NOISES[find_task(task).discrete]:
            yield task, length, noise


def settings(rows: list[Row]) -> list[Row]:
    """The logs of each setting in one: the theory, the measured collapse, and the error over the mean |reward|."""
    found = []
    for (task, noise, length, discount), logs in grouped(
        rows, lambda row: (row["task"], row["noise"], row["length"], row["discount"])
    ).items():
        episodes = float(np.mean([row["episodes"] for row in logs]))
        measured = float(np.mean([row["second_moment"] for row in logs]))
        moment = second_moment(noise, DIMENSIONS[task]) if task in DIMENSIONS else measured
        errors = np.array([row["value"] - row["truth"] for row in logs])
        found.append(
            {
                "task": task,
                "noise": noise,
                "length": length,
                "discount": discount,
                "episodes": episodes,
                "moment": moment,
                "measured_moment": measured,
                "theory": collapse_step(episodes, moment),
                "share": collapse_step(episodes, moment) / steps_that_count(length, discount),
                "collapse": float(np.median([np.inf if row["collapse"] is None else row["collapse"] for row in logs])),
                "effective": float(np.median([row["effective"] for row in logs])),
                "error": float(np.sqrt(np.mean(errors**2)) / np.mean([row["reward_size"] for row in logs])),
            }
        )
    return found


def figure(found: list[Row]) -> Figure:
    """The collapse along the noise, along the second moment, and the error by how early the collapse comes."""
    drawn = Figure(figsize=(10.8, 3.8), layout="constrained")
    along_noise, along_moment, errors = drawn.subplots(1, 3)
    _draw_noise(along_noise, [one for one in found if one["discount"] == DISCOUNTS[0]])
    _draw_moment(along_moment, [one for one in found if one["discount"] == DISCOUNTS[0]])
    _draw_errors(errors, found)
    handles, names = errors.get_legend_handles_labels()
    drawn.legend(handles, names, loc="outside lower center", ncols=len(TASKS), frameon=False)
    return drawn


def _draw_noise(axes: Axes, found: list[Row]) -> None:
    grid, length = np.linspace(1.05, 3, 200), 100
    for task, dimensions in DIMENSIONS.items():
        episodes = TRANSITIONS / length
        lines = [collapse_step(episodes, second_moment(x, dimensions)) for x in grid]
        axes.plot(grid, lines, color=_colour(task))
        axes.annotate(f"d = {dimensions}", (grid[-1], lines[-1]), color=_colour(task), fontsize=7)
        of_task = [one for one in found if (one["task"], one["length"]) == (task, length)]
        _points(axes, of_task, "noise", length)
    for discount in DISCOUNTS[:2]:
        level = steps_that_count(length, discount)
        axes.axhline(level, color="0.5", ls=":", lw=1)
        axes.annotate(f"γ = {discount:g}", (2.4, level * 1.08), color="0.4", fontsize=7)
    axes.set(yscale="log", xlabel="noise x, the factor on the variance", ylabel="step t* with 5 effective episodes")
    axes.set_title("40 episodes of 100 steps")


def _draw_moment(axes: Axes, found: list[Row]) -> None:
    grid = np.geomspace(0.003, 3, 100)
    for length in LENGTHS:
        episodes = TRANSITIONS / length
        axes.plot(grid, [collapse_step(episodes, np.exp(one)) for one in grid], color="0.6", lw=1)
        end = collapse_step(episodes, np.exp(grid[-1]))
        axes.annotate(f"{episodes:g} episodes", (grid[-1] * 1.1, end), color="0.4", fontsize=6, va="center")
    for task in TASKS:
        of_task = [one | {"log_moment": np.log(one["moment"])} for one in found if one["task"] == task]
        for length in LENGTHS:
            _points(axes, [one for one in of_task if one["length"] == length], "log_moment", length)
    axes.set(xscale="log", yscale="log", ylim=(0.4, 1_500), xlim=(0.003, 14), xlabel="ln E ρ² of a step")
    axes.set_title("every task, noise and length")


def _points(axes: Axes, found: list[Row], x: str, length: int) -> None:
    """Triangles: never below 5 before the truncation."""
    for one in found:
        never = np.isinf(one["collapse"])
        level = length if never else one["collapse"]
        axes.plot(one[x], level, "^" if never else "o", color=_colour(one["task"]), ms=3.5, alpha=0.7, lw=0)


def _draw_errors(axes: Axes, found: list[Row]) -> None:
    for task in TASKS:
        of_task = [one for one in found if one["task"] == task]
        shares, sizes = [one["share"] for one in of_task], [one["error"] for one in of_task]
        axes.plot(shares, sizes, "o", color=_colour(task), ms=3.5, alpha=0.7, lw=0, label=task)
    axes.axvline(1.0, color="0.5", ls=":", lw=1)
    axes.set(xscale="log", yscale="log", xlabel="t* over the steps that count", ylabel="error over the mean |reward|")
    axes.set_title("error of plain labels, closed form")


def _colour(task: str) -> str:
    return PALETTE[TASKS.index(task)]


SIDES = (
    ("above 2", 2.0, np.inf),
    ("1 to 2", 1.0, 2.0),
    ("½ to 1", 0.5, 1.0),
    ("¼ to ½", 0.25, 0.5),
    ("below ¼", 0, 0.25),
)


def table(found: list[Row]) -> str:
    """Settings by t* over the steps that count."""
    lines = [
        "| t* over the steps that count | settings | with 5 effective episodes at the last of them | median error | "
        "error of nine in ten below |",
        "| --- " * 5 + "|",
    ]
    for name, low, high in SIDES:
        ones = [one for one in found if low <= one["share"] < high]
        if ones:
            kept = float(np.mean([one["effective"] >= LEAST for one in ones]))
            errors = [one["error"] for one in ones]
            middle, most = np.median(errors), np.quantile(errors, 0.9)
            lines.append(f"| {name} | {len(ones)} | {100 * kept:.0f} % | {middle:.2g} | {most:.2g} |")
    return "\n".join(lines) + f"\n\n{agreement(found)}\n"


def agreement(found: list[Row]) -> str:
    """How well the formula predicts what the logs show."""
    same = float(np.mean([(one["share"] >= 1) == (one["effective"] >= LEAST) for one in found]))
    logs = [one for one in found if one["discount"] == DISCOUNTS[0] and np.isfinite(one["collapse"])]
    low, middle, high = np.quantile([one["collapse"] / one["theory"] for one in logs], (0.1, 0.5, 0.9))
    return (
        f"In {100 * same:.0f} % of the {len(found)} settings the formula and the logs agree on whether 5 episodes are "
        f"effective at the last step that counts. Where the products collapse before the truncation, they do so at "
        f"{middle:.1f} times the predicted step (median; nine in ten above {low:.1f}, nine in ten below {high:.1f})."
    )


def with_table(text: str, found: list[Row]) -> str:
    """The page with the table between its markers."""
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(FINISH)
    return f"{before}{START}{table(found)}{FINISH}{after}"


def main() -> None:
    os.nice(NICENESS)
    store = pq.read_table(STORE, schema=SCHEMA) if STORE.exists() else SCHEMA.empty_table()
    done = set(zip(*(store[name].to_pylist() for name in ("task", "length", "noise")), strict=True))
    left = [setting for setting in every_setting() if setting not in done]
    truths: dict[tuple[str, int], dict[float, tuple[float, float]]] = {}
    for task, length, noise in track(left, "settings"):
        if (task, length) not in truths:
            truths[task, length] = truths_before_truncation(task, length)
        rows = [row for log in range(LOGS) for row in rows_of(task, noise, length, log, truths[task, length])]
        store = pa.concat_tables([store, pa.Table.from_pylist(rows, SCHEMA)])
        with written_whole(STORE) as temporary:
            pq.write_table(store.combine_chunks(), temporary, compression="zstd")
    found = settings(store.to_pylist())
    with mpl.rc_context(STYLE), written_whole(FIGURE) as temporary:
        figure(found).savefig(temporary, format="svg", bbox_inches="tight", metadata={"Date": None})
    write_text_whole(PAGE, with_table(PAGE.read_text(encoding="utf-8"), found))


if __name__ == "__main__":
    main()
