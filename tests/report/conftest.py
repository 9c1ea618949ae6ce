"""An evaluation with everything in it that a report can show, and names that would be scripts if they were let."""

from dataclasses import replace
from datetime import date

import numpy as np
import pytest

import average_dice as ad
from average_dice.estimators import REGISTRY
from average_dice.testing.exact_mdps import as_policy, early_termination

SCRIPT = "<script>document.title = 'broken in'</script>"


@pytest.fixture(scope="session")
def evaluation():
    mdp = early_termination()
    log = replace(mdp.sample(60, seed=0), metadata={"task": SCRIPT, "note": '"><img src=x onerror=alert(1)>'})
    paper = REGISTRY["average-dice-paper"].make()
    methods = {
        **{name: REGISTRY[name].make() for name in ("average-dice-blend", "average-reward", "is", "wpdis", "fqe")},
        f"mine {SCRIPT}": replace(paper, model=replace(paper.model, num_steps=20, num_checkpoints=4)),
    }
    command = f"average-dice evaluate '{SCRIPT}.parquet' --discount 0.9"
    return ad.evaluate(
        log, mdp.policy, 0.9, estimators=methods, bootstrap=8, policy_name=SCRIPT, created=date(2031, 2, 3)
    ).with_command(command)


@pytest.fixture(scope="session")
def comparison():
    """A policy that takes the better action of each state more often, the target, and one that takes the worse."""
    mdp = early_termination()
    good = np.where(np.arange(2) == mdp.reward.argmax(axis=1)[:, None], 0.8, 0.2)
    policies = {"good": as_policy(good), "same": mdp.policy, "bad": as_policy(1 - good)}
    return ad.compare(mdp.sample(60, seed=0), policies, 0.9, bootstrap=6, created=date(2031, 2, 3))
