"""Makes the embedded demonstration: `make demo-data`.

CartPole-v1, a hand-made stochastic controller as target, and the same controller with 30 % of uniform actions mixed
in as behaviour. The log has at least 4,000 transitions, whole episodes cut at 100 steps. The truth comes from on-
policy rollouts to the environment's own end (500 steps, beyond which 0.95ᵗ is nothing).
"""

import json
from pathlib import Path

import gymnasium
import numpy as np

import average_dice as ad
from average_dice.files import written_whole
from average_dice.policies import CategoricalPolicy, Network, mixed_with_uniform

TASK, DISCOUNT, SHARE = "CartPole-v1", 0.95, 0.3
TRANSITIONS, MAX_STEPS, SEED = 4_000, 100, 0
TRUTH_EPISODES = 20_000
OUT = Path(__file__).parents[1] / "src" / "average_dice" / "demo"

# Push towards the side the pole leans and moves to; the gain is low, so the controller hesitates and often drops it.
PUSH_RIGHT = np.array([0.1, 0.3, 4.0, 1.0])


def controller() -> CategoricalPolicy:
    weight = np.stack([np.zeros(4), PUSH_RIGHT])
    return CategoricalPolicy(Network((weight,), (np.zeros(2),)))


def rollouts(policy: CategoricalPolicy, num_episodes: int, seed: int, max_steps: int) -> list[dict[str, np.ndarray]]:
    """Whole episodes of one policy, a dictionary of columns each."""
    generator = np.random.default_rng(seed)
    env = gymnasium.make(TASK)
    episodes = []
    for number in range(num_episodes):
        rows = []
        observation, _ = env.reset(seed=seed * 1_000_000 + number)
        for step in range(max_steps):
            before = observation.astype(np.float64)[None]
            action = policy.sample(before, generator=generator)
            observation, reward, terminated, truncated, _ = env.step(int(action[0]))
            log_prob = policy.log_prob(before, action)[0]
            end = truncated or step == max_steps - 1
            after = observation.astype(np.float64)
            rows.append((number, step, before[0], action[0], float(reward), after, terminated, end, log_prob))
            if terminated or end:
                break
        episodes.append({name: np.array(values) for name, values in zip(COLUMNS, zip(*rows, strict=True), strict=True)})
    env.close()
    return episodes


COLUMNS = (
    "episode",
    "step",
    "observation",
    "action",
    "reward",
    "next_observation",
    "terminated",
    "truncated",
    "behaviour_log_prob",
)


def main() -> None:
    target = controller()
    behaviour = mixed_with_uniform(target, SHARE)
    ad.save_policy(target, OUT / "cartpole.safetensors")

    episodes = rollouts(behaviour, TRANSITIONS // 10, SEED, MAX_STEPS)
    ends = np.cumsum([len(episode["step"]) for episode in episodes])
    kept = episodes[: int(np.searchsorted(ends, TRANSITIONS)) + 1]
    provenance = {
        "task": TASK,
        "behaviour": f"(1 - {SHARE}) target + {SHARE} uniform",
        "max_steps": MAX_STEPS,
        "seed": SEED,
        "gymnasium": gymnasium.__version__,
        "command": "make demo-data",
    }
    columns = {name: np.concatenate([episode[name] for episode in kept]) for name in COLUMNS}
    ad.write_dataset(ad.LoggedDataset(**columns, metadata=provenance), OUT / "cartpole.parquet")

    returns = [
        (1 - DISCOUNT) * float(np.sum(DISCOUNT ** episode["step"] * episode["reward"]))
        for episode in rollouts(target, TRUTH_EPISODES, SEED + 1, 500)
    ]
    truth = {
        "task": TASK,
        "discount": DISCOUNT,
        "value": float(np.mean(returns)),
        "standard_error": float(np.std(returns, ddof=1) / np.sqrt(len(returns))),
        "episodes": TRUTH_EPISODES,
        "seed": SEED + 1,
        "gymnasium": gymnasium.__version__,
        "command": "make demo-data",
    }
    with written_whole(OUT / "cartpole.json") as temporary:
        temporary.write_text(json.dumps(truth, indent=2) + "\n")
    print(json.dumps(truth, indent=2))


if __name__ == "__main__":
    main()
