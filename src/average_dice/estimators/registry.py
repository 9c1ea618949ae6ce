"""Names for the methods: on the command line, in JSON, in results. Adding a method is a file and an entry here."""

from collections.abc import Callable, Sequence
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
    "average-dice-tabular": Entry(AverageDICE.tabular, "ratio", "π, μ", "w(s), table", f"after {CHE}"),
    "average-dice-linear": Entry(AverageDICE.linear, "ratio", "π, μ", "w(s), linear", f"after {CHE}"),
    "average-dice-paper": Entry(AverageDICE.paper, "ratio", "π, μ", "w(s), network", CHE),
    "average-dice-neural": Entry(AverageDICE.neural, "ratio", "π, μ", "v(s, t), network", "ours"),
    "average-dice-features": Entry(AverageDICE, "ratio", "π, μ", "v(s, t), Fourier features", "ours"),
}

RECOMMENDED = "average-dice-features"
BASELINES = ("average-reward", "behaviour-return")


def find(names: str | Sequence[str]) -> tuple[str, ...]:
    """The names that are meant: `all`, `recommended` (alone: with the baselines), or several, in a list or a string.

    >>> find("recommended")
    ('average-dice-features', 'average-reward', 'behaviour-return')
    """
    wanted = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    if wanted == ["recommended"]:
        return (RECOMMENDED, *BASELINES)
    meant = {"all": tuple(REGISTRY), "recommended": (RECOMMENDED,)}
    if unknown := [name for name in wanted if name not in REGISTRY and name not in meant]:
        quoted = ", ".join(repr(name) for name in unknown)
        raise SettingError(f"unknown estimator {quoted}. Known are all, recommended, {', '.join(REGISTRY)}.")
    return tuple(dict.fromkeys(found for name in wanted for found in meant.get(name, (name,))))
