"""Small MDPs whose answers are known exactly, and logs sampled from them.

The occupancy of π solves a linear system in float64,

    d = (1 − γ) (I − γ Pᵀ)⁻¹ p₀,      J(π) = Σ_s d(s) Σ_a π(a|s) r(s, a),

so an estimator can be compared with the exact value, the exact ratio d/d_μ and the exact part before truncation.
`ExactMDP.exhaustive` logs every possible trajectory in proportion to its probability: averages over that log are
expectations, and a method without bias must be exact up to rounding.

A state is observed as a one-hot vector, the state after termination as zeros; or as one integer code.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from average_dice.data import LoggedDataset
from average_dice.policies import CategoricalPolicy
from average_dice.problem import Problem
from average_dice.testing._sampling import draw_categorical

# Longer episodes, without truncation and without a clock, have a negligible probability.
LONGEST_EPISODE = 400


@dataclass(frozen=True, eq=False)
class ExactMDP:
    """A finite MDP with a target policy π, a behaviour policy μ and a discount.

    - `transition`: P[s, a, s′]. A row may sum to less than one: the rest is the probability of termination.
    - `truncation`: every logged episode is truncated after this many steps. The MDP itself goes on.
    - `early_truncations`: episodes are truncated after one of these lengths or at `truncation`, all equally likely.
    - `clock`: the MDP itself terminates every episode after this many steps. Observations do not show the step.
    - `observed_as`: the state as which each state is observed; itself if None.
    - `allowed`: the actions that each state allows, which logs have as their `action_mask`; without a mask if None.
    - `codes`: the integer code as which each state is observed, and last that of the state after termination. The log
      declares the column categorical. None: one-hot vectors.
    """

    name: str
    transition: Float[np.ndarray, "state action state"]
    reward: Float[np.ndarray, "state action"]
    start: Float[np.ndarray, " state"]
    target: Float[np.ndarray, "state action"]
    behaviour: Float[np.ndarray, "state action"]
    discount: float
    truncation: int | None = None
    clock: int | None = None
    early_truncations: tuple[int, ...] = ()
    observed_as: Int[np.ndarray, " state"] | None = None
    allowed: Bool[np.ndarray, "state action"] | None = None
    codes: Int[np.ndarray, " state_and_end"] | None = None

    @property
    def num_states(self) -> int:
        """The number of states."""
        return len(self.start)

    @property
    def normaliser(self) -> float:
        """1 − γ, or 1 where γ = 1: the value is then the expected total."""
        return 1 - self.discount if self.discount < 1 else 1.0

    @property
    def horizon(self) -> int:
        """The length that no logged episode exceeds."""
        return self.truncation or self.clock or LONGEST_EPISODE

    @property
    def policy(self) -> CategoricalPolicy:
        """π as a policy object."""
        return as_policy(self.target) if self.codes is None else as_policy_of_codes(self.target, self.codes)

    def step_matrix(self, policy: Float[np.ndarray, "state action"]) -> Float[np.ndarray, "state state"]:
        """P(s′|s) under a policy."""
        return np.einsum("sa,sat->st", policy, self.transition)

    def visits(self, policy: Float[np.ndarray, "state action"], num_steps: int) -> Float[np.ndarray, "step state"]:
        """P(s_t = s) for t < num_steps. A row sums to the probability that the episode has not terminated."""
        rows, now = [], self.start
        for _ in range(num_steps):
            rows.append(now)
            now = now @ self.step_matrix(policy)
        return np.array(rows)

    def discounted(self, num_steps: int) -> Float[np.ndarray, " state"]:
        """(1 − γ) Σ_{t<num_steps} γᵗ P_π(s_t = s)."""
        weights = self.normaliser * self.discount ** np.arange(num_steps)
        return weights @ self.visits(self.target, num_steps)

    @cached_property
    def occupancy(self) -> Float[np.ndarray, " state"]:
        """d_{π,γ}, including the steps after truncation. A clock ends it."""
        if self.clock:
            return self.discounted(self.clock)
        flow = np.eye(self.num_states) - self.discount * self.step_matrix(self.target).T
        return np.linalg.solve(flow, self.normaliser * self.start)

    @cached_property
    def logged(self) -> Float[np.ndarray, " state"]:
        """d_μ: the share of the rows of a log that are in each state."""
        visits = self.visits(self.behaviour, self.horizon).sum(axis=0)
        return visits / visits.sum()

    @cached_property
    def ratio(self) -> Float[np.ndarray, " state"]:
        """d_{π,γ} / d_μ."""
        return self.occupancy / self.logged

    @cached_property
    def ratio_to_truncation(self) -> Float[np.ndarray, " state"]:
        """The part of the ratio before truncation, which labels of a truncated log estimate."""
        return self.discounted(self.horizon) / self.logged

    def value_of(self, occupancy: Float[np.ndarray, " state"]) -> float:
        """Σ_s d(s) Σ_a π(a|s) r(s, a) for any occupancy d."""
        return float(np.einsum("s,sa,sa->", occupancy, self.target, self.reward))

    @property
    def value(self) -> float:
        """J(π), including the rewards after truncation."""
        return self.value_of(self.occupancy)

    @property
    def value_to_truncation(self) -> float:
        """The part of J(π) before truncation."""
        return self.value_of(self.discounted(self.horizon))

    @property
    def flow_normalised_value(self) -> float:
        """The part before truncation, divided by its flow E[w ρ (1 − γm)] / (1 − γ). Not for an MDP with a clock."""
        occupancy = self.discounted(self.horizon)
        ends = 1 - self.transition.sum(axis=2)  # [state, action]
        flow = (1 - self.discount) + self.discount * ends
        found = np.einsum("s,sa,sa->", occupancy, self.target, flow)
        return self.normaliser * self.value_of(occupancy) / float(found)

    def problem(self, num_episodes: int, seed: int) -> Problem:
        """A sampled log with the policy and the discount."""
        return Problem(self.sample(num_episodes, seed), self.policy, self.discount)

    def sample(self, num_episodes: int, seed: int, **columns: Any) -> LoggedDataset:
        """A log of episodes of μ, sampled step by step, all at once. `columns` are added to it or replace its own."""
        generator = np.random.default_rng(seed)
        outcomes = self._outcomes
        state = draw_categorical(np.broadcast_to(self.start, (num_episodes, self.num_states)), generator)
        length = generator.choice((*self.early_truncations, self.horizon), size=num_episodes)
        episode, parts = np.arange(num_episodes), []
        for step in range(self.horizon):
            action = draw_categorical(self.behaviour[state], generator)
            after = draw_categorical(outcomes[state, action], generator)
            if self.clock and step == self.clock - 1:
                after[:] = self.num_states
            ended = after == self.num_states
            parts.append((episode, np.full_like(episode, step), state, action, after))
            goes_on = ~ended & (length[episode] > step + 1)
            episode, state = episode[goes_on], after[goes_on]
            if not len(episode):
                break
        episode, steps, state, action, after = (np.concatenate(part) for part in zip(*parts, strict=True))
        return self._as_log(episode=episode, step=steps, state=state, action=action, after=after, **columns)

    def exhaustive(self, unit: int) -> LoggedDataset:
        """Every possible trajectory, in proportion to its probability: averages over this log are expectations.

        `unit` is a number whose product with every probability of a start, an action and an outcome is an integer.
        """
        done: list[tuple[int, list[tuple[int, int, int]]]] = []
        open_paths: list[tuple[int, int, list[tuple[int, int, int]]]]
        open_paths = [(round(p * unit), state, []) for state, p in enumerate(self.start) if p > 0]
        for _ in range(self.horizon):
            longer = []
            for count, state, path in open_paths:
                for action, p in enumerate(self.behaviour[state]):
                    for after, q in enumerate(self._outcomes[state, action]):
                        times = round(p * unit) * round(q * unit)
                        if times:
                            longer.append((count * times, after, [*path, (state, action, after)]))
            # A terminated episode counts as often as all continuations of an open one.
            done = [(count * unit**2, path) for count, path in done]
            done += [(count, path) for count, after, path in longer if after == self.num_states]
            open_paths = [grown for grown in longer if grown[1] < self.num_states]
        done += [(count, path) for count, _, path in open_paths]
        share = np.gcd.reduce([count for count, _ in done])
        paths = [path for count, path in done for _ in range(count // share)]
        lengths = [len(path) for path in paths]
        state, action, after = np.array([row for path in paths for row in path]).T
        return self._as_log(episode=np.repeat(np.arange(len(paths)), lengths), state=state, action=action, after=after)

    @property
    def _outcomes(self) -> Float[np.ndarray, "state action outcome"]:
        """P[s, a, s′] with the probability of termination as the last column."""
        return np.concatenate([self.transition, 1 - self.transition.sum(axis=2, keepdims=True)], axis=2)

    def _as_log(self, *, state: np.ndarray, action: np.ndarray, after: np.ndarray, **columns: Any) -> LoggedDataset:
        """States as observations, with rewards, terminations and probabilities of μ."""
        observation = np.vstack([np.eye(self.num_states), np.zeros(self.num_states)])
        if self.codes is not None:
            observation = self.codes[:, None].astype(np.float64)
        if self.observed_as is not None:
            observation[:-1] = observation[self.observed_as]
        own = {
            "observation": observation[state],
            "action": action,
            "reward": self.reward[state, action],
            "next_observation": observation[after],
            "terminated": after == self.num_states,
            "behaviour_log_prob": np.log(self.behaviour[state, action]),
            "action_mask": None if self.allowed is None else self.allowed[state],
            "categorical": () if self.codes is None else (0,),
        }
        return LoggedDataset.from_arrays(**own | columns)


def as_policy(table: Float[np.ndarray, "state action"]) -> CategoricalPolicy:
    """A policy object from probabilities [state, action], for one-hot observations."""
    with np.errstate(divide="ignore"):
        logits = np.log(table)
    return CategoricalPolicy(lambda observations: logits[observations.argmax(axis=1)])


def as_policy_of_codes(
    table: Float[np.ndarray, "state action"], codes: Int[np.ndarray, " state_and_end"]
) -> CategoricalPolicy:
    """A policy object from probabilities [state, action], for observations that are integer codes."""
    with np.errstate(divide="ignore"):
        logits = np.log(np.vstack([table, table[:1]]))  # any actions after termination
    order = np.argsort(codes)
    return CategoricalPolicy(lambda observations: logits[order[np.searchsorted(codes[order], observations[:, 0])]])


def integer_codes(mdp: ExactMDP, seed: int = 0) -> ExactMDP:
    """The same MDP with states that are observed as integer codes in one column, in a random order."""
    codes = np.random.default_rng(seed).permutation(mdp.num_states + 1)
    return replace(mdp, name=f"{mdp.name}, integer codes", codes=codes)


def sticky_chain() -> ExactMDP:
    """Action 0 stays, action 1 moves with probability 0.1. Shows the error of suffix instead of prefix products."""
    transition = np.zeros((2, 2, 2))
    for state in (0, 1):
        transition[state, 0, state] = 1.0
        transition[state, 1] = 0.9 * np.eye(2)[state] + 0.1 * np.eye(2)[1 - state]
    return ExactMDP(
        name="sticky chain",
        transition=transition,
        reward=np.array([[0.0, 0.0], [1.0, 1.0]]),
        start=np.array([1.0, 0.0]),
        target=np.array([[0.1, 0.9], [0.9, 0.1]]),
        behaviour=np.full((2, 2), 0.5),
        discount=0.95,
        truncation=50,
    )


def random_mdp() -> ExactMDP:
    """Five states, two actions, no termination. Truncation comes so late that γᴴ is negligible."""
    generator = np.random.default_rng(7)
    target = generator.dirichlet((3.0, 3.0), size=5)
    return ExactMDP(
        name="random",
        transition=generator.dirichlet(np.ones(5), size=(5, 2)),
        reward=generator.normal(size=(5, 2)),
        start=generator.dirichlet(np.ones(5)),
        target=target,
        behaviour=0.8 * target + 0.2 * 0.5,
        discount=0.8,
        truncation=80,
    )


def early_termination() -> ExactMDP:
    """Every step may terminate, with a probability that depends on state and action, 5 % on average. No truncation."""
    mdp = random_mdp()
    ends = np.random.default_rng(8).uniform(0.0, 0.1, size=(5, 2, 1))
    return replace(mdp, name="early termination", transition=mdp.transition * (1 - ends), discount=0.9, truncation=None)


def truncated() -> ExactMDP:
    """Termination, 1.5 % of the steps on average, and truncation after 20 steps: a quarter of the mass comes later."""
    mdp = early_termination()
    ends = 0.3 * (1 - mdp.transition.sum(axis=2, keepdims=True))
    kept = mdp.transition / mdp.transition.sum(axis=2, keepdims=True) * (1 - ends)
    return replace(mdp, name="truncated", transition=kept, discount=0.95, truncation=20)


def clock() -> ExactMDP:
    """The environment terminates every episode after 15 steps, and observations do not show the step."""
    return replace(random_mdp(), name="clock", discount=0.9, truncation=None, clock=15)


def rare_state() -> ExactMDP:
    """State 2 pays; π visits it often, μ rarely."""
    transition = np.zeros((3, 2, 3))
    transition[0, 0], transition[0, 1] = [0.9, 0.1, 0.0], [0.1, 0.9, 0.0]
    transition[1, 0], transition[1, 1] = [0.9, 0.1, 0.0], [0.2, 0.0, 0.8]
    transition[2, 0], transition[2, 1] = [0.5, 0.0, 0.5], [0.1, 0.0, 0.9]
    return ExactMDP(
        name="rare state",
        transition=0.95 * transition,
        reward=np.array([[0.1, 0.0], [0.0, 0.0], [1.0, 2.0]]),
        start=np.array([1.0, 0.0, 0.0]),
        target=np.array([[0.3, 0.7], [0.3, 0.7], [0.3, 0.7]]),
        behaviour=np.array([[0.7, 0.3], [0.7, 0.3], [0.6, 0.4]]),
        discount=0.8,
        truncation=20,
    )


def unseen_action() -> ExactMDP:
    """π takes a third action in 4 % of the steps, and the log does not have it. On average it equals the others."""
    generator = np.random.default_rng(11)
    transition = generator.dirichlet(np.ones(4), size=(4, 3))
    reward = generator.normal(size=(4, 3))
    transition[:, 2], reward[:, 2] = transition[:, :2].mean(axis=1), reward[:, :2].mean(axis=1)
    return ExactMDP(
        name="unseen action",
        transition=transition,
        reward=reward,
        start=np.full(4, 0.25),
        target=np.tile([0.48, 0.48, 0.04], (4, 1)),
        behaviour=np.tile([0.5, 0.5, 0.0], (4, 1)),
        discount=0.95,
        truncation=60,
    )


def many_states(num_states: int = 300) -> ExactMDP:
    """Each state leads to five others and has a reward of its own, which π likes better than μ. No order of states."""
    generator = np.random.default_rng(12)
    transition = np.zeros((num_states, 2, num_states))
    for state in range(num_states):
        for action in (0, 1):
            after = generator.choice(num_states, size=5, replace=False)
            transition[state, action, after] = generator.dirichlet(np.ones(5))
    reward = generator.normal(size=(num_states, 2))
    prefers = np.where(reward[:, :1] > reward[:, 1:], [0.8, 0.2], [0.2, 0.8])
    return ExactMDP(
        name="many states",
        transition=0.97 * transition,
        reward=reward,
        start=np.full(num_states, 1 / num_states),
        target=prefers,
        behaviour=0.5 * prefers + 0.25,
        discount=0.8,
        truncation=40,
    )


def hidden_clock(early_truncations: tuple[int, ...] = (2, 3, 4, 5, 6)) -> ExactMDP:
    """All states look the same. Action 1 costs 1 before step 5 and pays 3 from then on; few episodes get there."""
    transition = np.zeros((6, 2, 6))
    transition[np.arange(6), :, [1, 2, 3, 4, 5, 5]] = 1.0
    return ExactMDP(
        name="hidden clock",
        transition=transition,
        reward=np.array([[0.0, -1.0]] * 5 + [[0.0, 3.0]]),
        start=np.eye(6)[0],
        target=np.tile([0.3, 0.7], (6, 1)),
        behaviour=np.full((6, 2), 0.5),
        discount=0.8,
        truncation=20,
        early_truncations=early_truncations,
        observed_as=np.zeros(6, int),
    )


def support_hole() -> ExactMDP:
    """State 2 pays. Only action 1 in state 1 leads there, and μ never takes it in state 1."""
    transition = np.zeros((3, 2, 3))
    transition[0, 0, 0], transition[0, 1] = 1.0, [0.89, 0.11, 0.0]
    transition[1, 0, 0] = transition[1, 1, 2] = 1.0
    transition[2] = [0.03, 0.0, 0.97]
    return ExactMDP(
        name="support hole",
        transition=transition,
        reward=np.array([[0.1, 0.1], [0.1, 0.1], [1.0, 1.0]]),
        start=np.eye(3)[0],
        target=np.array([[0.3, 0.7], [0.6, 0.4], [0.5, 0.5]]),
        behaviour=np.array([[0.5, 0.5], [1.0, 0.0], [0.5, 0.5]]),
        discount=0.95,
        truncation=60,
    )


def tiny(truncation: int = 3) -> ExactMDP:
    """Two states, probabilities in quarters, termination and truncation: small enough for `exhaustive(4)`."""
    return ExactMDP(
        name="tiny",
        transition=np.array([[[0.5, 0.5], [0.25, 0.5]], [[0.5, 0.25], [0.0, 0.75]]]),
        reward=np.array([[1.0, -0.5], [0.25, 2.0]]),
        start=np.array([0.75, 0.25]),
        target=np.array([[0.25, 0.75], [0.6, 0.4]]),
        behaviour=np.full((2, 2), 0.5),
        discount=0.9,
        truncation=truncation,
    )


def masked(truncation: int | None = 3) -> ExactMDP:
    """Three states with four actions, of which they allow two, three and all; terminates early.

    Probabilities are in quarters: with `truncation` = 3 it is small enough for `exhaustive(4)`. What forbidden actions
    would do is marked by a reward of 100, which no policy earns.
    """
    allowed = np.array([[True, True, False, False], [False, True, True, True], [True, True, True, True]])
    transition = np.array(
        [
            [[0.5, 0.5, 0.0], [0.0, 0.25, 0.5], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]],
            [[0.0, 1.0, 0.0], [0.25, 0.0, 0.75], [0.25, 0.25, 0.25], [0.5, 0.5, 0.0]],
            [[0.75, 0.25, 0.0], [0.0, 0.5, 0.25], [0.5, 0.0, 0.5], [0.0, 0.0, 0.75]],
        ]
    )
    reward = np.array([[1.0, -0.5, 0.0, 0.0], [0.0, 0.25, 2.0, 1.0], [0.5, 1.5, -1.0, 3.0]])
    return ExactMDP(
        name="masked",
        transition=transition,
        reward=np.where(allowed, reward, 100.0),
        start=np.array([0.5, 0.25, 0.25]),
        target=np.array([[0.3, 0.7, 0.0, 0.0], [0.0, 0.2, 0.5, 0.3], [0.1, 0.3, 0.1, 0.5]]),
        behaviour=np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.5, 0.25, 0.25], [0.25, 0.25, 0.25, 0.25]]),
        discount=0.9,
        truncation=truncation,
        allowed=allowed,
    )


# The MDPs of the published tables. The others are for single checks.
ALL = (sticky_chain(), random_mdp(), early_termination(), truncated(), clock(), rare_state())
