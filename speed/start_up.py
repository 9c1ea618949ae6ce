"""How long `import average_dice`, `average-dice --help` and the first use of the library take: `make bench`.

The median of ten processes each, and the modules that take the most of it (`python -X importtime`).

    python speed/start_up.py
"""

import argparse
import os
import subprocess
import sys
import time

import numpy as np
from measuring import ROOT, write_between

ROUNDS, SHOWN = 10, 5
PAGE, BEGIN, END = ROOT / "docs" / "speed.md", "<!-- start-up -->", "<!-- end of start-up -->"
COMMANDS = {  # with the goal in seconds
    "`python -c pass`, for comparison": (("-c", "pass"), None),
    "`import average_dice`": (("-c", "import average_dice"), 1.0),
    "`average-dice --help`": (("-m", "average_dice.cli", "--help"), 0.5),
    "`average-dice evaluate --help`": (("-m", "average_dice.cli", "evaluate", "--help"), None),
    "`average_dice.evaluate`, which imports JAX": (("-c", "import average_dice; average_dice.evaluate"), None),
}


def seconds(arguments: tuple[str, ...]) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def slowest(arguments: tuple[str, ...]) -> list[str]:
    """The modules that take longest themselves, with what Python needs in any case."""
    command = [sys.executable, "-X", "importtime", *arguments]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stderr.splitlines()
    rows = [line.removeprefix("import time:").split("|") for line in lines if line.startswith("import time:")]
    own = sorted(((int(row[0]), row[2].strip()) for row in rows if row[0].strip().isdigit()), reverse=True)
    return [f"{name} {microseconds / 1000:.0f} ms" for microseconds, name in own[:SHOWN]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    lines = ["| command | median, s | goal, s | the slowest imports |", "|" + " --- |" * 4]
    for name, (arguments, goal) in COMMANDS.items():
        seconds(arguments)  # reads the files once
        middle = np.median([seconds(arguments) for _ in range(given.rounds)])
        lines.append(f"| {name} | {middle:.2f} | {goal or '–'} | {', '.join(slowest(arguments))} |")
    text = "\n".join(lines) + f"\n\nMeasured at a load of {os.getloadavg()[0]:.1f}."
    print(text)
    write_between(PAGE, BEGIN, END, text)


if __name__ == "__main__":
    main()
