"""Names for the methods: on the command line, in JSON, in results. Adding a method is a file and an entry here."""

from collections.abc import Callable
from dataclasses import dataclass

from ..errors import SettingError
from .average_dice import AverageDICE
from .average_reward import AverageReward
from .base import Estimator
from .behaviour_return import BehaviourReturn

CHE = "Che et al. 2025"


@dataclass(frozen=True)
class Entry:
    """How to make the method, and what a person choosing among methods wants to know.

    `needs`: "π, μ" are the policies at the logged actions; `learns`: the function that is fitted, and its form.
    """

    make: Callable[[], Estimator]
    family: str
    needs: str
    learns: str
    paper: str


REGISTRY: dict[str, Entry] = {
    "average-reward": Entry(AverageReward, "baseline", "–", "nothing", "–"),
    "behaviour-return": Entry(BehaviourReturn, "baseline", "–", "nothing", "–"),
    "average-dice-tabular": Entry(AverageDICE.tabular, "ratio", "π, μ", "w(s), table", CHE),
    "average-dice-linear": Entry(AverageDICE.linear, "ratio", "π, μ", "w(s), linear", CHE),
    "average-dice-paper": Entry(AverageDICE.paper, "ratio", "π, μ", "w(s), network", CHE),
    "average-dice-neural": Entry(AverageDICE.neural, "ratio", "π, μ", "v(s, t), network", "ours"),
    "average-dice-features": Entry(AverageDICE, "ratio", "π, μ", "v(s, t), Fourier features", "ours"),
}

RECOMMENDED = "average-dice-features"
BASELINES = ("average-reward", "behaviour-return")


def find(names: str) -> tuple[str, ...]:
    """The names that a person means: `recommended` (with the baselines), `all`, or a list with commas.

    >>> find("recommended")
    ('average-dice-features', 'average-reward', 'behaviour-return')
    """
    if names == "all":
        return tuple(REGISTRY)
    if names == "recommended":
        return (RECOMMENDED, *BASELINES)
    wanted = [RECOMMENDED if name.strip() == "recommended" else name.strip() for name in names.split(",")]
    if unknown := [name for name in wanted if name not in REGISTRY]:
        raise SettingError(f"unknown estimator {', '.join(unknown)}. Known are {', '.join(REGISTRY)}.")
    return tuple(dict.fromkeys(wanted))
