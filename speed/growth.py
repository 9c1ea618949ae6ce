"""Time and memory of the recommended estimator from 4 thousand to 40 million rows: `make growth`. It can be resumed.

One fit, and a whole `ad.evaluate` with 100 resamples, of a log in memory (up to a million rows) and of the same log on
disk. Each measurement runs in a process of its own, and is the least of three (above a million rows, a single one).
Beside it, in the same process: the bare products ΦᵀΦ of both sets of features, in as many threads.

    python speed/growth.py
    python speed/growth.py --sizes 4_000 40_000 --rounds 1 --folder /tmp/growth
    python speed/growth.py --largest 40_000_000       # more rows: about 25 GB of disk, and hours

Finished measurements are in results/growth.json, and are not repeated without `--again`. The figure
docs/images/growth.svg and the table of docs/speed.md are made of them.
"""

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from measuring import (
    PRODUCT_ROWS,
    ROOT,
    Numbers,
    bare_products,
    first_episodes,
    in_process,
    large_log,
    measured,
    read_results,
    write_between,
    write_results,
)

import average_dice as ad
from average_dice.blocked_problem import BlockedProblem
from average_dice.estimators import Blend
from average_dice.estimators.blend.streamed import StreamedBlend
from average_dice.experiments.plotting import PALETTE, STYLE
from average_dice.files import written_whole
from average_dice.policies import load_policy

SIZES = (4_000, 40_000, 400_000, 1_000_000, 4_000_000)
MOST_IN_MEMORY, MOST_REPEATED = 1_000_000, 1_000_000
FIT, EVALUATE = "fit", "evaluate"
MEMORY, DISK = "memory", "disk"
DISCOUNT, NUM_RESAMPLES = 0.95, 100
EXPONENT_FROM = 40_000  # below, the linear systems and the sample of episodes take most of the time
WARM_UP_ROWS = 2_000
STORE, PAGE = ROOT / "results" / "growth.json", ROOT / "docs" / "speed.md"
FIGURE = ROOT / "docs" / "images" / "growth.svg"
BEGIN, END = "<!-- growth -->", "<!-- end of growth -->"
Log = ad.LoggedDataset | ad.LogBlocks


def work(what: str, log: Log, policy: ad.Policy) -> None:
    """One fit, or one evaluation with intervals."""
    if what == EVALUATE:
        ad.evaluate(log, policy, DISCOUNT, bootstrap=NUM_RESAMPLES)
    elif isinstance(log, ad.LogBlocks):
        problem = BlockedProblem.of(log, policy, DISCOUNT)
        StreamedBlend.fit(Blend().streamed_settings, problem, key=jax.random.key(0))
    else:
        Blend().fit(ad.Problem(log, policy, DISCOUNT), key=jax.random.key(0))


def measure(what: str, where: str, num_rows: int, folder: Path) -> Numbers:
    """In this process. From disk, the time includes opening the log; in memory, the log is there already."""
    made = large_log(folder, num_rows)
    policy = load_policy(made / "target.safetensors")
    some = _some(made)
    few = first_episodes(some, WARM_UP_ROWS)
    work(what, few if where == MEMORY else ad.LogBlocks.of_dataset(few), policy)  # warms up: imports, compilation
    opened: Callable[[], Log] = lambda: ad.LogBlocks.open(made / "log")  # noqa: E731
    if where == MEMORY:
        log = ad.read_dataset(made / "log")
        opened = lambda: log  # noqa: E731
    found, _ = measured(lambda: work(what, opened(), policy))
    return found | bare_products(ad.Problem(some, policy, DISCOUNT), num_rows)


def _some(made: Path) -> ad.LoggedDataset:
    """The first rows of the log."""
    return next(iter(ad.LogBlocks.open(made / "log", rows=PRODUCT_ROWS)))


def least(what: str, where: str, num_rows: int, folder: Path, rounds: int) -> Numbers:
    """The least of several processes, with the mean load of the machine."""
    arguments = ("--measure", what, where, str(num_rows), "--folder", str(folder))
    found: list[Numbers] = [in_process(__file__, *arguments) for _ in range(rounds)]
    load = float(np.mean([one["load"] for one in found]))
    return {name: min(one[name] for one in found) for name in found[0]} | {"load": load, "rounds": rounds}


def every(sizes: list[int]) -> list[tuple[str, str, int]]:
    """All measurements, from the smallest log to the largest."""
    return [
        (what, where, size)
        for size in sorted(sizes)
        for where in (MEMORY, DISK)
        for what in (FIT, EVALUATE)
        if where == DISK or size <= MOST_IN_MEMORY
    ]


def name_of(what: str, where: str, num_rows: int) -> str:
    return f"{what}, {where}, {num_rows}"


def exponent(results: dict[str, Any], what: str, where: str, unit: str) -> float | None:
    """b in time ~ rowsᵇ, by least squares of the logarithms; None if fewer than two sizes are measured."""
    points = [(rows, one[unit]) for rows, one in series(results, what, where) if rows >= EXPONENT_FROM]
    if len(points) < 2:
        return None
    rows, times = np.log(np.array(points)).T
    return float(np.polyfit(rows, times, 1)[0])


def series(results: dict[str, Any], what: str, where: str) -> list[tuple[int, Numbers]]:
    """The numbers of rows, in order, with their measurements."""
    names = [name.split(", ") for name in results]
    sizes = sorted(int(rows) for one, other, rows in names if (one, other) == (what, where))
    return [(rows, results[name_of(what, where, rows)]) for rows in sizes]


def table(results: dict[str, Any]) -> str:
    """For each log: seconds, processor seconds, these in bare products, MiB."""
    lines = [
        "| rows | log | fit, s | processor s | products | MiB | evaluate, s | processor s | products | MiB |",
        "|" + " --- |" * 10,
    ]
    for rows in sorted({int(name.split(", ")[2]) for name in results}):
        for where in (MEMORY, DISK):
            both = [results.get(name_of(what, where, rows)) for what in (FIT, EVALUATE)]
            if any(both):
                lines.append(f"| {rows:,} | {where} | {' | '.join(map(_cells, both))} |")
    return "\n".join(lines)


def _cells(one: Numbers | None) -> str:
    if one is None:
        return " | ".join("–" * 4)
    products = one["busy"] / one["product_busy"]
    seconds, busy = (f"{one[unit]:,.1f}" if one[unit] < 100 else f"{one[unit]:,.0f}" for unit in ("seconds", "busy"))
    return f"{seconds} | {busy} | {products:.1f} | {one['MiB']:,.0f}"


def remarks(results: dict[str, Any]) -> str:
    """The exponents, how much work was measured how often, and under what load."""
    lines = []
    for where in (MEMORY, DISK):
        found = {
            what: [exponent(results, what, where, unit) for unit in ("seconds", "busy")] for what in (FIT, EVALUATE)
        }
        if all(one is not None for both in found.values() for one in both):
            shown = "; ".join(f"{what} {both[0]:.2f} (processor seconds {both[1]:.2f})" for what, both in found.items())
            lines.append(f"- The exponent b of time ~ rowsᵇ from {EXPONENT_FROM:,} rows on, {where}: {shown}.")
    loads = [one["load"] for one in results.values()]
    rounds = sorted({int(one["rounds"]) for one in results.values()})
    cores = os.cpu_count()
    lines.append(
        f"- Measured on {cores} cores at a load of {min(loads):.1f} to {max(loads):.1f} when the work began; "
        f"the least of {' or '.join(map(str, rounds))} run{'s' if rounds != [1] else ''}."
    )
    before = [one["MiB_before"] for name, one in results.items() if f", {DISK}, " in name]
    if before:
        lines.append(f"- Python and its libraries alone take about {np.median(before):.0f} of the MiB.")
    return "\n".join(lines)


def figure(results: dict[str, Any]) -> Figure:
    """Processor seconds and memory along the number of rows."""
    drawn = Figure(figsize=(8.4, 3.4), layout="constrained")
    times, memory = drawn.subplots(1, 2)
    for colour, what in zip(PALETTE, (FIT, EVALUATE), strict=False):
        for where, line in ((MEMORY, "--"), (DISK, "-")):
            if points := series(results, what, where):
                rows = [one for one, _ in points]
                look = {"color": colour, "ls": line, "marker": "o", "ms": 3, "label": f"{what}, {where}"}
                times.plot(rows, [one["busy"] for _, one in points], **look)
                memory.plot(rows, [one["MiB"] for _, one in points], **look)
    if points := series(results, FIT, DISK):
        products = [one["product_busy"] for _, one in points]
        times.plot([rows for rows, _ in points], products, color="0.5", lw=1, label="bare products ΦᵀΦ")
    times.set(xscale="log", yscale="log", xlabel="rows", ylabel="processor seconds")
    memory.set(xscale="log", yscale="log", xlabel="rows", ylabel="peak memory, MiB")
    sizes = sorted({int(name.split(", ")[2]) for name in results})
    for axes in (times, memory):
        axes.set_xticks(sizes, [f"{size // 1000:,} k" if size < 10**6 else f"{size // 10**6} M" for size in sizes])
        axes.minorticks_off()
    handles, names = times.get_legend_handles_labels()
    drawn.legend(handles, names, loc="outside lower center", ncols=5, frameon=False)
    return drawn


def write_page(results: dict[str, Any]) -> None:
    """The figure, and the table between its markers."""
    with mpl.rc_context(STYLE), written_whole(FIGURE) as temporary:
        figure(results).savefig(temporary, format="svg", bbox_inches="tight", metadata={"Date": None})
    write_between(PAGE, BEGIN, END, f"{table(results)}\n\n{remarks(results)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of rows, such as 4_000 40_000")
    parser.add_argument("--largest", type=int, help="one more size, such as 40_000_000")
    parser.add_argument("--rounds", type=int, default=3, help="processes, of which the least counts")
    parser.add_argument("--folder", type=Path, default=Path("large-logs"), help="of the logs, which are used again")
    parser.add_argument("--store", type=Path, default=STORE, help="the finished measurements")
    parser.add_argument("--again", action="store_true", help="measure finished ones anew")
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        what, where, rows = given.measure
        print(json.dumps(measure(what, where, int(rows), given.folder)))
        return
    results = read_results(given.store)
    for what, where, rows in every([*given.sizes, *([given.largest] if given.largest else [])]):
        name = name_of(what, where, rows)
        if name not in results or given.again:
            large_log(given.folder, rows)
            results[name] = least(what, where, rows, given.folder, given.rounds if rows <= MOST_REPEATED else 1)
            write_results(given.store, results)
            print(f"{name}: {_cells(results[name])}", flush=True)
    print(f"{table(results)}\n\n{remarks(results)}")
    if given.store == STORE:
        write_page(results)


if __name__ == "__main__":
    main()
