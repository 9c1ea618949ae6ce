"""Small MDPs whose every answer is known exactly, in float64, and logs sampled from them.

A state is observed as a one-hot vector, a terminal state as zeros. `P[s, a, s']` may sum to less than one: what is
missing terminates. `cut` truncates every episode after that many steps; `clock` terminates it then. With `early_truncations`,
episodes are truncated after one of these lengths or at `cut`, all equally likely.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

import average_dice as ad


@dataclass(frozen=True, eq=False)
class ExactMDP:
    name: str
    transition: np.ndarray  # [state, action, next state]
    reward: np.ndarray  # [state, action]
    start: np.ndarray  # [state]
    target: np.ndarray  # [state, action]
    behaviour: np.ndarray  # [state, action]
    discount: float
    truncation: int | None = None
    clock: int | None = None
    early_truncations: tuple[int, ...] = ()
    seen: np.ndarray | None = None  # [state]: which state it looks like; itself if None

    @property
    def num_states(self) -> int:
        return len(self.start)

    @property
    def horizon(self) -> int:
        """The length beyond which no logged episode goes, or goes with negligible probability."""
        return self.truncation or self.clock or 400

    def step_matrix(self, policy: np.ndarray) -> np.ndarray:
        return np.einsum("sa,sat->st", policy, self.transition)

    def visits(self, policy: np.ndarray, num_steps: int) -> np.ndarray:
        """P(s_t = s) for t < num_steps: [step, state]. Sums to the probability of being alive."""
        rows, now = [], self.start
        for _ in range(num_steps):
            rows.append(now)
            now = now @ self.step_matrix(policy)
        return np.array(rows)

    def discounted(self, num_steps: int) -> np.ndarray:
        """(1 − γ) Σ_{t<num_steps} γᵗ P_π(s_t = s)."""
        weights = (1 - self.discount) * self.discount ** np.arange(num_steps)
        return weights @ self.visits(self.target, num_steps)

    @cached_property
    def occupancy(self) -> np.ndarray:
        """d_{π,γ}, the whole of it: a clock ends it, a cut does not."""
        if self.clock:
            return self.discounted(self.clock)
        flow = np.eye(self.num_states) - self.discount * self.step_matrix(self.target).T
        return np.linalg.solve(flow, (1 - self.discount) * self.start)

    @cached_property
    def logged(self) -> np.ndarray:
        """d_μ: how often each state stands in a log of this MDP."""
        visits = self.visits(self.behaviour, self.horizon).sum(axis=0)
        return visits / visits.sum()

    @cached_property
    def ratio(self) -> np.ndarray:
        return self.occupancy / self.logged

    @cached_property
    def ratio_to_truncation(self) -> np.ndarray:
        """What the labels of a truncated log see: the part of the ratio before the cut."""
        return self.discounted(self.horizon) / self.logged

    def value_of(self, occupancy: np.ndarray) -> float:
        return float(np.einsum("s,sa,sa->", occupancy, self.target, self.reward))

    @property
    def value(self) -> float:
        return self.value_of(self.occupancy)

    @property
    def value_to_truncation(self) -> float:
        return self.value_of(self.discounted(self.horizon))

    @property
    def flow_normalised_value(self) -> float:
        """What flow normalisation makes of the part before the cut (no clock)."""
        occupancy = self.discounted(self.horizon)
        ends = 1 - self.transition.sum(axis=2)  # [state, action]
        flow = (1 - self.discount) + self.discount * ends
        found = np.einsum("s,sa,sa->", occupancy, self.target, flow)
        return (1 - self.discount) * self.value_of(occupancy) / float(found)

    @property
    def policy(self) -> ad.CategoricalPolicy:
        return as_policy(self.target)

    def sample(self, num_episodes: int, seed: int, **columns: object) -> ad.LoggedDataset:
        """A log of μ's behaviour: all episodes in lockstep."""
        generator = np.random.default_rng(seed)
        one_hot = np.vstack([np.eye(self.num_states), np.zeros(self.num_states)])
        if self.seen is not None:
            one_hot[:-1] = one_hot[self.seen]
        outcomes = np.concatenate([self.transition, 1 - self.transition.sum(axis=2, keepdims=True)], axis=2)
        state = _draw(np.broadcast_to(self.start, (num_episodes, self.num_states)), generator)
        length = generator.choice((*self.early_truncations, self.horizon), size=num_episodes)
        episode, parts = np.arange(num_episodes), []
        for step in range(self.horizon):
            action = _draw(self.behaviour[state], generator)
            after = _draw(outcomes[state, action], generator)
            if self.clock and step == self.clock - 1:
                after[:] = self.num_states
            ended = after == self.num_states
            parts.append((episode, np.full_like(episode, step), state, action, after, ended))
            goes_on = ~ended & (length[episode] > step + 1)
            episode, state = episode[goes_on], after[goes_on]
            if not len(episode):
                break
        episode, steps, state, action, after, ended = (np.concatenate(part) for part in zip(*parts, strict=True))
        return ad.LoggedDataset.from_arrays(
            episode=episode,
            step=steps,
            observation=one_hot[state],
            action=action,
            reward=self.reward[state, action],
            next_observation=one_hot[after],
            terminated=ended,
            behaviour_log_prob=np.log(self.behaviour[state, action]),
            **columns,
        )

    def exhaustive(self, unit: int) -> ad.LoggedDataset:
        """Every possible trajectory, as often as its probability says: averages over this log are expectations.

        `unit` is a number that makes every probability of a start, an action and an outcome a whole number.
        """
        one_hot = np.vstack([np.eye(self.num_states), np.zeros(self.num_states)])
        outcomes = np.concatenate([self.transition, 1 - self.transition.sum(axis=2, keepdims=True)], axis=2)
        done: list[tuple[int, list[tuple[int, int, int]]]] = []
        open_paths = [(round(p * unit), state, []) for state, p in enumerate(self.start) if p > 0]
        for _ in range(self.horizon):
            longer = []
            for count, state, path in open_paths:
                for action, p in enumerate(self.behaviour[state]):
                    for after, q in enumerate(outcomes[state, action]):
                        times = round(p * unit) * round(q * unit)
                        if times:
                            grown = (count * times, after, [*path, (state, action, after)])
                            longer.append(grown)
            weight = unit**2  # episodes that end now stand for all that they would have become
            done = [(count * weight, path) for count, path in done]
            done += [(count, path) for count, after, path in longer if after == self.num_states]
            open_paths = [grown for grown in longer if grown[1] < self.num_states]
        done += [(count, path) for count, _, path in open_paths]
        share = np.gcd.reduce([count for count, _ in done])
        paths = [path for count, path in done for _ in range(count // share)]
        lengths = [len(path) for path in paths]
        state, action, after = np.array([row for path in paths for row in path]).T
        return ad.LoggedDataset.from_arrays(
            episode=np.repeat(np.arange(len(paths)), lengths),
            observation=one_hot[state],
            action=action,
            reward=self.reward[state, action],
            next_observation=one_hot[after],
            terminated=after == self.num_states,
            behaviour_log_prob=np.log(self.behaviour[state, action]),
        )

    def problem(self, num_episodes: int, seed: int) -> ad.Problem:
        return ad.Problem(self.sample(num_episodes, seed), self.policy, self.discount)


def as_policy(table: np.ndarray) -> ad.CategoricalPolicy:
    with np.errstate(divide="ignore"):
        logits = np.log(table)
    return ad.CategoricalPolicy(lambda observations: logits[observations.argmax(axis=1)])


def sticky_chain() -> ExactMDP:
    """Action 0 stays, action 1 moves with probability 0.1: a suffix in place of the prefix is off by a factor."""
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
    """Five states, two actions, no termination, and a cut so late that γᴴ is nothing."""
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
    """Each step ends the episode with a probability that depends on state and action, 5 % on average; no cut."""
    mdp = random_mdp()
    ends = np.random.default_rng(8).uniform(0.0, 0.1, size=(5, 2, 1))
    return replace(mdp, name="early termination", transition=mdp.transition * (1 - ends), discount=0.9, truncation=None)


def truncated() -> ExactMDP:
    """Termination, 1.5 % on average, and a cut after 20 steps that hides a quarter of the mass."""
    mdp = early_termination()
    ends = 0.3 * (1 - mdp.transition.sum(axis=2, keepdims=True))
    kept = mdp.transition / mdp.transition.sum(axis=2, keepdims=True) * (1 - ends)
    return replace(mdp, name="truncated", transition=kept, discount=0.95, truncation=20)


def clock() -> ExactMDP:
    """The environment terminates every episode after 15 steps, whatever the state."""
    return replace(random_mdp(), name="clock", discount=0.9, truncation=None, clock=15)


def rare_state() -> ExactMDP:
    """State 2 pays, π is there often, and μ hardly ever."""
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
    """π takes a third action in 4 % of the steps. It does on average what the others do, and the log never shows it."""
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


def hidden_clock(early_truncations: tuple[int, ...] = (2, 3, 4, 5, 6)) -> ExactMDP:
    """One observed state. Action 1 costs 1 before step 5 and pays 3 after; most episodes are truncated before."""
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
        seen=np.zeros(6, int),
    )


def support_hole() -> ExactMDP:
    """State 2 pays; only action 1 in state 1 leads there, and there μ never takes it."""
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
    """Two states, probabilities in quarters, termination and a cut: small enough to log every trajectory."""
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


ALL = (sticky_chain(), random_mdp(), early_termination(), truncated(), clock(), rare_state())


def _draw(probabilities: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    cumulative = probabilities.cumsum(axis=1)
    uniform = generator.random((len(probabilities), 1)) * cumulative[:, -1:]
    return (uniform >= cumulative).sum(axis=1)
