"""Random and mutated files for every reader of the library.

A target is a reader with valid files to start from. A mutation changes, removes, repeats or inserts bytes, or replaces
a number in a header by an extreme one. Every input must end in a result or in one of our errors with a readable
message: `run` raises `Unacceptable` otherwise. A new reader is one line in `TARGETS`.
"""

import contextlib
import gzip
import io
import json
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

import average_dice as ad
from average_dice.data import read_action_features
from average_dice.report.page import render_file
from average_dice.testing.exact_mdps import early_termination, masked

LONGEST_MESSAGE = 4_000
SECONDS = 20  # for one input: a reader that takes longer hangs
FORBIDDEN = ("pickle.find_class", "os.system", "subprocess.Popen", "os.exec", "os.posix_spawn", "socket.connect")


class Unacceptable(AssertionError):
    """An input that ended in another exception, in an unreadable message, in a hang, or in executed code."""


@dataclass(frozen=True)
class Target:
    """A reader of files with this suffix, and valid files."""

    suffix: str
    read: Callable[[Path], object]
    examples: Callable[[], list[bytes]]


def _written(write: Callable[[Path], object], suffix: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"file{suffix}"
        write(path)
        return path.read_bytes()


def _logs() -> list[ad.LoggedDataset]:
    names = ad.data.names.Names(("age", "bp"), ("wait", "treat"), {0: ("a", "b")})
    named = ad.LoggedDataset.from_arrays(
        observation=[[0.0, 1.5], [1.0, 2.5], [1.0, 0.5]],
        action=[1, 0, 1],
        reward=[1.0, 0.0, 2.0],
        next_observation=[[1.0, 2.5], [0.0, 0.0], [0.0, 0.0]],
        terminated=[False, True, True],
        episode_ends=[1, 2],
        names=names,
        categorical=[0],
        extra={"site": ["x", "x", "y"], "cost": [1.0, 2.0, 3.0]},
    )
    return [early_termination().sample(4, seed=0), masked().sample(3, seed=0), named]


def _log_files(suffix: str) -> list[bytes]:
    return [_written(lambda path, log=log: ad.write_dataset(log, path), suffix) for log in _logs()]


def _policy_files() -> list[bytes]:
    generator = np.random.default_rng(0)
    network = ad.policies.Network((generator.normal(size=(2, 3)),), (np.zeros(2),))
    policies = [ad.CategoricalPolicy(network), ad.GaussianPolicy(network, np.zeros(2))]
    return [_written(lambda path, one=one: ad.save_policy(one, path), ".safetensors") for one in policies]


def _result_files() -> list[bytes]:
    mdp = early_termination()
    found = ad.evaluate(mdp.sample(10, seed=0), mdp.policy, 0.9, estimators="wpdis,behaviour-return", bootstrap=3)
    return [json.dumps(found.to_dict()).encode()]


def _archive() -> bytes:
    file = io.BytesIO()
    np.savez(file, features=np.eye(3))
    return file.getvalue()


CSV = (
    b"patient,day,age,ward,drug,outcome,ended,p\n"
    b"a,2024-01-01,61,er,wait,0.5,no,0.5\na,2024-01-02,62.5,icu,treat,1,yes,0.25\nb,2024-01-01,47,er,treat,,yes,1\n"
)
WHOLE_CSV = CSV.replace(b",,", b",2,")
MAPPED = {
    "columns": {
        "episode": "patient",
        "time": "day",
        "action": "drug",
        "reward": "outcome",
        "terminated": "ended",
        "behaviour_prob": "p",
    },
    "observations": ["age", "ward"],
}
BANDIT = b"item_id,click,propensity_score,position,user_feature_0\n3,0,0.1,1,x\n5,1,0.2,2,y\n3,1,0.1,3,x\n"
RULES = json.dumps(
    {
        "rules": [{"if": {"age": [50, None], "ward": ["er", "icu"]}, "then": {"treat": 0.9, "wait": 0.1}}],
        "otherwise": "wait",
    }
).encode()
TABLE = b"ward,action,probability\ner,wait,0.5\ner,treat,0.5\nicu,treat,1\n"


@cache
def _named_log() -> ad.LoggedDataset:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.csv"
        path.write_bytes(WHOLE_CSV)
        return ad.read_dataset(path, **MAPPED)


def _table_file() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.csv"
        path.write_bytes(WHOLE_CSV)
        return _written(lambda out: pq.write_table(pa_csv.read_csv(path), out), ".parquet")


def _hdf5() -> bytes:
    log = early_termination().sample(4, seed=0)

    def write(path: Path) -> None:
        with h5py.File(path, "w") as file:
            arrays = {"observations": log.observation, "actions": log.action, "rewards": log.reward}
            for name, values in {**arrays, "terminals": log.terminated, "timeouts": log.truncated}.items():
                file[name] = values

    return _written(write, ".hdf5")


def _probabilities(path: Path) -> object:
    """A policy file, used on a log."""
    log = _named_log()
    return ad.as_policy(path, log).log_prob(log.observation, log.action)


TARGETS: dict[str, Target] = {
    "table, CSV": Target(".csv", lambda path: ad.read_dataset(path, **MAPPED), lambda: [WHOLE_CSV, CSV]),
    "table, CSV with imputed values": Target(
        ".csv", lambda path: ad.read_dataset(path, **MAPPED, impute="median"), lambda: [WHOLE_CSV]
    ),
    "table, compressed CSV": Target(
        ".csv.gz", lambda path: ad.read_dataset(path, **MAPPED), lambda: [gzip.compress(WHOLE_CSV, mtime=0)]
    ),
    "table, Parquet": Target(".parquet", lambda path: ad.read_dataset(path, **MAPPED), lambda: [_table_file()]),
    "log, HDF5": Target(".hdf5", ad.read_dataset, lambda: [_hdf5()]),
    "log, Open Bandit": Target(".csv", ad.from_open_bandit, lambda: [BANDIT]),
    "policy, rules": Target(".json", _probabilities, lambda: [RULES]),
    "policy, table": Target(".csv", _probabilities, lambda: [TABLE]),
    "log, Parquet": Target(".parquet", ad.read_dataset, lambda: _log_files(".parquet")),
    "log, Parquet in blocks": Target(
        ".parquet", lambda path: list(ad.data.LogBlocks.open(path, rows=3)), lambda: _log_files(".parquet")
    ),
    "log, NumPy": Target(".npz", ad.read_dataset, lambda: _log_files(".npz")),
    "policy, safetensors": Target(".safetensors", ad.load_policy, _policy_files),
    "action features, CSV": Target(".csv", read_action_features, lambda: [b"a,b\n1,2\n3,4\n", b"1;2\n"]),
    "action features, NumPy": Target(".npz", read_action_features, lambda: [_archive()]),
    "result, JSON": Target(".json", render_file, _result_files),
}


@cache
def examples_of(name: str) -> list[bytes]:
    """The valid files of a target."""
    return TARGETS[name].examples()


def mutated(name: str, generator: np.random.Generator) -> bytes:
    """An input for this target: mostly a valid file with a few changes, sometimes random bytes."""
    if generator.random() < 0.05:
        return generator.bytes(int(generator.integers(0, 2_000)))
    content = bytearray(examples_of(name)[generator.integers(len(examples_of(name)))])
    for _ in range(int(generator.geometric(0.4))):
        change = MUTATIONS[generator.integers(len(MUTATIONS))]
        content = change(content, generator) if content else bytearray(generator.bytes(10))
    return bytes(content)


def _some(content: bytearray, generator: np.random.Generator) -> slice:
    """A few bytes of the content; often near its start or its end, where the headers are."""
    length = int(min(len(content), generator.geometric(0.1)))
    span = len(content) - length + 1
    edge = min(span, 64)
    place = (generator.integers(span), generator.integers(edge), span - 1 - generator.integers(edge))
    start = int(place[generator.integers(3)])
    return slice(start, start + length)


def _flip(content: bytearray, generator: np.random.Generator) -> bytearray:
    content[int(generator.integers(len(content)))] ^= 1 << int(generator.integers(8))
    return content


def _overwrite(content: bytearray, generator: np.random.Generator) -> bytearray:
    where = _some(content, generator)
    content[where] = generator.bytes(where.stop - where.start)
    return content


def _remove(content: bytearray, generator: np.random.Generator) -> bytearray:
    del content[_some(content, generator)]
    return content


def _repeat(content: bytearray, generator: np.random.Generator) -> bytearray:
    where = _some(content, generator)
    content[where] = content[where] * int(generator.integers(2, 50))
    return content


def _cut(content: bytearray, generator: np.random.Generator) -> bytearray:
    return content[: int(generator.integers(len(content)))]


def _extreme(content: bytearray, generator: np.random.Generator) -> bytearray:
    """Eight bytes that are an extreme integer, as a length or an offset may be."""
    start = int(generator.integers(len(content)))
    number = [0, -1, 2**31, 2**63 - 1, -(2**63), 2**40][generator.integers(6)]
    content[start : start + 8] = int(number).to_bytes(8, "little", signed=True)
    return content


def _word(content: bytearray, generator: np.random.Generator) -> bytearray:
    start = int(generator.integers(len(content) + 1))
    words = (b"NaN", b"1e999", b"null", b'"', b"[[", b"{", b"-", b"\x00", b"\xff\xfe", b"<script>", b"\n", b",", b"inf")
    content[start:start] = words[generator.integers(len(words))]
    return content


MUTATIONS = (_flip, _flip, _overwrite, _remove, _repeat, _cut, _extreme, _word)


def run(name: str, content: bytes, folder: Path) -> bool:
    """Reads the input. True if it is accepted, False if it is refused with a readable message."""
    path = folder / f"input{TARGETS[name].suffix}"
    path.write_bytes(content)
    return acceptable(lambda: TARGETS[name].read(path))


def acceptable(read: Callable[[], object]) -> bool:
    """Whether it gives a result. Raises `Unacceptable` unless it does or refuses with one of our errors."""
    try:
        with warnings.catch_warnings(), watched(), time_limit():
            warnings.simplefilter("ignore")
            read()
    except ad.AverageDiceError as error:
        text = str(error)
        if not text.strip() or len(text) > LONGEST_MESSAGE or "Traceback" in text:
            raise Unacceptable(f"an unreadable message: {text[:200]!r}") from error
        return False
    except Unacceptable:
        raise
    except Exception as error:
        raise Unacceptable(f"{type(error).__name__}: {error}") from error
    return True


_watching = False


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if _watching and event in FORBIDDEN:
        raise Unacceptable(f"executed: {event}")


sys.addaudithook(_audit)


@contextlib.contextmanager
def watched() -> Iterator[None]:
    """Within this context, executing foreign code raises."""
    global _watching
    _watching = True
    try:
        yield
    finally:
        _watching = False


@contextlib.contextmanager
def time_limit() -> Iterator[None]:
    """Within this context, an input that hangs raises. Not in threads, which have no signals, and not on Windows."""

    def stop(*_: Any) -> None:
        raise Unacceptable(f"took more than {SECONDS} s")

    try:
        before = signal.signal(signal.SIGALRM, stop)
    except (AttributeError, ValueError):
        yield
        return
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
