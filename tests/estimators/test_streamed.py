"""The blend of a log in blocks: the same as in memory, however the log is divided."""

from dataclasses import replace

import jax
import numpy as np
import pytest

import average_dice as ad
from average_dice.blocked_problem import BlockedProblem
from average_dice.data.blocks import LogBlocks
from average_dice.demo import load_demo
from average_dice.estimators import Blend
from average_dice.estimators.blend import blend as blend_module
from average_dice.estimators.blend._counts import GivenCounts, PoissonCounts
from average_dice.estimators.blend.streamed import PreparedStreamed, StreamedBlend, StreamedSettings, fit_of, quantiles
from average_dice.inference.bootstrap import replicate, resampled_episodes
from average_dice.labels import HeldAtTruncation, over_mean_at_step, self_normalised
from average_dice.step_sums import StepSums
from average_dice.testing.exact_mdps import clock, early_termination, hidden_clock, random_mdp, sticky_chain, truncated

KEY = jax.random.key(0)
METHOD = Blend(60, tables=False)  # sums over blocks round otherwise, and ridges of 1e-5 amplify it: 1e-8
SETTINGS = StreamedSettings(60, METHOD.weights, METHOD.ridges, METHOD.overlap, METHOD.clock)
MDPS = [random_mdp(), early_termination(), truncated(), sticky_chain(), clock()]


def streamed(problem: ad.Problem, rows: int) -> StreamedBlend:
    blocks = LogBlocks.of_dataset(problem.dataset, rows)
    return StreamedBlend.fit(SETTINGS, BlockedProblem.of(blocks, problem.policy, problem.discount), key=KEY)


@pytest.mark.parametrize("mdp", MDPS, ids=lambda mdp: mdp.name)
@pytest.mark.parametrize("rows", [100, 1_000_000])
def test_it_is_the_blend_in_memory(mdp, rows):
    problem = mdp.problem(120, seed=1)
    whole, found = METHOD.prepare(problem, key=KEY).fit(), streamed(problem, rows)
    assert found.value == pytest.approx(whole.value, abs=1e-8)
    for name, value in found.diagnostics.items():
        assert value == pytest.approx(whole.diagnostics[name], abs=1e-6), name
    state = problem.dataset.observation[:5]
    np.testing.assert_allclose(found.critic.v(state), whole.critic.v(state), atol=1e-8)


def test_a_hidden_clock_gets_the_same_features_with_the_step():
    problem = hidden_clock().problem(200, seed=1)
    found = streamed(problem, 300)
    assert len(found.passes.solved) == 3
    assert found.value == pytest.approx(METHOD.prepare(problem, key=KEY).fit().value, abs=1e-7)


@pytest.mark.parametrize("discount", [0.0, 0.99])
def test_other_discounts(discount):
    problem = early_termination().problem(120, seed=2)
    problem = ad.Problem(problem.dataset, problem.policy, discount)
    assert streamed(problem, 90).value == pytest.approx(METHOD.prepare(problem, key=KEY).fit().value, abs=1e-8)


def test_the_undiscounted_total_of_some_steps():
    """The step is part of the state here, features are nearly collinear, and rounding counts more."""
    problem = early_termination().problem(120, seed=2)
    problem = ad.Problem.up_to(problem.dataset, problem.policy, 1.0, horizon=6)
    assert streamed(problem, 90).value == pytest.approx(METHOD.prepare(problem, key=KEY).fit().value, abs=1e-8)


def test_without_the_behaviour_policy():
    problem = random_mdp().problem(100, seed=1)
    problem = ad.Problem(replace(problem.dataset, behaviour_log_prob=None), problem.policy, problem.discount)
    found = streamed(problem, 100)
    assert found.value == pytest.approx(METHOD.prepare(problem, key=KEY).fit().value, abs=1e-8)
    assert "behaviour_log_prob" in found.problem.no_ratio


@pytest.mark.parametrize("mdp", [*MDPS, hidden_clock()], ids=lambda mdp: mdp.name)
def test_sums_by_step_are_those_of_the_whole_log(mdp):
    """Products over their means, and the discount weights, from merged sums in any order."""
    problem = mdp.problem(60, seed=3)
    parts = [problem.select_episodes(some) for some in np.array_split(np.arange(60), 7)]
    merged = StepSums.merged([StepSums.of(part) for part in reversed(parts)])
    step, after = problem.dataset.step, problem.log_product + problem.log_ratio
    np.testing.assert_allclose(merged.log_uncensored, problem.log_uncensored_at_step, atol=1e-12)
    found = merged.over_mean(problem.log_product, step, merged.log_mean_before)
    np.testing.assert_allclose(found, self_normalised(problem), atol=1e-12)
    np.testing.assert_allclose(
        merged.over_mean(after, step, merged.log_mean), over_mean_at_step(problem, after), atol=1e-12
    )
    blocked = BlockedProblem.of(LogBlocks.of_dataset(problem.dataset, 50), problem.policy, problem.discount)
    assert blocked.value_bounds == problem.value_bounds
    assert blocked.scale == pytest.approx(problem.scale)
    ratio = streamed(problem, 50).passes.ratio
    expected = problem.scale * np.exp(HeldAtTruncation()(problem, self_normalised(problem)))
    np.testing.assert_allclose(ratio.targets.row_scale(problem), expected, rtol=1e-10)


def test_quantiles_of_steps():
    problem = early_termination().problem(77, seed=4)
    shares = (0.1, 0.25, 0.5, 0.75)
    np.testing.assert_allclose(quantiles(StepSums.of(problem), shares), np.quantile(problem.dataset.step, shares))


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("mdp", [random_mdp(), early_termination(), truncated()], ids=lambda mdp: mdp.name)
def test_resamples_of_first_order_agree_with_refits(mdp):
    """The value of each resample, for each candidate's own sake: the mixture is the same function of them."""
    problem = mdp.problem(1_000, seed=1)
    chosen = list(resampled_episodes(1_000, 60, 0))
    refits = replicate(METHOD, problem, chosen, key=KEY, feature_draws=1)
    found = streamed(problem, 2_000).replicates(GivenCounts.of_resamples(chosen, 1_000))
    assert np.corrcoef(refits, found)[0, 1] > 0.9
    assert found.std() == pytest.approx(refits.std(), rel=0.15)


@pytest.mark.slow
def test_candidates_on_resamples_are_refits_to_first_order():
    """One episode of 400 counts twice: values by refits change as the influences say."""
    problem = early_termination().problem(400, seed=1)
    found = streamed(problem, 500)
    chosen = [np.append(np.arange(400), episode) for episode in (0, 17, 250)]
    first = found.passes.candidates(found.sums, GivenCounts.of_resamples(chosen, 400))
    for place, episodes in enumerate(chosen):
        refitted = streamed(problem.select_episodes(episodes), 500)
        # the same features: those of the sample of the first log
        again = StreamedBlend.fit(SETTINGS, replace(refitted.problem, sample=found.problem.sample), key=KEY).passes
        sums = again.value_sums(quantiles(refitted.problem.sums, (0.5,)))
        exact = again.candidates(sums, PoissonCounts(0, 0)).values
        moved, expected = first.resampled[:, place] - first.values, exact - first.values
        kinds = np.array(first.kinds)
        for kind in ("values", "products"):
            assert np.abs(moved - expected)[kinds == kind].max() < 0.1 * np.abs(expected)[kinds == kind].max() + 1e-6


@pytest.mark.parametrize(("discount", "expected"), [(0.5, False), (0.99, True)])
def test_values_that_do_not_settle_at_their_bounds_are_noted(discount, expected):
    demo = load_demo("CartPole-v1")  # every reward is 1, so values lie at their upper bound
    found = streamed(ad.Problem(demo.dataset, demo.policy, discount), 8_192)
    assert any(note.code is ad.NoteCode.UNSETTLED for note in fit_of(found).notes) == expected


def test_large_logs_are_read_in_blocks(monkeypatch):
    monkeypatch.setattr(blend_module, "LARGE_WITH_MANY_EPISODES", 500)
    monkeypatch.setattr(blend_module, "MANY_EPISODES", 100)
    problem = random_mdp().problem(120, seed=1)
    prepared = METHOD.prepare(problem, key=KEY)
    assert isinstance(prepared, PreparedStreamed)
    assert prepared.fit().value == pytest.approx(streamed(problem, 10**6).value, abs=1e-12)
    chosen = list(resampled_episodes(120, 20, 0))
    values = replicate(METHOD, problem, chosen, key=KEY)
    assert values.shape == (20,)
    assert values[:10] == pytest.approx(prepared.first_order(chosen[:10]), abs=1e-12)


def test_resamples_that_are_known_before_the_fit_take_no_pass_of_their_own():
    problem = early_termination().problem(120, seed=1)
    blocked = BlockedProblem.of(LogBlocks.of_dataset(problem.dataset, 100), problem.policy, problem.discount)
    counts = PoissonCounts(20, seed=3)
    alone = StreamedBlend.fit(SETTINGS, blocked, key=KEY)
    passes = blocked.num_passes[0]
    later = alone.replicates(counts)
    assert blocked.num_passes[0] == passes + 1
    together = StreamedBlend.fit(SETTINGS, blocked, key=KEY, counts=counts)
    passes = blocked.num_passes[0]
    np.testing.assert_array_equal(together.replicates(PoissonCounts(20, seed=3)), later)
    assert blocked.num_passes[0] == passes
    assert together.value == alone.value
    assert not np.array_equal(together.replicates(PoissonCounts(20, seed=4)), later)
