"""Is the recommended estimator ever confidently wrong? `make misleading` evaluates `average_dice.testing.misleading`.

Each log misleads in its own way, and its true value is known exactly. Confidently wrong means: the verdict is
"supported", and the truth lies outside of the interval by more than half of its half-width. The results go into
`results/misleading.json`, log by log; it continues after an interruption. The table goes into `docs/misleading.md`,
beside the results at commit f29c81f (`results/misleading_before.json`), before there were checks for most of them.
"""

import json
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from rich.progress import track

from average_dice.files import write_text_whole
from average_dice.testing.misleading import LOGS, Row, evaluate_log, is_confidently_wrong

SEEDS = (0, 1, 2)
ROOT = Path(__file__).parents[1]
STORE, BEFORE = ROOT / "results" / "misleading.json", ROOT / "results" / "misleading_before.json"
PAGE = ROOT / "docs" / "misleading.md"

HEAD = """# Logs that mislead

This library must never give a value that is far off together with a narrow interval and the verdict "supported". These
logs were made to provoke that, by an author other than that of the estimator. Each has a policy, a discount and a value
that is known exactly. *Confidently wrong* means: the verdict is "supported", and the truth lies outside of the 95 %
interval by more than half of its half-width.

`make misleading` makes this page (up to three logs of each kind, 25 bootstrap resamples). *Before* is commit f29c81f,
on the same logs. There is one verdict for each log: S supported, w weak, n not supported. Value and interval are
those of the first log.

"""

MISSED = """

These logs hold a trace of what misleads, and are missed nevertheless: a behaviour policy that repeats one action and
records a half each time; states that only π reaches, where a cost is; rewards that were clipped or lost (a check for
clipped rewards flagged a correct task and was removed); a loop that π makes unstable, so that its costs exceed all
logged ones.

"""


def page(before: list[Row], now: list[Row]) -> str:
    there = {(row["name"], row["seed"]) for row in now}
    before = [row for row in before if (row["name"], row["seed"]) in there]
    lines = [
        "| log | what misleads | truth | before | now | verdicts before | now | confidently wrong before | now |",
        "| --- " * 9 + "|",
    ]
    for visible in (True, False):
        if not visible:
            lines += ["| | *the log holds no trace of what misleads:* | | | | | | | |"]
        lines += [_line(log.name, before, now) for log in LOGS.values() if log.visible is visible]
    counts = [_counts(rows) for rows in (before, now)]
    summary = [
        f"- {what}: {counts[0][key][0]} of {counts[0][key][1]} confidently wrong before, {counts[1][key][0]} of "
        f"{counts[1][key][1]} now."
        for key, what in ((True, "Logs that hold a trace of what misleads"), (False, "Logs that hold no trace"))
    ]
    return HEAD + "\n".join(summary) + MISSED + "\n".join(lines) + "\n"


def _counts(rows: list[Row]) -> dict[bool, tuple[int, int]]:
    found = {}
    for visible in (True, False):
        of_kind = [row for row in rows if LOGS[row["name"]].visible is visible]
        found[visible] = (sum(map(is_confidently_wrong, of_kind)), len(of_kind))
    return found


def _line(name: str, before: list[Row], now: list[Row]) -> str:
    old, new = ([row for row in rows if row["name"] == name] for rows in (before, now))
    cells = [name, LOGS[name].what, f"{new[0]['truth']:.4g}", _estimate(old[0]), _estimate(new[0])]
    cells += [" ".join({"supported": "S", "weak": "w"}.get(row["verdict"], "n") for row in rows) for rows in (old, new)]
    cells += [str(sum(map(is_confidently_wrong, rows)) or "") for rows in (old, new)]
    return "| " + " | ".join(cells) + " |"


def _estimate(row: Row) -> str:
    return f"{row['value']:.4g} [{row['lower']:.4g}, {row['upper']:.4g}]"


def _missing(done: list[Row]) -> Iterator[tuple[str, int]]:
    there = {(row["name"], row["seed"]) for row in done}
    return ((log.name, seed) for seed in SEEDS for log in LOGS.values() if (log.name, seed) not in there)


def _evaluate(name: str, seed: int) -> Row:
    return evaluate_log(LOGS[name], seed)


def main() -> None:
    rows: list[Row] = json.loads(STORE.read_text(encoding="utf-8")) if STORE.exists() else []
    todo = list(_missing(rows))
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        jobs = [pool.submit(_evaluate, *task) for task in todo]
        for job in track(as_completed(jobs), "evaluating", total=len(jobs)):
            rows.append(job.result())
            rows.sort(key=lambda row: (list(LOGS).index(row["name"]), row["seed"]))
            write_text_whole(STORE, json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
    write_text_whole(PAGE, page(json.loads(BEFORE.read_text(encoding="utf-8")), rows))
    print(f"{sum(map(is_confidently_wrong, rows))} of {len(rows)} confidently wrong; {PAGE.relative_to(ROOT)}")
    print(f"median seconds of an evaluation: {np.median([row['seconds'] for row in rows]):.1f}")


if __name__ == "__main__":
    main()
