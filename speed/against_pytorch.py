"""Training steps a second against a plain PyTorch loop of the same work, in the same run: `make bench`.

Average-DICE, deep TD and BestDICE on the embedded Hopper log: networks 2×256, batch 512, one next action of π for each
row, and all start states in every step.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import numpy as np
import torch

import average_dice as ad
from average_dice.demo import load_demo
from average_dice.estimators import AverageDICE, DeepTD, SaddlePoint
from average_dice.estimators._shared.network_inputs import NetworkInputs
from average_dice.labels import plain
from average_dice.models import MLPRegression

STEPS, ROUNDS, BATCH = 400, 3, 512


def networks(width: int, number: int) -> list[torch.nn.Module]:
    def one() -> torch.nn.Module:
        return torch.nn.Sequential(
            torch.nn.Linear(width, 256),
            torch.nn.ReLU(),
            torch.nn.Linear(256, 256),
            torch.nn.ReLU(),
            torch.nn.Linear(256, 1),
        )

    return [one() for _ in range(number)]


def tensors(problem: ad.Problem) -> dict[str, torch.Tensor]:
    inputs = NetworkInputs.of(problem)
    columns = {name: inputs.transitions[name] for name in ("x", "after", "r", "m")} | {"start": inputs.starts["x"]}
    return {name: torch.tensor(np.asarray(column)) for name, column in columns.items()}


def torch_average_dice(problem: ad.Problem, num_steps: int = STEPS) -> Callable[[], np.ndarray]:
    """The paper's method: plain labels on raw states, λ₁ = 0.001, λ₂ = 0.5, the dual variable by plain steps.

    It returns the ratio on all rows.
    """
    x = torch.tensor(problem.dataset.observation, dtype=torch.float32)
    label = np.exp(np.minimum(plain(problem) + problem.dataset.step * np.log(problem.discount), 20.0))
    y = torch.tensor(label, dtype=torch.float32)
    (network,) = networks(x.shape[1], 1)
    optimiser = torch.optim.Adam(network.parameters(), lr=5e-4)

    def run() -> np.ndarray:
        dual = torch.zeros(())
        for _ in range(num_steps):
            chosen = torch.randint(len(x), (BATCH,))
            f = network(x[chosen])[:, 0]
            missing = problem.scale * f.mean() - 1
            penalty = sum((parameter**2).sum() for parameter in network.parameters())
            loss = 0.5 * ((f - y[chosen]) ** 2).mean() + 0.0005 * penalty + 0.5 * dual * missing
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            dual = dual + 0.1 * (missing.detach() - dual)
        with torch.no_grad():
            return problem.scale * network(x)[:, 0].numpy().astype(np.float64)

    return run


def torch_td(problem: ad.Problem, num_steps: int = STEPS) -> Callable[[], None]:
    rows = tensors(problem)
    network, target_network = networks(rows["x"].shape[1], 2)
    target_network.load_state_dict(network.state_dict())
    optimiser = torch.optim.Adam(network.parameters(), lr=3e-4)

    def run() -> None:
        for _ in range(num_steps):
            chosen = torch.randint(len(rows["x"]), (BATCH,))
            action = torch.randint(rows["after"].shape[1], (BATCH,))
            with torch.no_grad():
                after = target_network(rows["after"][chosen, action])[:, 0]
                target = (1 - problem.discount) * rows["r"][chosen] + rows["m"][chosen] * after
            loss = 0.5 * ((network(rows["x"][chosen])[:, 0] - target) ** 2).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            with torch.no_grad():
                for one, other in zip(target_network.parameters(), network.parameters(), strict=True):
                    one.add_(other - one, alpha=0.005)

    return run


def torch_best_dice(problem: ad.Problem, num_steps: int = STEPS) -> Callable[[], None]:
    rows = tensors(problem)
    q, zeta = networks(rows["x"].shape[1], 2)
    lam = torch.zeros((), requires_grad=True)
    down = torch.optim.Adam([*q.parameters(), lam], lr=1e-4, betas=(0.0, 0.999))
    up = torch.optim.Adam(zeta.parameters(), lr=1e-4, betas=(0.0, 0.999), maximize=True)
    players = [*q.parameters(), *zeta.parameters(), lam]
    averages = [player.detach().clone() for player in players]
    before = [torch.zeros_like(player) for player in players]
    scale = 1 / (1 - problem.discount)

    def run() -> None:
        for _ in range(num_steps):
            chosen = torch.randint(len(rows["x"]), (BATCH,))
            action = torch.randint(rows["after"].shape[1], (BATCH,))
            x, ratio = rows["x"][chosen], zeta(rows["x"][chosen])[:, 0] ** 2
            after = scale * q(rows["after"][chosen, action])[:, 0]
            balance = rows["r"][chosen] + rows["m"][chosen] * after - scale * q(x)[:, 0] - lam
            value = q(rows["start"]).mean() + lam + (ratio * balance - 0.5 * ratio**2).mean()
            down.zero_grad()
            up.zero_grad()
            value.backward()
            for index, player in enumerate(players):  # optimistic updates, running averages
                now = player.grad.clone()
                player.grad.mul_(2).sub_(before[index])
                before[index] = now
                averages[index].lerp_(player.detach(), 0.002)
            down.step()
            up.step()

    return run


def ours(method: ad.Estimator, problem: ad.Problem, num_seeds: int) -> Callable[[], object]:
    keys = [jax.random.key(seed) for seed in range(num_seeds)]
    return lambda: method.fit_seeds(problem, keys=keys)


def main() -> None:
    demo = load_demo("Hopper-v5")
    problem = ad.Problem(demo.dataset, demo.policy, 0.95)
    paper = AverageDICE.paper()
    length: dict[str, Any] = {"num_steps": STEPS, "num_checkpoints": 1}
    for name, short, peer in (
        ("Average-DICE", replace(paper, model=MLPRegression(**length)), torch_average_dice(problem)),
        ("deep TD", replace(DeepTD(), **length), torch_td(problem)),
        ("BestDICE", replace(SaddlePoint.best_dice(), **length), torch_best_dice(problem)),
    ):
        runs = (peer, ours(short, problem, 1), ours(short, problem, 5))
        for run in runs:
            run()  # compiles
        times = np.empty((ROUNDS, len(runs)))
        for row in times:
            for index, run in enumerate(runs):
                begin = time.perf_counter()
                run()
                row[index] = time.perf_counter() - begin
        torch_time, one, five = times.min(axis=0)
        five /= 5
        print(f"{name}, 2×256, batch {BATCH}")
        print(f"  plain PyTorch loop          {STEPS / torch_time:8.0f} steps a second")
        print(f"  ours, one seed              {STEPS / one:8.0f} steps a second   ratio {torch_time / one:.2f}")
        print(f"  ours, five seeds at once    {STEPS / five:8.0f} steps a second   ratio {torch_time / five:.2f}")
    print("  (target for deep TD and BestDICE: a ratio of at least 1.5)")


if __name__ == "__main__":
    main()
