"""Is the recommended estimator ever confidently wrong? `make misleading` evaluates the logs of tests/misleading.

Each log misleads in its own way, and its truth is known exactly. Confidently wrong is: the verdict says "supported",
and the truth lies outside of the interval by more than half of its half-width. What is found goes into
`results/misleading.json`, log by log, and it goes on where it was stopped; the table into `docs/misleading.md`, beside
what was found at commit f29c81f, before there were rules for most of them (`results/misleading_before.json`).
"""

import json
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from rich.progress import track

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from average_dice.files import write_text_whole  # noqa: E402
from misleading.judging import BY_NAME, Row, evaluated, is_wrong  # noqa: E402
from misleading.logs import LOGS  # noqa: E402

SEEDS = (0, 1, 2)
STORE, BEFORE = ROOT / "results" / "misleading.json", ROOT / "results" / "misleading_before.json"
PAGE = ROOT / "docs" / "misleading.md"

HEAD = """# Logs that mislead

A number that is far off, with a narrow interval and the verdict "supported", is the one thing that this library must
never give. These logs were made to provoke it, by somebody who did not make the estimator: each has a policy, a
discount and a truth that is known exactly. *Confidently wrong* is a verdict of "supported" where the truth lies outside
of the 95 % interval by more than half of its half-width.

`make misleading` makes this page (up to three logs of each kind, 25 resamples). *Before* is commit f29c81f, on the same
logs. Verdicts are those of each log: S supported, w weak, n not supported. Value and interval are those of the first.

"""


LEFT = """

What holds a trace and is missed all the same: a behaviour policy that repeats one action and records a half each time;
states that only π reaches, where a cost waits; rewards that were clipped or lost (a rule against clipped rewards
flagged a sound task, and was taken out); a loop that π makes unstable, so that its costs exceed all logged ones.

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
            lines += ["| | *nobody could know from the log:* | | | | | | | |"]
        lines += [_line(log.name, before, now) for log in LOGS if log.visible is visible]
    counts = [_counts(rows) for rows in (before, now)]
    said = [
        f"- {what}: {counts[0][key][0]} of {counts[0][key][1]} confidently wrong before, {counts[1][key][0]} of "
        f"{counts[1][key][1]} now."
        for key, what in ((True, "Logs that hold a trace of what misleads"), (False, "Logs that hold none"))
    ]
    return HEAD + "\n".join(said) + LEFT + "\n".join(lines) + "\n"


def _counts(rows: list[Row]) -> dict[bool, tuple[int, int]]:
    found = {}
    for visible in (True, False):
        of_kind = [row for row in rows if BY_NAME[row["name"]].visible is visible]
        found[visible] = (sum(map(is_wrong, of_kind)), len(of_kind))
    return found


def _line(name: str, before: list[Row], now: list[Row]) -> str:
    old, new = ([row for row in rows if row["name"] == name] for rows in (before, now))
    cells = [name, BY_NAME[name].what, f"{new[0]['truth']:.4g}", _estimate(old[0]), _estimate(new[0])]
    cells += [" ".join({"supported": "S", "weak": "w"}.get(row["verdict"], "n") for row in rows) for rows in (old, new)]
    cells += [str(sum(map(is_wrong, rows)) or "") for rows in (old, new)]
    return "| " + " | ".join(cells) + " |"


def _estimate(row: Row) -> str:
    return f"{row['value']:.4g} [{row['lower']:.4g}, {row['upper']:.4g}]"


def _missing(done: list[Row]) -> Iterator[tuple[str, int]]:
    there = {(row["name"], row["seed"]) for row in done}
    return ((log.name, seed) for seed in SEEDS for log in LOGS if (log.name, seed) not in there)


def main() -> None:
    rows: list[Row] = json.loads(STORE.read_text(encoding="utf-8")) if STORE.exists() else []
    todo = list(_missing(rows))
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        jobs = [pool.submit(evaluated, *one) for one in todo]
        for job in track(as_completed(jobs), "evaluating", total=len(jobs)):
            rows.append(job.result())
            rows.sort(key=lambda row: (list(BY_NAME).index(row["name"]), row["seed"]))
            write_text_whole(STORE, json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
    write_text_whole(PAGE, page(json.loads(BEFORE.read_text(encoding="utf-8")), rows))
    print(f"{sum(map(is_wrong, rows))} of {len(rows)} confidently wrong; {PAGE.relative_to(ROOT)}")
    print(f"median seconds of an evaluation: {np.median([row['seconds'] for row in rows]):.1f}")


if __name__ == "__main__":
    main()
