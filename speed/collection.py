"""Collecting a log of Hopper-v5, compared with a plain Gymnasium loop of the same policy: `make bench`."""

import time

import gymnasium
import numpy as np

from average_dice.tasks import collect, fastest_envs, find_task, target_policy

TASK = find_task("Hopper-v5")
SIZES, MAX_STEPS, ROUNDS = (4_000, 16_000), 100, 5


def plain_loop(num_transitions: int) -> int:
    """A plain loop: one environment, one step at a time, whole episodes."""
    behaviour = TASK.behaviour(target_policy(TASK.name))
    generator = np.random.default_rng(0)
    env = gymnasium.make(TASK.name, max_episode_steps=MAX_STEPS)
    rows: list[tuple[object, ...]] = []
    while len(rows) < num_transitions:
        observation, _ = env.reset(seed=len(rows))
        ended = False
        while not ended:
            seen = observation[None]
            action = behaviour.sample(seen, generator=generator)
            log_prob = behaviour.log_prob(seen, action)[0]
            after, reward, terminated, truncated, _ = env.step(np.clip(action[0], -1, 1))
            rows.append((observation, action[0], reward, after, terminated, truncated, log_prob))
            observation, ended = after, terminated or truncated
    env.close()
    return len(rows)


def ours(num_transitions: int) -> int:
    return collect(
        TASK,
        target_policy(TASK.name),
        num_transitions=num_transitions,
        max_steps=MAX_STEPS,
        noise=TASK.noise,
        seed=0,
        make_envs=fastest_envs(),
    ).num_transitions


def main() -> None:
    for num_transitions in SIZES:
        speeds = np.empty((ROUNDS, 2))
        for row in speeds:
            for index, run in enumerate((plain_loop, ours)):
                start = time.perf_counter()
                row[index] = run(num_transitions) / (time.perf_counter() - start)
        plain, collected = speeds.max(axis=0)
        print(f"collecting {num_transitions:,} transitions of {TASK.name}, {fastest_envs().__name__}")
        print(f"  plain Gymnasium loop        {plain:8.0f} transitions a second")
        print(f"  average-dice collect        {collected:8.0f} transitions a second   ratio {collected / plain:.1f}")
    print("  (target: a ratio of at least 3)")


if __name__ == "__main__":
    main()
