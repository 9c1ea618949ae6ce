"""Features of many discrete actions, compared: contextual bandits whose true q(s, a) is known.

    shared + deviations   (φ(s), ψ(s) ⊗ C[a]) with principal components ψ: the library's
    random phases         cos(u(s) + v(a)) with random v(a), for the whole kernel k(s, s′) κ(a, a′)
    shared + phases       φ(s), and cos(u(s) + v(a)) with uniform phases for the deviations
    random codes          φ(s) ⊗ (1, two random numbers for each action): low rank

All have the same number of features, the same kernel of states and the same ridge (the best of five for each).
Prints the root mean squared error of q over π, relative to the standard deviation of the true q, and that of the
estimate of E_π[q], and writes the table of docs/spaces.md. Run it with `python tools/action_features.py` (minutes).
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from average_dice.features.fourier import FourierMap
from average_dice.features.state_action import StateActionFeatures, scales
from average_dice.files import write_text_whole

PAGE = Path(__file__).parents[1] / "docs" / "spaces.md"
NUM_COSINES, NUM_INPUTS, NUM_LOGS, NUM_TESTS = 200, 4, 6, 1_000
RIDGES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
LIKENESSES = (0.5, 0.9, 0.99, 0.999)

Features = Callable[[np.ndarray, np.ndarray], np.ndarray]


def shared_and_deviations(
    states: np.ndarray, actions: np.ndarray, number: int, likeness: float, rng: np.random.Generator
) -> Features:
    return replace(StateActionFeatures.draw(states, actions, number, NUM_COSINES, rng), likeness=likeness)


def _num_features(number: int) -> int:
    return min(number, 3) * (1 + NUM_INPUTS + NUM_COSINES)


def random_phases(
    states: np.ndarray, actions: np.ndarray, number: int, likeness: float, rng: np.random.Generator
) -> Features:
    cosines = _num_features(number) - 1 - NUM_INPUTS
    states_map = FourierMap.draw(states, cosines, rng)
    phases = np.sqrt(-np.log(likeness)) * rng.standard_normal((number, cosines))
    scale = np.sqrt(NUM_COSINES / cosines)

    def features(states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        linear = np.column_stack([np.ones(len(states)), (states - states_map.mean) / states_map.std])
        waves = linear @ states_map.waves + phases[actions]
        return np.hstack([linear, scale * np.cos(waves)])

    return features


def shared_and_phases(
    states: np.ndarray, actions: np.ndarray, number: int, likeness: float, rng: np.random.Generator
) -> Features:
    shared_map = FourierMap.draw(states, NUM_COSINES, rng)
    cosines = _num_features(number) - shared_map.size
    own_map = FourierMap.draw(states, cosines, rng)
    phases = rng.uniform(0, 2 * np.pi, (number, cosines))
    shared, own = scales(number, likeness)
    own *= np.sqrt(NUM_COSINES / cosines)

    def features(states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        linear = np.column_stack([np.ones(len(states)), (states - own_map.mean) / own_map.std])
        return np.hstack([shared * shared_map(states), own * np.cos(linear @ own_map.waves + phases[actions])])

    return features


def random_codes(
    states: np.ndarray, actions: np.ndarray, number: int, likeness: float, rng: np.random.Generator
) -> Features:
    states_map = FourierMap.draw(states, NUM_COSINES, rng)
    shared, own = scales(number, likeness)
    codes = own * rng.standard_normal((number, 2)) / np.sqrt(2)

    def features(states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        phi = states_map(states).astype(np.float64)
        return np.hstack([shared * phi, *(codes[actions][:, [one]] * phi for one in range(2))])

    return features


ALTERNATIVES = {
    "shared + deviations": shared_and_deviations,
    "random phases": random_phases,
    "shared + phases": shared_and_phases,
    "random codes": random_codes,
}


def bandit(kind: str, number: int, rng: np.random.Generator) -> tuple[Callable[[np.ndarray], np.ndarray], np.ndarray]:
    """q [state, action] of any states, and the weights of the policy's logits."""
    slopes, constants = rng.normal(size=(number, NUM_INPUTS)) / np.sqrt(NUM_INPUTS), rng.normal(size=number)
    curves = rng.normal(size=(number, NUM_INPUTS))

    def q(states: np.ndarray) -> np.ndarray:
        common = np.sin(2 * states[:, :1]) + states[:, 1:2]
        return {
            "constants": lambda: common + constants,
            "slopes": lambda: common + 0.5 * constants + states @ slopes.T,
            "curves": lambda: common + np.sin(states @ curves.T),
            "alike": lambda: common + 0.1 * constants,
        }[kind]()

    return q, rng.normal(size=(number, NUM_INPUTS))


def main() -> None:
    found: dict[tuple[int, int], list[list[float]]] = {}
    print(f"{'kind':10s}{'actions':>8s}{'rows':>7s}  " + "".join(f"{name:>30s}" for name in ALTERNATIVES))
    for kind in ("constants", "slopes", "curves", "alike"):
        for number in (3, 10, 80, 400):
            for num_rows in (1_000, 5_000):
                print(f"{kind:10s}{number:8d}{num_rows:7d}  ", end="", flush=True)
                row = []
                for make in ALTERNATIVES.values():
                    best = min(
                        (_errors(kind, number, num_rows, make, likeness) for likeness in LIKENESSES),
                        key=lambda one: one[0],
                    )
                    print(f"{best[0]:12.3f} {best[1]:8.4f} {best[2]:7g} ", end="", flush=True)
                    row.append(best[0])
                print()
                found.setdefault((number, num_rows), []).append(row)
    write_table(found)


def write_table(found: dict[tuple[int, int], list[list[float]]]) -> None:
    """The errors of q by number of actions and rows, as geometric means over the kinds of bandits."""
    lines = ["| actions | rows | " + " | ".join(ALTERNATIVES) + " |", "| --- " * (2 + len(ALTERNATIVES)) + "|"]
    for (number, num_rows), rows in found.items():
        means = np.exp(np.mean(np.log(rows), axis=0))
        lines.append(f"| {number} | {num_rows:,} | " + " | ".join(f"{mean:.2f}" for mean in means) + " |")
    text, start, end = PAGE.read_text("utf-8"), "<!-- alternatives -->\n", "<!-- end of alternatives -->"
    before, _, rest = text.partition(start)
    write_text_whole(PAGE, before + start + "\n".join(lines) + "\n" + end + rest.partition(end)[2])


def _errors(
    kind: str, number: int, num_rows: int, make: Callable[..., Features], likeness: float
) -> tuple[float, float, float]:
    squares, values = [], []
    for log in range(NUM_LOGS):
        rng = np.random.default_rng(log)
        q, logits = bandit(kind, number, rng)
        states, tests = rng.normal(size=(num_rows, NUM_INPUTS)), rng.normal(size=(NUM_TESTS, NUM_INPUTS))
        actions = rng.integers(0, number, num_rows)
        rewards = q(states)[np.arange(num_rows), actions] + rng.normal(size=num_rows)
        chances = np.exp(tests @ logits.T)
        chances /= chances.sum(axis=1, keepdims=True)
        chosen = (rng.random((NUM_TESTS, 1)) < chances.cumsum(axis=1)).argmax(axis=1)
        truth = q(tests)[np.arange(NUM_TESTS), chosen]
        features = make(states, actions, number, likeness, rng)
        phi, psi = features(states, actions), features(tests, chosen)
        gram, right = phi.T @ phi, phi.T @ rewards
        found = []
        for ridge in RIDGES:
            penalty = np.full(len(gram), ridge * num_rows)
            penalty[0] = 1e-9
            error = psi @ np.linalg.solve(gram + np.diag(penalty), right) - truth
            found.append((np.mean(error**2) / truth.var(), np.mean(error)))
        squares.append([one[0] for one in found])
        values.append([one[1] for one in found])
    of_ridge = np.sqrt(np.mean(squares, axis=0))
    best = int(of_ridge.argmin())
    return float(of_ridge[best]), float(np.sqrt(np.mean(np.square(values), axis=0)[best])), likeness


if __name__ == "__main__":
    main()
