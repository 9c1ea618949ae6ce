"""Tables of states and rules: probabilities as written, by the log's names, and errors that name the place."""

import json

import numpy as np
import pytest

import average_dice as ad
from average_dice.data.names import Names
from average_dice.notes import NoteCode
from average_dice.policies import UnboundPolicy, as_policy
from average_dice.policies.remarks import remarks_of
from named_log import WARDS, named_log, probabilities

LOG = named_log()
AGE, WARD = LOG.observation.T
RULES = {
    "rules": [
        {"if": {"age": [60, None], "ward": "icu"}, "then": {"treat": 0.9, "wait": 0.1}},
        {"if": {"age": [None, 30]}, "then": "wait"},
        {"if": {"ward": ["er", "icu"]}, "then": {"treat": 0.5, "wait": 0.5}},
    ],
    "otherwise": {"treat": 0.2, "wait": 0.8},
}
TREAT = np.select([(AGE >= 60) & (WARD == 1), AGE < 30, WARD < 2], [0.9, 0.0, 0.5], 0.2)
BY_WARD = {"er": {"wait": 0.3, "treat": 0.7}, "icu": "treat", "home": [0.6, 0.4]}
TREAT_BY_WARD = np.array([0.7, 1.0, 0.4])[WARD.astype(int)]
STATES = named_log(
    observation=WARD[:, None],
    next_observation=np.where(LOG.terminated, 99.0, np.roll(WARD, -1))[:, None],
    categorical=(0,),
    names=Names(("ward",), ("wait", "treat"), {0: WARDS}),
)


def treat(policy, log=LOG):
    return probabilities(policy, log.observation)[:, 1]


def test_the_first_rule_that_matches_applies():
    np.testing.assert_allclose(treat(as_policy(RULES, LOG)), TREAT, atol=1e-12)


def test_intervals_contain_their_lower_end_alone():
    rules = {"rules": [{"if": {"age": [float(AGE[0]), float(AGE[0]) + 1]}, "then": "treat"}], "otherwise": "wait"}
    np.testing.assert_array_equal(treat(as_policy(rules, LOG)), AGE[0] == AGE)
    rules["rules"][0]["if"]["age"] = [None, float(AGE[0])]
    np.testing.assert_array_equal(treat(as_policy(rules, LOG)), AGE[0] > AGE)
    rules["rules"][0]["if"]["age"] = float(AGE[0])
    np.testing.assert_array_equal(treat(as_policy(rules, LOG)), AGE[0] == AGE)


def test_rules_in_a_file(tmp_path):
    path = tmp_path / "rules.json"
    path.write_text(json.dumps(RULES))
    assert isinstance(ad.load_policy(path), UnboundPolicy)
    np.testing.assert_allclose(treat(as_policy(ad.load_policy(path), LOG)), TREAT, atol=1e-12)
    np.testing.assert_allclose(treat(as_policy(str(path), LOG)), TREAT, atol=1e-12)
    found = ad.evaluate(LOG, path, 0.9, bootstrap=0, estimators="pdis,fqe")
    direct = ad.evaluate(LOG, RULES, 0.9, bootstrap=0, estimators="pdis,fqe")
    assert [one.value for one in found.estimates.values()] == [one.value for one in direct.estimates.values()]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rules": [{"if": {"agee": 3}, "then": "wait"}]}, "rule 1 has the column 'agee', .* mean age?"),
        (
            {"rules": [{"if": {"ward": "ICU "}, "then": "wait"}]},
            "'ICU ' is not a category of 'ward'. Did you mean icu",
        ),
        ({"rules": [{"if": {"ward": [1, 2]}, "then": "wait"}]}, "'ward' has categories, not numbers"),
        ({"rules": [{"if": {"age": "old"}, "then": "wait"}]}, "'old' is not a number"),
        ({"rules": [{"if": {"age": [60, 20]}, "then": "wait"}]}, "from 60 to 20 is empty"),
        ({"rules": [{"if": {"age": None}, "then": "wait"}]}, "'age' needs"),
        ({"rules": [{"if": {}, "then": "treet"}]}, "the action 'treet', .* mean treat?"),
        ({"rules": [{"if": {}, "then": {"treat": 0.9}}]}, r"rule 1: probabilities .* these sum to 0\.9"),
        ({"rules": [{"if": {}, "then": {"treat": 1.5, "wait": -0.5}}]}, "at least 0"),
        ({"rules": [{"if": {}, "then": {"treat": "much"}}]}, "must be numbers"),
        ({"rules": [{"if": {}, "do": "wait"}]}, "rule 1: a rule is"),
        ({"rules": []}, "there is no rule"),
        ({"rules": [], "else": "wait"}, "unknown entry 'else'"),
    ],
)
def test_rules_that_are_wrong(change, message):
    with pytest.raises(ad.PolicyError, match=message):
        as_policy(change, LOG)


def test_a_state_without_a_rule_is_named():
    row = int((AGE >= 60).argmin())
    place = f"episode {row // 3}, step {row % 3}"
    state = f"age = {AGE[row]:g}, ward = {WARDS[int(WARD[row])]}"
    with pytest.raises(ad.PolicyError, match=f"{place}: no case of the rules applies to {state}") as error:
        as_policy({"rules": [{"if": {"age": [60, None]}, "then": "treat"}]}, LOG)
    assert f"({int((AGE < 60).sum()) + int((AGE < 60)[~LOG.terminated].sum()) - 1:,} more" in str(error.value)


def test_the_state_after_the_end_needs_no_rule():
    """It is (−1, er), which no rule matches: what π does there does not count. Other unknown states are refused."""
    policy = as_policy({"rules": [{"if": {"age": [0, None]}, "then": "treat"}]}, LOG)
    np.testing.assert_allclose(probabilities(policy, np.array([[-1.0, 0.0]])), [[0.5, 0.5]])
    with pytest.raises(ad.PolicyError, match="the state age = -2, ward = er"):
        probabilities(policy, np.array([[-2.0, 0.0]]))


def test_the_state_after_the_end_may_be_the_last_one():
    """Where a log of one-step episodes repeats the state, it is a state like others."""
    every = np.ones(LOG.num_transitions, bool)
    log = named_log(next_observation=LOG.observation, terminated=every, episode_ends=every)
    with pytest.raises(ad.PolicyError, match="no case of the rules"):
        as_policy({"rules": [{"if": {"age": [60, None]}, "then": "treat"}]}, log)


def test_a_table_of_states_by_name():
    np.testing.assert_allclose(treat(as_policy(BY_WARD, STATES), STATES), TREAT_BY_WARD, atol=1e-12)
    both = {(age, ward): BY_WARD[ward] for age in np.unique(AGE) for ward in WARDS}
    np.testing.assert_allclose(treat(as_policy(both, LOG)), TREAT_BY_WARD, atol=1e-12)


def test_an_array_by_state_number():
    table = np.array([[0.3, 0.7], [0.0, 1.0], [0.6, 0.4]])
    np.testing.assert_allclose(treat(as_policy(table, STATES), STATES), TREAT_BY_WARD, atol=1e-12)
    np.testing.assert_allclose(treat(as_policy(table.tolist(), STATES), STATES), TREAT_BY_WARD, atol=1e-12)
    with pytest.raises(ad.PolicyError, match="applies to ward = home"):
        as_policy(table[:2], STATES)
    with pytest.raises(ad.PolicyError, match=r"state 1 of .* these sum to 2"):
        as_policy(table * [[1], [2], [1]], STATES)
    with pytest.raises(ad.PolicyError, match="an observation of one number, the state, and the log has 2"):
        as_policy(table, LOG)


WIDE = "ward,p(wait),p(treat)\ner,0.3,0.7\nicu,0,1\nhome,0.6,0.4\n"
LONG = "ward,action,probability\ner,wait,0.3\ner,treat,0.7\nicu,treat,1\nhome,treat,0.4\nhome,wait,0.6\n"
CERTAIN = "ward,action\ner,wait\nicu,treat\nhome,wait\n"


@pytest.mark.parametrize(
    ("text", "expected"), [(WIDE, TREAT_BY_WARD), (LONG, TREAT_BY_WARD), (CERTAIN, (WARD == 1).astype(float))]
)
def test_csv_files_and_data_frames(tmp_path, text, expected):
    path = tmp_path / "table.csv"
    path.write_text(text)
    for log in (LOG, STATES):  # a table of some of the columns depends on these alone
        np.testing.assert_allclose(treat(as_policy(path, log), log), expected, atol=1e-12)
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    for frame in (pd.read_csv(path), pl.read_csv(path), pl.read_csv(path).to_arrow()):
        np.testing.assert_allclose(treat(as_policy(frame, LOG)), expected, atol=1e-12)


def test_numbers_are_found_to_the_rounding_of_a_log(tmp_path):
    """0.1 in float32 is not 0.1 in float64."""
    state = np.where(WARD > 0, np.float32(0.1), np.float32(0.7)).astype(float)[:, None]
    log = named_log(
        observation=state,
        next_observation=np.where(LOG.terminated[:, None], -1.0, np.roll(state, -1, axis=0)),
        categorical=(),
        names=Names(actions=("wait", "treat")),
    )
    path = tmp_path / "table.csv"
    path.write_text("observation[0],action\n0.1,treat\n0.7,wait\n")
    np.testing.assert_array_equal(treat(as_policy(path, log), log), WARD > 0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("wart,action\ner,wait\n", "the column 'wart', .* mean ward?"),
        ("ward,action\nicu,wait\nicu,treat\n", "row 2: the same state icu a second time"),
        ("ward,action\nIcu,wait\n", "row 1: 'Icu' is not a category"),
        ("ward,p(wait),p(treet)\ner,0.3,0.7\n", "'treet', .* mean treat?"),
        ("ward,p(wait),p(treat)\ner,0.3,0.6\n", r"state of row 1: .* these sum to 0\.9"),
        ("ward,probability\ner,0.3\n", "either a column 'action'"),
        ("action\nwait\n", "no column of the state. The log has age, ward"),
        ("ward,action\ner\n", "line 2 has 1 values for 2 columns"),
        ("ward,ward\ner,er\n", "two columns have the same name"),
        ("ward,action\n", "at least one line of values"),
        ("ward,action\nicu,wait\n", "applies to age"),
    ],
)
def test_csv_files_that_are_wrong(tmp_path, text, message):
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(ad.PolicyError, match=message):
        as_policy(path, LOG)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"er": "wait"}, "the state 'er' has 1 values, an observation has 2"),
        ({}, "is empty"),
        ({(20, "icu"): {"treat": 0.4}}, "these sum to 0.4"),
    ],
)
def test_tables_that_are_wrong(table, message):
    with pytest.raises(ad.PolicyError, match=message):
        as_policy(table, LOG)


def test_files_that_cannot_be_read(tmp_path):
    path = tmp_path / "rules.json"
    path.write_text("{")
    with pytest.raises(ad.PolicyError, match="not a readable JSON file"):
        ad.load_policy(path)
    path = tmp_path / "table.csv"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ad.PolicyError, match="not a readable CSV file"):
        ad.load_policy(path)


def test_a_category_that_the_log_lacks_matches_no_row():
    """A note says so, with the category that may have been meant."""
    added = {"if": {"ward": ["hospice", "icv"]}, "then": "treat"}
    more = {"rules": [added, *RULES["rules"]], "otherwise": RULES["otherwise"]}
    policy = as_policy(more, LOG)
    np.testing.assert_allclose(treat(policy), TREAT, atol=1e-12)
    first, second = remarks_of(policy)
    assert "rule 1: 'hospice' is not a category of 'ward' in the log, so it applies to no row" in first
    assert second.endswith("Did you mean icu?")
    found = ad.evaluate(LOG, more, 0.9, bootstrap=0, estimators="pdis", horizon=2)
    notes = found.estimates["pdis"].notes
    assert [note.text for note in notes if note.code is NoteCode.POLICY_REMARK] == [first, second]


def test_a_table_may_have_categories_that_the_log_lacks(tmp_path):
    path = tmp_path / "table.csv"
    known = "".join(f"{ward},{('wait', 'treat')[ward == 'icu']}\n" for ward in WARDS)
    path.write_text(f"ward,action\n{known}hospice,treat\nlaundry,wait\n")
    policy = as_policy(path, LOG)
    np.testing.assert_array_equal(treat(policy), np.array(WARDS)[WARD.astype(int)] == "icu")
    assert len(remarks_of(policy)) == 2
    path.write_text(f"ward,action\n{known}hospice,treat\nhospice,wait\n")
    with pytest.raises(ad.PolicyError, match="the same state hospice a second time"):
        as_policy(path, LOG)


def test_rules_for_some_states_alone_are_told_of_otherwise():
    with pytest.raises(ad.PolicyError, match='the key "otherwise"'):
        as_policy({"rules": [{"if": {"age": [60, None]}, "then": "treat"}]}, LOG)


def test_an_action_that_was_never_taken_is_told_of_the_option():
    with pytest.raises(ad.PolicyError, match="--actions wait,treat,operate"):
        as_policy({"rules": [], "otherwise": "operate"}, LOG)
