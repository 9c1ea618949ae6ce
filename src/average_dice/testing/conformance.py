"""Conformance: what every estimator must do, checked on MDPs whose answers are known exactly.

Each check is a function that raises an `AssertionError`, which names the property, the MDP and the error:

- the value is recovered from sampled logs, and more closely from a log of every trajectory;
- with π = μ it is the return of the behaviour policy;
- k r + b in place of r gives k J + b M, with M the mass that the method finds;
- the same key gives the same answer, for any order of the rows;
- a refit to a bootstrap resample is the fit to the log of these episodes;
- without π or μ, the method raises `NotApplicable` or gives a finite value;
- with forty actions, a deterministic policy, one-step episodes and discounts of 0 and 1, the value is that of a log of
  every trajectory, or the method raises `NotApplicable`.

`check_estimator` runs all that apply. Rewards are shifted, so that an error in the mass (truncation treated as
termination, a ratio that sums to one) shows in the value.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Literal

import numpy as np
from jaxtyping import Float

from average_dice.data import LoggedDataset
from average_dice.data.columns import OPTIONAL, REQUIRED
from average_dice.errors import NotApplicable
from average_dice.estimators import BehaviourReturn, Estimator, Fit
from average_dice.estimators.registry import Estimates
from average_dice.problem import Problem
from average_dice.testing._estimating import assert_close, fit, refit
from average_dice.testing.exact_mdps import ExactMDP, early_termination, random_mdp, rare_state, tiny, truncated
from average_dice.testing.real_spaces import REAL_SPACES, every_trajectory_of

# Root mean squared error, over the log, of a ratio that was trained. A constant ratio would be off by 0.2 for pairs of
# state and action and, on the MDP "early termination", by 0.05 for states.
RATIO_TOLERANCE = 0.04

# Share of the tolerance that is left where expectations are exact, for bias by regularisation: 0.001 of 0.03. With
# their default settings our closed forms are off by 0.0001 at most.
EXACT_SHARE = 1 / 30

# What a method estimates where truncation hides rewards:
# - "whole": J(π), with the rewards after truncation, as bootstrapped values or a flow equation give it;
# - "truncated": the part before truncation, rewards after it being ignored;
# - "flow": the part before truncation, normalised by its flow;
# - "held": close to the whole, with the weight after truncation put on the last steps.
RatioOf = Literal["states", "pairs"]  # pairs of state and action


@dataclass(frozen=True)
class Case:
    """An estimator, what it estimates, and how closely.

    - `tolerance`: of values on logs of 1,500 to 6,000 episodes; a thirtieth of it where expectations are exact.
    - `identity_tolerance`: of answers that are equal in exact arithmetic; more if the method chooses among estimates.
    - `too_noisy_on`: MDPs on which the method has too much variance for a test.
    - `ratio_of`: the ratio that the fit gives, to be compared with the exact one; None to leave it out.
    - `quick`: the same method with few update steps, for checks that need no good fit; `method` itself if None.
    """

    method: Estimator
    estimates: Estimates = "whole"
    tolerance: float = 0.03
    identity_tolerance: float = 1e-5
    too_noisy_on: tuple[str, ...] = ()
    ratio_of: RatioOf | None = None
    quick: Estimator | None = None

    @property
    def quick_method(self) -> Estimator:
        """`quick`, or the method itself."""
        return self.quick or self.method


def check_estimator(estimator: Estimator, *, estimates: Estimates = "whole", tolerance: float = 0.03) -> None:
    """Checks an estimator on exact MDPs, and raises an `AssertionError` with every property that fails.

    - `estimates`: "whole" if the estimator includes the rewards after truncation, "truncated" if it ignores them,
      "flow" if it normalises the part before truncation by the flow, "held" if it weights up the last steps.
    - `tolerance`: how far the value may be off on logs of 1,500 to 6,000 episodes. Where there is no sampling noise, it
      is a thirtieth of that.

    Closed forms take seconds. Methods that train are trained about ten times; give `check_case` a `Case` with a quick
    variant to save time.

    >>> from average_dice.estimators import ImportanceSampling
    >>> check_estimator(ImportanceSampling.per_decision(), estimates="truncated", tolerance=0.05)
    """
    check_case(Case(estimator, estimates, tolerance))
    if not estimator.trains:
        for name in REAL_SPACES:
            check_real_space(estimator, name)


def check_case(case: Case) -> None:
    """Runs every check that applies to the case, and raises one `AssertionError` for all that fail."""
    checks, failures = list(checks_of(case)), []
    for check in checks:
        try:
            check()
        except AssertionError as failure:
            failures.append(str(failure))
    if failures:
        name = type(case.method).__name__
        raise AssertionError("\n- ".join([f"{name} fails {len(failures)} of {len(checks)} checks:", *failures]))


def checks_of(case: Case) -> Iterator[Callable[[], None]]:
    """The checks that apply. Methods that train are approximate, so only closed forms must satisfy identities."""
    yield partial(check_same_key, case)
    yield partial(check_row_order, case)
    yield partial(check_missing_inputs, case)
    if case.method.trains:
        yield partial(check_reward_scale, case)
        names = ["early termination", "truncated"]
    else:
        yield partial(check_episode_order, case)
        yield partial(check_rewards_in_another_unit, case)
        yield partial(check_refit, case)
        yield partial(check_same_policy, case)
        yield partial(check_every_trajectory, case)
        yield partial(check_more_data, case)
        names = list(MDPS)
    for name in names:
        if name not in case.too_noisy_on:
            yield partial(check_recovers_value, case, name)


def with_shifted_rewards(mdp: ExactMDP, by: float = 1.0) -> ExactMDP:
    """Every step pays `by` more."""
    return replace(mdp, reward=mdp.reward + by)


def with_uniform_behaviour(mdp: ExactMDP) -> ExactMDP:
    """μ is uniform and π prefers action 1, which pays 2 more: their values differ by a fifth."""
    target = np.clip(mdp.target + np.array([-0.15, 0.15]), 0.3, 0.7)
    target /= target.sum(axis=1, keepdims=True)
    return replace(mdp, target=target, behaviour=np.full_like(target, 0.5), reward=mdp.reward + np.array([1.0, 3.0]))


# The MDPs of `check_recovers_value`, with the number of episodes that are logged.
MDPS: dict[str, tuple[ExactMDP, int]] = {
    mdp.name: (mdp, num_episodes)
    for mdp, num_episodes in (
        (with_uniform_behaviour(random_mdp()), 1_500),
        (with_uniform_behaviour(early_termination()), 6_000),
        (with_uniform_behaviour(truncated()), 6_000),
        (with_shifted_rewards(rare_state()), 6_000),
    )
}


@cache
def sampled_log(name: str) -> Problem:
    """The log of one of `MDPS`, sampled once for all methods."""
    mdp, num_episodes = MDPS[name]
    return mdp.problem(num_episodes, seed=3)


def expected_value(mdp: ExactMDP, estimates: Estimates) -> float:
    """What the method estimates. "held" is close to the whole; no more can be said in general."""
    if estimates in ("whole", "held") or mdp.truncation is None or mdp.discount**mdp.truncation < 1e-4:  # negligible
        return mdp.value
    return mdp.value_to_truncation if estimates == "truncated" else mdp.flow_normalised_value


def check_recovers_value(case: Case, mdp_name: str) -> None:
    """The value on a sampled log of one of `MDPS`; if the method trains, also its learning curve and its ratio."""
    mdp, num_episodes = MDPS[mdp_name]
    found = fit(case.method, sampled_log(mdp_name))
    where = f"on the MDP '{mdp_name}', {num_episodes:,} episodes"
    expected = expected_value(mdp, case.estimates)
    hint = _likely_cause(found.value, mdp, case.tolerance)
    assert_close(found.value, expected, case.tolerance, f"recovers the value, {where}", hint)
    if not case.method.trains:
        return
    if found.history is not None:
        last = float(found.history.value[-1])
        assert_close(last, found.value, 1e-5, f"the learning curve ends at the value, {where}")
        assert np.isfinite(found.history.loss).all(), f"the training loss is finite, {where}: it is not."
    if case.ratio_of is not None:
        share = mdp.logged if case.ratio_of == "states" else mdp.logged[:, None] * mdp.behaviour
        error = found_ratio(found, mdp, case.ratio_of) - exact_ratio(mdp, case.ratio_of)
        rms = float(np.sqrt(np.sum(share * error**2)))
        assert rms < RATIO_TOLERANCE, f"recovers the ratio, {where}: its error is {rms:.3g}, not < {RATIO_TOLERANCE}."


def check_every_trajectory(case: Case, tolerance: float | None = None) -> None:
    """The value on a log of every trajectory, truncated after 3 steps, where expectations are exact.

    Only 27 % of the mass comes before truncation. The default `tolerance` is a thirtieth of that of the case, but all
    of it for methods that are approximate by design ("flow" and "held").
    """
    mdp, problem = every_trajectory()
    found, expected = fit(case.method, problem).value, expected_value(mdp, case.estimates)
    hint = _likely_cause(found, mdp, case.tolerance)
    if tolerance is None:
        tolerance = case.tolerance * (EXACT_SHARE if case.estimates in ("whole", "truncated") else 1)
    assert_close(found, expected, tolerance, "the value where expectations are exact, on the MDP 'tiny'", hint)


def check_real_space(method: Estimator, name: str, relative_tolerance: float = 0.02) -> None:
    """The value on a log of every trajectory of one of `REAL_SPACES`, unless the method does not apply."""
    mdp, problem = every_trajectory_of(name)
    found = _value_or_reason(method, problem)
    if not isinstance(found, NotApplicable):
        what = f"the value where expectations are exact, on the MDP '{name}'"
        assert_close(found, mdp.value, relative_tolerance * abs(mdp.value), what)


def check_exact_ratio(case: Case, relative_tolerance: float = 1e-3) -> None:
    """The ratio of each state, or state and action, on a log of every trajectory."""
    if case.ratio_of is None:
        raise ValueError("the case gives no ratio: set `ratio_of`")
    mdp, problem = every_trajectory()
    found, exact = found_ratio(fit(case.method, problem), mdp, case.ratio_of), exact_ratio(mdp, case.ratio_of)
    error = float(np.max(np.abs(found / exact - 1)))
    assert error <= relative_tolerance, (
        f"the ratio where expectations are exact, on the MDP 'tiny': off by {100 * error:.3g} %, "
        f"not at most {100 * relative_tolerance:g} %."
    )


def check_same_policy(case: Case, tolerance: float | None = None) -> None:
    """With π = μ, the value is the mean return of the logged episodes. `tolerance` is that of the case if None."""
    mdp = early_termination()
    problem = with_shifted_rewards(replace(mdp, target=mdp.behaviour)).problem(500, seed=1)
    tolerance = case.tolerance if tolerance is None else tolerance
    found, logged = fit(case.method, problem).value, fit(BehaviourReturn(), problem).value
    assert_close(found, logged, tolerance, "with π = μ, the return of μ, on the MDP 'early termination'")


def check_rewards_in_another_unit(case: Case) -> None:
    """k r + b gives k J + b M, with M the mass that the method finds: its value for rewards of 1."""
    problem = truncated().problem(200, seed=2)
    reward = problem.dataset.reward
    moved = _with_rewards(problem, 3 * reward + 2)
    ones = _with_rewards(problem, np.ones(len(reward)))
    value, moved_value, mass = (fit(case.method, one).value for one in (problem, moved, ones))
    what = "rewards of 3 r + 2 give 3 J + 2 M, on the MDP 'truncated'"
    assert_close(moved_value, 3 * value + 2 * mass, case.identity_tolerance, what)
    assert abs(mass) < 1.2, f"the mass is at most about 1, on the MDP 'truncated': rewards of 1 give {mass:.3g}."


def check_reward_scale(case: Case, relative_tolerance: float = 1e-3) -> None:
    """Rewards times 10⁹ give J times 10⁹: a network must standardise them."""
    method, problem = case.quick_method, truncated().problem(50, seed=2)
    value = fit(method, problem).value
    large = fit(method, _with_rewards(problem, 1e9 * problem.dataset.reward)).value
    what = "rewards times 10⁹ give J times 10⁹, on the MDP 'truncated'"
    assert_close(large / 1e9, value, relative_tolerance * abs(value), what)


def check_same_key(case: Case) -> None:
    """The same key gives the same value to the last digit."""
    problem = truncated().problem(30, seed=2)
    first, second = (fit(case.quick_method, problem).value for _ in range(2))
    assert_close(second, first, 0.0, "same key, same answer, on the MDP 'truncated'", "Use `key` for all randomness.")


def check_row_order(case: Case) -> None:
    """A log whose rows were given in another order gives the same value to the last digit."""
    problem = truncated().problem(30, seed=2)
    data = problem.dataset
    order = np.random.default_rng(0).permutation(data.num_transitions)
    given = {name: getattr(data, name) for name in (*REQUIRED, *OPTIONAL)}
    columns = {name: values[order] for name, values in given.items() if values is not None}
    shuffled = Problem(LoggedDataset.from_columns(columns), problem.policy, problem.discount)
    found, expected = fit(case.quick_method, shuffled).value, fit(case.quick_method, problem).value
    assert_close(found, expected, 0.0, "the same answer for rows in any order, on the MDP 'truncated'")


def check_episode_order(case: Case) -> None:
    """A log with its episodes in reverse gives the same value: episodes are exchangeable."""
    problem = truncated().problem(200, seed=2)
    reverse = _of_episodes(problem, np.arange(problem.dataset.num_episodes)[::-1])
    found, expected = fit(case.method, reverse).value, fit(case.method, problem).value
    what = "the same answer for episodes in any order, on the MDP 'truncated'"
    assert_close(found, expected, case.identity_tolerance, what)


def check_refit(case: Case) -> None:
    """A refit to a bootstrap resample is the fit to the log of these episodes, and one to the whole log is the fit."""
    problem = truncated().problem(200, seed=2)
    chosen = np.concatenate([np.arange(3, 200), [3, 3, 7]])
    found, expected = refit(case.method, problem, None).value, fit(case.method, problem).value
    assert_close(found, expected, 1e-12, "a refit to the whole log is the fit, on the MDP 'truncated'")
    found, expected = refit(case.method, problem, chosen).value, fit(case.method, _of_episodes(problem, chosen)).value
    what = "a refit to a resample is the fit to its episodes, on the MDP 'truncated'"
    assert_close(found, expected, case.identity_tolerance, what)


def check_more_data(case: Case) -> None:
    """Ten times the episodes give no larger mean error, over ten logs."""
    mdp = with_shifted_rewards(truncated())

    def mean_error(num_episodes: int) -> float:
        values = [fit(case.method, mdp.problem(num_episodes, seed)).value for seed in range(10)]
        return float(np.mean([abs(value - mdp.value) for value in values]))

    bias = abs(expected_value(mdp, case.estimates) - mdp.value)  # more data do not remove it
    few, many = mean_error(30), mean_error(300)
    assert many < few + 0.1 * bias, (
        f"more data are no worse, on the MDP 'truncated': the mean error is {few:.3g} with 30 episodes "
        f"and {many:.3g} with 300."
    )


def check_missing_inputs(case: Case, needs: str | None = None) -> None:
    """Without a policy object, or without μ, a method raises `NotApplicable` or gives a finite value.

    `needs` is the entry of the registry: the message must name what is missing. None: both are right.
    """
    problem = truncated().problem(20, seed=0)
    data = replace(problem.dataset, target_log_prob=problem.target_log_prob)
    needs = needs if needs and " or " not in needs else ""
    for missing, required, says, without in (
        ("a policy object", "policy" in needs, "give a policy", Problem(data, None, 0.9)),
        ("μ", "μ" in needs, "behaviour_log_prob", Problem(replace(data, behaviour_log_prob=None), problem.policy, 0.9)),
    ):
        what = f"says what is missing, on a log without {missing}"
        found = _value_or_reason(case.quick_method, without)
        if isinstance(found, NotApplicable):
            assert not required or says in str(found), f"{what}: the message lacks '{says}': {found}"
        else:
            assert not required, f"{what}: it needs it and still gives a value, {found:.6g}."
            assert np.isfinite(found), f"{what}: the value is {found}. Raise NotApplicable instead."


def every_trajectory() -> tuple[ExactMDP, Problem]:
    """A log of every trajectory of the MDP 'tiny', in proportion to its probability, with 1 added to every reward."""
    mdp = with_shifted_rewards(tiny())
    return mdp, Problem(mdp.exhaustive(4), mdp.policy, mdp.discount)


def exact_ratio(mdp: ExactMDP, of: RatioOf) -> Float[np.ndarray, "..."]:
    """[state] or [state, action]."""
    return mdp.ratio if of == "states" else mdp.ratio[:, None] * mdp.target / mdp.behaviour


def found_ratio(found: Fit, mdp: ExactMDP, of: RatioOf) -> Float[np.ndarray, "..."]:
    """[state] or [state, action]."""
    states, num_actions = np.eye(mdp.num_states), mdp.target.shape[1]
    if of == "states":
        return found.ratio(states)
    return np.stack([found.ratio(states, np.full(mdp.num_states, action)) for action in range(num_actions)], axis=1)


def _likely_cause(found: float, mdp: ExactMDP, tolerance: float) -> str:
    """A hint if the value is that of a common mistake."""
    visits = mdp.visits(mdp.behaviour, mdp.horizon)
    goes_on = 1 - visits[-1] / visits.sum(axis=0)  # the share of the rows of a state that are not the last ones
    terminating = replace(mdp, transition=mdp.transition * goes_on[:, None, None])
    mistakes = {
        "This is the value if truncation is treated as termination.": terminating.value,
        "This is the part before truncation: are the rewards after it ignored?": mdp.value_to_truncation,
        "This is the value of the behaviour policy.": replace(mdp, target=mdp.behaviour).value,
    }
    nearest = min(mistakes, key=lambda mistake: abs(mistakes[mistake] - found))
    return nearest if abs(mistakes[nearest] - found) < 0.5 * tolerance else ""


def _value_or_reason(method: Estimator, problem: Problem) -> float | NotApplicable:
    try:
        return fit(method, problem).value
    except NotApplicable as reason:
        return reason


def _with_rewards(problem: Problem, reward: Float[np.ndarray, " transition"]) -> Problem:
    return Problem(replace(problem.dataset, reward=reward), problem.policy, problem.discount)


def _of_episodes(problem: Problem, chosen: np.ndarray) -> Problem:
    return Problem(problem.dataset.select_episodes(chosen), problem.policy, problem.discount)
