"""Labels: the products, what normalises them, and what stands for the mass beyond a cut."""

from dataclasses import replace

import numpy as np
import pytest

import average_dice as ad
from average_dice.labels import HeldAtCut, as_logged, plain, self_normalised
from exact_mdps import ALL, sticky_chain, tiny
from test_problem import log_of


def by_hand(log_ratios, lengths, died):
    """Self-normalised products, in the most pedestrian way."""
    products, start = [], 0
    for length in lengths:
        products.append(np.exp(np.append(0, np.cumsum(log_ratios[start : start + length]))))
        start += length
    labels = []
    for product, length in zip(products, lengths, strict=True):
        for t in range(length):
            others = [
                other[t] if size > t else other[size]
                for other, size, dead in zip(products, lengths, died, strict=True)
                if size > t or dead
            ]
            labels.append(product[t] / np.mean(others))
    return np.array(labels)


def test_self_normalised_products():
    lengths, died = [3, 5, 2, 5], [True, False, False, True]
    log_ratios = np.random.default_rng(0).normal(size=15)
    log = log_of(log_ratios, lengths=lengths, terminated=[0, 3])
    found = np.exp(self_normalised(ad.Problem(log, None, 0.9)))
    np.testing.assert_allclose(found, by_hand(log_ratios, lengths, died), rtol=1e-12)


def test_on_a_log_of_every_trajectory_the_products_have_a_mean_of_one_at_every_step():
    mdp = tiny(cut=4)
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
    weights = np.exp(HeldAtCut(4)(problem, plain(problem)))
    expected = 0.9 ** np.arange(10) + np.where(np.arange(10) >= 6, 0.9**10 / (0.1 * 4), 0)
    np.testing.assert_allclose(weights, np.tile(expected, 2), rtol=1e-12)
    np.testing.assert_allclose(weights.sum(), 2 / 0.1, rtol=1e-12)


def test_held_mass_leaves_terminated_episodes_alone():
    log = log_of(np.zeros(20), lengths=[10, 10], terminated=[0, 1])
    problem = ad.Problem(log, None, 0.9)
    np.testing.assert_array_equal(HeldAtCut(4)(problem, plain(problem)), as_logged(problem, plain(problem)))


@pytest.mark.parametrize("num_steps", [1, 2, 10])
@pytest.mark.parametrize("mdp", [tiny(), replace(sticky_chain(), cut=3)], ids=lambda mdp: mdp.name)
def test_held_mass_balances_the_flow_exactly(mdp, num_steps):
    """E_D[w ρ (1 − γm)] = 1 − γ to rounding, with deaths in the last steps and without."""
    problem = ad.Problem(mdp.exhaustive(unit=4 if mdp.name == "tiny" else 20), mdp.policy, mdp.discount)
    log_weight = plain(problem) + HeldAtCut(num_steps)(problem, plain(problem)) + problem.log_ratio
    found = problem.scale * np.mean(np.exp(log_weight) * problem.flow)
    assert found == pytest.approx(1 - mdp.discount, rel=1e-12)


def test_held_mass_balances_the_flow_of_a_log_cut_at_many_lengths():
    generator = np.random.default_rng(2)
    lengths = generator.integers(1, 30, size=200).tolist()
    log = log_of(np.zeros(sum(lengths)), lengths=lengths, terminated=generator.choice(200, 80, replace=False))
    problem = ad.Problem(log, None, 0.95)
    weights = np.exp(HeldAtCut(5)(problem, plain(problem)))
    assert problem.scale * np.mean(weights * problem.flow) == pytest.approx(0.05, rel=1e-12)


def test_held_mass_needs_a_step():
    with pytest.raises(ad.SettingError, match="at least one step"):
        HeldAtCut(0)


def test_the_exact_numbers_of_the_sticky_chain():
    mdp = sticky_chain()
    np.testing.assert_allclose(mdp.ratio_to_cut, [0.6715, 1.2996], atol=5e-5)
    np.testing.assert_allclose(mdp.ratio, [0.6845, 1.4722], atol=5e-5)
    numbers = [mdp.value_to_cut, mdp.flow_normalised_value, mdp.value]
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
