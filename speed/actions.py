"""Time and memory of the recommended estimator with 2 to 400 discrete actions, on 10,000 rows: `make bench`.

Each number is the least of three runs, each in a process of its own. Seconds; seconds of processors, which a busy
machine changes less; these in units of one matrix product ΦᵀΦ of 10,000 × 600 numbers in the same process. Memory: the
process's peak minus its peak before the fit.

    python speed/actions.py
    python speed/actions.py --rounds 1 --actions 2 80
"""

import argparse
import json
import resource
import subprocess
import sys
import time

import jax
import numpy as np

import average_dice as ad
from average_dice.estimators import Blend
from average_dice.policies.perturbed import mixed_with_uniform

ACTIONS = (2, 10, 25, 80, 400)
SHAPES = {"100 episodes of 100 steps": 100, "10,000 episodes of one step": 1}
NUM_ROWS = 10_000
NUM_OBSERVATIONS = 8
NUM_RESAMPLES = 100
GOALS = """goals: 400 actions cost at most 4 times what 2 actions cost, in time and in memory;
80 actions take at most 5 s and 1 GiB for a fit, and a minute with intervals"""


def logged(num_actions: int, num_steps: int, num_rows: int = NUM_ROWS) -> ad.Problem:
    """A log of a random walk with a random softmax policy π, and actions of π mixed with uniform ones."""
    generator = np.random.default_rng(0)
    weights, push = (generator.standard_normal((num_actions, NUM_OBSERVATIONS)) for _ in range(2))
    policy = ad.CategoricalPolicy(lambda observations: observations @ weights.T)
    behaviour = mixed_with_uniform(policy, 0.5)
    num_episodes = num_rows // num_steps
    state, columns = generator.standard_normal((num_episodes, NUM_OBSERVATIONS)), []
    for _ in range(num_steps):
        action = behaviour.sample(state, generator=generator)
        after = 0.9 * state + 0.1 * push[action] + 0.3 * generator.standard_normal(state.shape)
        reward = np.cos(state[:, 0]) + 0.5 * push[action, 0] + generator.standard_normal(num_episodes)
        columns.append((state, action, reward, after, behaviour.log_prob(state, action)))
        state = after
    # [step, episode, …] to rows, episode by episode
    observation, action, reward, after, log_prob = (
        np.swapaxes(np.array(one), 0, 1).reshape(num_episodes * num_steps, *np.shape(one)[2:])
        for one in zip(*columns, strict=True)
    )
    step = np.tile(np.arange(num_steps), num_episodes)
    log = ad.LoggedDataset(
        episode=np.repeat(np.arange(num_episodes), num_steps),
        step=step,
        observation=observation,
        action=action,
        reward=reward,
        next_observation=after,
        terminated=np.full(len(step), num_steps == 1),
        truncated=(step == num_steps - 1) & (num_steps > 1),
        behaviour_log_prob=log_prob,
    )
    return ad.Problem(log, policy, 0.95)


def work(problem: ad.Problem, what: str) -> None:
    """One fit, or one evaluation with intervals."""
    if what == "fit":
        Blend().fit(problem, key=jax.random.key(0))
    else:
        ad.evaluate(problem.dataset, problem.policy, 0.95, bootstrap=NUM_RESAMPLES)


def measure(what: str, num_actions: int, num_steps: int) -> dict[str, float]:
    """In this process: seconds, products and MiB."""
    work(logged(num_actions, num_steps, 20 * num_steps), "fit")  # warms up: imports, compilation
    problem = logged(num_actions, num_steps)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start, busy = time.perf_counter(), time.process_time()
    work(problem, what)
    seconds, busy = time.perf_counter() - start, time.process_time() - busy
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"seconds": seconds, "busy": busy, "products": busy / product_seconds(), "MiB": (peak - before) / 1024}


def product_seconds() -> float:
    """Processor seconds of ΦᵀΦ; the least of five."""
    phi, times = np.random.default_rng(0).standard_normal((NUM_ROWS, 600)), []
    for _ in range(5):
        start = time.process_time()
        phi.T @ phi
        times.append(time.process_time() - start)
    return min(times)


def least(what: str, num_actions: int, num_steps: int, rounds: int) -> dict[str, float]:
    """The least of several processes."""
    command = [sys.executable, __file__, "--measure", what, str(num_actions), str(num_steps)]
    found = [
        json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout) for _ in range(rounds)
    ]
    return {name: min(one[name] for one in found) for name in found[0]}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--actions", type=int, nargs="+", default=ACTIONS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        what, num_actions, num_steps = given.measure
        print(json.dumps(measure(what, int(num_actions), int(num_steps))))
        return
    print(f"the recommended estimator on {NUM_ROWS:,} rows, least of {given.rounds}\n{GOALS}")
    print("| log | actions | fit, s | processor s | products | MiB | intervals, s | processor s | products | MiB |")
    print(f"|{' --- |' * 10}")
    for shape, num_steps in SHAPES.items():
        for number in given.actions:
            both = [least(what, number, num_steps, given.rounds) for what in ("fit", "evaluate")]
            cells = " | ".join(
                f"{one['seconds']:.1f} | {one['busy']:.1f} | {one['products']:.0f} | {one['MiB']:.0f}" for one in both
            )
            print(f"| {shape} | {number} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
