"""evaluate: the one call most users make."""

import json
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from importlib.metadata import version
from typing import Any

import jax
import numpy as np

from average_dice import memory as memory_limit
from average_dice.answers import Answer, Run, answer
from average_dice.behaviour import estimate_behaviour as with_estimated_behaviour
from average_dice.data import LogBlocks, LoggedDataset
from average_dice.data.groups import groups_of
from average_dice.data.understood import notes_of, others_of
from average_dice.errors import SettingError
from average_dice.estimators import RECOMMENDED, REGISTRY, Blend, Estimator, find, is_baseline
from average_dice.evaluation_result import NO_DIFFERENCE, Evaluation
from average_dice.features.logged_state_actions import is_tight, require_memory
from average_dice.inference.bootstrap import ROWS_AHEAD
from average_dice.inference.diagnostics import Diagnostics, diagnose, with_reward
from average_dice.inference.difference import OnBehaviour
from average_dice.inference.refutation import Case, Refutations, order_in_time, run_refuters
from average_dice.inference.smoothing import smoothing_note
from average_dice.inference.state_map import check_features, map_states
from average_dice.inference.uncertainty import IntervalSettings
from average_dice.large_evaluation import evaluate_blocks
from average_dice.listing import split_names
from average_dice.notes import Note, NoteCode
from average_dice.passes import Executor
from average_dice.policies.remarks import remarks_of
from average_dice.problem import Problem
from average_dice.progress import shown_by_argument
from average_dice.ray_cluster import check_name, executor_named
from average_dice.return_distribution import RESAMPLES as RETURN_RESAMPLES
from average_dice.return_distribution import distribution as distribution_of
from average_dice.version import __version__

LONGEST_NAME = 80  # characters of a policy's `repr` on the report: a longer one is no name


@shown_by_argument
@memory_limit.by_argument
def evaluate(
    dataset: LoggedDataset | LogBlocks,
    policy: Any,
    discount: float,
    *,
    estimators: str | Sequence[str] | Mapping[str, Estimator] = "recommended",
    rewards: str | Sequence[str] | None = None,
    by: str | None = None,
    horizon: int | None = None,
    estimate_behaviour: bool = False,
    level: float = 0.95,
    bootstrap: int = 100,
    bootstrap_trained: int = 0,
    features: tuple[int, int] | None = None,
    distribution: bool = False,
    seed: int = 0,
    refute: bool = False,
    memory: int | str | None = None,
    executor: str | Executor = "local",
    address: str | None = None,
    progress: bool = False,
    title: str | None = None,
    policy_name: str | None = None,
    log_name: str | None = None,
    created: date | None = None,
    on_behaviour: OnBehaviour | None = None,
    starting: Callable[[str], None] = lambda name: None,
) -> Evaluation:
    """Estimates what `policy` would earn, from the log alone, with intervals and a verdict.

    - `dataset`: a log in memory, or one in blocks (`LogBlocks.open`), which may be larger than the memory. For the
      latter only the recommended estimator is available, without the options that need all rows at once.
    - `policy`: anything that `as_policy` accepts: a policy, a model, a function, a table, rules, the path of a file.
      None if the log has a `target_log_prob` column.
    - `estimators`: `recommended` (with the baselines), `all`, names (a list, or separated by commas), or methods of
      your own by name: `{"mine": ad.AverageDICE(labels=plain)}`.
    - `rewards`: what to count, if not the log's own `reward`: names of extra columns, and of `reward`. The evaluation
      is about the first; `evaluation.rewards` has all of them, on the same bootstrap resamples.
    - `by`: an extra column; `evaluation.groups` has a value for each of its groups of episodes.
    - `discount`: from 0 to 1. With 1, every episode must terminate, or give a `horizon`.
    - `estimate_behaviour`: estimate the probabilities of the logged actions first (`ad.estimate_behaviour`).
    - `horizon`: the value counts the rewards of this many steps; None for all.
    - `level`: confidence level of the intervals. `bootstrap`: number of resamples; with 0 only methods that need none
      have intervals. `bootstrap_trained`: the same for methods that train; each resample trains the method again.
    - `features`: two dimensions of the observation for the map of states; principal components if None.
    - `distribution`: also how the return of an episode varies, as by `distribution`.
    - `refute`: also tries to refute the estimate (see `ad.refute`), with about 100 refits; what fails enters the
      verdict.
    - `memory`: the limit of memory, in bytes or as `"2GiB"`; by default the environment variable AVERAGE_DICE_MEMORY,
      or half of what the machine has. Above it fewer random features are used, and a note says so.
    - `executor`: who computes the passes over a log in blocks: "local", threads of this process, or "ray", a Ray
      cluster, with the same numbers. `address`: the cluster to join; RAY_ADDRESS if None, or a new one here.
    - `title`, `policy_name`, `log_name` and `created` (today if None) head the report, and change no number.
    - `on_behaviour`: what the behaviour policy earns, kept for other policies on the same log, as by `compare`.
    - `progress` shows a progress bar. `starting` is called with the name of each method before it starts.

    A method that is not applicable to the log or the policy has no value, and its note says why. The verdict is about
    the recommended estimate or, if that was not requested, the first that is not a baseline.

    >>> evaluation = evaluate(data, policy, 0.95)  # doctest: +SKIP
    >>> print(evaluation)                          # doctest: +SKIP
    """
    if not 0 <= seed < 2**32:
        raise SettingError(f"the seed must lie between 0 and {2**32 - 1}, not {seed}.")
    settings = IntervalSettings(level, bootstrap, bootstrap_trained, seed)
    if isinstance(dataset, LogBlocks):
        _refuse_with_blocks(
            estimators=estimators not in ("recommended", RECOMMENDED),
            rewards=rewards is not None,
            by=by is not None,
            horizon=horizon is not None,
            estimate_behaviour=estimate_behaviour,
            distribution=distribution,
            refute=refute,
        )
        in_memory = partial(
            evaluate, discount=discount, estimators=RECOMMENDED, bootstrap=0, features=features, seed=seed, level=level
        )
        named = {"title": title, "policy_name": policy_name or name_of_policy(policy), "created": created}
        named["log_name"] = log_name or repr(dataset)
        of_sample = partial(in_memory, **named)
        with executor_named(executor, address, dataset) as found_executor:
            return evaluate_blocks(dataset, policy, discount, settings, of_sample, starting, found_executor)
    _refuse_in_memory(executor, address)
    methods = (
        estimators if isinstance(estimators, Mapping) else {name: REGISTRY[name].make() for name in find(estimators)}
    )
    if not methods:
        raise SettingError("give at least one estimator.")
    if estimate_behaviour:
        starting("estimating the behaviour policy")
        dataset = with_estimated_behaviour(dataset, seed=seed)
    question = Problem if horizon is None else partial(Problem.up_to, horizon=horizon)
    problem = question(dataset, policy, discount)
    if policy is None and dataset.target_log_prob is None and not all(map(is_baseline, methods)):
        raise SettingError("give a policy, or a log with a target_log_prob column: there is nothing to evaluate.")
    counted = {name: problem.dataset.reward_named(name) for name in _names_of(rewards)}
    groups = {} if by is None else groups_of(problem.dataset, by)
    if not all(is_baseline(name) or _reads_in_blocks(method, problem) for name, method in methods.items()):
        require_memory(problem)
    check_features(problem, features)
    reward, *others = counted
    problem = problem if reward == "reward" else problem.with_reward(counted[reward])
    varies = None
    if distribution:
        number, rewarded = RETURN_RESAMPLES if bootstrap else 0, dataset.with_reward(dataset.reward_named(reward))
        varies = distribution_of(rewarded, policy, discount, horizon=horizon, level=level, bootstrap=number, seed=seed)
    kept = problem.keep_for_other_rewards() if others and _is_small(problem) else []
    key = jax.random.key(seed)
    runs: dict[str, Run] = {}
    for name, method in methods.items():
        starting(name)
        runs[name] = Run.of(method, problem, settings, key)
    if (note := smoothing_note(problem, key=key)) is not None:  # about values of the policy: baselines have none
        has_value = {name for name, run in runs.items() if run.fit is not None and not is_baseline(name)}
        runs = {name: run.with_note(note) if name in has_value else run for name, run in runs.items()}
    starting("diagnostics")
    diagnostics = diagnose(problem, key=key)
    judged = next((name for name in (RECOMMENDED, *runs) if name in runs and not is_baseline(name)), None)
    if judged is not None and dataset.categorical_advice is not None:
        runs[judged] = runs[judged].with_note(Note(NoteCode.LOOKS_CATEGORICAL, dataset.categorical_advice))
    if judged is not None:
        for text in remarks_of(problem.policy):
            runs[judged] = runs[judged].with_note(Note(NoteCode.POLICY_REMARK, text))
    record = dataset.estimated_behaviour
    if judged is not None and record is not None:
        for text in record.notes:
            runs[judged] = runs[judged].with_note(Note(NoteCode.BEHAVIOUR_ESTIMATED, text))
    if judged is not None:
        starting("behaviour policy")
    refutations, run = None, runs.get(judged or "")
    if refute and judged is not None and run is not None and run.fit is not None:
        refutations = _refuted(judged, run, problem, settings, key, starting)
    found = answer(judged, run, problem, diagnostics, settings, refutations, key=key, on_behaviour=on_behaviour)
    of_rewards = {reward: found} if rewards is not None else {}
    of_groups: dict[str, Answer] = {}
    if judged is None and (others or groups):
        raise SettingError("values of several rewards or groups need an estimator that is not a baseline.")
    if judged is not None:
        for name in others:
            starting(f"reward {name}")
            other = problem.with_reward(counted[name])
            run = Run.of(methods[judged], other, settings, key)
            of_rewards[name] = answer(judged, run, other, with_reward(diagnostics, other), settings, key=key)
        for name, episodes in groups.items():
            starting(f"{by} {name}")
            part = problem.select_episodes(episodes)
            run = Run.of(methods[judged], part, settings, key)
            diagnosed = _with_numbers(
                diagnose(part, key=key), problem.dataset.episode[problem.dataset.starts[episodes]]
            )
            of_groups[name] = answer(judged, run, part, diagnosed, settings, key=key)
    kept.clear()
    fits = {name: run.fit for name, run in runs.items() if run.fit is not None}
    return Evaluation(
        discount=discount,
        estimand=problem.estimand,
        horizon=horizon,
        seed=seed,
        dataset=_summary(dataset, dataset.reward_named(reward)),
        estimates={name: run.estimate for name, run in runs.items()},
        recommended=RECOMMENDED,
        verdict=found.verdict,
        judged=judged,
        versions={
            "average-dice": __version__,
            "jax": jax.__version__,
            "numpy": version("numpy"),
            "python": platform.python_version(),
        },
        diagnostics=diagnostics,
        checks=found.checks,
        behaviour=found.behaviour,
        against_behaviour=found.against_behaviour,
        no_difference=None if found.no_difference is None else f"{NO_DIFFERENCE}{found.no_difference}",
        behaviour_estimate=record,
        states=None if judged is None else map_states(problem, fits.get(judged), features, key=key),
        curves={
            name: {"step": curve.step.tolist(), "value": curve.value.tolist(), "loss": curve.loss.tolist()}
            for name, fit in fits.items()
            if (curve := fit.history) is not None
        },
        reward=reward,
        rewards=of_rewards,
        by=by,
        groups=of_groups,
        title=title,
        policy=policy_name or name_of_policy(policy),
        log=log_name or _name_of_log(dataset),
        created=(created or date.today()).isoformat(),
        distribution=varies,
        refutations=refutations,
        fits=fits,
        replicates={name: run.replicates for name, run in runs.items() if run.replicates is not None},
    )


def _reads_in_blocks(method: Estimator, problem: Problem) -> bool:
    return isinstance(method, Blend) and method.reads_in_blocks(problem)


def _refuse_with_blocks(**given: bool) -> None:
    """Options that need all rows in memory."""
    if wrong := [name for name, is_given in given.items() if is_given]:
        raise SettingError(
            f"{', '.join(wrong)}: not available for a log that is read in blocks. Leave it out, or read the log into "
            "memory: without --stream (read_dataset)."
        )


def _refuse_in_memory(executor: str | Executor, address: str | None) -> None:
    """A log in memory is evaluated here."""
    if isinstance(executor, str):
        check_name(executor, address)
    if executor != "local":
        raise SettingError(
            f"executor {executor if isinstance(executor, str) else type(executor).__name__}: a log in memory is "
            "evaluated by this process. Leave it out, or read the log in blocks: --stream (LogBlocks.open)."
        )


def _with_numbers(found: Diagnostics, numbers: np.ndarray) -> Diagnostics:
    """The diagnostics of a group, whose episodes have these numbers in the whole log."""
    heaviest = tuple(replace(one, episode=int(numbers[one.episode])) for one in found.heaviest)
    return replace(found, heaviest=heaviest)


def _is_small(problem: Problem) -> bool:
    """Whether the features of all bootstrap resamples can be kept for other rewards."""
    return problem.dataset.num_transitions <= ROWS_AHEAD and not is_tight(problem)


def _names_of(rewards: str | Sequence[str] | None) -> list[str]:
    """Each name once; the log's own reward if none is given."""
    if rewards is None:
        return ["reward"]
    names = split_names(rewards) if isinstance(rewards, str) else rewards
    found = list(dict.fromkeys(name.strip() for name in names))
    if not found or "" in found:
        raise SettingError("give the name of at least one reward, such as reward or an extra column.")
    return found


def name_of_policy(policy: Any) -> str:
    """What reports call a policy without a name: its `repr` if that is short, else its class."""
    if policy is None:
        return "target_log_prob column of the log"
    shown = repr(policy)
    has_own = getattr(type(policy), "__repr__", None) is not object.__repr__  # which shows an address
    return shown if has_own and len(shown) <= LONGEST_NAME and "\n" not in shown else type(policy).__name__


def _name_of_log(dataset: LoggedDataset) -> str:
    """The task or environment of a log that was made here, or the start of its hash."""
    made_in = dataset.metadata.get("environment", f"log {dataset.sha256[:12]}")
    return str(dataset.metadata.get("task", made_in))


def _refuted(
    name: str, run: Run, problem: Problem, settings: IntervalSettings, key: jax.Array, starting: Callable[[str], None]
) -> Refutations:
    """What the refuters find about the estimate, with the resamples of its interval."""
    order = order_in_time(problem.dataset, None)
    case = Case(problem, run.method, key, settings.seed, order, given=run.replicates)
    return run_refuters(name, case, starting=starting)


def _summary(dataset: LoggedDataset, reward: np.ndarray) -> dict[str, Any]:
    last = dataset.starts + dataset.lengths - 1
    return {
        "sha256": dataset.sha256,
        "transitions": dataset.num_transitions,
        "episodes": dataset.num_episodes,
        "terminated": int(dataset.terminated[last].sum()),
        "lengths": [int(dataset.lengths.min()), float(dataset.lengths.mean()), int(dataset.lengths.max())],
        "rewards": [float(reward.min()), float(reward.mean()), float(reward.max())],
        "observation": dataset.observation.shape[1],
        "categorical": list(dataset.categorical),
        "action_features": 0 if dataset.action_features is None else dataset.action_features.shape[1],
        "action": "discrete" if dataset.is_discrete else f"continuous, {dataset.action.shape[1]} wide",
        "behaviour_known": dataset.behaviour_log_prob is not None,
        "behaviour_model": None if dataset.estimated_behaviour is None else dataset.estimated_behaviour.model,
        "metadata": {name: str(value) for name, value in others_of(dataset.metadata).items()},
        "notes": list(notes_of(dataset.metadata)),
        "names": json.loads(dataset.names.to_json()),
    }
