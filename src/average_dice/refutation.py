"""refute: tries to show, from the log alone, that an estimate is wrong."""

from collections.abc import Callable, Mapping
from functools import partial

import jax

from average_dice.data import LoggedDataset
from average_dice.errors import SettingError
from average_dice.estimators import RECOMMENDED, REGISTRY, Estimator, find, is_baseline
from average_dice.evaluation_result import Evaluation
from average_dice.inference.refutation import NUM_RESAMPLES, Case, Refutations, order_in_time, run_refuters
from average_dice.policies import Policy
from average_dice.problem import Problem


def refute(
    dataset: LoggedDataset,
    policy: Policy | None,
    discount: float,
    *,
    evaluation: Evaluation | None = None,
    estimators: str | Mapping[str, Estimator] = "recommended",
    horizon: int | None = None,
    behaviour: Policy | None = None,
    time: str | None = None,
    bootstrap: int = NUM_RESAMPLES,
    seed: int = 0,
    starting: Callable[[str], None] = lambda name: None,
) -> Refutations:
    """Tries to refute the estimate of one method: eight tests, each with a known answer if all is well.

    - `evaluation`: the result of `evaluate` on this log, whose horizon and bootstrap resamples are then used.
    - `estimators`: a name, or `{"mine": method}`; of several, the recommended one or the first that is no baseline.
    - `behaviour`: the behaviour policy as a policy object, if you have it: it is then evaluated as a target, too.
    - `time`: an extra column of the log that orders the episodes in time; their order in the log if None.
    - `bootstrap`: number of resamples behind each difference.

    A refuter that fails shows that something is wrong. That all pass does not prove that the estimate is right.

    >>> print(refute(data, policy, 0.95))  # doctest: +SKIP
    """
    name, method = _method(estimators if evaluation is None or estimators != "recommended" else evaluation.judged)
    if bootstrap < 2:
        raise SettingError("refutation takes at least two bootstrap resamples.")
    if evaluation is not None:
        horizon = evaluation.horizon
    question = Problem if horizon is None else partial(Problem.up_to, horizon=horizon)
    given = None if evaluation is None else evaluation.replicates.get(name)
    case = Case(
        question(dataset, policy, discount),
        method,
        jax.random.key(seed),
        seed,
        order_in_time(dataset, time),
        behaviour=behaviour,
        given=given,
        num_resamples=bootstrap,
    )
    return run_refuters(name, case, starting=starting)


def _method(given: str | Mapping[str, Estimator] | None) -> tuple[str, Estimator]:
    """The method that is refuted, with its name."""
    if given is None:
        raise SettingError("only baselines were evaluated: there is no estimate to refute.")
    methods = given if isinstance(given, Mapping) else {name: REGISTRY[name].make() for name in find(given)}
    for name in (RECOMMENDED, *methods):
        if name in methods and not is_baseline(name):
            return name, methods[name]
    raise SettingError("baselines estimate the behaviour policy: give another method to refute.")
