"""The recommended estimator against other libraries on the same logs, in time and in error: `make peers`.

- a plain PyTorch loop of the paper's method: 25,000 steps, two hidden layers of 256, batches of 512, plain labels
- d3rlpy's fitted Q evaluation at its defaults, 10,000 steps
- SCOPE-RL's self-normalised per-decision importance sampling, and its doubly robust estimator with d3rlpy's Q
- the bare matrix product ΦᵀΦ of our features

Each fit runs in a process of its own, on several logs of each setting. Time and memory are the least over the logs, the
error is the root mean square of value − truth. A package that is not installed is left out.

    pip install torch d3rlpy scope-rl
    python speed/peers.py
    python speed/peers.py --logs 1 --only CartPole-v1 --steps 500

Finished fits are in results/peers.json, and are not repeated without `--again`; the table of docs/speed.md is made of
them.
"""

import argparse
import json
import runpy
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import numpy as np
from measuring import (
    ROOT,
    Numbers,
    bare_products,
    first_episodes,
    in_process,
    large_log,
    measured,
    read_results,
    write_between,
    write_results,
)

import average_dice as ad
from average_dice.estimators import AverageDICE, Blend
from average_dice.experiments.jobs import Setting
from average_dice.experiments.measurements import log_of
from average_dice.policies import load_policy
from average_dice.tasks import find_task, target_policy, true_value

DISCOUNT, WARM_UP_ROWS, TRUTH_BATCHES = 0.95, 1_000, 200
PAPER_STEPS, FQE_STEPS = 25_000, 10_000
LARGE, LARGE_ROWS = "synthetic", 40_000
LOGS = ("CartPole-v1", "Hopper-v5", LARGE)
STORE, PAGE = ROOT / "results" / "peers.json", ROOT / "docs" / "speed.md"
BEGIN, END = "<!-- peers -->", "<!-- end of peers -->"
OURS, PRODUCT = "ours: average-dice-blend", "bare products ΦᵀΦ"
Fitting = Callable[[ad.Problem, int, int | None], Callable[[], float]]  # (problem, seed, steps) → the work


def problem_of(log: str, seed: int, folder: Path) -> ad.Problem:
    """The log with this seed, and the policy to evaluate."""
    if log == LARGE:
        made = large_log(folder, LARGE_ROWS, seed)
        return ad.Problem(ad.read_dataset(made / "log"), load_policy(made / "target.safetensors"), DISCOUNT)
    one = Setting.of(find_task(log))
    return ad.Problem(log_of(log, one.transitions, one.max_steps, one.noise, seed), target_policy(log), DISCOUNT)


def truth_of(log: str) -> tuple[float, float]:
    """J(π) and its standard error."""
    if log == LARGE:
        tool = runpy.run_path(str(ROOT / "tools" / "make_large_log.py"))
        return tool["true_value"](DISCOUNT, TRUTH_BATCHES)
    return true_value(log, DISCOUNT)


def ours(problem: ad.Problem, seed: int, steps: int | None) -> Callable[[], float]:
    few = first_episodes(problem.dataset, WARM_UP_ROWS)
    Blend().fit(ad.Problem(few, problem.policy, DISCOUNT), key=jax.random.key(0))  # warms up: imports, compilation
    return lambda: Blend().fit(problem, key=jax.random.key(seed)).value


def pytorch_loop(problem: ad.Problem, seed: int, steps: int | None) -> Callable[[], float]:
    import torch
    from against_pytorch import torch_average_dice

    torch.manual_seed(seed)
    torch_average_dice(problem, 20)()  # warms up
    run = torch_average_dice(problem, steps or PAPER_STEPS)
    return lambda: AverageDICE.paper().value(problem, run())


def d3rlpy_fqe(problem: ad.Problem, seed: int, steps: int | None) -> Callable[[], float]:
    from d3rlpy_fqe import train, value_at_starts

    return lambda: value_at_starts(train(problem, seed, steps or FQE_STEPS), problem)


def scope_rl_sn_pdis(problem: ad.Problem, seed: int, steps: int | None) -> Callable[[], float]:
    from scope_rl.ope.discrete import SelfNormalizedPDIS
    from scope_rl_inputs import inputs_of

    return lambda: (1 - DISCOUNT) * SelfNormalizedPDIS().estimate_policy_value(**inputs_of(problem))


def scope_rl_sn_dr(problem: ad.Problem, seed: int, steps: int | None) -> Callable[[], float]:
    from d3rlpy_fqe import train
    from scope_rl.ope.discrete import SelfNormalizedDR
    from scope_rl_inputs import inputs_of

    def run() -> float:
        inputs = inputs_of(problem, train(problem, seed, steps or FQE_STEPS))
        return (1 - DISCOUNT) * SelfNormalizedDR().estimate_policy_value(**inputs)

    return run


METHODS: dict[str, tuple[Fitting, tuple[str, ...]]] = {  # with the packages that they need
    OURS: (ours, ()),
    "plain PyTorch loop, the paper's method": (pytorch_loop, ("torch",)),
    "d3rlpy, fitted Q evaluation": (d3rlpy_fqe, ("torch", "d3rlpy")),
    "SCOPE-RL, SNPDIS": (scope_rl_sn_pdis, ("scope_rl",)),
    "SCOPE-RL, SNDR": (scope_rl_sn_dr, ("torch", "d3rlpy", "scope_rl")),
}


def measure(method: str, log: str, seed: int, steps: int | None, threads: int, folder: Path) -> Numbers:
    """In this process. Only the first method has the bare products beside it."""
    problem = problem_of(log, seed, folder)
    if "torch" in METHODS[method][1]:
        import torch

        torch.set_num_threads(threads)
    found, value = measured(METHODS[method][0](problem, seed, steps))
    products = bare_products(problem, problem.dataset.num_transitions) if method == OURS else {}
    return {**found, "value": float(value), **products}


def applies(method: str, log: str) -> bool:
    """SCOPE-RL needs kernels for continuous actions, with bandwidths to choose: only discrete ones are compared."""
    return not (method.startswith("SCOPE-RL") and log == "Hopper-v5")


def table(results: dict[str, Any]) -> str:
    """For each log and method: times, how many times longer than ours, MiB and the error."""
    lines = [
        "| log | method | s | ratio to ours | processor s | ratio to ours | MiB | error |",
        "|" + " --- |" * 8,
    ]
    for log in (one for one in LOGS if one in results):
        fits, truth = results[log]["fits"], results[log]["truth"]
        of_ours = summary(list(fits[OURS].values()), truth)
        for method in (one for one in METHODS if one in fits):
            one = summary(list(fits[method].values()), truth)
            error = shown_error(one["error"], results[log]["truth_error"])
            lines.append(_line(log, method, one, of_ours, f"{one['MiB']:,.0f} | {error}"))
        product = {"seconds": of_ours["product_seconds"], "busy": of_ours["product_busy"]}
        lines.append(_line(log, PRODUCT, product, of_ours, "– | –"))
    return "\n".join(lines)


def _line(log: str, method: str, one: Numbers, of_ours: Numbers, rest: str) -> str:
    both = " | ".join(f"{one[unit]:.2f} | {one[unit] / of_ours[unit]:.2f}" for unit in ("seconds", "busy"))
    return f"| {log} | {method} | {both} | {rest} |"


def shown_error(error: float, truth_error: float) -> str:
    """An error within two standard errors of the true value is not known better than that."""
    return f"{error:.4f}" if error >= 2 * truth_error else f"< {2 * truth_error:.4f}"


def summary(fits: list[Numbers], truth: float) -> Numbers:
    """The least of times and memory, and the root mean square error."""
    errors = np.array([one["value"] for one in fits]) - truth
    least = {name: min(one[name] for one in fits) for name in fits[0] if name not in ("value", "load")}
    return {**least, "error": float(np.sqrt(np.mean(errors**2)))}


def remarks(results: dict[str, Any]) -> str:
    """The true values, and under what load the times were measured."""
    results = {log: results[log] for log in LOGS if log in results}
    truths = "; ".join(f"{log} {one['truth']:.4f} ± {one['truth_error']:.4f}" for log, one in results.items())
    loads = [fit["load"] for one in results.values() for fits in one["fits"].values() for fit in fits.values()]
    numbers = sorted({len(fits) for one in results.values() for fits in one["fits"].values()})
    few = " A few logs say little about errors: who is best changes with the log." if min(numbers) < 10 else ""
    return (
        f"- True values with standard errors: {truths}. Logs of each setting: {' or '.join(map(str, numbers))}.{few}\n"
        f"- Measured at a load of {min(loads):.1f} to {max(loads):.1f} when the work began."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=LOGS, default=LOGS, help="these logs alone")
    parser.add_argument("--logs", type=int, default=3, help="number of logs of each setting")
    parser.add_argument("--steps", type=int, help="fewer training steps, to try the script")
    # All cores of a busy machine took 40 times as long as one: PyTorch's threads wait for each other.
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch")
    parser.add_argument("--folder", type=Path, default=Path("large-logs"), help="of the large logs")
    parser.add_argument("--store", type=Path, default=STORE, help="the finished fits")
    parser.add_argument("--again", action="store_true", help="measure finished ones anew")
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        method, log, seed = given.measure
        print(json.dumps(measure(method, log, int(seed), given.steps, given.threads, given.folder)))
        return
    if given.steps and given.store == STORE:
        parser.error("--steps is for trying: give a --store of its own.")
    missing = {package for _, needed in METHODS.values() for package in needed if find_spec(package) is None}
    for package in sorted(missing):
        print(f"{package} is not installed: its methods are left out.")
    methods = [name for name, (_, needed) in METHODS.items() if not missing & set(needed)]
    results = read_results(given.store)
    for log in given.only:
        if log not in results:
            truth, error = truth_of(log)
            results[log] = {"truth": truth, "truth_error": error, "fits": {}}
        for seed in range(given.logs):
            if log == LARGE:
                large_log(given.folder, LARGE_ROWS, seed)
            for method in (one for one in methods if applies(one, log)):
                fits = results[log]["fits"].setdefault(method, {})
                if str(seed) in fits and not given.again:
                    continue
                steps = ["--steps", str(given.steps)] if given.steps else []
                options = ["--threads", str(given.threads), "--folder", str(given.folder), *steps]
                arguments = ["--measure", method, log, str(seed), *options]
                fits[str(seed)] = in_process(__file__, *arguments)
                write_results(given.store, results)
                print(f"{log} {seed}, {method}: {fits[str(seed)]['seconds']:.2f} s", flush=True)
    print(f"{table(results)}\n\n{remarks(results)}")
    if given.store == STORE:
        write_between(PAGE, BEGIN, END, f"{table(results)}\n\n{remarks(results)}")


if __name__ == "__main__":
    main()
