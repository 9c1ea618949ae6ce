"""The contract: fit is prepare and fit, preparation is shared, and `trains` is composed from parts."""

from dataclasses import dataclass, replace

import jax
import numpy as np
import pytest

import average_dice as ad
from average_dice.estimators import (
    REGISTRY,
    AverageDICE,
    Blend,
    DeepTD,
    DiscountCorrection,
    DoublyRobust,
    FittedQ,
    MarginalisedDoublyRobust,
    prepared_once,
    registry,
)
from average_dice.models import Fitted, HeldOut, IncrementalLinear, MLPRegression, RatioModel
from average_dice.testing.exact_mdps import early_termination, random_mdp, tiny, truncated

KEY = jax.random.key(0)


@pytest.mark.parametrize(
    ("method", "trains"),
    [
        (AverageDICE(), False),
        (AverageDICE.tabular(), False),
        (AverageDICE.neural(), True),
        (AverageDICE(HeldOut(MLPRegression())), True),
        (DeepTD(), True),
        (DoublyRobust(), False),
        (DoublyRobust(critic=DeepTD()), True),
        (MarginalisedDoublyRobust(), False),
        (MarginalisedDoublyRobust(ratio=AverageDICE.neural()), True),
        (MarginalisedDoublyRobust(critic=DeepTD()), True),
        (Blend(), False),
        (Blend(ratio=AverageDICE.neural()), True),
        (DiscountCorrection(AverageDICE.neural()), True),
    ],
)
def test_a_method_trains_if_one_of_its_parts_does(method, trains):
    assert method.trains is trains


def test_a_method_that_trains_is_not_trained_a_hundred_times_unasked():
    """The bootstrap must not train a critic for every resample unless `bootstrap_trained` says so."""
    method = replace(DoublyRobust.weighted(), critic=DeepTD(hidden=(4,), num_steps=2, num_checkpoints=1))
    log = early_termination().sample(20, seed=0)
    found = ad.evaluate(log, early_termination().policy, 0.9, estimators={"mine": method})
    assert found.estimates["mine"].interval is None
    some = ad.evaluate(log, early_termination().policy, 0.9, estimators={"mine": method}, bootstrap_trained=2)
    assert "2 bootstrap resamples" in some.estimates["mine"].interval.kind


def test_the_training_length_reaches_the_part_that_trains():
    shorter = {"num_steps": 7, "num_checkpoints": 2}
    assert DoublyRobust(critic=DeepTD()).with_training(**shorter).critic.num_steps == 7
    assert Blend(ratio=AverageDICE.neural()).with_training(**shorter).ratio.model.num_steps == 7
    both = MarginalisedDoublyRobust(AverageDICE.neural(), DeepTD()).with_training(**shorter)
    assert (both.ratio.model.num_steps, both.critic.num_steps) == (7, 7)
    only = MarginalisedDoublyRobust(critic=DeepTD()).with_training(**shorter)
    assert only.ratio == AverageDICE()
    for closed in (AverageDICE(), Blend(), DoublyRobust(), MarginalisedDoublyRobust(), FittedQ()):
        with pytest.raises(ad.SettingError, match="does not train"):
            closed.with_training(**shorter)
    with pytest.raises(ad.SettingError, match="DeepTD has no option ridge"):
        DeepTD().with_training(**shorter, ridge=1.0)


def test_a_preparation_is_shared_while_it_is_in_use():
    problem = early_termination().problem(10, seed=0)
    first = prepared_once(FittedQ(10), problem, key=KEY)
    assert prepared_once(FittedQ(10), problem, key=KEY) is first
    assert prepared_once(FittedQ(11), problem, key=KEY) is not first
    assert prepared_once(FittedQ(10), problem, key=jax.random.key(1)) is not first
    assert prepared_once(FittedQ(10), early_termination().problem(10, seed=1), key=KEY) is not first
    assert first.fit() is first.fit()


def test_a_new_model_serves_every_method():
    """A model that implements `fit` alone, as a user would write one: the mean of the targets."""

    @dataclass(frozen=True)
    class Mean(RatioModel):
        def fit(self, regression, *, key, value_of):
            mean = float(regression.targets.mean())
            rows = 0 * regression.targets + mean
            return Fitted(rows, lambda inputs: 0 * inputs[:, 0] + mean)

    mdp = early_termination()
    problem = mdp.problem(30, seed=0)
    ratio = AverageDICE(Mean())
    for method in (ratio, MarginalisedDoublyRobust(ratio), Blend(ratio=ratio)):
        found = ad.evaluate(problem.dataset, mdp.policy, 0.9, estimators={"mine": method}, bootstrap=6)
        assert found.estimates["mine"].interval is not None


@pytest.mark.parametrize("mdp", [early_termination(), random_mdp()], ids=lambda mdp: mdp.name)
def test_the_discount_correction_estimates_what_the_behaviour_policy_earns(mdp):
    """Neither π nor μ is needed; where truncation hides nothing, the estimate is J(μ)."""
    log = replace(mdp.sample(3_000, seed=0), behaviour_log_prob=None)
    expected = replace(mdp, target=mdp.behaviour).value
    found = DiscountCorrection().fit(ad.Problem(log, None, mdp.discount), key=KEY)
    assert found.value == pytest.approx(expected, abs=0.02)
    assert abs(mdp.value - expected) > 0.001
    assert found.notes[0].code == ad.NoteCode.BEHAVIOUR_VALUE


def test_the_discount_correction_is_flow_normalised_on_every_trajectory():
    """On a log of every trajectory, with a table: the part of J(μ) before the truncation, normalised by the flow."""
    mdp = replace(tiny(), target=tiny().behaviour)
    problem = ad.Problem(mdp.exhaustive(unit=4), None, mdp.discount)
    found = DiscountCorrection(AverageDICE.tabular()).fit(problem, key=KEY)
    assert found.value == pytest.approx(mdp.flow_normalised_value, rel=1e-9)
    assert abs(mdp.flow_normalised_value - mdp.value) > 1e-3  # truncation hides something


def test_every_registered_method_is_hashable_and_compared_by_its_settings():
    """So that preparations can be shared."""
    for entry in REGISTRY.values():
        assert entry.make() == entry.make()
        hash(entry.make())


def test_what_the_incremental_form_converges_to():
    problem = truncated().problem(50, seed=0)
    solved = AverageDICE.linear().fit(problem, key=KEY).ratio(np.eye(5))
    learnt = AverageDICE.incremental().fit(problem, key=KEY).ratio(np.eye(5))
    few = replace(AverageDICE.incremental(), model=IncrementalLinear(num_passes=2)).fit(problem, key=KEY)
    assert np.abs(learnt - solved).max() < 0.03
    assert np.abs(learnt - solved).max() < 0.2 * np.abs(few.ratio(np.eye(5)) - solved).max()


def test_a_registered_class_has_its_short_path_without_further_lines(monkeypatch):
    class Mine(FittedQ):
        """Not listed in `estimators/__init__.py`."""

    with pytest.raises(AttributeError):
        _ = ad.estimators.Mine
    monkeypatch.setattr(registry, "Mine", Mine, raising=False)
    assert ad.estimators.Mine is Mine


def test_the_reason_for_no_overlap_is_the_right_one():
    """π never takes the second action of any episode: the first actions are possible, the whole episodes are not."""
    log = early_termination().sample(30, seed=0)
    long = np.flatnonzero(log.lengths > 1)
    log = log.select_episodes(long)
    second = replace(log, target_log_prob=np.where(log.step == 1, -np.inf, 0.0))
    first = replace(log, target_log_prob=np.where(log.step == 0, -np.inf, 0.0))
    for name in ("is", "wis"):
        with pytest.raises(ad.NotApplicable, match="at least one action of every logged episode"):
            REGISTRY[name].make().fit(ad.Problem(second, None, 0.9), key=KEY)
    for name in ("pdis", "wpdis", "average-dice-features"):
        assert np.isfinite(REGISTRY[name].make().fit(ad.Problem(second, None, 0.9), key=KEY).value)
        with pytest.raises(ad.NotApplicable, match="the first action of every logged episode"):
            REGISTRY[name].make().fit(ad.Problem(first, None, 0.9), key=KEY)
