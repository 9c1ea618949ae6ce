"""A thousand bootstrap refits of the recommended estimator, in units of one fit: `make bench`."""

import time

import jax
import numpy as np

import average_dice as ad
from average_dice.demo import DEMOS, load_demo
from average_dice.estimators import RECOMMENDED, REGISTRY
from average_dice.inference.bootstrap import replicate, resampled_episodes

ROUNDS = 5
NUM_RESAMPLES = 1_000


def main() -> None:
    method = REGISTRY[RECOMMENDED].make()
    key = jax.random.key(0)
    for name in DEMOS:
        demo = load_demo(name)
        problem = ad.Problem(demo.dataset, demo.policy, demo.discount)
        fits = []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            method.fit(ad.Problem(demo.dataset, demo.policy, demo.discount), key=key)
            fits.append(time.perf_counter() - start)
        fit = float(np.median(fits[1:]))
        method.fit(problem, key=key)
        start = time.perf_counter()
        replicate(method, problem, list(resampled_episodes(demo.dataset.num_episodes, NUM_RESAMPLES, 0)), key=key)
        refits = time.perf_counter() - start
        print(f"{name}, {demo.dataset.num_transitions:,} transitions: one fit {fit:.2f} s")
        print(f"  1,000 refits {refits:.0f} s, {refits / fit:.0f} times one fit (target: at most 60)")


if __name__ == "__main__":
    main()
