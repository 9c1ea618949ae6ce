"""Checks on harder logs, which only some kinds of methods pass: choose those that your method should pass.

Unseen and forbidden actions, truncation at different lengths, a wrong critic, a discount near one, continuous actions,
a policy of the wrong kind. Two checks state the opposite: that a log misleads every method of a kind. Tolerances leave
room for the sampling error on these logs, and are smaller than the error that each check must find.
"""

from dataclasses import replace

import numpy as np

from average_dice.data import LoggedDataset
from average_dice.errors import PolicyError
from average_dice.estimators import BehaviourReturn, Estimator
from average_dice.estimators.registry import Estimates
from average_dice.policies import CategoricalPolicy, GaussianPolicy
from average_dice.problem import Problem
from average_dice.testing._estimating import assert_close, fit
from average_dice.testing.conformance import expected_value, with_shifted_rewards
from average_dice.testing.exact_mdps import (
    clock,
    hidden_clock,
    masked,
    random_mdp,
    sticky_chain,
    support_hole,
    truncated,
    unseen_action,
)


def check_unseen_action(method: Estimator, shift: float = 0.0) -> None:
    """An action that is not in the log gets the value of its state. For methods with a critic of state and action.

    Valued at 0, it would lower J by 40 % with `shift` = 10 on every reward, and by 0.05 without.
    """
    mdp = with_shifted_rewards(unseen_action(), shift)
    found = fit(method, mdp.problem(200, seed=0)).value
    assert_close(found, mdp.value, 0.02, f"an unseen action has the value of its state, rewards shifted by {shift:g}")


def check_masked_actions(method: Estimator, estimates: Estimates, tolerance: float) -> None:
    """The exact value where states forbid actions, on a log of every trajectory. The value of μ differs by 0.1."""
    mdp = masked()
    problem = Problem(mdp.exhaustive(4), mdp.policy, mdp.discount)
    found, expected = fit(method, problem).value, expected_value(mdp, estimates)
    assert_close(found, expected, tolerance, "the value where expectations are exact, on the MDP 'masked'")


def check_uneven_truncation(method: Estimator, tolerance: float) -> None:
    """Right importance ratios correct a wrong critic, also where episodes are truncated at different lengths.

    All states look the same, and the rewards change at a hidden step 5, which one episode in six reaches. The critic
    alone would be off by 0.2 with uneven truncation and by 1.2 with even truncation. 0.024 of J comes after it.
    """
    mdp = hidden_clock()
    for truncation, one in (("uneven", mdp), ("even", hidden_clock(early_truncations=()))):
        found = fit(method, one.problem(4_000, seed=0)).value
        assert_close(found, mdp.value, tolerance, f"{truncation} truncation, on the MDP 'hidden clock'")


def check_same_policy_uneven_truncation(method: Estimator) -> None:
    """With π = μ and truncation at different lengths, importance sampling is the behaviour return, to rounding."""
    mdp = replace(truncated(), early_truncations=(3, 7))
    problem = replace(mdp, target=mdp.behaviour).problem(200, seed=0)
    found, logged = fit(method, problem).value, fit(BehaviourReturn(), problem).value
    assert_close(found, logged, 1e-12, "with π = μ, the return of μ, on the MDP 'truncated', truncated unevenly")


def check_random_truncation(method: Estimator) -> None:
    """Half of the episodes are truncated after 5 steps, at random: the others are weighted up for them."""
    mdp = with_shifted_rewards(random_mdp())
    data = mdp.sample(2_000, seed=0)
    kept = (data.episode % 2 == 0) | (data.step < 5)
    names = ("episode", "step", "observation", "action", "reward", "next_observation", "behaviour_log_prob")
    columns = {name: getattr(data, name)[kept] for name in (*names, "terminated")}
    problem = Problem(LoggedDataset.from_arrays(**columns), mdp.policy, mdp.discount)
    what = "the value, on the MDP 'random', half of it truncated after 5 steps"
    assert_close(fit(method, problem).value, mdp.value, 0.03, what)


def check_discount_near_one(method: Estimator) -> None:
    """A discount of 0.999: the noise of the mean ratio, about 0.005, exceeds 1 − γ, and a flow must divide by it."""
    mdp = replace(random_mdp(), discount=0.999, truncation=100)
    for seed in range(5):
        found = fit(method, mdp.problem(400, seed)).value
        assert_close(found, mdp.value, 0.02, f"the value at a discount of 0.999, on the MDP 'random', seed {seed}")


def check_sticky_chain(method: Estimator) -> None:
    """All of the value by bootstrapping, where products of ratios have too much variance."""
    mdp = sticky_chain()
    assert_close(fit(method, mdp.problem(1_500, seed=0)).value, mdp.value, 0.05, "the value, on the MDP 'sticky chain'")


def check_continuous_actions(method: Estimator) -> None:
    """The state stays, the reward is the action, π = N(0.5, 1), episodes are truncated after 6 steps: J = 0.5."""
    policy = GaussianPolicy(lambda observations: np.full((len(observations), 1), 0.5), [0.0])
    behaviour = GaussianPolicy(lambda observations: np.full((len(observations), 1), 0.3), [0.2])
    generator = np.random.default_rng(0)
    observation = np.tile(generator.normal(size=(1_500, 1)), (1, 6)).reshape(-1, 1)
    action = behaviour.sample(observation, generator=generator)
    data = LoggedDataset.from_arrays(
        episode=np.repeat(np.arange(1_500), 6),
        observation=observation,
        action=action,
        reward=action[:, 0],
        next_observation=observation,
        terminated=np.zeros(len(action), bool),
        behaviour_log_prob=behaviour.log_prob(observation, action),
    )
    assert_close(fit(method, Problem(data, policy, 0.9)).value, 0.5, 0.08, "the value with continuous actions")


def check_policy_of_another_kind(method: Estimator) -> None:
    """A policy with continuous actions, or with too few, raises a `PolicyError`. For methods that need the policy."""
    data = truncated().problem(20, seed=0).dataset
    continuous = GaussianPolicy(lambda observations: np.zeros((len(observations), 2)), [0.0, 0.0])
    too_few = CategoricalPolicy(lambda observations: np.zeros((len(observations), 1)))
    for kind, policy in (("continuous actions", continuous), ("one action instead of two", too_few)):
        try:
            value = fit(method, Problem(data, policy, 0.9)).value
        except PolicyError:
            continue
        raise AssertionError(f"a policy with {kind} raises a PolicyError: it gave a value, {value:.6g}.")


def check_support_hole_is_missed(method: Estimator) -> None:
    """No method sees a state that pays and that only π reaches: its value is too low, and only the verdict warns."""
    mdp = support_hole()
    found = fit(method, mdp.problem(200, seed=0)).value
    assert found < 0.6 * mdp.value, (
        f"a state that only π reaches is missed, on the MDP 'support hole': found {found:.3g} of {mdp.value:.3g}."
    )


def check_hidden_clock_misleads(method: Estimator) -> None:
    """Termination after 15 steps, in any state, biases methods that use only states."""
    mdp = with_shifted_rewards(clock())
    error = abs(fit(method, mdp.problem(3_000, seed=0)).value - mdp.value)
    assert error > 0.1, f"methods of states are biased, on the MDP 'clock': the error is only {error:.3g}."
