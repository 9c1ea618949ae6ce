"""Selection: the log lacks episodes, or ends of episodes, that the policy will have.

Failures are truncated, short episodes are left out, episodes repeat each other, or start elsewhere.
"""

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from average_dice.testing._sampling import draw_categorical
from average_dice.testing.misleading.edits import (
    always_terminated,
    copies,
    never_terminated,
    windows,
    without_last_row,
    without_shorter_than,
)
from average_dice.testing.misleading.finite_mdps import (
    HiddenStateMDP,
    hidden_context,
    in_every_state,
    normal_noise,
    ordinary,
    ordinary_with_rewards_near_one,
)
from average_dice.testing.misleading.log import Edit, LogWithTruth, MisleadingLog, from_process, sample_log


def failing(truncated_on_arrival: ArrayLike, *, observed: bool) -> HiddenStateMDP:
    """Action 1 pays and sometimes leads to a failure. A failure lasts for long and costs 3 a step."""
    transition = np.zeros((2, 2, 2))
    transition[0, 0], transition[0, 1] = [0.99, 0.01], [0.9, 0.1]
    transition[1] = [0.05, 0.95]
    return HiddenStateMDP(
        transition,
        np.array([[0.5, 1.0], [-3.0, -3.0]]),
        np.eye(2)[0],
        in_every_state([0.3, 0.7], 2),
        in_every_state([0.6, 0.4], 2),
        discount=0.9,
        observed_as=None if observed else np.zeros(2, int),
        truncated_on_arrival=np.asarray(truncated_on_arrival, float),
    )


def crash_row_lost(seed: int) -> LogWithTruth:
    """A crash is a state of its own. Its only row costs 10 and is never written."""
    transition = np.zeros((2, 2, 2))
    transition[0, 0], transition[0, 1] = [1.0, 0.0], [0.93, 0.07]
    mdp = HiddenStateMDP(
        transition,
        np.array([[0.5, 1.0], [-10.0, -10.0]]),
        np.eye(2)[0],
        in_every_state([0.3, 0.7], 2),
        in_every_state([0.6, 0.4], 2),
        discount=0.9,
        observed_as=np.zeros(2, int),
    )
    return sample_log(mdp, 300, seed, edit=without_last_row)


def short_episodes_missing(seed: int) -> LogWithTruth:
    """Action 1 at the start crashes half of the time. The log keeps episodes of five steps or more."""
    transition = np.zeros((2, 2, 2))
    transition[0, 0], transition[0, 1] = [0.5, 0.5], [0.25, 0.25]
    transition[1] = [0.0, 0.98]
    mdp = HiddenStateMDP(
        transition,
        np.array([[0.0, -1.0], [1.0, 1.0]]),
        np.eye(2)[0],
        in_every_state([0.3, 0.7], 2),
        in_every_state([0.5, 0.5], 2),
        discount=0.9,
    )
    return sample_log(mdp, 400, seed, edit=without_shorter_than(5))


def people(seed: int, *, each: int, num: int, edit: Edit | None = None, truncation: int = 40) -> LogWithTruth:
    """Eight hidden kinds of people with very different rewards. Every person has `each` episodes in a row."""
    base = ordinary(9)
    kinds = [replace(base, reward=0.3 * base.reward + level) for level in np.linspace(-2, 2, 8)]
    mdp = replace(hidden_context(kinds), reward_noise=normal_noise(0.1), truncations=(truncation,))
    generator = np.random.default_rng((seed, 2))
    person = np.repeat(generator.integers(8, size=num), each)
    first = 5 * person + draw_categorical(in_every_state(base.start, num * each), generator)
    return sample_log(mdp, num * each, seed, first=first, edit=edit)


def optimistic_starts(seed: int) -> LogWithTruth:
    """The log starts in state 0, which stays good for long; the policy will start in state 1."""
    transition = np.full((2, 2, 2), 0.03)
    transition[[0, 1], :, [0, 1]] = 0.97
    mdp = HiddenStateMDP(
        transition,
        np.array([[1.0, 1.2], [-1.0, -0.8]]),
        np.eye(2)[0],
        in_every_state([0.3, 0.7], 2),
        in_every_state([0.5, 0.5], 2),
        discount=0.9,
    )
    return sample_log(mdp, 200, seed, truth_of=replace(mdp, start=np.eye(2)[1]))


def _end_looks_like_a_state(mdp: HiddenStateMDP) -> HiddenStateMDP:
    return replace(mdp, observations=np.vstack([np.eye(5), np.eye(5)[:1]]))


LOGS = (
    MisleadingLog(
        "failures-leave-shown",
        "episodes that fail, which is observed, are often truncated at once",
        from_process(failing([0, 0.6], observed=True), 300),
    ),
    MisleadingLog(
        "failures-leave-hidden",
        "episodes that fail, which is not observed, are often truncated at once",
        from_process(failing([0, 0.6], observed=False), 300),
    ),
    MisleadingLog(
        "cost-after-leaving",
        "failures are truncated before any cost is logged, but action 1 precedes each truncation",
        from_process(failing([0, 1.0], observed=False), 300),
    ),
    MisleadingLog(
        "deaths-as-truncations",
        "terminations are marked truncated; their next observation is zeros",
        from_process(ordinary_with_rewards_near_one(0.05), 200, never_terminated),
    ),
    MisleadingLog(
        "deaths-as-truncations-blurred",
        "terminations are marked truncated, with an ordinary next observation: random truncation would look the same",
        from_process(_end_looks_like_a_state(ordinary_with_rewards_near_one(0.05)), 200, never_terminated),
        visible=False,
    ),
    MisleadingLog(
        "time-limit-as-termination",
        "all episodes are truncated at 20 and marked terminated: an environment with such a clock would look the same",
        from_process(ordinary_with_rewards_near_one(truncations=(20,)), 200, always_terminated),
        visible=False,
    ),
    MisleadingLog(
        "short-ones-missing", "episodes of fewer than 5 steps, mostly crashes, are left out", short_episodes_missing
    ),
    MisleadingLog(
        "crash-row-lost",
        "the row with the cost of a crash is never written: the log shows no cost",
        crash_row_lost,
        visible=False,
    ),
    MisleadingLog(
        "jittered-copies",
        "every episode is there ten times, up to rounding",
        partial(people, each=1, num=25, edit=copies(10, 1e-9)),
    ),
    MisleadingLog(
        "overlapping-windows",
        "episodes are overlapping windows of 25 long ones",
        partial(people, each=1, num=25, edit=windows(40, 5), truncation=80),
    ),
    MisleadingLog("ten-people", "200 episodes of ten people", partial(people, each=20, num=10)),
    MisleadingLog(
        "optimistic-starts",
        "the policy will start elsewhere than the log does: the log cannot show it",
        optimistic_starts,
        visible=False,
    ),
)
