"""Draws of episodes: a refit from what is known already is the fit to the log of these episodes."""

from dataclasses import replace

import jax
import numpy as np
import pytest

import average_dice as ad
from average_dice import resampling
from average_dice.estimators import (
    LSTDQ,
    AverageDICE,
    AverageDICELambda,
    Blend,
    COPTDFeatures,
    DoublyRobust,
    EmphaticTD,
    FittedQ,
    ImportanceSampling,
    KernelMIS,
    KernelMWL,
    MarginalisedDoublyRobust,
)
from average_dice.models import FourierFeatures
from average_dice.models.fourier import FeatureMap
from average_dice.resampling import Draw, RowSums
from exact_mdps import early_termination, truncated

KEY = jax.random.key(0)
RATIO = AverageDICE(FourierFeatures(20, ridges=(1e-3,)))
METHODS = [
    ImportanceSampling.weighted_per_decision(),
    AverageDICE.tabular(),
    RATIO,
    AverageDICELambda(num_features=20),
    COPTDFeatures(20),
    KernelMIS(20),
    KernelMWL(20),
    EmphaticTD(20),
    LSTDQ(20),
    FittedQ(20),
    replace(DoublyRobust.weighted(), critic=FittedQ(20)),
    MarginalisedDoublyRobust(RATIO, FittedQ(20)),
    Blend(20, 2, ratio=RATIO),
]


@pytest.fixture
def same_features(monkeypatch):
    """Features that do not depend on the log they are drawn for."""
    draw = FeatureMap.draw
    inputs = np.random.default_rng(0).standard_normal((50, 7))

    def fixed(given, num_features, generator):
        return draw(inputs[:, : given.shape[1]], num_features, np.random.default_rng(3))

    monkeypatch.setattr(FeatureMap, "draw", staticmethod(fixed))


@pytest.fixture(params=[early_termination(), truncated()], ids=lambda mdp: mdp.name)
def problem(request):
    return request.param.problem(40, seed=5)


CHOSEN = np.concatenate([np.arange(3, 40), [3, 3, 7]])


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_a_refit_is_the_fit_to_the_episodes_drawn(method, problem, same_features):
    anew = ad.Problem(problem.dataset.select_episodes(CHOSEN), problem.policy, problem.discount)
    expected = method.fit(anew, key=KEY)
    refit = method.prepare(problem, key=KEY)
    method.fit(problem, key=KEY)  # so that the ratios of the log are known, and the draw takes them over
    found = refit(Draw.of(problem, CHOSEN))
    assert found.value == pytest.approx(expected.value, rel=1e-7)
    assert found.notes == expected.notes
    if expected.weights is not None:
        assert found.weights == pytest.approx(expected.weights, rel=1e-6, abs=1e-9)
    if expected.critic is not None:
        rows = anew.dataset.observation[:5]
        assert found.critic.v(rows) == pytest.approx(expected.critic.v(rows), rel=1e-6)
    assert refit(Draw.everything(problem)).value == pytest.approx(method.fit(problem, key=KEY).value, rel=1e-12)


def test_a_draw_takes_over_what_is_known_of_its_episodes():
    problem = early_termination().problem(20, seed=0)
    chosen = np.array([4, 4, 0, 19])
    anew = ad.Problem(problem.dataset.select_episodes(chosen), problem.policy, problem.discount)
    known = [*resampling.OF_ROWS, *resampling.OF_EPISODES]
    for name in known:
        getattr(problem, name)
    drawn = Draw.of(problem, chosen).problem
    for name in known:
        assert name in drawn.__dict__
        np.testing.assert_array_equal(getattr(drawn, name), getattr(anew, name))


def test_sums_over_a_draw(monkeypatch):
    problem = early_termination().problem(20, seed=0)
    generator = np.random.default_rng(0)
    left, right = generator.standard_normal((2, problem.dataset.num_transitions, 3))
    draw = Draw.of(problem, np.array([2, 5, 5]))
    rows = np.concatenate([np.flatnonzero(problem.episode_index == one) for one in (2, 5, 5)])
    np.testing.assert_array_equal(draw.rows, rows)
    expected = left[rows].T @ right[rows] / len(rows)
    np.testing.assert_allclose(RowSums(problem, left, right).mean(draw), expected, rtol=1e-12)
    monkeypatch.setattr(resampling, "MOST_BYTES", 0)  # too many to keep
    np.testing.assert_allclose(RowSums(problem, left, right).mean(draw), expected, rtol=1e-12)
    values = generator.standard_normal(len(rows))
    np.testing.assert_allclose(draw.onto_rows(values, len(left)) @ left, values @ left[rows], rtol=1e-12)
    of_episodes = generator.standard_normal(20)
    assert draw.mean_over_episodes(of_episodes) == pytest.approx(of_episodes[[2, 5, 5]].mean())
