"""Labels: the products, what normalises them, and what stands for the mass beyond a cut."""

from dataclasses import replace

import jax
import numpy as np
import pytest

import average_dice as ad
from average_dice.estimators import plain_value, product_on_state_and_step
from average_dice.labels import HeldAtTruncation, as_logged, plain, self_normalised
from average_dice.models import Table
from average_dice.testing.exact_mdps import ALL, ExactMDP, sticky_chain, tiny
from conftest import columns_of
from test_problem import log_of


def test_self_normalised_products():
    """Cut at one length: the mean over all episodes, in which the dead keep their last product."""
    lengths = [3, 5, 1, 5]
    log_ratios = np.random.default_rng(0).normal(size=14)
    log = log_of(log_ratios, lengths=lengths, terminated=[0, 2, 3])
    products = [np.exp(np.append(0, np.cumsum(part))) for part in np.split(log_ratios, np.cumsum(lengths)[:-1])]
    expected = [
        product[t] / np.mean([other[min(t, len(other) - 1)] for other in products])
        for product in products
        for t in range(len(product) - 1)
    ]
    np.testing.assert_allclose(np.exp(self_normalised(ad.Problem(log, None, 0.9))), expected, rtol=1e-12)


def cut_at_random(mdp, num_episodes, seed):
    """A log whose episodes are cut after 1 to `mdp.truncation` steps, whatever happens in them."""
    columns = columns_of(mdp.sample(num_episodes, seed))
    cuts = np.random.default_rng(seed + 1).integers(1, mdp.truncation + 1, size=num_episodes)[columns["episode"]]
    kept = columns["step"] < cuts
    columns["truncated"] |= (columns["step"] == cuts - 1) & ~columns["terminated"]
    return ad.LoggedDataset(**{name: values[kept] for name, values in columns.items()})


@pytest.mark.parametrize("labels", [plain, self_normalised])
def test_a_log_cut_at_many_lengths_says_the_same_as_one_cut_at_the_longest(labels):
    """π dies more often than μ, and episodes are cut early at random: the dead must not count for too much."""
    mdp = dying()
    problem = ad.Problem(cut_at_random(mdp, 20_000, seed=0), mdp.policy, mdp.discount)
    assert np.exp(problem.log_uncensored_at_step[-1]) == pytest.approx(1 / mdp.truncation, rel=0.2)
    # Each step's labels, over the share still watched, must carry the mass that π has at that step.
    product, step = (
        np.exp(labels(problem) - problem.log_uncensored_at_step[problem.dataset.step]),
        problem.dataset.step,
    )
    found = np.bincount(step, product) / problem.dataset.num_episodes
    np.testing.assert_allclose(found, mdp.visits(mdp.target, mdp.truncation).sum(axis=1), rtol=0.1)
    method = ad.AverageDICE(Table(), labels, as_logged, product_on_state_and_step, value=plain_value)
    assert method.fit(problem, key=jax.random.key(0)).value == pytest.approx(mdp.value_to_truncation, rel=0.04)
    assert ad.AverageDICE.tabular().fit(problem, key=jax.random.key(0)).value == pytest.approx(
        mdp.flow_normalised_value, rel=0.06
    )


def dying():
    """Two states; action 1 kills with 20 %, and π takes it more often than μ."""
    transition = np.array([[[0.5, 0.5], [0.4, 0.4]], [[0.2, 0.8], [0.1, 0.7]]])
    return ExactMDP(
        "dying",
        transition,
        reward=np.array([[1.0, 2.0], [0.0, 4.0]]),
        start=np.array([1.0, 0.0]),
        target=np.array([[0.5, 0.5], [0.4, 0.6]]),
        behaviour=np.array([[0.7, 0.3], [0.6, 0.4]]),
        discount=0.9,
        truncation=12,
    )


def test_on_a_log_of_every_trajectory_the_products_have_a_mean_of_one_at_every_step():
    mdp = tiny(truncation=4)
    problem = ad.Problem(mdp.exhaustive(unit=4), mdp.policy, mdp.discount)
    np.testing.assert_allclose(self_normalised(problem), plain(problem), atol=1e-12)


def test_labels_do_not_exceed_the_number_of_episodes_however_far_the_products_go():
    log_ratios = np.concatenate([np.full(40, 50.0), np.full(40, -50.0)])
    problem = ad.Problem(log_of(log_ratios, lengths=[40, 40]), None, 0.9)
    labels = np.exp(self_normalised(problem))
    np.testing.assert_allclose(labels[1:40], 2.0)
    np.testing.assert_allclose(labels[41:], 0.0, atol=1e-40)


def test_a_common_factor_that_underflows_cancels():
    step_ratios = np.random.default_rng(1).normal(size=60)
    lengths = [20, 20, 20]
    near = np.exp(self_normalised(ad.Problem(log_of(step_ratios, lengths=lengths), None, 0.9)))
    far = np.exp(self_normalised(ad.Problem(log_of(step_ratios - 400, lengths=lengths), None, 0.9)))
    np.testing.assert_allclose(far, near, rtol=1e-9)


def test_where_no_episode_has_weight_left_the_label_is_zero():
    problem = ad.Problem(log_of([-np.inf, 0.0, 0.0, -np.inf, 0.0, 0.0], lengths=[3, 3]), None, 0.9)
    assert np.exp(self_normalised(problem)).tolist() == [1.0, 0.0, 0.0, 1.0, 0.0, 0.0]


def test_held_mass_without_termination_is_the_geometric_tail():
    log = log_of(np.zeros(20), lengths=[10, 10])
    problem = ad.Problem(log, None, 0.9)
    weights = np.exp(HeldAtTruncation(4)(problem, plain(problem)))
    expected = 0.9 ** np.arange(10) + np.where(np.arange(10) >= 6, 0.9**10 / (0.1 * 4), 0)
    np.testing.assert_allclose(weights, np.tile(expected, 2), rtol=1e-12)
    np.testing.assert_allclose(weights.sum(), 2 / 0.1, rtol=1e-12)


def test_held_mass_leaves_terminated_episodes_alone():
    log = log_of(np.zeros(20), lengths=[10, 10], terminated=[0, 1])
    problem = ad.Problem(log, None, 0.9)
    np.testing.assert_array_equal(HeldAtTruncation(4)(problem, plain(problem)), as_logged(problem, plain(problem)))


@pytest.mark.parametrize("num_steps", [1, 2, 10])
@pytest.mark.parametrize("mdp", [tiny(), replace(sticky_chain(), truncation=3)], ids=lambda mdp: mdp.name)
def test_held_mass_balances_the_flow_exactly(mdp, num_steps):
    """E_D[w ρ (1 − γm)] = 1 − γ to rounding, with deaths in the last steps and without."""
    problem = ad.Problem(mdp.exhaustive(unit=4 if mdp.name == "tiny" else 20), mdp.policy, mdp.discount)
    log_weight = plain(problem) + HeldAtTruncation(num_steps)(problem, plain(problem)) + problem.log_ratio
    found = problem.scale * np.mean(np.exp(log_weight) * problem.flow)
    assert found == pytest.approx(1 - mdp.discount, rel=1e-12)


def test_held_mass_balances_the_flow_of_a_log_cut_at_many_lengths():
    generator = np.random.default_rng(2)
    lengths = generator.integers(1, 30, size=200).tolist()
    log = log_of(np.zeros(sum(lengths)), lengths=lengths, terminated=generator.choice(200, 80, replace=False))
    problem = ad.Problem(log, None, 0.95)
    weights = np.exp(HeldAtTruncation(5)(problem, plain(problem)))
    assert problem.scale * np.mean(weights * problem.flow) == pytest.approx(0.05, rel=1e-12)


def test_held_mass_needs_a_step():
    with pytest.raises(ad.SettingError, match="num_steps of at least 1"):
        HeldAtTruncation(0)


def test_the_exact_numbers_of_the_sticky_chain():
    mdp = sticky_chain()
    np.testing.assert_allclose(mdp.ratio_to_truncation, [0.6715, 1.2996], atol=5e-5)
    np.testing.assert_allclose(mdp.ratio, [0.6845, 1.4722], atol=5e-5)
    numbers = [mdp.value_to_truncation, mdp.flow_normalised_value, mdp.value]
    np.testing.assert_allclose(numbers, [0.5205, 0.5639, 0.5897], atol=5e-5)


@pytest.mark.parametrize("mdp", ALL, ids=lambda mdp: mdp.name)
def test_the_exact_answers_agree_with_the_definition(mdp):
    """The solved occupancy is the sum over steps, and the flow equation holds for the exact ratio, cut or not."""
    if not mdp.clock:
        np.testing.assert_allclose(mdp.occupancy, mdp.discounted(2000), atol=1e-12)
        ends = 1 - mdp.transition.sum(axis=2)
        flow = 1 - mdp.discount * (1 - ends)
        found = np.einsum("s,sa,sa->", mdp.logged * mdp.ratio, mdp.target, flow)
        assert found == pytest.approx(1 - mdp.discount, rel=1e-12)
