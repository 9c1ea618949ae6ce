"""An evaluation with everything in it that a report can show, and names that would be scripts if they were let."""

from dataclasses import replace

import pytest

import average_dice as ad
from average_dice.estimators import REGISTRY
from average_dice.testing.exact_mdps import early_termination

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
    return ad.evaluate(log, mdp.policy, 0.9, estimators=methods, bootstrap=8).with_command(command)
