"""Draws of episodes: a refit from what is known already is the fit to the log of these episodes."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import average_dice as ad
from average_dice import resampling
from average_dice.estimators import (
    COPTD,
    LSTDQ,
    SRDICE,
    AverageDICE,
    AverageDICELambda,
    Blend,
    COPTDFeatures,
    DeepTD,
    DoublyRobust,
    EmphaticTD,
    FittedQ,
    ImportanceSampling,
    KernelMIS,
    KernelMWL,
    MarginalisedDoublyRobust,
    SaddlePoint,
)
from average_dice.estimators._shared import network_inputs
from average_dice.estimators._shared.resampled_copies import Copies
from average_dice.estimators.ratio import cop_td, sr_dice
from average_dice.features.fourier import FourierMap
from average_dice.models import FourierFeatures, MLPRegression, mlp_regression
from average_dice.models.training import Sample
from average_dice.resampling import Resample, ResampleBlock, RowSums
from average_dice.testing.exact_mdps import early_termination, truncated

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
    Blend(20, ratio=RATIO, tables=False),  # the strengths of tables are chosen on the log, and then kept
]


@pytest.fixture
def same_features(monkeypatch):
    """Features that do not depend on the log they are drawn for."""
    draw = FourierMap.draw
    inputs = np.random.default_rng(0).standard_normal((50, 7))

    def fixed(given, num_features, generator):
        return draw(inputs[:, : given.shape[1]], num_features, np.random.default_rng(3))

    monkeypatch.setattr(FourierMap, "draw", staticmethod(fixed))


@pytest.fixture(params=[early_termination(), truncated()], ids=lambda mdp: mdp.name)
def problem(request):
    return request.param.problem(40, seed=5)


CHOSEN = np.concatenate([np.arange(3, 40), [3, 3, 7]])


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_a_refit_is_the_fit_to_the_resampled_episodes(method, problem, same_features):
    anew = ad.Problem(problem.dataset.select_episodes(CHOSEN), problem.policy, problem.discount)
    expected = method.fit(anew, key=KEY)
    prepared = method.prepare(problem, key=KEY)
    prepared.fit()  # so that the ratios of the log are known, and the resample takes them over
    (found,) = prepared.refit([Resample.of(problem, CHOSEN)])
    assert found.value == pytest.approx(expected.value, rel=1e-7)
    assert found.notes == expected.notes
    if expected.weights is not None:
        assert found.weights == pytest.approx(expected.weights, rel=1e-6, abs=1e-9)
    if expected.critic is not None:
        rows = anew.dataset.observation[:5]
        assert found.critic.v(rows) == pytest.approx(expected.critic.v(rows), rel=1e-6)
    (again,) = prepared.refit([Resample.everything(problem)])
    assert again.value == pytest.approx(method.fit(problem, key=KEY).value, rel=1e-12)


def test_a_resample_takes_over_what_is_known_of_its_episodes():
    problem = early_termination().problem(20, seed=0)
    chosen = np.array([4, 4, 0, 19])
    anew = ad.Problem(problem.dataset.select_episodes(chosen), problem.policy, problem.discount)
    known = [*resampling.BY_ROW, *resampling.BY_EPISODE]
    for name in known:
        getattr(problem, name)
    resampled = Resample.of(problem, chosen).problem
    for name in known:
        assert name in resampled.__dict__
        np.testing.assert_array_equal(getattr(resampled, name), getattr(anew, name))


def test_sums_over_a_resample(monkeypatch):
    problem = early_termination().problem(20, seed=0)
    generator = np.random.default_rng(0)
    left, right = generator.standard_normal((2, problem.dataset.num_transitions, 3))
    resample = Resample.of(problem, np.array([2, 5, 5]))
    rows = np.concatenate([np.flatnonzero(problem.episode_index == one) for one in (2, 5, 5)])
    np.testing.assert_array_equal(resample.rows, rows)
    expected = left[rows].T @ right[rows] / len(rows)
    np.testing.assert_allclose(RowSums(problem, left, right).mean(resample), expected, rtol=1e-12)
    monkeypatch.setattr(resampling, "MOST_BYTES", 0)  # too many to keep
    np.testing.assert_allclose(RowSums(problem, left, right).mean(resample), expected, rtol=1e-12)
    values = generator.standard_normal(len(rows))
    np.testing.assert_allclose(resample.onto_rows(values, len(left)) @ left, values @ left[rows], rtol=1e-12)
    of_episodes = generator.standard_normal(20)
    assert resample.mean_over_episodes(of_episodes) == pytest.approx(of_episodes[[2, 5, 5]].mean())


def test_resamples_of_a_block_have_the_sums_that_they_have_alone(problem):
    generator = np.random.default_rng(0)
    sums = RowSums(problem, *generator.standard_normal((2, problem.dataset.num_transitions, 3)))
    first, second = (ResampleBlock(problem, list(generator.integers(0, 40, (3, 40)))) for _ in range(2))
    for block, place in ((first, 0), (second, 2), (first, 1), (first, 2)):
        alone = sums.mean(Resample.of(problem, block.chosen[place]))
        assert sums.mean(block.resample(place)) == pytest.approx(alone, rel=1e-12)


@pytest.mark.parametrize("part_bytes", [1, 8 * 40 * 3 * 2])  # one column at a time, two at a time
def test_sums_formed_in_parts_are_the_sums_over_rows(problem, monkeypatch, part_bytes):
    generator = np.random.default_rng(0)
    left, right = generator.standard_normal((2, problem.dataset.num_transitions, 3))
    block = ResampleBlock(problem, list(generator.integers(0, 40, (3, 40))))
    monkeypatch.setattr(resampling, "LONG_EPISODES", 1)
    monkeypatch.setattr(resampling, "PART_BYTES", part_bytes)
    monkeypatch.setattr(resampling, "MOST_BYTES", 8 * 9 * 3)  # the sums of the block fit, those by episode do not
    for place in range(3):
        resample = block.resample(place)
        expected = left[resample.rows].T @ right[resample.rows] / resample.num_rows
        np.testing.assert_allclose(RowSums(problem, left, right).mean(resample), expected, rtol=1e-12, atol=1e-14)
    assert not block.by_episode  # nothing was kept


def test_products_with_their_own_transpose(problem, monkeypatch):
    left = np.random.default_rng(0).standard_normal((problem.dataset.num_transitions, 3))
    resample = Resample.of(problem, np.array([2, 5, 5, 7]))
    monkeypatch.setattr(resampling, "MOST_BYTES", 0)
    monkeypatch.setattr(resampling, "ROWS_AT_ONCE", 4)
    expected = left[resample.rows].T @ left[resample.rows] / resample.num_rows
    np.testing.assert_allclose(RowSums(problem, left, left).mean(resample), expected, rtol=1e-12)


def small(method):
    return replace(method, hidden=(8,), num_steps=30, num_checkpoints=2, batch_size=64, learning_rate=3e-3)


NETWORK = MLPRegression(hidden=(8,), num_steps=30, num_checkpoints=2, batch_size=64)
TRAINED = {
    "paper": replace(AverageDICE.paper(), model=NETWORK),
    "neural": AverageDICE(replace(NETWORK, standardise=True, held_out=0.2)),
    "td": small(DeepTD()),
    "cop-td": small(COPTD()),
    "best-dice": small(SaddlePoint.best_dice()),
    "mql": small(SaddlePoint.mql()),
    "sr-dice": replace(small(SRDICE()), num_features=5, encoder_steps=10),
}


@pytest.fixture
def same_scales(monkeypatch):
    """Inputs on scales that do not depend on the log."""

    def fixed(values):
        return np.full(values.shape[1], 0.2), np.full(values.shape[1], 0.5)

    for module in (mlp_regression, network_inputs, cop_td, sr_dice):
        monkeypatch.setattr(module, "mean_and_std", fixed)


LONG = [pytest.param(name, marks=pytest.mark.slow) for name in TRAINED if name not in ("paper", "td", "mql")]


@pytest.mark.parametrize("name", ["paper", "td", "mql", *LONG])
def test_resamples_that_train_at_once_are_the_fits_to_their_episodes(name, same_scales):
    """Of unequal numbers of rows; without repeats, as what is left out goes by the episode."""
    method, problem = TRAINED[name], early_termination().problem(40, seed=5)
    resamples = [Resample.of(problem, chosen) for chosen in (np.arange(2, 40), np.arange(38)[::-1].copy())]
    found, other = method.prepare(problem, key=KEY).refit(resamples)
    alone = method.fit(ad.Problem(resamples[0].problem.dataset, problem.policy, problem.discount), key=KEY)
    assert found.value == pytest.approx(alone.value, rel=1e-3)
    if alone.weights is not None:
        assert found.weights == pytest.approx(alone.weights, rel=1e-3, abs=1e-4)
    assert other.value != pytest.approx(alone.value, rel=1e-3)


def test_a_repeated_episode_is_either_trained_on_or_held_out(problem, monkeypatch):
    seen, original = [], mlp_regression.left_out

    def spied(episode, share):
        seen.append((episode, original(episode, share)))
        return seen[-1][1]

    monkeypatch.setattr(mlp_regression, "left_out", spied)
    TRAINED["neural"].prepare(problem, key=KEY).refit([Resample.of(problem, CHOSEN)])
    ((episode, out),) = seen
    assert out.any()
    assert not set(episode[out]) & set(episode[~out])
    assert len(set(episode)) == 37


def test_a_sample_is_seen_as_far_as_it_counts():
    sample = Sample.of([np.array([2, 0, 0]), np.array([1]), np.array([1, 2])])
    values = jnp.array([1.0, 10.0, 100.0])
    assert jax.vmap(lambda one: one.mean(values))(sample) == pytest.approx(np.array([34.0, 10.0, 55.0]))
    whole = np.asarray(jax.vmap(lambda one: one.minibatch(3, KEY))(sample))
    assert whole[:2].tolist() == [[2, 0, 0], [1, 1, 1]]
    assert whole[2, :2].tolist() == [1, 2]
    assert whole[2, 2] in (1, 2)
    some = np.asarray(jax.vmap(lambda one: one.minibatch(2, KEY))(sample))
    assert some.shape == (3, 2)
    assert some[1].tolist() == [1, 1]
    assert set(some[2]) <= {1, 2}


def test_starts_with_several_rows_each(problem):
    copies = Copies.of(problem, 2, [Resample.of(problem, np.array([1, 0])), Resample.of(problem, np.array([2, 2, 5]))])
    seen = copies.starts(3)
    assert seen.count.tolist() == [6, 9]
    assert seen.rows[0, :6].tolist() == [3, 4, 5, 0, 1, 2]
    assert seen.rows[1].tolist() == [6, 7, 8, 6, 7, 8, 15, 16, 17]
    assert Copies.of(problem, 2, None).starts(3) is None
