"""The names for `average-dice benchmark`. A new experiment or analysis is a file and a line here."""

from typing import Any

from average_dice.errors import SettingError
from average_dice.experiments.ablation import ABLATION
from average_dice.experiments.base import Analysis, Experiment
from average_dice.experiments.claims import CLAIMS_ANALYSIS
from average_dice.experiments.main import MAIN, RELEASED
from average_dice.experiments.ranking import COMPARISON
from average_dice.experiments.robustness import ROBUSTNESS
from average_dice.experiments.trust import TRUST
from average_dice.experiments.tuning import TUNING

EXPERIMENTS: dict[str, Experiment[Any]] = {
    one.name: one for one in (MAIN, RELEASED, ROBUSTNESS, TUNING, ABLATION, TRUST)
}
ANALYSES: dict[str, Analysis] = {**EXPERIMENTS, **{one.name: one for one in (CLAIMS_ANALYSIS, COMPARISON)}}


def find_analysis(name: str) -> Analysis:
    """The experiment or analysis of that name."""
    if name not in ANALYSES:
        raise SettingError(f"unknown experiment {name!r}. Known are {', '.join(ANALYSES)}.")
    return ANALYSES[name]
