"""The models of estimated behaviour policies in plain words, for people. Files and programs use their short names."""

import re

SHORT_NAME = re.compile(r"(linear|fourier|table)(?: \((?:ridge|shrinkage) ([-+.e\d]+)\))?")
LITTLE, SOME = 1e-4, 1e-3  # ridges up to these; beyond, much
LITTLE_SHRINKAGE, SOME_SHRINKAGE = 4.0, 16.0  # rows
INPUTS = {"linear": "the observations", "fourier": "random Fourier features of the observations"}
OTHERS = {
    "constant": "the same probabilities in every state",
    "trees": "gradient-boosted trees",
}


def in_words(model: str, is_discrete: bool) -> str:
    """The model of this short name; a name that is not ours stays.

    >>> in_words("fourier (ridge 1e-05)", True)
    'logistic regression on random Fourier features of the observations, little regularisation'
    """
    if model in OTHERS:
        return OTHERS[model] if is_discrete or model != "constant" else "the same distribution in every state"
    found = SHORT_NAME.fullmatch(model)
    if found is None:
        return model
    kind, number = found[1], None if found[2] is None else float(found[2])
    if kind == "table":
        amount = _amount(number, LITTLE_SHRINKAGE, SOME_SHRINKAGE)
        return f"frequencies of actions at each state{amount and f', {amount} shrinkage towards those of all states'}"
    amount = _amount(number, LITTLE, SOME)
    regression = "logistic regression" if is_discrete else "linear regression of the action"
    return f"{regression} on {INPUTS[kind]}{amount and f', {amount} regularisation'}"


def _amount(number: float | None, little: float, some: float) -> str:
    if number is None:
        return ""
    return "little" if number <= little else "some" if number <= some else "much"
