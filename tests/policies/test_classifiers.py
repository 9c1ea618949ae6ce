"""Models with predict_proba and predict: probabilities are those of the model, columns and classes go by name."""

import numpy as np
import pytest

import average_dice as ad
from average_dice.data.names import Names
from average_dice.policies import DeterministicPolicy, as_policy
from named_log import WARDS, continuous_log, named_log, probabilities

pd = pytest.importorskip("pandas")
compose = pytest.importorskip("sklearn.compose")
linear_model = pytest.importorskip("sklearn.linear_model")
pipeline = pytest.importorskip("sklearn.pipeline")
preprocessing = pytest.importorskip("sklearn.preprocessing")
svm = pytest.importorskip("sklearn.svm")

LOG = named_log()
FRAME = pd.DataFrame({"ward": np.array(WARDS)[LOG.observation[:, 1].astype(int)], "age": LOG.observation[:, 0]})
OLD = FRAME["age"] + np.random.default_rng(2).normal(size=len(FRAME)) * 10 > 60


def fitted(labels, frame=FRAME):
    columns = compose.make_column_transformer(
        (preprocessing.OneHotEncoder(), ["ward"]), (preprocessing.StandardScaler(), ["age"])
    )
    return pipeline.make_pipeline(columns, linear_model.LogisticRegression()).fit(frame, labels)


def test_a_pipeline_on_named_columns_with_classes_by_name():
    """The frame has the columns in another order, and the classes sort as treat, wait."""
    model = fitted(np.where(OLD, "treat", "wait"))
    expected = pd.DataFrame(model.predict_proba(FRAME), columns=model.classes_)[["wait", "treat"]]
    policy = as_policy(model, LOG)
    np.testing.assert_allclose(probabilities(policy, LOG.observation), expected, atol=1e-9)
    np.testing.assert_allclose(
        np.exp(policy.log_prob(LOG.observation, LOG.action)), expected.to_numpy()[np.arange(len(FRAME)), LOG.action]
    )
    assert repr(policy) == "CategoricalPolicy(Pipeline, 2 actions)"


def test_evaluate_accepts_a_classifier():
    model = fitted(np.where(OLD, "treat", "wait"))
    logits = as_policy(model, LOG).logits
    direct = ad.evaluate(LOG, ad.CategoricalPolicy(logits), 0.9, bootstrap=0, estimators="fqe")
    found = ad.evaluate(LOG, model, 0.9, bootstrap=0, estimators="fqe")
    assert found.estimates["fqe"].value == direct.estimates["fqe"].value
    assert ad.evaluate(LOG, model, 0.9, horizon=2, bootstrap=0, estimators="fqe").estimates["fqe"].value is not None


def test_a_classifier_of_some_columns():
    model = linear_model.LogisticRegression().fit(FRAME[["age"]], np.where(OLD, "treat", "wait"))
    found = probabilities(as_policy(model, LOG), LOG.observation)
    np.testing.assert_allclose(found[:, 0], model.predict_proba(FRAME[["age"]])[:, 1], atol=1e-9)


def test_classes_by_number_and_arrays_without_names():
    model = linear_model.LogisticRegression().fit(LOG.observation, np.where(OLD, 3, 1))
    found = probabilities(as_policy(model, named_log(names=Names())), LOG.observation)
    assert found.shape == (len(FRAME), 4)  # 3 is an action that the log lacks, and 0 one that the classifier lacks
    np.testing.assert_allclose(found[:, [1, 3]], model.predict_proba(LOG.observation), atol=1e-12)
    np.testing.assert_array_equal(found[:, [0, 2]], 0)


def test_numbers_that_are_names():
    """A log whose doses 5 and 10 are the actions 0 and 1."""
    log = named_log(names=Names(("age", "ward"), ("5", "10"), {1: WARDS}))
    model = fitted(np.where(OLD, 10, 5))
    np.testing.assert_allclose(probabilities(as_policy(model, log), log.observation), model.predict_proba(FRAME))


def test_booleans_as_classes_and_as_columns():
    model = fitted(OLD)
    log = named_log(names=Names(("age", "ward"), ("false", "true"), {1: WARDS}))
    np.testing.assert_allclose(probabilities(as_policy(model, log), log.observation), model.predict_proba(FRAME))
    plain = named_log(names=Names(("age", "ward"), (), {1: WARDS}))
    np.testing.assert_allclose(probabilities(as_policy(model, plain), log.observation), model.predict_proba(FRAME))


@pytest.mark.parametrize(
    ("names", "values"), [(("10", "20", "100"), [10, 20, 100]), (("false", "true", "true"), [False, True, True])]
)
def test_names_that_were_numbers_or_booleans_become_them_again(names, values):
    frame = FRAME.assign(ward=np.array(values)[LOG.observation[:, 1].astype(int)])
    model = fitted(np.where(OLD, "treat", "wait"), frame)
    log = named_log(names=Names(("age", "ward"), ("wait", "treat"), {1: names}))
    found = probabilities(as_policy(model, log), log.observation)
    np.testing.assert_allclose(found, model.predict_proba(frame)[:, ::-1], atol=1e-9)


def test_texts_of_digits_stay_texts():
    names = ("01", "2", "100")  # a leading zero: no number as it is written
    frame = FRAME.assign(ward=np.array(names)[LOG.observation[:, 1].astype(int)])
    model = fitted(np.where(OLD, "treat", "wait"), frame)
    log = named_log(names=Names(("age", "ward"), ("wait", "treat"), {1: names}))
    found = probabilities(as_policy(model, log), log.observation)
    np.testing.assert_allclose(found, model.predict_proba(frame)[:, ::-1], atol=1e-9)


def test_a_log_without_names_has_the_columns_of_the_model():
    plain = named_log(names=Names())
    model = linear_model.LogisticRegression().fit(pd.DataFrame(LOG.observation, columns=["a", "b"]), OLD.astype(int))
    expected = model.predict_proba(pd.DataFrame(LOG.observation, columns=["a", "b"]))
    np.testing.assert_allclose(probabilities(as_policy(model, plain), plain.observation), expected, atol=1e-12)
    one = linear_model.LogisticRegression().fit(FRAME[["age"]], OLD.astype(int))
    with pytest.raises(ad.PolicyError, match=r"takes 1 named columns, such as 'age', and the log has 2 without names"):
        as_policy(one, plain).log_prob(plain.observation, plain.action)


def test_a_model_with_predict_alone_is_deterministic():
    labels = np.where(OLD, "treat", "wait")
    model = svm.LinearSVC(random_state=0).fit(FRAME[["age"]], labels)
    policy = as_policy(model, LOG)
    assert isinstance(policy, DeterministicPolicy)
    names = np.array(["wait", "treat"])[policy.actions(LOG.observation)]
    np.testing.assert_array_equal(names, model.predict(FRAME[["age"]]))


@pytest.mark.parametrize("width", [1, 2])
def test_a_regressor_over_continuous_actions(width):
    log = continuous_log(width)
    targets = log.action[:, 0] if width == 1 else log.action
    model = linear_model.LinearRegression().fit(log.observation, targets)
    found = as_policy(model, log).actions(log.observation)
    np.testing.assert_allclose(found, model.predict(log.observation).reshape(-1, width), atol=1e-12)


@pytest.mark.parametrize(
    ("model", "log", "message"),
    [
        (fitted(np.where(OLD, "treet", "wait")), LOG, r"the action 'treet', .* Did you mean treat?"),
        (fitted(np.where(OLD, "treat", "wait")), named_log(names=Names()), "the log has no names of actions"),
        (linear_model.LogisticRegression(), LOG, "fit it first"),
        (fitted(OLD), continuous_log(), "the log's actions are continuous"),
        (linear_model.LinearRegression().fit(FRAME[["age"]], OLD * 0.3), LOG, "which is not an action"),
        (linear_model.LogisticRegression().fit(FRAME[["age"]].rename(columns={"age": "aeg"}), OLD), LOG, "mean age"),
    ],
)
def test_models_that_do_not_fit_the_log(model, log, message):
    with pytest.raises(ad.PolicyError, match=message):
        as_policy(model, log).log_prob(log.observation, log.action)
