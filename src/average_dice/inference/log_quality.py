"""Quality of a log: outliers among rewards, copies of episodes, and actions of π that are not in the log."""

import numpy as np

from average_dice import memory
from average_dice.data import LoggedDataset
from average_dice.errors import NotApplicable
from average_dice.problem import Problem, Rows

ROWS_AT_ONCE = 16_384
MET_AGAIN = 0.1  # share of rows with a state of another episode; above it equal episodes may be chance


def unseen_actions(problem: Problem) -> float | None:
    """The share of π's discrete actions, at the logged states, that do not occur in the log."""
    data = problem.dataset
    if not data.is_discrete:
        return None
    seen, unseen, generator = np.unique(data.action), 0.0, np.random.default_rng(0)
    some = memory.rows_at_once(ROWS_AT_ONCE)
    for start in range(0, data.num_transitions, some):
        rows = data.observation[start : start + some]
        try:
            actions, weights = problem.target_actions(rows, num_draws=1, generator=generator)
        except NotApplicable:
            return None
        unseen += float(np.sum(weights * ~np.isin(actions, seen)))
    return unseen / data.num_transitions


def largest_reward_share(reward: Rows) -> float:
    """The share of the row furthest from the mean in the variance of rewards."""
    squares = (reward - reward.mean()) ** 2
    return float(squares.max() / squares.sum()) if squares.any() else 0.0


def repeated_episodes(data: LoggedDataset) -> float:
    """The share of episodes that are the same as an earlier one, row for row, and too unlikely to be so by chance.

    If states recur in other episodes, short episodes repeat by chance. Then only those count that μ would hardly
    produce twice in a log of this size: among n episodes, n² exp(−surprisal) must be below e⁻³ = 5 %. If μ is unknown,
    none counts.
    """
    columns = np.column_stack(
        [data.observation, data.action.reshape(len(data.step), -1), data.reward, data.next_observation]
    )
    contents = [
        columns[start : start + length].tobytes() for start, length in zip(data.starts, data.lengths, strict=True)
    ]
    first = {content: one for one, content in reversed(list(enumerate(contents)))}
    repeated = np.array([first[content] != one for one, content in enumerate(contents)])
    if _share_of_states_met_again(data.select_episodes(np.flatnonzero(~repeated))) < MET_AGAIN:
        return float(repeated.mean())
    if data.behaviour_log_prob is None or not data.is_discrete:
        return 0.0
    surprisal = -np.bincount(np.cumsum(data.step == 0) - 1, data.behaviour_log_prob)
    return float(np.mean(repeated & (surprisal > 2 * np.log(data.num_episodes) + 3)))


def _share_of_states_met_again(data: LoggedDataset) -> float:
    """The share of rows with an observation that also occurs in another episode."""
    _, state = np.unique(data.observation, axis=0, return_inverse=True)
    episode = np.cumsum(data.step == 0) - 1
    visits = np.unique(np.column_stack([state.ravel(), episode]), axis=0)
    return float(np.mean(np.bincount(visits[:, 0])[state.ravel()] > 1))
