"""A case for every registered estimator: small settings that can solve the exact MDPs.

Closed forms have features that span every table, so that only sampling noise remains; networks are small. Tolerances
above the default are for methods with more variance and for networks. An estimator without an entry here is checked
with its registered defaults and the defaults of `Case`, so a new method needs no entry.
"""

from dataclasses import replace
from typing import Any

from average_dice.estimators import (
    REGISTRY,
    SRDICE,
    AverageDICE,
    Blend,
    DoublyRobust,
    Entry,
    Estimator,
    FittedQ,
    MarginalisedDoublyRobust,
)
from average_dice.estimators.blend.row_weights import evenly
from average_dice.models import FourierFeatures, IncrementalLinear, MLPRegression
from average_dice.testing.conformance import Case

NETWORK = {"hidden": (64,), "num_steps": 3_000, "num_checkpoints": 3}
SADDLE = {**NETWORK, "learning_rate": 3e-4, "num_steps": 6_000}
FASTER = {**SADDLE, "learning_rate": 1e-3}  # MWL and MQL have no regulariser, and learn more slowly
SUCCESSOR: dict[str, Any] = {"target_rate": 0.05, "num_steps": 3_000, "encoder_steps": 500, "num_checkpoints": 2}
FEATURES = FourierFeatures(20, ridges=(1e-9,))
CRITIC = FittedQ(20, 1e-9)
STOPPED = MLPRegression((64,), num_steps=2_000, standardise=True, held_out=0.2)


def registered(name: str, **settings: Any) -> Estimator:
    """The registered method with other settings."""
    method: Any = REGISTRY[name].make()  # a dataclass, which its base class does not say
    return replace(method, **settings)


def linear(name: str) -> Estimator:
    """The registered method with 20 features, which span every table, and almost no ridge."""
    return registered(name, num_features=20, ridge=1e-9)


def trained(method: Any, tolerance: float = 0.06, **quick: int) -> Case:
    """A method that trains, with its quick variant."""
    return Case(method, tolerance=tolerance, quick=replace(method, num_steps=20, **quick))


def saddle(name: str) -> Case:
    """A saddle-point method, which gives the ratio of pairs."""
    return replace(trained(registered(name, **SADDLE)), ratio_of="pairs")


EXPLICIT: dict[str, Case] = {
    "is": Case(registered("is"), "truncated", 0.1, too_noisy_on=("random", "rare state")),
    "pdis": Case(registered("pdis"), "truncated", 0.05),
    "wis": Case(registered("wis"), "truncated", 0.06, too_noisy_on=("rare state",)),
    "wpdis": Case(registered("wpdis"), "truncated"),
    "lstd-q": Case(linear("lstd-q")),
    "fqe": Case(linear("fqe")),
    "etd": Case(linear("etd"), tolerance=0.06),
    "average-dice-tabular": Case(registered("average-dice-tabular"), "flow"),
    "average-dice-linear": Case(registered("average-dice-linear"), "flow"),
    "average-dice-incremental": Case(
        replace(AverageDICE.incremental(), model=IncrementalLinear(num_passes=20)), "flow", identity_tolerance=0.01
    ),
    "average-dice-features": Case(AverageDICE(FEATURES), "held"),
    "average-dice-lambda": Case(linear("average-dice-lambda"), "held"),
    "cop-td-features": Case(linear("cop-td-features"), ratio_of="states"),
    "mis-kernel": Case(registered("mis-kernel", num_features=20, ridge=1e-12), ratio_of="states"),
    "mwl-kernel": Case(registered("mwl-kernel", num_features=20, ridge=1e-12), ratio_of="pairs"),
    "dr": Case(DoublyRobust(critic=CRITIC), tolerance=0.05),
    "wdr": Case(replace(DoublyRobust.weighted(), critic=CRITIC)),
    "average-dice-blend": Case(Blend(20, (evenly,), (1e-9, 1e-7), AverageDICE(FEATURES)), identity_tolerance=0.01),
    "average-dice-dr": Case(MarginalisedDoublyRobust(AverageDICE(FEATURES), CRITIC)),
    "td": trained(registered("td", **NETWORK, target_rate=0.05)),
    "average-dice-neural": Case(
        AverageDICE(STOPPED), "held", 0.06, quick=AverageDICE(MLPRegression((8,), num_steps=20))
    ),
    "cop-td": replace(trained(registered("cop-td", **NETWORK, target_rate=0.01)), ratio_of="states"),
    "dual-dice": saddle("dual-dice"),
    "gen-dice": saddle("gen-dice"),
    "gradient-dice": saddle("gradient-dice"),
    "best-dice": saddle("best-dice"),
    "mwl": replace(trained(registered("mwl", **FASTER), tolerance=0.15), ratio_of="pairs"),
    "mql": trained(registered("mql", **FASTER), tolerance=0.15),
    "sr-dice": replace(trained(SRDICE((32, 32), 32, **SUCCESSOR), encoder_steps=5), ratio_of="pairs"),
}

# Registered estimators that are not checked, with the reason. Baselines estimate the behaviour policy.
NOT_CHECKED: dict[str, str] = {
    "average-dice-paper": "its labels vanish at late steps, and its network needs more than a test's time",
    "average-dice-released": "its labels do not tend to the density ratio",
}


def default_case(entry: Entry) -> Case:
    """For an estimator without an entry in `EXPLICIT`: its registered settings."""
    return Case(entry.make(), entry.estimates, entry.tolerance)


def is_checked(name: str) -> bool:
    """Whether a registered estimator has a case."""
    return name not in NOT_CHECKED and REGISTRY[name].family != "baseline"


CASES: dict[str, Case] = EXPLICIT | {
    name: default_case(entry) for name, entry in REGISTRY.items() if is_checked(name) and name not in EXPLICIT
}
CLOSED_FORMS = {name: case for name, case in CASES.items() if not case.method.trains}
TRAINED = {name: case for name, case in CASES.items() if case.method.trains}
