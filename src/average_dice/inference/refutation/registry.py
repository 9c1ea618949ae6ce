"""All refuters, cheap ones first. A new one is a file in this folder and one line here."""

from average_dice.inference.refutation.base import Refuter
from average_dice.inference.refutation.behaviour import BEHAVIOUR
from average_dice.inference.refutation.placebo import PLACEBO
from average_dice.inference.refutation.prediction import PREDICTION
from average_dice.inference.refutation.probabilities import PROBABILITIES
from average_dice.inference.refutation.random_halves import RANDOM_HALVES
from average_dice.inference.refutation.settings import SETTINGS
from average_dice.inference.refutation.time_halves import TIME_HALVES
from average_dice.inference.refutation.truncation import TRUNCATION

REFUTERS: tuple[Refuter, ...] = (
    BEHAVIOUR,
    PROBABILITIES,
    PLACEBO,
    RANDOM_HALVES,
    TIME_HALVES,
    PREDICTION,
    TRUNCATION,
    SETTINGS,
)
