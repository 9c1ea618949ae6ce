"""Writes a large synthetic log in parts, with the policy to evaluate beside it: for measurements of time and memory.

    python tools/make_large_log.py 4_000_000 large [--seed 0] [--part 1_000_000] [--unsorted]

The folder `large` then holds `log/part-00000.parquet`, …, and the policies `target.safetensors` and
`behaviour.safetensors`. A state of 17 numbers follows s' = A s + B[a] + noise; six actions are drawn from a softmax
that is linear in the state; the reward depends on both. An episode has 100 steps, but terminates when the first number
of the state leaves (−4, 4), which happens in about one of five. The last episode is truncated so that the log has the
rows asked for.

Episodes are simulated some thousand at a time, and each such batch has a seed of its own: the memory does not depend on
the number of rows, and a longer log of the same seed starts with the shorter one (up to its last episode).
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from average_dice import CategoricalPolicy, save_policy
from average_dice.policies import Network

WIDTH, NUM_ACTIONS, NUM_STEPS = 17, 6, 100
EPISODES_AT_ONCE = 2_000
NOISE, START, LIMIT = np.float32(0.3), np.float32(0.5), 4.0  # of a step, of the first state, of its first number
ROW_GROUP = 2**17
NEGLIGIBLE = 1e-6  # true values leave out steps with a smaller γᵗ
Columns = dict[str, np.ndarray]


class World:
    """The matrices of the process and of both policies: the same for every seed."""

    def __init__(self) -> None:
        draw = np.random.default_rng(17)
        rotation = np.linalg.qr(draw.standard_normal((WIDTH, WIDTH)))[0]
        self.transition = (0.95 * rotation).T.astype(np.float32)
        self.push = (0.3 * draw.standard_normal((NUM_ACTIONS, WIDTH))).astype(np.float32)
        self.taste = draw.standard_normal((WIDTH, NUM_ACTIONS)).astype(np.float32)
        self.behaviour = (0.1 * draw.standard_normal((NUM_ACTIONS, WIDTH))).astype(np.float32)
        self.target = self.behaviour + (0.05 * draw.standard_normal((NUM_ACTIONS, WIDTH))).astype(np.float32)

    def policy(self, weight: np.ndarray) -> CategoricalPolicy:
        """The softmax of linear logits."""
        return CategoricalPolicy(Network((weight.astype(np.float64),), (np.zeros(NUM_ACTIONS),)))

    def episodes(self, seed: int, batch: int, policy: np.ndarray | None = None, num_steps: int = NUM_STEPS) -> Columns:
        """All columns but `episode`, as arrays [episode, step, …], with rows after the end that do not count.

        `policy`: the weights of another policy than the behaviour policy.
        """
        draw = np.random.default_rng([seed, batch])
        number = EPISODES_AT_ONCE
        state = np.empty((num_steps + 1, number, WIDTH), np.float32)
        state[0] = START * draw.standard_normal((number, WIDTH), np.float32)
        action = np.empty((num_steps, number), np.int64)
        log_prob = np.empty((num_steps, number))
        everyone, weights = np.arange(number), (self.behaviour if policy is None else policy).T.astype(np.float64)
        for step in range(num_steps):
            logits = state[step].astype(np.float64) @ weights  # as the policy computes them
            weight = np.exp(logits)
            upper = np.cumsum(weight, axis=1)
            action[step] = (draw.random((number, 1)) * upper[:, -1:] >= upper[:, :-1]).sum(axis=1)
            log_prob[step] = logits[everyone, action[step]] - np.log(upper[:, -1])
            noise = NOISE * draw.standard_normal((number, WIDTH), np.float32)
            state[step + 1] = state[step] @ self.transition + self.push[action[step]] + noise
        taste = (state[:-1].reshape(-1, WIDTH) @ self.taste).reshape(num_steps, number, NUM_ACTIONS)
        reward = np.tanh(np.take_along_axis(taste, action[:, :, None], axis=2)[:, :, 0]).astype(np.float64)
        columns = {
            "observation": state[:-1],
            "action": action,
            "reward": reward,
            "next_observation": state[1:],
            "terminated": np.abs(state[1:, :, 0]) >= LIMIT,
            "behaviour_log_prob": log_prob,
        }
        return {name: values.swapaxes(0, 1) for name, values in columns.items()}


def true_value(discount: float, num_batches: int = 50, seed: int = 1_000_000) -> tuple[float, float]:
    """(1 − γ) Σ γᵗ r of the target policy and its standard error, from 2,000 episodes a batch."""
    world, num_steps = World(), int(np.ceil(np.log(NEGLIGIBLE) / np.log(discount)))
    returns = []
    for batch in range(num_batches):
        columns = world.episodes(seed, batch, world.target, num_steps)
        ended = np.maximum.accumulate(columns["terminated"], axis=1)
        reward = columns["reward"] * np.column_stack([np.ones(EPISODES_AT_ONCE, bool), ~ended[:, :-1]])
        returns.append((1 - discount) * reward @ discount ** np.arange(num_steps))
    every = np.concatenate(returns)
    return float(every.mean()), float(every.std(ddof=1) / len(every) ** 0.5)


def batches(num_rows: int, seed: int) -> Iterator[Columns]:
    """The log, some thousand episodes at a time, sorted by episode and step."""
    world, rows, batch = World(), 0, 0
    while rows < num_rows:
        columns = world.episodes(seed, batch)
        ended = np.maximum.accumulate(columns["terminated"], axis=1)
        kept = np.column_stack([np.ones(EPISODES_AT_ONCE, bool), ~ended[:, :-1]])  # up to the row that terminates
        episode, step = np.nonzero(kept)
        flat = {"episode": episode + batch * EPISODES_AT_ONCE, "step": step}
        flat |= {name: values[kept] for name, values in columns.items()}
        flat = {name: values[: num_rows - rows] for name, values in flat.items()}
        last = np.append(flat["step"][1:] == 0, True)
        flat["truncated"] = last & ~flat["terminated"]
        yield flat
        rows, batch = rows + len(last), batch + 1


def as_table(columns: Columns) -> pa.Table:
    """Vectors as lists of float32, which hold them exactly."""
    arrays = {}
    for name, values in columns.items():
        if values.ndim == 1:
            arrays[name] = pa.array(values)
        else:
            offsets = np.arange(len(values) + 1, dtype=np.int32) * values.shape[1]
            arrays[name] = pa.ListArray.from_arrays(offsets, values.ravel())
    return pa.table(arrays)


def write_log(folder: Path, num_rows: int, *, seed: int = 0, part: int = 1_000_000, unsorted: bool = False) -> None:
    """Writes the parts. Unsorted: in the order of time within each batch of episodes, as many recorders write."""
    log = folder / "log"
    log.mkdir(parents=True, exist_ok=True)
    if found := next(log.iterdir(), None):
        raise SystemExit(f"{found} exists. Give an empty folder.")
    world = World()
    save_policy(world.policy(world.target), folder / "target.safetensors")
    save_policy(world.policy(world.behaviour), folder / "behaviour.safetensors")
    number, written, writer = 0, 0, None
    for columns in batches(num_rows, seed):
        if unsorted:
            order = np.lexsort((columns["episode"], columns["step"]))
            columns = {name: values[order] for name, values in columns.items()}
        table = as_table(columns)
        while len(table):
            if writer is None:
                floats = ["observation", "next_observation", "reward", "behaviour_log_prob"]
                writer = pq.ParquetWriter(
                    log / f"part-{number:05d}.parquet",
                    table.schema,
                    compression="lz4",  # noise does not compress; the other columns do with any codec
                    use_dictionary=[name for name in table.column_names if name not in floats],
                )
            some, table = table.slice(0, part - written), table.slice(part - written)
            writer.write_table(some, row_group_size=ROW_GROUP)
            written += len(some)
            if written == part:
                writer.close()
                number, written, writer = number + 1, 0, None
    if writer is not None:
        writer.close()


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=int, help="number of transitions, such as 4_000_000")
    parser.add_argument("folder", type=Path, help="folder to write to")
    parser.add_argument("--seed", type=int, default=0, help="random seed")
    parser.add_argument("--part", type=int, default=1_000_000, help="rows of each file")
    parser.add_argument("--unsorted", action="store_true", help="rows in the order of time, episodes interleaved")
    options = parser.parse_args()
    if options.rows < 1 or options.part < 1:
        parser.error("give at least one row, and parts of at least one row.")
    write_log(options.folder, options.rows, seed=options.seed, part=options.part, unsorted=options.unsorted)


if __name__ == "__main__":
    main()
