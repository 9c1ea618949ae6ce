"""Names for the methods: on the command line, in JSON, in results. Adding a method is a file and an entry here."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from average_dice.errors import SettingError, did_you_mean
from average_dice.estimators.base import Estimator
from average_dice.estimators.baseline.average_reward import AverageReward
from average_dice.estimators.baseline.behaviour_return import BehaviourReturn
from average_dice.estimators.blend.blend import Blend
from average_dice.estimators.doubly_robust.marginalised import MarginalisedDoublyRobust
from average_dice.estimators.doubly_robust.per_decision import DoublyRobust
from average_dice.estimators.importance.importance_sampling import ImportanceSampling
from average_dice.estimators.ratio.average_dice import AverageDICE
from average_dice.estimators.ratio.average_dice_lambda import AverageDICELambda
from average_dice.estimators.ratio.cop_td import COPTD
from average_dice.estimators.ratio.cop_td_features import COPTDFeatures
from average_dice.estimators.ratio.discount_correction import DiscountCorrection
from average_dice.estimators.ratio.mis_kernel import KernelMIS
from average_dice.estimators.ratio.mwl_kernel import KernelMWL
from average_dice.estimators.ratio.saddle_point import SaddlePoint
from average_dice.estimators.ratio.sr_dice import SRDICE
from average_dice.estimators.value.deep_td import DeepTD
from average_dice.estimators.value.emphatic_td import EmphaticTD
from average_dice.estimators.value.fitted_q import FittedQ
from average_dice.estimators.value.lstd_q import LSTDQ

CHE = "Che et al. 2025"
GELADA = "Gelada & Bellemare 2019"
PRECUP = "Precup et al. 2000"
THOMAS = "Thomas & Brunskill 2016"
UEHARA = "Uehara et al. 2020"

# What a method estimates on a truncated log: all of J; the part before truncation; that part, normalised by the flow;
# that part with the weight after truncation put on the last steps; or something else than J.
Estimates = Literal["whole", "truncated", "flow", "held", "other"]

BASELINE = "baseline"  # the family of methods that estimate what the behaviour policy earns


@dataclass(frozen=True)
class Entry:
    """How to make the method, and what a user needs to know to choose it.

    `needs`: "π, μ" are the policies at the logged actions, "policy" is an object that gives π at any state.
    `learns`: the function that is fitted, and its form.
    `colour`: in figures of experiments; by default one of a palette. `in_figures`: whether figures show it although it
    has no learning curve.
    `estimates` and `tolerance`: for the conformance checks (`average_dice.testing`), what it estimates on a truncated
    log and how closely, with its registered settings.
    """

    make: Callable[[], Estimator]
    family: str
    needs: str
    learns: str
    paper: str
    colour: str | None = None
    in_figures: bool = False
    estimates: Estimates = "whole"
    tolerance: float = 0.03  # above the sampling error of closed forms on the logs of the checks


REGISTRY: dict[str, Entry] = {
    "average-reward": Entry(AverageReward, BASELINE, "–", "nothing", "–", "#aaaaaa", in_figures=True),
    "behaviour-return": Entry(BehaviourReturn, BASELINE, "–", "nothing", "–", "#cc99ff", in_figures=True),
    "discount-correction": Entry(DiscountCorrection, BASELINE, "–", "w(s), Fourier features", "after Che et al. 2023"),
    "is": Entry(ImportanceSampling.plain, "importance sampling", "π, μ", "nothing", PRECUP, estimates="truncated"),
    "pdis": Entry(
        ImportanceSampling.per_decision, "importance sampling", "π, μ", "nothing", PRECUP, estimates="truncated"
    ),
    "wis": Entry(ImportanceSampling.weighted, "importance sampling", "π, μ", "nothing", PRECUP, estimates="truncated"),
    "wpdis": Entry(
        ImportanceSampling.weighted_per_decision,
        "importance sampling",
        "π, μ",
        "nothing",
        PRECUP,
        "#5f9ea0",
        in_figures=True,
        estimates="truncated",
    ),
    "td": Entry(DeepTD, "value", "policy", "q(s, a), network", "Fujimoto et al. 2021", "black"),
    "lstd-q": Entry(LSTDQ, "value", "policy", "q(s, a), Fourier features", "Lagoudakis & Parr 2003"),
    "fqe": Entry(FittedQ, "value", "policy", "q(s, a), Fourier features", "Le et al. 2019", "#3b5b92", in_figures=True),
    "etd": Entry(EmphaticTD, "value", "π, μ", "v(s), Fourier features", "Sutton et al. 2016"),
    "average-dice-tabular": Entry(
        AverageDICE.tabular, "ratio", "π, μ", "w(s), table", f"after {CHE}", estimates="flow"
    ),
    "average-dice-linear": Entry(AverageDICE.linear, "ratio", "π, μ", "w(s), linear", f"after {CHE}", estimates="flow"),
    "average-dice-incremental": Entry(
        AverageDICE.incremental, "ratio", "π, μ", "w(s), linear", f"after {CHE}", estimates="flow"
    ),
    "average-dice-paper": Entry(
        AverageDICE.paper, "ratio", "π, μ", "w(s), network", CHE, "#d62728", estimates="truncated"
    ),
    "average-dice-released": Entry(
        AverageDICE.released, "ratio", "π, μ", "w(s), network", f"code of {CHE}", "#f4a3a3", estimates="other"
    ),
    "average-dice-neural": Entry(
        AverageDICE.neural, "ratio", "π, μ", "v(s, t), network", "ours", "#8c1515", estimates="held"
    ),
    "average-dice-features": Entry(
        AverageDICE, "ratio", "π, μ", "v(s, t), Fourier features", "ours", "#ff7f50", in_figures=True, estimates="held"
    ),
    "average-dice-lambda": Entry(
        AverageDICELambda, "ratio", "π, μ", "w(s), Fourier features", "ours", estimates="held"
    ),
    "cop-td": Entry(COPTD, "ratio", "π, μ", "w(s), network", GELADA, "#1f77b4"),
    "cop-td-features": Entry(COPTDFeatures, "ratio", "π, μ", "w(s), Fourier features", f"after {GELADA}"),
    "dual-dice": Entry(SaddlePoint.dual_dice, "ratio", "policy", "ζ(s, a), networks", "Nachum et al. 2019", "#9467bd"),
    "gen-dice": Entry(
        SaddlePoint.gen_dice, "ratio", "policy", "ζ(s, a), networks", "Zhang, Dai et al. 2020", "#8c564b"
    ),
    "gradient-dice": Entry(
        SaddlePoint.gradient_dice, "ratio", "policy", "ζ(s, a), networks", "Zhang, Liu et al. 2020", "#17becf"
    ),
    "best-dice": Entry(SaddlePoint.best_dice, "ratio", "policy", "ζ(s, a), networks", "Yang et al. 2020", "#2ca02c"),
    "mwl": Entry(SaddlePoint.mwl, "ratio", "policy", "ζ(s, a), networks", UEHARA, "#bcbd22"),
    "mql": Entry(SaddlePoint.mql, "value", "policy", "q(s, a), networks", UEHARA, "#ff69b4"),
    "mis-kernel": Entry(KernelMIS, "ratio", "π, μ", "w(s), Fourier features", "Liu et al. 2018"),
    "mwl-kernel": Entry(KernelMWL, "ratio", "policy", "ζ(s, a), Fourier features", UEHARA),
    "sr-dice": Entry(SRDICE, "ratio", "policy", "ζ(s, a), networks", "Fujimoto et al. 2021", "#ff9900"),
    "dr": Entry(DoublyRobust, "doubly robust", "policy, μ", "q(s, a), Fourier features", "Jiang & Li 2016"),
    "wdr": Entry(DoublyRobust.weighted, "doubly robust", "policy, μ", "q(s, a), Fourier features", THOMAS),
    "average-dice-blend": Entry(
        Blend, "doubly robust", "policy or π, μ; best both", "v(s, t) and q(s, a)", "ours", "#0b6623", in_figures=True
    ),
    "average-dice-dr": Entry(
        MarginalisedDoublyRobust, "doubly robust", "policy, μ", "v(s, t) and q(s, a)", "ours", "#e377c2"
    ),
}

RECOMMENDED = "average-dice-blend"
BASELINES = ("average-reward", "behaviour-return")  # shown beside the recommended estimator


def is_baseline(name: str) -> bool:
    """Whether the method of that name estimates what the behaviour policy earns; False for unregistered names."""
    return name in REGISTRY and REGISTRY[name].family == BASELINE


def uses_behaviour(method: Estimator) -> bool:
    """Whether the method uses the probabilities of the behaviour policy; True for methods that are not registered."""
    known = [entry for entry in REGISTRY.values() if type(entry.make()) is type(method)]
    return not known or any("μ" in entry.needs for entry in known)


def find(names: str | Sequence[str]) -> tuple[str, ...]:
    """The registered names for `all`, `recommended` (if alone, with the baselines), or names in a list or a string.

    >>> find("recommended")
    ('average-dice-blend', 'average-reward', 'behaviour-return')
    """
    wanted = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    if wanted == ["recommended"]:
        return (RECOMMENDED, *BASELINES)
    meant = {"all": tuple(REGISTRY), "recommended": (RECOMMENDED,)}
    if unknown := [name for name in wanted if name not in REGISTRY and name not in meant]:
        quoted = ", ".join(repr(name) for name in unknown)
        meant_instead = did_you_mean(unknown[0], (*meant, *REGISTRY))
        raise SettingError(
            f"unknown estimator {quoted}.{meant_instead} Known are all, recommended, {', '.join(REGISTRY)}."
        )
    return tuple(dict.fromkeys(found for name in wanted for found in meant.get(name, (name,))))
