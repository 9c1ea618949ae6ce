"""Models of estimated behaviour policies in plain words."""

from dataclasses import replace

import pytest

import average_dice as ad
from average_dice.behaviour.categorical import Constant, Softmax, Table, Trees
from average_dice.behaviour.estimation import GAUSSIAN_RIDGES, RIDGES, SHRINKAGES
from average_dice.behaviour.gaussian import Gaussian
from average_dice.data.estimated import GIVEN
from average_dice.data.model_words import in_words
from average_dice.testing.exact_mdps import early_termination

DISCRETE = [Constant(), Trees(), *(Table(one) for one in SHRINKAGES)]
DISCRETE += [Softmax(kind, ridge) for kind, ridges in RIDGES.items() for ridge in ridges]
CONTINUOUS = [Gaussian(None), *(Gaussian(kind, ridge) for kind, ridges in GAUSSIAN_RIDGES.items() for ridge in ridges)]


@pytest.mark.parametrize(
    ("model", "is_discrete"), [(one, True) for one in DISCRETE] + [(one, False) for one in CONTINUOUS]
)
def test_every_model_has_words(model, is_discrete):
    words = in_words(model.name, is_discrete)
    assert words != model.name
    assert not any(one in words for one in ("ridge", "1e-", "("))


def test_words_differ_with_the_actions_and_the_ridge():
    assert in_words("fourier (ridge 1e-05)", True) == (
        "logistic regression on random Fourier features of the observations, little regularisation"
    )
    assert in_words("linear (ridge 0.01)", False) == (
        "linear regression of the action on the observations, much regularisation"
    )
    assert in_words("table (shrinkage 16)", True).endswith("some shrinkage towards those of all states")


def test_a_name_that_is_not_ours_stays():
    assert in_words(GIVEN, True) == GIVEN
    assert in_words("my own (ridge 3)", True) == "my own (ridge 3)"


def test_the_verdict_and_the_page_use_the_words(tmp_path):
    mdp = early_termination()
    data = ad.estimate_behaviour(replace(mdp.sample(30, seed=0), behaviour_log_prob=None), models=["linear"])
    found = ad.evaluate(data, mdp.policy, mdp.discount, estimators="wpdis", bootstrap=2)
    words = "logistic regression on the observations"
    assert any(words in reason for reason in found.verdict.reasons)
    found.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert words in page
    assert "(ridge" not in page
    assert found.to_dict()["dataset"]["behaviour_model"].startswith("linear (ridge")
