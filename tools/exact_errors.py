"""The error of every estimator on every exact MDP, as a page of the documentation: `make exact-errors`.

Methods and settings are those of the conformance tests: features that span every table, small networks.
"""

import sys
from pathlib import Path

import jax
import numpy as np

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "estimators")]

from test_conformance import CASES, with_rent  # noqa: E402

from average_dice.errors import NotApplicable  # noqa: E402
from exact_mdps import ALL  # noqa: E402

EPISODES, SEEDS = 500, 2

HEAD = f"""# Errors on exact MDPs

Root mean squared error of Ĵ against the exact J(π), the whole of it, over {SEEDS} logs of {EPISODES:,} episodes each;
`make exact-errors` makes this page. The methods are those of the conformance tests: closed forms on features that span
every table, networks with hidden layers of 64. Rewards are shifted by 1, so that errors in the mass show.

What to read out of it: methods that stop at the cut (`is`, `pdis`, `wis`, `wpdis`) are off where episodes are cut
(sticky chain, truncated); flow and value methods where a clock that the state does not show ends the episodes (clock);
whole products of ratios are hopeless on the sticky chain.

"""


def error(name: str, problems: list[tuple[object, float]]) -> str:
    """The root mean squared error over the logs."""
    method = CASES[name].method
    try:
        values = [method.fit(problem, key=jax.random.key(seed)).value for seed, (problem, _) in enumerate(problems)]
    except NotApplicable as reason:
        return str(reason)
    return f"{np.sqrt(np.mean([(value - truth) ** 2 for value, (_, truth) in zip(values, problems, strict=True)])):.3f}"


def main() -> None:
    mdps = [with_rent(mdp) for mdp in ALL]
    logs = {mdp.name: [(mdp.problem(EPISODES, seed), mdp.value) for seed in range(SEEDS)] for mdp in mdps}
    lines = ["| estimator | " + " | ".join(logs) + " |", "| --- |" + " --- |" * len(logs)]
    lines.append("| *J(π)* | " + " | ".join(f"*{problems[0][1]:.3f}*" for problems in logs.values()) + " |")
    for name in CASES:
        lines.append(f"| `{name}` | " + " | ".join(error(name, problems) for problems in logs.values()) + " |")
        print(lines[-1], flush=True)
    (ROOT / "docs" / "exact_errors.md").write_text(HEAD + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
