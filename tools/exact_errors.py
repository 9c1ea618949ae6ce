"""The error of every estimator on every exact MDP, as a page of the documentation: `make exact-errors`.

Methods and settings are those of `average_dice.testing.cases`: features that span every table, small networks.
"""

from pathlib import Path

import jax
import numpy as np

from average_dice.errors import NotApplicable
from average_dice.estimators import Estimator
from average_dice.problem import Problem
from average_dice.testing.cases import CASES
from average_dice.testing.conformance import with_shifted_rewards
from average_dice.testing.exact_mdps import ALL

EPISODES, SEEDS = 500, 2  # more would be more precise, and take longer
PAGE = Path(__file__).parents[1] / "docs" / "exact_errors.md"

HEAD = f"""# Errors on exact MDPs

Root mean squared error of the estimated J(π), compared with the exact value, over {SEEDS} logs of {EPISODES:,}
episodes. The exact value includes the rewards after truncation. `make exact-errors` makes this page. Methods have the
settings of the conformance tests: closed forms on features that span every table, networks with hidden layers of 64.
Rewards are shifted by 1, so that errors in the mass show.

- `is`, `pdis`, `wis` and `wpdis` ignore the rewards after truncation. They are off where it matters (sticky chain,
  truncated).
- Flow and value methods assume that termination depends on the state. They are off where a clock that the state does
  not show terminates the episodes (clock).
- Products of ratios over whole episodes have far too much variance on the sticky chain.

"""


def error(method: Estimator, problems: list[tuple[Problem, float]]) -> str:
    """The root mean squared error over the logs."""
    try:
        values = [method.fit(problem, key=jax.random.key(seed)).value for seed, (problem, _) in enumerate(problems)]
    except NotApplicable as reason:
        return str(reason)
    return f"{np.sqrt(np.mean([(value - truth) ** 2 for value, (_, truth) in zip(values, problems, strict=True)])):.3f}"


def main() -> None:
    mdps = [with_shifted_rewards(mdp) for mdp in ALL]
    logs = {mdp.name: [(mdp.problem(EPISODES, seed), mdp.value) for seed in range(SEEDS)] for mdp in mdps}
    lines = ["| estimator | " + " | ".join(logs) + " |", "| --- |" + " --- |" * len(logs)]
    lines.append("| *J(π)* | " + " | ".join(f"*{problems[0][1]:.3f}*" for problems in logs.values()) + " |")
    for name, case in CASES.items():
        lines.append(f"| `{name}` | " + " | ".join(error(case.method, problems) for problems in logs.values()) + " |")
        print(lines[-1], flush=True)
    PAGE.write_text(HEAD + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
