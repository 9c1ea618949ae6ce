"""Rules: the first that matches a state says what to do there. No code is executed.

{"rules": [{"if": {"age": [60, null], "ward": "icu"}, "then": {"treat": 0.9, "wait": 0.1}}],
 "otherwise": "wait"}
"""

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from average_dice.data import LoggedDataset
from average_dice.errors import PolicyError
from average_dice.policies.adapters.cases import NO_CASE, policy_by_cases, probabilities_of, require_discrete
from average_dice.policies.adapters.log_names import Unlogged, code_of, column_number
from average_dice.policies.base import Observations, Policy
from average_dice.policies.unbound import UnboundPolicy

REMEDY = 'Add a rule, or the key "otherwise" beside "rules", which says what to do in all other states.'

Condition = Callable[[Observations], np.ndarray]


def read_rules(path: Path) -> UnboundPolicy:
    """The policy in a JSON file, to be bound to a log."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise PolicyError(f"{path}: not a readable JSON file ({error}).") from None
    check_form(content, str(path))
    return UnboundPolicy(partial(from_rules, content, source=str(path)), str(path))


def check_form(content: Any, source: str) -> None:
    """Raises unless these are rules, with whatever names."""
    if not isinstance(content, Mapping) or not isinstance(content.get("rules"), list):
        raise PolicyError(f"{source}: rules are {{'rules': [{{'if': …, 'then': …}}, …], 'otherwise': …}}.")
    if unknown := set(content) - {"rules", "otherwise"}:
        raise PolicyError(f"{source}: unknown entry {min(unknown)!r}. There are rules and otherwise.")
    for number, rule in enumerate(content["rules"], start=1):
        if not isinstance(rule, Mapping) or set(rule) != {"if", "then"} or not isinstance(rule["if"], Mapping):
            raise PolicyError(f"{source}, rule {number}: a rule is {{'if': {{column: condition}}, 'then': …}}.")
    if not content["rules"] and "otherwise" not in content:
        raise PolicyError(f"{source}: there is no rule. Add one, or the key 'otherwise'.")


def from_rules(content: Mapping[str, Any], data: LoggedDataset | None, *, source: str = "the rules") -> Policy:
    """The policy of the rules, by the names of the log."""
    check_form(content, source)
    if data is None:
        return UnboundPolicy(partial(from_rules, content, source=source), source)
    require_discrete(data, source)
    unlogged = Unlogged()
    conditions: list[list[Condition]] = []
    rows = []
    for number, rule in enumerate(content["rules"], start=1):
        where = f"{source}, rule {number}"
        conditions.append([_condition(name, wanted, data, where, unlogged) for name, wanted in rule["if"].items()])
        rows.append(probabilities_of(rule["then"], data, where))
    if "otherwise" in content:
        conditions.append([])
        rows.append(probabilities_of(content["otherwise"], data, f"{source}, otherwise"))

    def case_of(observations: Observations) -> np.ndarray:
        case = np.full(len(observations), NO_CASE)
        for number, ones in enumerate(conditions):
            matches = np.all([np.ones(len(observations), bool), *(one(observations) for one in ones)], axis=0)
            case[matches & (case == NO_CASE)] = number
        return case

    return policy_by_cases(case_of, rows, data, source, REMEDY, unlogged.notes)


def _condition(name: str, wanted: Any, data: LoggedDataset, where: str, unlogged: Unlogged) -> Condition:
    """[low, high) with null for open; a name or a number; or a list of names."""
    column = column_number(name, data, where)
    if isinstance(wanted, list) and len(wanted) == 2 and all(one is None or _is_number(one) for one in wanted):
        if column in data.names.categories:
            raise PolicyError(f"{where}: {name!r} has categories, not numbers. Give a name, or a list of names.")
        low, high = (-np.inf if wanted[0] is None else wanted[0]), (np.inf if wanted[1] is None else wanted[1])
        if low >= high:
            raise PolicyError(f"{where}: {name!r} from {low:g} to {high:g} is empty. The lower end comes first.")
        return lambda observations: (observations[:, column] >= low) & (observations[:, column] < high)
    if wanted is None or wanted == [] or isinstance(wanted, Mapping):
        raise PolicyError(f"{where}: {name!r} needs [low, high], a name or number, or a list of names.")
    given = wanted if isinstance(wanted, list) else [wanted]
    codes = [code_of(one, column, data, where, unlogged) for one in given]
    return lambda observations: np.isin(observations[:, column], codes)


def _is_number(given: Any) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool)
