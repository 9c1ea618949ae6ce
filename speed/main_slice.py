"""A slice of the main experiment against plain PyTorch loops of the same length, in the same run: `make bench`.

Average-DICE, deep TD and BestDICE on two logs of Hopper, for as many steps as the standard preset says: by the command
that runs the experiment (one process a core; with start-up, compilation and learning curves), and by PyTorch, one run
after the other on all cores (without curves). Also the matrix products of 512 × 256 by 256 × 256 that these steps need,
on all cores: no implementation of the same steps can be faster.
"""

import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
from against_pytorch import torch_average_dice, torch_best_dice, torch_td

import average_dice as ad
from average_dice.demo import load_demo
from average_dice.experiments.executors import local
from average_dice.experiments.main import MAIN
from average_dice.experiments.presets import load_plan
from average_dice.experiments.runner import run_experiment
from average_dice.ray_cluster import num_cores

NUM_LOGS = 2
PEERS = {"average-dice-paper": torch_average_dice, "td": torch_td, "best-dice": torch_best_dice}
# In each step: one forward and two backward for each network and batch of inputs (BestDICE: Q at pairs, at next pairs
# and at starts, and ζ at pairs); one for the target network of TD.
PRODUCTS = {"average-dice-paper": 3, "td": 4, "best-dice": 12}
TIMED = 20_000


def bare_product(job: object) -> list[dict[str, float]]:
    """Seconds of one matrix product in a worker while all workers are busy."""
    x, weights = jnp.full((512, 256), 1e-3), jnp.full((256, 256), 1e-3)
    run = jax.jit(lambda x: jax.lax.fori_loop(0, TIMED, lambda _, x: x @ weights, x))
    run(x).block_until_ready()
    start = time.perf_counter()
    run(x).block_until_ready()
    return [{"seconds": (time.perf_counter() - start) / TIMED}]


def main() -> None:
    standard = load_plan("standard", MAIN)
    plan = replace(standard, tasks=("Hopper-v5",), estimators=tuple(PEERS), logs=0, trained_logs=NUM_LOGS)
    demo = load_demo("Hopper-v5")
    problem = ad.Problem(demo.dataset, demo.policy, 0.95)
    for peer in PEERS.values():
        peer(problem, 10)()  # warms up
    start = time.perf_counter()
    for _ in range(NUM_LOGS):
        for name, peer in PEERS.items():
            peer(problem, plan.steps[name])()
    torch_time = time.perf_counter() - start
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        run_experiment(MAIN, plan, Path(folder), local())
    ours = time.perf_counter() - start
    jobs = list(MAIN.jobs(plan))[: num_cores()]
    products = NUM_LOGS * sum(plan.steps[name] * number for name, number in PRODUCTS.items())
    bare = products * max(rows[0]["seconds"] for _, rows in local()(bare_product, jobs)) / len(jobs)
    print(f"a slice of main, {NUM_LOGS} logs of Hopper, three methods, {os.cpu_count()} cores")
    print(f"  PyTorch, one run after the other   {torch_time:6.0f} s")
    print(f"  ours, one thread a process         {ours:6.0f} s   ratio {torch_time / ours:.2f} (target 3)")
    print(f"  the matrix products alone          {bare:6.0f} s   ratio {torch_time / bare:.2f}: no more is possible")


if __name__ == "__main__":
    main()
