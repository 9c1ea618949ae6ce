"""Do the intervals contain the truth? `python tools/distribution.py` writes the table of docs/distribution.md.

On MDPs whose returns can be enumerated, 300 logs of 50, 200 and 800 episodes (about ten minutes).
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.progress import track

from average_dice.inference.distribution import WeightedReturns
from average_dice.return_distribution import MOST_POINTS, DistributionFunction, distribution
from average_dice.testing.exact_mdps import ExactMDP, early_termination, masked, tiny
from average_dice.testing.exact_returns import exact_returns

NUM_LOGS, NUM_RESAMPLES, STEPS = 300, 200, 3
FEWEST = 100  # logs with an interval in a cell of the table
PAGE = Path(__file__).parents[1] / "docs" / "distribution.md"
BEGIN, END = "<!-- table of tools/distribution.py -->", "<!-- end of the table -->"


def far() -> ExactMDP:
    """As early termination, with an almost deterministic π and a uniform μ: the weights are uneven."""
    mdp = early_termination()
    target = np.where(mdp.reward > mdp.reward.mean(axis=1, keepdims=True), 0.95, 0.05)
    return replace(mdp, name="far from μ", target=target, behaviour=np.full((5, 2), 0.5))


def row(mdp: ExactMDP, num_episodes: int) -> str:
    truth = WeightedReturns.of(*exact_returns(mdp, STEPS, mdp.target))
    threshold = truth.quantile(0.2)
    exact = {"median": truth.quantile(0.5), "5 %": truth.quantile(0.05), "mean": truth.mean}
    exact |= {"CVaR 5 %": truth.tail_mean(0.05, upper=False), "CVaR 25 %": truth.tail_mean(0.25, upper=False)}
    exact |= {"below": truth.below(threshold)}
    inside: dict[str, list[bool]] = {name: [] for name in (*exact, "band")}
    effective = []
    for seed in track(range(NUM_LOGS), f"{mdp.name}, {num_episodes}"):
        log = mdp.sample(num_episodes, seed=seed)
        settings = {"horizon": STEPS, "thresholds": [threshold], "bootstrap": NUM_RESAMPLES, "seed": seed}
        found = distribution(log, mdp.policy, mdp.discount, **settings)
        wider = distribution(log, mdp.policy, mdp.discount, cvar=0.25, **settings)
        intervals = {
            "mean": found.find("mean"),
            "median": found.find("quantile", 0.5),
            "5 %": found.find("quantile", 0.05),
            "CVaR 5 %": found.find("cvar"),
            "CVaR 25 %": wider.find("cvar"),
            "below": found.find("below"),
        }
        for name, one in intervals.items():
            if one.lower is not None and one.upper is not None:
                inside[name].append(one.lower - 1e-9 <= exact[name] <= one.upper + 1e-9)
        inside["band"].append(in_band(found.function, truth))
        effective.append(found.effective_episodes)
    names = ("mean", "median", "5 %", "CVaR 25 %", "CVaR 5 %", "below", "band")
    shares = " | ".join(cell(inside[name]) for name in names)
    return f"| {mdp.name} | {num_episodes} | {np.mean(effective):.0f} | {shares} |"


def cell(inside: list[bool]) -> str:
    """The share in %, and in brackets that of the logs with an interval; a dash if they are few."""
    if len(inside) < FEWEST:
        return "–"
    share = f"{100 * np.mean(inside):.1f}"
    return share if len(inside) == NUM_LOGS else f"{share} ({100 * len(inside) / NUM_LOGS:.0f})"


def in_band(function: DistributionFunction, truth: WeightedReturns) -> bool:
    """Whether F lies within the band at the returns of the result; between them, too, if these are all of the log's."""
    assert function.upper is not None
    assert function.lower is not None
    at, estimated = np.array(function.returns), np.array(function.probability)
    reach = max(np.max(function.upper - estimated), np.max(estimated - function.lower))
    distance = np.abs(estimated - _function(truth.returns, truth.cumulative, at)).max()
    if len(at) < MOST_POINTS:
        distance = max(distance, np.abs(truth.cumulative - _function(at, estimated, truth.returns)).max())
    return bool(distance <= reach + 1e-9)


def _function(jumps: np.ndarray, values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """A distribution function with these jumps, at some returns."""
    places = np.searchsorted(jumps, at + 1e-9, side="right") - 1
    return np.where(places >= 0, values[places], 0.0)


def table() -> str:
    lines = [
        "| MDP | episodes | effective | mean | median | 5 % quantile | CVaR 25 % | CVaR 5 % | P(return < x) | band |",
        "| --- |" + " --- |" * 9,
    ]
    mdps = (replace(tiny(), truncation=None), replace(masked(), truncation=None), early_termination(), far())
    return "\n".join([*lines, *(row(mdp, number) for mdp in mdps for number in (50, 200, 800))])


if __name__ == "__main__":
    before, _, rest = PAGE.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n{table()}\n{END}{after}")
