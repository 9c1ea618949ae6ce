"""Seconds of every closed form on the two embedded logs of 4,000 transitions: `make bench`."""

import time

import jax

import average_dice as ad
from average_dice.demo import DEMOS, load_demo
from average_dice.estimators import REGISTRY

ROUNDS = 5


def main() -> None:
    for name in DEMOS:
        demo = load_demo(name)
        problem = ad.Problem(demo.dataset, demo.policy, demo.discount)
        print(f"{name}, {demo.dataset.num_transitions:,} transitions, seconds a fit")
        print("  (targets: below half a second; average-dice-blend, which combines many, below two)")
        for estimator, entry in REGISTRY.items():
            method = entry.make()
            if method.trains:
                continue
            times = []
            for _ in range(ROUNDS):
                start = time.perf_counter()
                method.fit(problem, key=jax.random.key(0))
                times.append(time.perf_counter() - start)
            print(f"  {estimator:24s} {min(times):6.3f}")


if __name__ == "__main__":
    main()
