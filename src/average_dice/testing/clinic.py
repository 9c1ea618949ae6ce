"""A simulated intensive-care unit with exact answers: few admissible doses, many states, a reward only at the end.

A patient has five signs: heart rate, blood pressure, oxygen, glucose, and whether they are diabetic, which never
changes. Together they make 450 states. An action is a dose of a vasopressor, which raises blood pressure, and a dose of
a sedative, which slows the heart; both have side effects. Each has five doses, so there are 25 actions, and the signs
decide which of them are admissible: between 1 and 16, six on average.

In each step every sign moves by at most one level, with probabilities that depend on the signs and on the doses. A
patient whose signs are all normal at low doses is discharged (+1). Three critical signs are fatal (−1). A small
probability of either outcome in every step makes every episode terminate. All other rewards are 0, so at discount 1 the
value of a policy is the share of discharges minus the share of fatal outcomes.

All probabilities are arrays in float64, and the value of a policy solves a linear system:

    J(π) = c p₀ᵀ (I − γ P_π)⁻¹ r_π,      c = 1 − γ, or 1 where γ = 1.

No number here is medical knowledge.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product

import numpy as np
from jaxtyping import Bool, Float, Int

from average_dice.data import LoggedDataset
from average_dice.errors import PolicyError
from average_dice.policies import CategoricalPolicy
from average_dice.policies.base import Observations
from average_dice.problem import Problem
from average_dice.testing._sampling import draw_categorical

PolicyTable = Float[np.ndarray, "state action"]  # π(a|s)
Allowed = Bool[np.ndarray, "state action"]

# The levels of each sign as a monitor shows them.
HEART_RATE = (40.0, 60.0, 80.0, 110.0, 140.0)
BLOOD_PRESSURE = (50.0, 70.0, 90.0, 110.0, 130.0)
OXYGEN = (80.0, 88.0, 96.0)
GLUCOSE = (50.0, 100.0, 220.0)
DIABETIC = (0.0, 1.0)
SIGNS = (HEART_RATE, BLOOD_PRESSURE, OXYGEN, GLUCOSE, DIABETIC)
NUM_DOSES = 5
NUM_ACTIONS = NUM_DOSES**2  # action = NUM_DOSES · vasopressor + sedative

# The state as levels, one row for each state: heart, pressure, oxygen, glucose, diabetic.
LEVELS = np.array(list(product(*(range(len(sign)) for sign in SIGNS))))
VASOPRESSOR, SEDATIVE = np.divmod(np.arange(NUM_ACTIONS), NUM_DOSES)

# The least and the highest admissible dose, by level of the sign that the drug is given for.
VASOPRESSOR_BY_PRESSURE = ((2, 4), (1, 4), (0, 2), (0, 1), (0, 0))
SEDATIVE_BY_HEART = ((0, 0), (0, 1), (0, 2), (0, 3), (1, 4))
SEDATIVE_AT_LOW_OXYGEN = (1, 3, 4)  # the highest dose, by level of oxygen
VASOPRESSOR_AT_FAST_HEART = (4, 4, 4, 4, 3)  # the highest dose, by level of the heart rate

LOW_DOSES = 2  # a patient is discharged at no more than this many doses of both drugs together
FATAL_SIGNS = 3  # critical signs that are fatal at once
FATAL_BY_CHANCE = (0.002, 0.01, 0.05)  # by number of critical signs, below FATAL_SIGNS
DISCHARGED_BY_CHANCE = 0.002


@dataclass(frozen=True, eq=False)
class Observed:
    """How a log shows the states: `table` has the observation of each state."""

    name: str
    table: Float[np.ndarray, "state observation"]
    categorical: tuple[int, ...] = ()  # columns whose numbers are codes

    def states(self, observations: Observations) -> Int[np.ndarray, " row"]:
        """The states with these observations."""
        order, keys = self._order
        place = np.minimum(np.searchsorted(keys, observations @ self._places), len(keys) - 1)
        found = order[place]
        if unknown := int((self.table[found] != observations).any(axis=1).sum()):
            raise PolicyError(f"{unknown} observations are not {self.name} of the clinic. Give a log that shows them.")
        return found

    @cached_property
    def _order(self) -> tuple[np.ndarray, np.ndarray]:
        keys = self.table @ self._places
        order = np.argsort(keys)
        return order, keys[order]

    @property
    def _places(self) -> Float[np.ndarray, " observation"]:
        """Signs are integers below 1,000, so these factors give every state its own integer."""
        return 1000.0 ** np.arange(self.table.shape[1])


VITAL_SIGNS = Observed(
    "vital signs", np.column_stack([np.array(sign)[LEVELS[:, place]] for place, sign in enumerate(SIGNS)])
)
STATE_CODE = Observed("state code", np.arange(len(LEVELS), dtype=np.float64)[:, None], categorical=(0,))


@dataclass(frozen=True, eq=False)
class Clinic:
    """The simulator as arrays.

    - `move`: P[s, a, s′] of the signs; every row sums to one.
    - `discharged` and `fatal`: the probability of the outcome once the signs are those of s′, by action.
    - `start`: the probability of each state on admission.
    - `admissible`: which actions may be taken.
    """

    move: Float[np.ndarray, "state action state"]
    discharged: Float[np.ndarray, "action state"]
    fatal: Float[np.ndarray, " state"]
    start: Float[np.ndarray, " state"]
    admissible: Allowed

    @property
    def num_states(self) -> int:
        """The number of states."""
        return len(self.start)

    def mask(self) -> Allowed:
        """Which actions are admissible in each state."""
        return self.admissible

    @cached_property
    def transition(self) -> Float[np.ndarray, "state action state"]:
        """P[s, a, s′] without termination. The rest of a row is the probability that the episode terminates."""
        return self.move * (1 - self.discharged - self.fatal)

    @cached_property
    def reward(self) -> PolicyTable:
        """The expected reward of each state and action."""
        return np.einsum("sat,at->sa", self.move, self.discharged - self.fatal)

    def state_values(self, policy: PolicyTable, discount: float) -> Float[np.ndarray, " state"]:
        """E_π[Σ γᵗ r] from each state."""
        steps = np.einsum("sa,sat->st", policy, self.transition)
        return np.linalg.solve(np.eye(self.num_states) - discount * steps, (policy * self.reward).sum(axis=1))

    def value(self, policy: PolicyTable, discount: float) -> float:
        """J(π), normalised as in `Problem`: by 1 − γ, or by 1 where γ = 1."""
        normaliser = 1.0 - discount if discount < 1 else 1.0
        return normaliser * float(self.start @ self.state_values(policy, discount))

    @cached_property
    def behaviour(self) -> PolicyTable:
        """μ: a clinician who usually gives doses near those that the signs call for, and sometimes any other."""
        return self._chosen(self._clinical_preference)

    @cached_property
    def targets(self) -> Mapping[str, PolicyTable]:
        """The policies to evaluate, by name.

        - `greedy`: always the action that the clinician prefers.
        - `cautious`, `aggressive`: a clinician who gives lower doses, or higher ones.
        - `improved`: the best policy, except that one step in five is the clinician's.
        """
        preference, doses = self._clinical_preference, VASOPRESSOR + SEDATIVE
        best = _only(self._optimal_actions)
        return {
            "greedy": _only(np.where(self.admissible, preference, -np.inf).argmax(axis=1)),
            "cautious": self._chosen(preference - 0.7 * doses),
            "aggressive": self._chosen(preference + 0.7 * doses),
            "improved": 0.8 * best + 0.2 * self.behaviour,
        }

    def policy(self, table: PolicyTable, observed: Observed = VITAL_SIGNS) -> CategoricalPolicy:
        """A policy object from probabilities, for a log that shows states in this way."""
        with np.errstate(divide="ignore"):
            logits = np.log(table)
        return CategoricalPolicy(lambda observations: logits[observed.states(observations)])

    def problem(self, num_patients: int, seed: int, target: str, discount: float, observed: Observed) -> Problem:
        """A sampled log with the policy of that name."""
        return Problem(self.sample(num_patients, seed, observed), self.policy(self.targets[target], observed), discount)

    def sample(
        self, num_patients: int, seed: int, observed: Observed = VITAL_SIGNS, policy: PolicyTable | None = None
    ) -> LoggedDataset:
        """A log of whole stays, treated by the clinician or by another policy. Every episode terminates."""
        generator = np.random.default_rng(seed)
        policy = self.behaviour if policy is None else policy
        state = draw_categorical(np.broadcast_to(self.start, (num_patients, self.num_states)), generator)
        patient, parts, step = np.arange(num_patients), [], 0
        while len(patient):
            action = draw_categorical(policy[state], generator)
            after = draw_categorical(self.move[state, action], generator)
            uniform, fatal = generator.random(len(patient)), self.fatal[after]
            reward = np.where(uniform < fatal, -1.0, 0.0)
            reward[(uniform >= fatal) & (uniform < fatal + self.discharged[action, after])] = 1.0
            parts.append((patient, np.full_like(patient, step), state, action, reward, after))
            patient, state, step = patient[reward == 0], after[reward == 0], step + 1
        patient, steps, state, action, reward, after = (np.concatenate(part) for part in zip(*parts, strict=True))
        return LoggedDataset.from_arrays(
            episode=patient,
            step=steps,
            observation=observed.table[state],
            action=action,
            reward=reward,
            next_observation=observed.table[after],
            terminated=reward != 0,
            behaviour_log_prob=np.log(policy[state, action]),
            action_mask=self.mask()[state],
            categorical=observed.categorical,
            metadata={"source": "average_dice.testing.clinic", "patients": num_patients, "seed": seed},
        )

    @property
    def _clinical_preference(self) -> PolicyTable:
        """How much the clinician likes each action: less with the squared distance from what the signs call for."""
        heart, pressure = LEVELS[:, 0, None], LEVELS[:, 1, None]
        wanted_vasopressor, wanted_sedative = 1.2 * (2.2 - pressure), 1.0 * (heart - 1.8)
        return -((VASOPRESSOR - wanted_vasopressor) ** 2 + (SEDATIVE - wanted_sedative) ** 2) / 2

    def _chosen(self, preference: PolicyTable, epsilon: float = 0.1) -> PolicyTable:
        """Softmax over admissible actions; a share of `epsilon` is spread evenly over them."""
        preference = np.where(self.admissible, preference, -np.inf)
        soft = np.exp(preference - preference.max(axis=1, keepdims=True))
        evenly = self.admissible / self.admissible.sum(axis=1, keepdims=True)
        return (1 - epsilon) * soft / soft.sum(axis=1, keepdims=True) + epsilon * evenly

    @property
    def _optimal_actions(self) -> Int[np.ndarray, " state"]:
        """Policy iteration at discount 1. It ends because every policy terminates and there are finitely many."""
        actions = self.admissible.argmax(axis=1)
        while True:
            after = self.state_values(_only(actions), 1.0)
            q = np.where(self.admissible, self.reward + self.transition @ after, -np.inf)
            now = np.take_along_axis(q, actions[:, None], axis=1)[:, 0]
            better = np.where(q.max(axis=1) > now + 1e-10, q.argmax(axis=1), actions)  # equal actions do not alternate
            if (better == actions).all():
                return actions
            actions = better


@cache
def clinic() -> Clinic:
    """The simulator; made once."""
    abnormal = LEVELS[:, :4] != (2, 2, 2, 1)
    critical = (np.isin(LEVELS[:, :2], (0, 4)).sum(axis=1) + (LEVELS[:, 2:4] == 0).sum(axis=1)).astype(int)
    is_fatal = critical >= FATAL_SIGNS
    fatal = np.where(is_fatal, 1.0, np.array(FATAL_BY_CHANCE)[np.minimum(critical, FATAL_SIGNS - 1)])
    low_doses = (VASOPRESSOR + SEDATIVE <= LOW_DOSES)[:, None]
    by_chance = np.where(is_fatal, 0.0, DISCHARGED_BY_CHANCE)
    discharged = np.where(low_doses & ~abnormal.any(axis=1), 1 - fatal, by_chance)
    return Clinic(_moves(), discharged, fatal, _admissions(is_fatal), _admissible())


def _admissible() -> Allowed:
    heart, pressure, oxygen = LEVELS[:, 0], LEVELS[:, 1], LEVELS[:, 2]
    low, high = np.array(VASOPRESSOR_BY_PRESSURE)[pressure].T
    high = np.minimum(high, np.array(VASOPRESSOR_AT_FAST_HEART)[heart])
    allowed = (low[:, None] <= VASOPRESSOR) & (high[:, None] >= VASOPRESSOR)
    low, high = np.array(SEDATIVE_BY_HEART)[heart].T
    high = np.minimum(high, np.array(SEDATIVE_AT_LOW_OXYGEN)[oxygen])
    return allowed & (low[:, None] <= SEDATIVE) & (high[:, None] >= SEDATIVE)


def _moves() -> Float[np.ndarray, "state action state"]:
    """Signs move independently, given the state before and the doses."""
    heart, pressure, _, glucose, diabetic = LEVELS.T[:, :, None]
    shape = (len(LEVELS), NUM_ACTIONS)
    vasopressor, sedative = np.broadcast_to(VASOPRESSOR, shape), np.broadcast_to(SEDATIVE, shape)
    returns = 0.08  # towards normal without treatment
    heart_up = 0.06 + 0.04 * vasopressor + 0.10 * (pressure <= 1) + returns * (heart < 2)
    heart_down = 0.04 + 0.10 * sedative + returns * (heart > 2)
    pressure_up = 0.04 + 0.13 * vasopressor + returns * (pressure < 2)
    pressure_down = 0.12 + 0.05 * sedative + returns * (pressure > 2)
    oxygen_up = 0.35 - 0.05 * sedative
    oxygen_down = 0.05 + 0.04 * sedative + 0.06 * (pressure == 0)
    leaves, comes_back = np.where(diabetic, 0.08, 0.03), np.where(diabetic, 0.25, 0.45)
    glucose_up = np.where(glucose == 0, comes_back, leaves) + 0.02 * vasopressor
    glucose_down = np.broadcast_to(np.where(glucose == 2, comes_back, leaves), shape)
    found = np.ones((*shape, len(LEVELS)))
    ups = (heart_up, pressure_up, oxygen_up, glucose_up)
    downs = (heart_down, pressure_down, oxygen_down, glucose_down)
    for sign, (up, down) in enumerate(zip(ups, downs, strict=True)):
        found *= _moves_of(LEVELS[:, sign], up, down)
    return found * (diabetic[:, :, None] == LEVELS[:, 4])


def _moves_of(
    level: Int[np.ndarray, " state"], up: Float[np.ndarray, "state action"], down: Float[np.ndarray, "state action"]
) -> Float[np.ndarray, "state action state"]:
    """P[s, a, level of s′] of one sign: one level up, one level down, or none. Ends of the scale hold it."""
    up = np.where(level < level.max(), up.T, 0.0).T
    down = np.where(level > 0, down.T, 0.0).T
    change = level[None, :] - level[:, None]  # [state, state]
    by_change = np.stack([down, 1 - up - down, up])  # [change, state, action]
    moved = by_change[np.clip(change + 1, 0, 2), np.arange(len(level))[:, None]]  # [state, state, action]
    return np.where((np.abs(change) <= 1)[:, :, None], moved, 0.0).transpose(0, 2, 1)


def _admissions(is_fatal: Bool[np.ndarray, " state"]) -> Float[np.ndarray, " state"]:
    """Sick patients: a fast heart, low blood pressure, little oxygen; one in five is diabetic."""
    by_level = (
        (0.02, 0.08, 0.20, 0.40, 0.30),
        (0.30, 0.40, 0.20, 0.08, 0.02),
        (0.25, 0.45, 0.30),
        (0.10, 0.55, 0.35),
        (0.80, 0.20),
    )
    weight = np.prod([np.array(one)[LEVELS[:, sign]] for sign, one in enumerate(by_level)], axis=0)
    sick = (LEVELS[:, :4] != (2, 2, 2, 1)).sum(axis=1) >= 2
    weight = np.where(sick & ~is_fatal, weight, 0.0)
    return weight / weight.sum()


def _only(actions: Int[np.ndarray, " state"]) -> PolicyTable:
    """The policy that always takes these actions."""
    return np.eye(NUM_ACTIONS)[actions]
