"""Logs that mislead: each with a policy, a discount and a truth that is known exactly, whatever the log says."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from .edits import (
    always_terminated,
    booked_at_the_end,
    copies,
    late_reward,
    more_columns,
    never_terminated,
    one_outlier,
    rewards_by,
    shifted,
    windows,
    without_last_row,
    without_shorter_than,
)
from .line import Act, Between, Line, Linear, Square
from .worlds import Columns, Edit, Made, World, _draw, contexts, made, normal_noise, one_state, ordinary, rows, staged


@dataclass(frozen=True)
class MisleadingLog:
    """`visible`: the log and the policy hold a trace that some rule or estimator could use."""

    name: str
    what: str
    make: Callable[[int], Made]
    visible: bool


# The logs of the audit


def unseen_action(seed: int, *, shift: float = 0.0, differs: float = 0.0, rare: float = 0.0, num: int = 200) -> Made:
    generator = np.random.default_rng(11)
    transition = generator.dirichlet(np.ones(4), size=(4, 3))
    reward = generator.normal(size=(4, 3)) + shift
    transition[:, 2], reward[:, 2] = transition[:, 1], reward[:, 1] + differs
    world = World(
        transition,
        reward,
        np.full(4, 0.25),
        rows([0.48, 0.48, 0.04], 4),
        rows([0.5 - rare / 2, 0.5 - rare / 2, rare], 4),
        discount=0.95,
        cuts=(60,),
    )
    return made(world, num, seed, wanted=lambda columns: columns["action"].max() < 2)


def hidden_clock(seed: int, cuts: tuple[int, ...], num: int, discount: float = 0.9) -> Made:
    reward = np.array([[0.0, -1.0]] * 5 + [[0.0, 3.0]])
    return made(staged(reward, [0.3, 0.7], [0.5, 0.5], cuts=cuts, discount=discount), num, seed)


EVEN, THREE, SHORT = (40,), (3, 10, 40), (2, 3, 4, 5, 6, 40)


def support_hole(seed: int, through: float = 0.4, arrive: float = 0.11) -> Made:
    """State 2 pays; only action 1 in state 1 leads there, and there μ never takes it."""
    transition = np.zeros((3, 2, 3))
    transition[0, 0, 0] = 1.0
    transition[0, 1] = [1 - arrive, arrive, 0.0]
    transition[1, 0, 0] = transition[1, 1, 2] = 1.0
    transition[2] = [0.03, 0.0, 0.97]
    target = np.array([[0.3, 0.7], [1 - through, through], [0.5, 0.5]])
    world = World(
        transition,
        np.array([[0.1, 0.1], [0.1, 0.1], [1.0, 1.0]]),
        np.eye(3)[0],
        target,
        np.array([[0.5, 0.5], [1.0, 0.0], [0.5, 0.5]]),
        discount=0.95,
        cuts=(60,),
    )
    return made(world, 200, seed)


def hidden_step(seed: int) -> Made:
    wave = np.cos(2 * np.pi * np.arange(31) / 10)
    return made(staged(np.stack([-wave, 2 * wave], axis=1), [0.3, 0.7], [0.6, 0.4], cuts=(40,)), 40, seed)


def nearly_undiscounted(seed: int) -> Made:
    return made(replace(ordinary(3), discount=0.999, cuts=(100,)), 400, seed)


# Hidden states


def key_and_lock(**more: object) -> World:
    """Hall and lock, each with or without a key that nobody sees. Action 1 takes the key, and opens the lock."""
    transition = np.zeros((4, 2, 4))  # hall, lock, hall with key, lock with key
    transition[0, 0], transition[0, 1] = [0.8, 0.2, 0, 0], [0.5, 0.1, 0.4, 0]
    transition[1] = transition[3, 1] = [1, 0, 0, 0]
    transition[2], transition[3, 0] = [0, 0, 0.8, 0.2], [0, 0, 1, 0]
    settings = {"target": [0.3, 0.7], "behaviour": [0.6, 0.4], "discount": 0.9, **more}
    target, behaviour = (rows(settings.pop(name), 4) for name in ("target", "behaviour"))
    reward = np.array([[0.0, -0.1], [0.0, -1.0], [0.0, -0.1], [0.0, 5.0]])
    return World(transition, reward, np.eye(4)[0], target, behaviour, seen=np.array([0, 1, 0, 1]), **settings)


def remembers(**more: object) -> World:
    """Two states that come and go by chance; the action before is hidden, and repeating it pays, changing it costs."""
    transition = np.zeros((4, 2, 4))  # [state, action before]
    for action in (0, 1):
        transition[:, action, action::2] = 0.5
    reward = np.array([[1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, 1.0]])
    settings = {"discount": 0.9, "seen": np.array([0, 0, 1, 1]), **more}
    return World(transition, reward, np.full(4, 0.25), **settings)


def confounder_of_episode(seed: int) -> Made:
    """Whoever does well gets action 1; the log records the share over everybody."""
    good = one_state([0, 1], [0.3, 0.7], [0.2, 0.8])
    bad = one_state([0, -1], [0.3, 0.7], [0.8, 0.2])
    return made(contexts([bad, good], recorded=rows([0.5, 0.5], 2)), 200, seed)


def confounder_of_step(seed: int) -> Made:
    world = World(
        np.full((2, 2, 2), 0.5),
        np.array([[0.0, -1.0], [0.0, 1.0]]),
        np.full(2, 0.5),
        rows([0.3, 0.7], 2),
        np.array([[0.8, 0.2], [0.2, 0.8]]),
        discount=0.9,
        seen=np.zeros(2, int),
        recorded=rows([0.5, 0.5], 2),
    )
    return made(world, 200, seed)


def drift(seed: int) -> Made:
    """Five periods, each worse than the one before."""
    worlds = [replace(ordinary(5), reward=ordinary(5).reward - 0.5 * period) for period in range(5)]
    world, num = contexts(worlds), 250
    first = 5 * (np.arange(num) * 5 // num) + np.random.default_rng(seed).integers(5, size=num)
    return made(replace(world, discount=0.9), num, seed, first=first, really=replace(worlds[-1], start=np.full(5, 0.2)))


def simpson(seed: int) -> Made:
    """In good times action 1 was taken often, in bad times seldom; it always costs 0.3. All probabilities are right."""
    bad = one_state([0, -0.3], [0.3, 0.7], [0.8, 0.2])
    good = one_state([2, 1.7], [0.3, 0.7], [0.2, 0.8])
    return made(contexts([bad, good]), 200, seed)


def first_choice_decides(seed: int) -> Made:
    """The first action, hardly ever 1, decides for ever, and nothing shows which it was."""
    transition = np.zeros((3, 2, 3))
    transition[0, 0, 1] = transition[0, 1, 2] = 1.0
    transition[1, :, 1] = transition[2, :, 2] = 1.0
    world = World(
        transition,
        np.array([[0.0, 0.0], [1.0, 1.0], [-1.0, -1.0]]),
        np.eye(3)[0],
        rows([0.5, 0.5], 3),
        np.array([[0.97, 0.03], [0.6, 0.4], [0.6, 0.4]]),
        discount=0.9,
        seen=np.zeros(3, int),
        noise=normal_noise(1.0),
    )
    return made(world, 200, seed)


def one_action_an_episode(seed: int) -> Made:
    """μ draws one action for the whole episode, and records a half at every step."""
    world = remembers(target=rows([0.5, 0.5], 4), behaviour=rows([0.5, 0.5], 4))
    stuck = [
        replace(world, behaviour=rows(one, 4), start=np.array([0.5 * one[0], 0.5 * one[1]] * 2)) for one in np.eye(2)
    ]
    return made(contexts(stuck, recorded=rows([0.5, 0.5], 8)), 200, seed, really=world)


# Holes in the support


def hole_at_step(seed: int, step: int, likes: float) -> Made:
    """At one step, unseen by anybody, μ is deterministic; the other action leads to a state that pays 5 for ever."""
    num = step + 2
    transition = np.zeros((num + 1, 2, num + 1))
    transition[np.arange(num), :, np.minimum(np.arange(num) + 1, num - 1)] = 1.0
    transition[step, 1], transition[num, :, num] = np.eye(num + 1)[num], 1.0
    behaviour = rows([0.5, 0.5], num + 1)
    behaviour[step] = [1.0, 0.0]
    reward = np.zeros((num + 1, 2))
    reward[:, 1], reward[num] = 0.5, 5.0
    seen = np.zeros(num + 1, int)
    seen[num] = 1
    target = rows([1 - likes, likes], num + 1)
    return made(World(transition, reward, np.eye(num + 1)[0], target, behaviour, 0.9, seen=seen), 200, seed)


def lucky_rare_action(seed: int) -> Made:
    """Action 2 pays 8 one time in five and costs 4 otherwise; the log shows it once or twice, and it paid."""

    def luck(generator: np.random.Generator, state: np.ndarray, action: np.ndarray) -> np.ndarray:
        return np.where(action == 2, np.where(generator.random(len(state)) < 0.2, 9.6, -2.4), 0.0)

    world = one_state([0.5, 0.2, -1.6], [0.6, 0.3, 0.1], [0.6, 0.399, 0.001], noise=luck)

    def lucky(columns: Columns) -> bool:
        found = columns["reward"][columns["action"] == 2]
        return 1 <= len(found) <= 2 and bool(found.min() > 0)

    return made(world, 100, seed, wanted=lucky)


def wear(seed: int, *, shown: bool) -> Made:
    """Each action 1 wears; at 25 it breaks, and costs 30 a step. μ hardly ever gets so far before the cut."""
    num = 26
    transition = np.zeros((num, 2, num))
    transition[np.arange(num), 0, np.arange(num)] = 1.0
    transition[np.arange(num), 1, np.minimum(np.arange(num) + 1, num - 1)] = 1.0
    reward = rows([0.0, 1.0], num)
    reward[-1] = -30.0
    seen, codes = (None, np.append(np.arange(num), 0.0)[:, None] / 10) if shown else (np.zeros(num, int), None)
    target, behaviour = rows([0.1, 0.9], num), rows([0.5, 0.5], num)
    world = World(transition, reward, np.eye(num)[0], target, behaviour, 0.9, (30,), seen=seen, codes=codes)
    return made(world, 200, seed, wanted=lambda columns: columns["reward"].min() > -30)


# Wrong probabilities


def balanced(recorded: object, actions: object, **more: object) -> World:
    """Two states by chance; μ prefers action 0 in both, π in one only: mistakes cancel in the mean of ratios."""
    actions = np.asarray(actions, float)
    settings = {"discount": 0.9, "recorded": rows(recorded, 2), **more}
    target = np.stack([actions, np.concatenate([actions[1::-1], actions[2:]])])
    reward = np.array([[1.0, -1.0, 0.5][: len(actions)], [2.0, 0.0, 0.5][: len(actions)]])
    transition = np.full((2, len(actions), 2), 0.5)
    return World(transition, reward, np.full(2, 0.5), target, rows(actions, 2), **settings)


def recorded_uniform_memory(seed: int) -> Made:
    target = np.array([[0.8, 0.2]] * 2 + [[0.2, 0.8]] * 2)
    world = remembers(target=target, behaviour=rows([0.8, 0.2], 4), recorded=rows([0.5, 0.5], 4))
    return made(world, 200, seed)


def behaviour_learns(seed: int) -> Made:
    """μ changed from one action to the other during the log; the column holds its mean."""
    worlds = [replace(key_and_lock(), behaviour=rows([1 - p, p], 4)) for p in (0.1, 0.3, 0.5, 0.7, 0.9)]
    return made(contexts(worlds, recorded=rows([0.5, 0.5], 20)), 200, seed)


# Who leaves the log


def failing(hazard: object, *, shown: bool, cost: float) -> World:
    """Action 1 pays, and makes one fail now and then. Failing goes on for long, and costs."""
    transition = np.zeros((2, 2, 2))
    transition[0, 0], transition[0, 1] = [0.99, 0.01], [0.9, 0.1]
    transition[1] = [0.05, 0.95]
    return World(
        transition,
        np.array([[0.5, 1.0], [cost, cost]]),
        np.eye(2)[0],
        rows([0.3, 0.7], 2),
        rows([0.6, 0.4], 2),
        discount=0.9,
        seen=None if shown else np.zeros(2, int),
        hazard=np.asarray(hazard, float),
    )


def crash_row_lost(seed: int) -> Made:
    """A crash is a state of its own, whose one row costs 10 and is never written."""
    transition = np.zeros((2, 2, 2))
    transition[0, 0], transition[0, 1] = [1.0, 0.0], [0.93, 0.07]
    world = World(
        transition,
        np.array([[0.5, 1.0], [-10.0, -10.0]]),
        np.eye(2)[0],
        rows([0.3, 0.7], 2),
        rows([0.6, 0.4], 2),
        discount=0.9,
        seen=np.zeros(2, int),
    )
    return made(world, 300, seed, edit=without_last_row)


def short_ones_missing(seed: int) -> Made:
    """Half of the careless starts crash within a step or two; the log keeps episodes of five steps and more."""
    transition = np.zeros((2, 2, 2))
    transition[0, 0], transition[0, 1] = [0.5, 0.5], [0.25, 0.25]
    transition[1] = [0.0, 0.98]
    world = World(
        transition,
        np.array([[0.0, -1.0], [1.0, 1.0]]),
        np.eye(2)[0],
        rows([0.3, 0.7], 2),
        rows([0.5, 0.5], 2),
        discount=0.9,
    )
    return made(world, 400, seed, edit=without_shorter_than(5))


def people(seed: int, *, each: int, num: int, edit: Edit | None = None, cut: int = 40) -> Made:
    """Eight kinds of people, one kind far from the other; `each` episodes in a row are of one person."""
    base = ordinary(9)
    worlds = [replace(base, reward=0.3 * base.reward + level) for level in np.linspace(-2, 2, 8)]
    world = replace(contexts(worlds), noise=normal_noise(0.1), cuts=(cut,))
    generator = np.random.default_rng((seed, 2))
    person = np.repeat(generator.integers(8, size=num), each)
    first = 5 * person + _draw(rows(base.start, num * each), generator)
    return made(world, num * each, seed, first=first, edit=edit)


# Rewards


def catastrophe(seed: int) -> Made:
    """Action 1 pays 0.3 and costs 200 one time in five hundred; the log happens to show none."""

    def noise(generator: np.random.Generator, state: np.ndarray, action: np.ndarray) -> np.ndarray:
        return np.where(action == 1, 0.4 - 200.0 * (generator.random(len(state)) < 0.002), 0.0)

    world = one_state([0.0, -0.1], [0.5, 0.5], [0.95, 0.05], noise=noise)
    return made(world, 150, seed, wanted=lambda columns: columns["reward"].min() > -100)


def long_tail(seed: int) -> Made:
    """The payment of action 1 is log-normal: most of its mean is in payments that a log of this size seldom shows."""
    size = 2.5

    def noise(generator: np.random.Generator, state: np.ndarray, action: np.ndarray) -> np.ndarray:
        return np.where(action == 1, np.exp(size * generator.normal(size=len(state))) - np.exp(size**2 / 2), 0.0)

    return made(one_state([0.0, np.exp(size**2 / 2)], [0.4, 0.6], [0.9, 0.1], noise=noise), 100, seed)


def never_paid(seed: int) -> Made:
    """A reward of 100 behind four steps of action 1 in a row; the log has none of it, and every reward is zero."""
    num = 5
    transition = np.zeros((num, 2, num))
    transition[:, 0, 0] = 1.0
    transition[np.arange(num - 1), 1, np.arange(1, num)] = 1.0
    transition[num - 1, 1, 0] = 1.0
    reward = np.zeros((num, 2))
    reward[-1, 1] = 100.0
    world = World(transition, reward, np.eye(num)[0], rows([0.7, 0.3], num), rows([0.9, 0.1], num), 0.9)
    return made(world, 60, seed, wanted=lambda columns: not columns["reward"].any())


def skewed_and_few(seed: int) -> Made:
    def noise(generator: np.random.Generator, state: np.ndarray, action: np.ndarray) -> np.ndarray:
        return 20.0 * (generator.random(len(state)) < 0.01) - 0.2

    return made(replace(ordinary(4), noise=noise), 12, seed)


def late_fortune(seed: int) -> Made:
    """Step 45 pays 500, and the log is truncated at 40."""
    reward = rows([0.0, 1.0], 47)
    reward[45] = 500.0
    return made(staged(reward, [0.3, 0.7], [0.5, 0.5]), 200, seed)


def as_numbers(seed: int) -> Made:
    """Twelve states in no order as the numbers 0 to 11 of one column."""
    world = ordinary(6, num_states=12)
    sharp = replace(world, reward=3 * world.reward, codes=np.append(np.arange(12), -1.0)[:, None])
    return made(sharp, 200, seed)


def optimistic_starts(seed: int) -> Made:
    """The log starts in state 0, which stays good for long; the policy will start in state 1."""
    transition = np.full((2, 2, 2), 0.03)
    transition[[0, 1], :, [0, 1]] = 0.97
    world = World(
        transition, np.array([[1.0, 1.2], [-1.0, -0.8]]), np.eye(2)[0], rows([0.3, 0.7], 2), rows([0.5, 0.5], 2), 0.9
    )
    return made(world, 200, seed, really=replace(world, start=np.eye(2)[1]))


def line(target: Act, behaviour: Act, num: int = 200, **more: object) -> Callable[[int], Made]:
    world = Line(target, behaviour, **more)
    return lambda seed: made(world, num, seed)


def plain(world: World, num: int, edit: Edit | None = None) -> Callable[[int], Made]:
    return lambda seed: made(world, num, seed, edit=edit)


def _paying(ends: float, **more: object) -> World:
    """Rewards about 1."""
    world = ordinary(8, ends=ends)
    return replace(world, reward=1 + 0.3 * world.reward, **more)


def _end_looks_like_a_state(world: World) -> World:
    return replace(world, codes=np.vstack([np.eye(5), np.eye(5)[:1]]))


SEEN, UNSEEN = True, False

LOGS: tuple[MisleadingLog, ...] = (
    MisleadingLog("unseen-twin", "π takes an action never logged, in truth the twin of another", unseen_action, SEEN),
    MisleadingLog(
        "unseen-twin-plus-10", "the same with 10 on every reward", lambda s: unseen_action(s, shift=10.0), SEEN
    ),
    MisleadingLog(
        "rare-twin-missing",
        "μ takes the twin once in a thousand steps, and by chance never",
        lambda s: unseen_action(s, rare=0.001, num=40),
        SEEN,
    ),
    MisleadingLog(
        "unseen-action-pays", "the action never logged pays 10 more", lambda s: unseen_action(s, differs=10.0), SEEN
    ),
    MisleadingLog(
        "unseen-action-costs", "the action never logged costs 10 more", lambda s: unseen_action(s, differs=-10.0), SEEN
    ),
    *(
        MisleadingLog(
            f"hidden-clock-{name}-{num}{'-95' if discount > 0.9 else ''}",
            f"rewards turn at a hidden step 5; {num} episodes, truncated at {what}, γ = {discount}",
            lambda seed, cuts=cuts, num=num, discount=discount: hidden_clock(seed, cuts, num, discount),
            SEEN,
        )
        for name, what, cuts in (
            ("even", "40", EVEN),
            ("three", "3, 10 or 40", THREE),
            ("short", "2 … 6 or 40", SHORT),
        )
        for num, discount in ((200, 0.9), (2_000, 0.9), (200, 0.95))
    ),
    MisleadingLog(
        "support-hole", "what pays lies behind an action that μ never takes in one state", support_hole, SEEN
    ),
    MisleadingLog(
        "small-support-hole",
        "the same, π goes through one time in ten",
        lambda s: support_hole(s, through=0.1, arrive=0.3),
        SEEN,
    ),
    MisleadingLog("hidden-step-40", "rewards swing with the hidden step; 40 episodes", hidden_step, SEEN),
    MisleadingLog("discount-999", "an ordinary MDP, γ = 0.999, 100 steps", nearly_undiscounted, SEEN),
    # hidden states
    MisleadingLog("key-and-lock", "a key that opens the lock is not observed", plain(key_and_lock(), 200), SEEN),
    MisleadingLog("key-and-lock-40", "the same with 40 episodes", plain(key_and_lock(), 40), SEEN),
    MisleadingLog(
        "confounder-of-episode",
        "a hidden trait moves both actions and rewards of an episode",
        confounder_of_episode,
        SEEN,
    ),
    MisleadingLog(
        "confounder-of-step",
        "a hidden cause, new at every step, moves action and reward: no column depends on it elsewhere",
        confounder_of_step,
        UNSEEN,
    ),
    MisleadingLog("drift", "rewards fall over the episodes; the truth is that of the last ones", drift, SEEN),
    MisleadingLog("simpson", "good times had other probabilities than bad times, all recorded", simpson, SEEN),
    MisleadingLog(
        "first-choice-decides",
        "a first action seen in 3 % of the episodes decides all, unseen",
        first_choice_decides,
        SEEN,
    ),
    MisleadingLog(
        "one-action-an-episode", "μ repeats one action all along and records ½ each time", one_action_an_episode, SEEN
    ),
    # holes in the support
    MisleadingLog(
        "hole-at-step-3", "μ is deterministic at step 3, π is not by 15 %", lambda s: hole_at_step(s, 3, 0.15), SEEN
    ),
    MisleadingLog(
        "hole-at-step-10",
        "μ is deterministic at step 10, where γᵗ is below ½",
        lambda s: hole_at_step(s, 10, 0.5),
        SEEN,
    ),
    MisleadingLog("lucky-rare-action", "an action seen once or twice was lucky", lucky_rare_action, SEEN),
    MisleadingLog(
        "wear-hidden",
        "wear breaks the machine for π just before the cut and never in the log; wear is not in the observation",
        lambda s: wear(s, shown=False),
        UNSEEN,
    ),
    MisleadingLog(
        "wear-shown",
        "the same, and the wear is observed: π goes where μ never was",
        lambda s: wear(s, shown=True),
        SEEN,
    ),
    # wrong probabilities
    MisleadingLog(
        "recorded-uniform",
        "μ preferred one action, the column says uniform",
        plain(balanced([0.5, 0.5], [0.8, 0.2]), 200),
        SEEN,
    ),
    MisleadingLog("recorded-uniform-memory", "the same where the past is hidden", recorded_uniform_memory, SEEN),
    MisleadingLog(
        "swapped-columns",
        "probabilities of actions 1 and 2 are swapped",
        plain(balanced([0.6, 0.1, 0.3], [0.6, 0.3, 0.1]), 200),
        SEEN,
    ),
    MisleadingLog(
        "slightly-off",
        "every probability is off by a tenth, the mean of ratios by 4 %, and the past is hidden",
        plain(key_and_lock(behaviour=[0.55, 0.45], recorded=rows([0.5, 0.5], 4), target=[0.7, 0.3]), 200),
        SEEN,
    ),
    MisleadingLog(
        "floored-probabilities",
        "probabilities below 0.05 are recorded as 0.05",
        plain(key_and_lock(behaviour=[0.98, 0.02], recorded=rows([0.98, 0.05], 4), target=[0.9, 0.1]), 300),
        SEEN,
    ),
    MisleadingLog("behaviour-learns", "μ changed during the log, the column holds its mean", behaviour_learns, SEEN),
    MisleadingLog(
        "late-actions",
        "actions and their probabilities stand one row too late",
        plain(ordinary(5), 200, shifted("action", "behaviour_log_prob")),
        SEEN,
    ),
    MisleadingLog(
        "clipped-density",
        "the log holds the clipped action and the density there, the reward follows the unclipped one",
        line(Act(0.6), Act(0.0), of_action=(Linear(1.0),), push=0.0, clip=1.0),
        SEEN,
    ),
    MisleadingLog(
        "wrong-std",
        "μ acted with a standard deviation of 0.4, the column says 0.5",
        line(Act(0.2, 0.0, 0.4), Act(0.0, 0.0, 0.4), recorded=Act(0.0, 0.0, 0.5), of_state=(Square(-1.0), Linear(1.0))),
        SEEN,
    ),
    # who leaves the log
    MisleadingLog(
        "failures-leave-shown",
        "who fails, visibly, is truncated",
        plain(failing([0, 0.6], shown=True, cost=-3.0), 300),
        SEEN,
    ),
    MisleadingLog(
        "failures-leave-hidden",
        "who fails, invisibly, is truncated soon",
        plain(failing([0, 0.6], shown=False, cost=-3.0), 300),
        SEEN,
    ),
    MisleadingLog(
        "cost-after-leaving",
        "truncated when about to fail: no cost is logged, but action 1 goes before each truncation",
        plain(failing([0, 1.0], shown=False, cost=-3.0), 300),
        SEEN,
    ),
    MisleadingLog(
        "deaths-as-truncations",
        "terminations are marked truncated; their next observation is zeros",
        plain(_paying(0.05), 200, never_terminated),
        SEEN,
    ),
    MisleadingLog(
        "deaths-as-truncations-blurred",
        "the same, and the next observation is an ordinary one: truncation by chance would look the same",
        plain(_end_looks_like_a_state(_paying(0.05)), 200, never_terminated),
        UNSEEN,
    ),
    MisleadingLog(
        "time-limit-as-termination",
        "all are cut at 20 and marked terminated: an environment with such a clock would look the same",
        plain(_paying(0.0, cuts=(20,)), 200, always_terminated),
        UNSEEN,
    ),
    MisleadingLog(
        "short-ones-missing",
        "episodes of fewer than five steps, mostly crashes, are left out",
        short_ones_missing,
        SEEN,
    ),
    MisleadingLog(
        "crash-row-lost",
        "the row with the cost of a crash is never written: no cost stands in the log",
        crash_row_lost,
        UNSEEN,
    ),
    MisleadingLog(
        "few-go-on",
        "twelve of two hundred episodes go on after step 6; the rewards turn at a hidden step 5",
        lambda s: hidden_clock(s, (2, 3, 4, 5, 6) * 3 + (40,), 200),
        SEEN,
    ),
    MisleadingLog(
        "jittered-copies",
        "every episode is there ten times, off by rounding",
        lambda s: people(s, each=1, num=25, edit=copies(10, 1e-9)),
        SEEN,
    ),
    MisleadingLog(
        "overlapping-windows",
        "episodes are overlapping windows of 25 long ones",
        lambda s: people(s, each=1, num=25, edit=windows(40, 5), truncation=80),
        SEEN,
    ),
    MisleadingLog("ten-people", "200 episodes of ten people", lambda s: people(s, each=20, num=10), SEEN),
    MisleadingLog(
        "optimistic-starts",
        "the log starts elsewhere than the policy will: the log cannot say",
        optimistic_starts,
        UNSEEN,
    ),
    # rewards
    MisleadingLog(
        "catastrophe", "a rare catastrophe, likelier under π, is by luck not in the log", catastrophe, UNSEEN
    ),
    MisleadingLog("long-tail", "log-normal payments, their mean in the tail", long_tail, SEEN),
    MisleadingLog("never-paid", "a sparse reward that the log never shows: all rewards are zero", never_paid, SEEN),
    MisleadingLog("skewed-and-few", "twelve episodes, 20 one time in a hundred", skewed_and_few, SEEN),
    MisleadingLog("twelve-episodes", "an ordinary MDP, twelve episodes", plain(ordinary(4), 12), SEEN),
    MisleadingLog(
        "ten-episodes-noisy",
        "ten episodes of the key and the lock",
        plain(key_and_lock(noise=normal_noise(1.0)), 10),
        SEEN,
    ),
    MisleadingLog("late-fortune", "a fortune five steps beyond the cut: no row tells", late_fortune, UNSEEN),
    MisleadingLog(
        "booked-at-the-end", "all rewards are booked on the last row", plain(_paying(0.0), 200, booked_at_the_end), SEEN
    ),
    MisleadingLog("late-rewards", "rewards stand one row too late", plain(_paying(0.0), 200, late_reward), SEEN),
    MisleadingLog(
        "clipped-rewards",
        "rewards are clipped to ±1",
        plain(
            replace(ordinary(5), reward=2 * ordinary(5).reward, noise=normal_noise(1.0)),
            200,
            rewards_by(lambda r, e: np.clip(r, -1, 1)),
        ),
        SEEN,
    ),
    MisleadingLog(
        "units-change",
        "from the middle of the log on rewards count cents",
        plain(_paying(0.0), 200, rewards_by(lambda r, e: np.where(e >= 100, 100 * r, r))),
        SEEN,
    ),
    MisleadingLog(
        "high-rewards-missing",
        "readings above 1 are lost and filled with zero",
        plain(_paying(0.0, noise=normal_noise(0.5)), 200, rewards_by(lambda r, e: np.where(r > 1.3, 0.0, r))),
        SEEN,
    ),
    # observations
    MisleadingLog(
        "outlier", "one useless column holds 10⁹ once", plain(ordinary(6), 200, more_columns(one_outlier)), SEEN
    ),
    MisleadingLog(
        "useless-columns",
        "a constant column, and thirty columns of noise",
        plain(
            ordinary(6),
            200,
            more_columns(
                lambda c, g: np.hstack([np.full((len(c["step"]), 1), 7.0), g.normal(size=(len(c["step"]), 30))])
            ),
        ),
        SEEN,
    ),
    MisleadingLog(
        "duplicated-columns",
        "every column is there thrice",
        plain(ordinary(6), 200, more_columns(lambda c, g: np.hstack([c["observation"]] * 2))),
        SEEN,
    ),
    MisleadingLog("as-numbers", "twelve states in no order as one number", as_numbers, SEEN),
    # continuous actions
    MisleadingLog(
        "far-in-the-tail",
        "π acts two standard deviations away from μ, where a cliff is",
        line(Act(2.0, 0.0, 0.5), Act(0.0), of_action=(Linear(1.0), Between(-8.0, 2.5)), push=0.0),
        SEEN,
    ),
    MisleadingLog(
        "nearly-deterministic",
        "π hardly varies, on a narrow ridge of the reward",
        line(Act(0.55, 0.0, 0.02), Act(0.0), of_action=(Between(5.0, 0.5, 0.6),), push=0.0),
        SEEN,
    ),
    MisleadingLog(
        "narrow-ridge",
        "a ridge of the reward is narrower than any smooth critic, and π likes it more than μ does",
        line(Act(0.5, 0.0, 0.3), Act(0.0, 0.0, 0.6), of_action=(Between(5.0, 0.45, 0.55),)),
        SEEN,
    ),
    MisleadingLog(
        "slow-drift",
        "actions overlap well, but step by step π reaches states that μ never sees, where a cliff is",
        line(
            Act(0.35, 0.0, 0.5),
            Act(0.0, 0.0, 0.5),
            of_state=(Linear(1.0), Between(-10.0, 1.6)),
            keep=0.9,
            push=0.6,
            noise=0.05,
            start=(0.0, 0.1),
        ),
        SEEN,
    ),
    MisleadingLog(
        "unstable-loop",
        "π makes the state grow, μ keeps it; the cost is its square",
        line(Act(0.0, 0.4, 0.3), Act(0.0, 0.0, 0.3), of_state=(Square(-1.0),), keep=0.85, push=0.45, noise=0.1),
        SEEN,
    ),
    MisleadingLog(
        "rare-cliff",
        "a cliff in the state that μ meets hardly ever and π now and then",
        line(
            Act(0.3, 0.0, 0.5),
            Act(0.0, 0.0, 0.5),
            num=100,
            of_state=(Between(-50.0, 1.0),),
            keep=0.8,
            push=0.3,
            noise=0.1,
            start=(0.0, 0.1),
        ),
        SEEN,
    ),
)
