"""Average-DICE against exact answers: the ratio, the value, the identities, in every form."""

from dataclasses import replace

import jax
import numpy as np
import pytest

import average_dice as ad
from average_dice.estimators import (
    REGISTRY,
    as_printed,
    flow_mass,
    flow_normalised,
    label_on_state,
    normalised_to_one,
    plain_value,
    product_on_state_and_step,
    ratio_on_state,
    unit_mass,
    weighted_product_on_state_and_step,
)
from average_dice.labels import HeldAtTruncation, as_logged, plain, self_normalised
from average_dice.models import FourierFeatures, IncrementalLinear, Linear, MLPRegression, Table
from average_dice.testing.exact_mdps import (
    ALL,
    ExactMDP,
    clock,
    early_termination,
    random_mdp,
    rare_state,
    sticky_chain,
    tiny,
    truncated,
)
from average_dice.testing.released_limit import released_limit
from test_problem import log_of

KEY = jax.random.key(0)
PARAMETRISATIONS = [label_on_state, ratio_on_state, product_on_state_and_step]
TINY, SHORT_CHAIN = tiny(), replace(sticky_chain(), truncation=3)
# Logs of every trajectory, as often as it is likely: whatever is estimated from them has no noise.
EVERY = {"tiny": TINY.exhaustive(unit=4), "sticky chain": SHORT_CHAIN.exhaustive(unit=20)}


def every(mdp: ExactMDP) -> ad.Problem:
    return ad.Problem(EVERY[mdp.name], mdp.policy, mdp.discount)


def states(mdp: ExactMDP) -> np.ndarray:
    return np.eye(mdp.num_states)


@pytest.mark.parametrize("regress", PARAMETRISATIONS)
@pytest.mark.parametrize("labels", [plain, self_normalised])
@pytest.mark.parametrize("mdp", [TINY, SHORT_CHAIN], ids=lambda mdp: mdp.name)
def test_without_noise_the_table_is_exact(mdp, labels, regress):
    fit = ad.AverageDICE(Table(), labels, as_logged, regress, value=plain_value).fit(every(mdp), key=KEY)
    np.testing.assert_allclose(fit.ratio(states(mdp)), mdp.ratio_to_truncation, rtol=1e-12)
    assert fit.value == pytest.approx(mdp.value_to_truncation, rel=1e-12)


@pytest.mark.parametrize("mdp", [TINY, SHORT_CHAIN], ids=lambda mdp: mdp.name)
def test_without_noise_flow_normalisation_is_exact(mdp):
    fit = ad.AverageDICE.tabular().fit(every(mdp), key=KEY)
    assert fit.value == pytest.approx(mdp.flow_normalised_value, rel=1e-12)


@pytest.mark.parametrize("mdp", [TINY, SHORT_CHAIN], ids=lambda mdp: mdp.name)
def test_the_released_label_tends_to_its_limit_and_not_to_the_ratio(mdp):
    """On logs without noise, with terminations and without."""
    limit = released_limit(mdp)
    fit = replace(ad.AverageDICE.released(), model=Table()).fit(every(mdp), key=KEY)
    np.testing.assert_allclose(fit.ratio(states(mdp)), limit.ratio, rtol=1e-12)
    assert fit.value == pytest.approx(limit.value, rel=1e-12)
    assert np.abs(limit.ratio / mdp.ratio_to_truncation - 1).max() > 0.1


def test_what_the_released_label_tends_to_on_the_whole_sticky_chain():
    mdp = sticky_chain()
    limit = released_limit(mdp)
    np.testing.assert_allclose(limit.ratio, [1.00, 0.81], atol=0.005)
    assert limit.value == pytest.approx(0.32, abs=0.005)
    right = ad.AverageDICE.tabular().fit(mdp.problem(4000, seed=0), key=KEY).value
    assert abs(right - mdp.flow_normalised_value) < 0.06


MILD = (random_mdp(), early_termination(), truncated(), clock(), rare_state())


@pytest.mark.slow
@pytest.mark.parametrize("mdp", MILD, ids=lambda mdp: mdp.name)
def test_ratio_and_value_approach_the_exact_ones_at_the_monte_carlo_rate(mdp):
    """Sixteen times the episodes, a quarter of the error. (On the sticky chain the second moment of a label is 10⁸.)"""
    method = ad.AverageDICE(Table(), plain, as_logged, ratio_on_state, value=plain_value)

    def errors(num_episodes, seed):
        fit = method.fit(mdp.problem(num_episodes, seed), key=KEY)
        return np.append(fit.ratio(states(mdp)) - mdp.ratio_to_truncation, fit.value - mdp.value_to_truncation)

    few = np.sqrt(np.mean([errors(100, seed) ** 2 for seed in range(60)], axis=0))
    many = np.sqrt(np.mean([errors(1600, 1000 + seed) ** 2 for seed in range(60)], axis=0))
    # The root mean square of 60 errors is itself known to about 10 %, more where labels have heavy tails.
    np.testing.assert_allclose(many / few, 0.25, atol=0.12)


@pytest.mark.slow
@pytest.mark.parametrize("mdp", [early_termination(), truncated(), clock()], ids=lambda mdp: mdp.name)
def test_the_plain_table_is_unbiased(mdp):
    method = ad.AverageDICE(Table(), plain, as_logged, ratio_on_state, value=plain_value)
    values = np.array([method.fit(mdp.problem(8, seed), key=KEY).value for seed in range(2000)])
    standard_error = values.std(ddof=1) / np.sqrt(len(values))
    assert abs(values.mean() - mdp.value_to_truncation) < 4 * standard_error
    assert standard_error < 0.05 * abs(mdp.value_to_truncation)  # or the test could not fail


@pytest.mark.parametrize("regress", PARAMETRISATIONS)
@pytest.mark.parametrize("mdp", ALL, ids=lambda mdp: mdp.name)
def test_weights_give_every_function_its_per_decision_sum(mdp, regress):
    """Σ w·g = Σ (1 − γ)(n/K) γᵗ ∏ρ · g(s_t) for every g."""
    problem = mdp.problem(40, seed=1)
    method = ad.AverageDICE(Table(), plain, as_logged, regress, value=as_printed)
    weights = method.fit(problem, key=KEY).weights
    state = problem.dataset.observation.argmax(axis=1)
    label = problem.discount**problem.dataset.step * np.exp(problem.log_product)
    for g in np.random.default_rng(0).normal(size=(10, mdp.num_states)):
        assert weights @ g[state] == pytest.approx(problem.scale * (label @ g[state]), rel=1e-10)


def test_one_discount_factored_out_serves_every_discount():
    """The learnt v(s, t) does not depend on γ: the same weights, but for the known γᵗ, if all rows count the same."""
    mdp = truncated()
    log = mdp.sample(60, seed=2)
    step = log.step
    v = []
    for discount in (0.8, 0.99):
        problem = ad.Problem(log, mdp.policy, discount)
        method = ad.AverageDICE(completion=as_logged, regress=product_on_state_and_step, value=as_printed)
        v.append(method.fit(problem, key=KEY).weights / (problem.scale * discount**step))
    np.testing.assert_allclose(v[0], v[1], rtol=1e-9)


def test_the_average_over_steps_gives_back_the_ratio_of_states():
    mdp = early_termination()
    problem = mdp.problem(200, seed=0)
    factored = ad.AverageDICE(Table(), plain, as_logged, product_on_state_and_step).fit(problem, key=KEY)
    direct = ad.AverageDICE(Table(), plain, as_logged, ratio_on_state).fit(problem, key=KEY)
    np.testing.assert_allclose(factored.ratio(states(mdp)), direct.ratio(states(mdp)), rtol=1e-10)


def test_a_clock_breaks_the_flow_of_states_and_not_that_of_states_and_steps():
    """Flow normalisation presumes that termination follows from state and action; a clock needs the step."""
    mdp = replace(clock(), reward=clock().reward + 2.0)
    problem = mdp.problem(20_000, seed=0)

    def error(regress):
        fit = ad.AverageDICE(Table(), plain, as_logged, regress).fit(problem, key=KEY)
        return abs(fit.value / mdp.value - 1), fit.diagnostics["flow_mass"]

    (of_states, mass), (of_steps, right_mass) = error(ratio_on_state), error(product_on_state_and_step)
    assert of_steps < 0.01
    assert right_mass == pytest.approx(1.0, abs=0.01)
    assert of_states > 0.15
    assert mass > 1.2


@pytest.mark.parametrize("mdp", [truncated(), early_termination()], ids=lambda mdp: mdp.name)
def test_the_default_sees_the_whole_and_not_only_what_lies_before_the_cut(mdp):
    mdp = replace(mdp, reward=mdp.reward + 1.0)
    problem = mdp.problem(4000, seed=0)
    fit = ad.AverageDICE().fit(problem, key=KEY)
    assert fit.value == pytest.approx(mdp.value, rel=0.02)
    np.testing.assert_allclose(fit.ratio(states(mdp)), mdp.ratio, rtol=0.03)
    assert fit.diagnostics["flow_mass"] == pytest.approx(1.0, abs=0.02)


def test_the_value_rules_are_what_they_say():
    mdp, problem = TINY, every(TINY)
    data, w = problem.dataset, TINY.ratio_to_truncation[every(TINY).dataset.observation.argmax(axis=1)]
    rho, r, m, n = problem.ratio, data.reward, ~data.terminated, data.num_transitions
    expected = {
        flow_normalised: (1 - mdp.discount) * np.sum(w * rho * r) / np.sum(w * rho * (1 - mdp.discount * m)),
        plain_value: np.sum(w * rho * r) / n,
        normalised_to_one: np.sum(w * rho * r) / np.sum(w * rho),
        as_printed: np.sum(w * r) / n,
    }
    for rule, value in expected.items():
        fit = ad.AverageDICE(Table(), plain, as_logged, ratio_on_state, value=rule).fit(problem, key=KEY)
        assert fit.value == pytest.approx(value, rel=1e-12)
    assert len({round(value, 6) for value in expected.values()}) == 4
    # The printed formula estimates the reward of μ's actions at π's states.
    of_mu = np.einsum("s,sa,sa->", mdp.discounted(3), mdp.behaviour, mdp.reward)
    assert expected[as_printed] == pytest.approx(of_mu, rel=1e-12)


def test_normalising_to_one_is_wrong_where_episodes_terminate():
    mdp = replace(early_termination(), reward=np.ones((5, 2)))
    problem = mdp.problem(2000, seed=0)
    value = lambda rule: replace(ad.AverageDICE.tabular(), value=rule).fit(problem, key=KEY).value  # noqa: E731
    assert mdp.value == pytest.approx(0.7055, abs=1e-4)
    assert value(flow_normalised) == pytest.approx(mdp.value, abs=0.01)
    assert value(normalised_to_one) == pytest.approx(1.0)


@pytest.mark.parametrize("mdp", ALL, ids=lambda mdp: mdp.name)
def test_with_pi_equal_to_mu_the_value_is_the_discounted_behaviour_return(mdp):
    mdp = replace(mdp, target=mdp.behaviour)
    problem = mdp.problem(50, seed=0)
    expected = ad.BehaviourReturn().fit(problem, key=KEY).value
    for labels in (plain, self_normalised):
        method = ad.AverageDICE(Table(), labels, as_logged, product_on_state_and_step, value=plain_value)
        weighted = method.fit(problem, key=KEY)
        assert weighted.value == pytest.approx(expected, rel=1e-9)


def test_rewards_shifted_and_scaled_move_the_value_as_they_should():
    mdp = truncated()
    base = ad.AverageDICE().fit(mdp.problem(100, seed=0), key=KEY).value
    scaled = ad.AverageDICE().fit(replace(mdp, reward=3 * mdp.reward).problem(100, seed=0), key=KEY).value
    assert scaled == pytest.approx(3 * base, rel=1e-12)
    ones = ad.AverageDICE().fit(replace(mdp, reward=np.ones((5, 2))).problem(100, seed=0), key=KEY).value
    shifted = ad.AverageDICE().fit(replace(mdp, reward=mdp.reward + 1).problem(100, seed=0), key=KEY).value
    assert shifted == pytest.approx(base + ones, rel=1e-9)


class TestExtremeProducts:
    """Products beyond float64 give the right ratios, not NaN and not infinity."""

    def test_plain_labels_that_overflow(self):
        log_ratios = [200.0] * 10 + [0.0]
        problem = ad.Problem(log_of(log_ratios, reward=np.arange(11.0)), None, 0.5)
        fit = ad.AverageDICE(Table(), plain, as_logged, ratio_on_state).fit(problem, key=KEY)
        # e^2000 dwarfs all else: only steps 9 and 10 carry weight, γ⁹e^1800·e^200·r₉ and γ¹⁰e^2000·r₁₀.
        expected = (0.5**9 * 9.0 + 0.5**10 * 10.0) / (0.5**9 + 0.5**10)
        assert fit.value == pytest.approx(expected, rel=1e-9)

    def test_the_scale_that_is_taken_out_is_given_back(self):
        """Labels up to e^400, beyond the scale that is taken out: every number, by hand."""
        log_ratios = np.array([200.0, 200.0, -100.0, -290.0])
        problem = ad.Problem(log_of(log_ratios, reward=np.array([1.0, 2.0, 3.0, 4.0])), None, 0.5)
        label = 0.5 ** np.arange(4) * np.exp(np.append(0, np.cumsum(log_ratios)[:-1]))
        for model in (Table(), Linear(lambda x: np.eye(4)[x[:, 0].astype(int)], ridge=0.0, mass_weight=0.0)):
            method = ad.AverageDICE(model, plain, as_logged, ratio_on_state, value=plain_value)
            fit = method.fit(problem, key=KEY)
            np.testing.assert_allclose(fit.ratio(problem.dataset.observation), problem.scale * label, rtol=1e-9)
            np.testing.assert_allclose(fit.weights, problem.scale * label * np.exp(log_ratios), rtol=1e-9)
            np.testing.assert_allclose(fit.value, np.mean(fit.weights * problem.dataset.reward), rtol=1e-9)
            np.testing.assert_allclose(
                fit.diagnostics["flow_mass"], np.mean(fit.weights * problem.flow) / 0.5, rtol=1e-9
            )

    def test_the_mass_keeps_its_goal_whatever_the_scale(self):
        """With an overwhelming pull the mass is 1, also where a scale was taken out of the labels."""
        problem = ad.Problem(log_of([200.0, 200.0, -150.0, -249.0, 0.0]), None, 0.5)
        model = Linear(lambda x: np.ones((len(x), 1)), ridge=0.0, mass_weight=1e300)
        fit = ad.AverageDICE(model, plain, as_logged, label_on_state, unit_mass, plain_value).fit(problem, key=KEY)
        assert fit.ratio(problem.dataset.observation) == pytest.approx(1.0, rel=0.01)

    def test_ratios_that_come_back_into_range(self):
        problem = ad.Problem(log_of([250.0] * 4 + [-250.0] * 4 + [0.0]), None, 0.5)
        fit = ad.AverageDICE(Table(), plain, as_logged, ratio_on_state).fit(problem, key=KEY)
        assert np.isfinite(fit.value)
        ratio = fit.ratio(problem.dataset.observation)
        assert ratio[0] == pytest.approx(problem.scale, rel=1e-6)
        assert ratio[-1] == pytest.approx(problem.scale * 0.5**8, rel=1e-6)
        assert ratio[4] == np.inf  # e^1000, as it should

    def test_products_that_underflow(self):
        log_ratios = np.full(40, -300.0) + np.random.default_rng(0).normal(size=40)
        log = log_of(log_ratios, lengths=[20, 20], reward=np.random.default_rng(1).normal(size=40))
        for method in (ad.AverageDICE(), ad.AverageDICE.tabular()):
            fit = method.fit(ad.Problem(log, None, 0.9), key=KEY)
            assert np.isfinite(fit.value)
            assert np.isfinite(fit.weights).all()

    def test_a_log_that_says_nothing_about_pi(self):
        problem = ad.Problem(log_of([-np.inf, 0.0, -np.inf, 0.0], lengths=[2, 2]), None, 0.9)
        for method in (ad.AverageDICE(), ad.AverageDICE.tabular(), ad.AverageDICE.linear()):
            with pytest.raises(ad.NotApplicable, match="no overlap"):
                method.fit(problem, key=KEY)

    def test_a_single_episode_of_a_single_step(self):
        problem = ad.Problem(log_of([0.3], reward=np.array([2.5])), None, 0.9)
        assert ad.AverageDICE().fit(problem, key=KEY).value == pytest.approx(2.5)


class TestForms:
    """Linear, features and network recover the exact ratio where the table does."""

    def test_features_without_noise(self):
        method = ad.AverageDICE(
            FourierFeatures(50, ridges=(1e-9,)), plain, as_logged, ratio_on_state, value=plain_value
        )
        fit = method.fit(every(TINY), key=KEY)
        np.testing.assert_allclose(fit.ratio(states(TINY)), TINY.ratio_to_truncation, rtol=1e-5)
        assert fit.value == pytest.approx(TINY.value_to_truncation, rel=1e-5)

    def test_features_with_the_ridge_chosen_from_data(self):
        mdp = random_mdp()
        fit = ad.AverageDICE().fit(mdp.problem(2000, seed=0), key=KEY)
        np.testing.assert_allclose(fit.ratio(states(mdp)), mdp.ratio, rtol=0.05)

    def test_linear_without_noise_or_regularisation(self):
        model = Linear(features=lambda inputs: inputs, ridge=0.0, mass_weight=0.0)
        fit = ad.AverageDICE(model, plain, as_logged, ratio_on_state, value=plain_value).fit(every(TINY), key=KEY)
        np.testing.assert_allclose(fit.ratio(states(TINY)), TINY.ratio_to_truncation, rtol=1e-10)

    @pytest.mark.parametrize("regress", [label_on_state, ratio_on_state])
    def test_network_without_noise_or_regularisation(self, regress):
        # A low rate, because what is left in the end is the noise of the last minibatches.
        model = MLPRegression((64, 64), ridge=0.0, mass_weight=0.0, batch_size=4096, learning_rate=1e-4, num_steps=1500)
        fit = ad.AverageDICE(model, plain, as_logged, regress, value=plain_value).fit(every(TINY), key=KEY)
        np.testing.assert_allclose(fit.ratio(states(TINY)), TINY.ratio_to_truncation, rtol=0.03)
        assert fit.value == pytest.approx(TINY.value_to_truncation, rel=0.03)

    def test_network_on_labels_beyond_float32(self):
        rows = np.tile([60.0, 60.0, -60.0, 0.0], 50)
        problem = ad.Problem(log_of(rows, lengths=[4] * 50), None, 0.5)
        model = MLPRegression((16,), num_steps=20)
        fit = ad.AverageDICE(model, plain, as_logged, label_on_state, unit_mass).fit(problem, key=KEY)
        assert np.isfinite(fit.weights).all()

    def test_the_mass_term_moves_the_network_to_the_right_mass(self):
        """The flow of the labels before the cut is short of 1; a strong pull makes it nearly 1, and stays there."""
        model = MLPRegression(ridge=0.0, mass_weight=5.0, num_steps=1000)
        fit = ad.AverageDICE(model, plain, as_logged, ratio_on_state).fit(every(TINY), key=KEY)
        free = ad.AverageDICE.tabular().fit(every(TINY), key=KEY)
        assert free.diagnostics["flow_mass"] == pytest.approx(0.652, abs=1e-3)
        assert fit.diagnostics["flow_mass"] == pytest.approx(0.99, abs=0.2)

    def test_the_default_network_on_states_and_steps(self):
        mdp = replace(truncated(), reward=truncated().reward + 1)
        model = MLPRegression(hidden=(64, 64), num_steps=1500, standardise=True)
        fit = replace(ad.AverageDICE.neural(), model=model).fit(mdp.problem(1500, seed=0), key=KEY)
        assert fit.value == pytest.approx(mdp.value, rel=0.03)
        np.testing.assert_allclose(fit.ratio(states(mdp)), mdp.ratio, rtol=0.1)


def test_ratios_asked_for_in_the_wrong_way():
    fit = ad.AverageDICE.tabular().fit(every(TINY), key=KEY)
    with pytest.raises(ad.NotApplicable, match="the ratio of states"):
        fit.ratio(np.eye(2), np.array([0, 1]))
    with pytest.raises(ad.SettingError, match=r"give observations as \[row, 2\]"):
        fit.ratio(np.eye(3))
    with pytest.raises(ad.NotApplicable, match="learns no ratio"):
        ad.BehaviourReturn().fit(every(TINY), key=KEY).ratio(np.eye(2))


def test_training_that_diverges_says_so():
    model = MLPRegression(hidden=(8,), num_steps=5, learning_rate=float("nan"))
    with pytest.raises(ad.NotApplicable, match="training diverged"):
        ad.AverageDICE(model).fit(every(TINY), key=KEY)


def test_history_holds_value_and_loss_against_steps():
    model = MLPRegression(hidden=(16,), num_steps=300, num_checkpoints=6)
    fit = ad.AverageDICE(model, value=plain_value).fit(every(TINY), key=KEY)
    assert fit.history.step.tolist() == [0, 50, 100, 150, 200, 250, 300]
    assert fit.history.value[-1] == pytest.approx(fit.value, rel=1e-6)
    assert fit.history.loss[-1] < fit.history.loss[0]
    assert ad.AverageDICE().fit(every(TINY), key=KEY).history is None


@pytest.mark.parametrize(
    "method",
    [
        ad.AverageDICE(),
        ad.AverageDICE.tabular(),
        ad.AverageDICE.linear(),
        ad.AverageDICE.incremental(),
        replace(ad.AverageDICE.neural(), model=MLPRegression(num_steps=60, standardise=True)),
        replace(ad.AverageDICE.paper(), model=MLPRegression(num_steps=60)),
    ],
)
def test_the_same_key_gives_the_same_bytes(method):
    problem = early_termination().problem(40, seed=0)
    fits = [method.fit(problem, key=jax.random.key(7)) for _ in range(2)]
    assert fits[0].value == fits[1].value
    assert fits[0].weights.tobytes() == fits[1].weights.tobytes()


def test_another_key_gives_another_network_and_other_features():
    problem = early_termination().problem(40, seed=0)
    small = replace(ad.AverageDICE.neural(), model=MLPRegression(num_steps=20, standardise=True))
    for method in (ad.AverageDICE(), small):
        values = {method.fit(problem, key=jax.random.key(seed)).value for seed in range(2)}
        assert len(values) == 2


def test_many_seeds_at_once_are_the_seeds_one_by_one():
    problem = early_termination().problem(40, seed=0)
    method = replace(ad.AverageDICE.neural(), model=MLPRegression((32, 32), num_steps=100, standardise=True))
    keys = [jax.random.key(seed) for seed in range(3)]
    together = method.fit_seeds(problem, keys=keys)
    for key, fit in zip(keys, together, strict=True):
        alone = method.fit(problem, key=key)
        np.testing.assert_allclose(fit.weights, alone.weights, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(fit.history.loss, alone.history.loss, rtol=1e-3)
    assert len({fit.value for fit in together}) == 3


def test_the_constructors_are_what_the_docs_say():
    paper = MLPRegression(
        hidden=(256, 256), ridge=0.001, mass_weight=0.5, learning_rate=5e-4, batch_size=512, standardise=False
    )
    ours = replace(paper, standardise=True, held_out=0.2)
    held, whole, weighted = HeldAtTruncation(), product_on_state_and_step, weighted_product_on_state_and_step
    expected = {
        ad.AverageDICE(): (FourierFeatures(), self_normalised, held, weighted, flow_mass, flow_normalised),
        ad.AverageDICE.neural(): (ours, self_normalised, held, whole, flow_mass, flow_normalised),
        ad.AverageDICE.paper(): (paper, plain, as_logged, label_on_state, unit_mass, plain_value),
        ad.AverageDICE.linear(): (Linear(), self_normalised, as_logged, ratio_on_state, flow_mass, flow_normalised),
        ad.AverageDICE.tabular(): (Table(), self_normalised, as_logged, ratio_on_state, flow_mass, flow_normalised),
        ad.AverageDICE.incremental(): (
            IncrementalLinear(),
            self_normalised,
            as_logged,
            ratio_on_state,
            flow_mass,
            flow_normalised,
        ),
    }
    for method, settings in expected.items():
        assert (method.model, method.labels, method.completion, method.regress, method.mass, method.value) == settings
    names = {
        "average-dice-features": ad.AverageDICE(),
        "average-dice-neural": ad.AverageDICE.neural(),
        "average-dice-paper": ad.AverageDICE.paper(),
        "average-dice-linear": ad.AverageDICE.linear(),
        "average-dice-tabular": ad.AverageDICE.tabular(),
    }
    for name, method in names.items():
        assert REGISTRY[name].make() == method


@pytest.mark.parametrize("rule", [flow_normalised, plain_value, normalised_to_one, as_printed])
def test_the_value_is_the_mean_of_weights_times_rewards(rule):
    problem = truncated().problem(50, seed=0)
    fit = ad.AverageDICE(value=rule).fit(problem, key=KEY)
    assert fit.value == pytest.approx(np.mean(fit.weights * problem.dataset.reward), rel=1e-12)
    ess = fit.weights.sum() ** 2 / np.sum(fit.weights**2)
    assert fit.diagnostics["effective_sample_size"] == pytest.approx(ess, rel=1e-9)
    assert fit.diagnostics["largest_weight_share"] == pytest.approx(
        np.abs(fit.weights).max() / np.abs(fit.weights).sum(), rel=1e-9
    )


def test_weights_that_cancel_out_are_no_estimate():
    problem = truncated().problem(5, seed=0)
    assert np.isnan(flow_normalised(problem, -np.ones(problem.dataset.num_transitions)))


def test_every_result_says_what_becomes_of_the_weight_after_truncation():
    problem = truncated().problem(20, seed=0)

    def codes(method, problem):
        return [note.code for note in method.fit(problem, key=KEY).notes]

    assert ad.NoteCode.TRUNCATION_HELD in codes(ad.AverageDICE(), problem)
    assert ad.NoteCode.TRUNCATION_IGNORED in codes(ad.AverageDICE.tabular(), problem)
    finished = early_termination().problem(200, seed=0)
    assert codes(ad.AverageDICE.tabular(), finished) == [ad.NoteCode.VALUE_RULE]
    assert HeldAtTruncation() == ad.AverageDICE().completion
