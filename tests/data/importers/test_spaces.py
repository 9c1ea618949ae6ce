"""Spaces: the columns of nested observations, with their names and codes."""

import numpy as np
import pytest

import average_dice as ad
from average_dice.data.importers.spaces import Layout, actions_of

spaces = pytest.importorskip("gymnasium").spaces

NESTED = spaces.Dict(
    {
        "arm": spaces.Dict({"angle": spaces.Box(-1, 1, (2,)), "grip": spaces.Discrete(3)}),
        "lamps": spaces.MultiBinary(2),
        "room": spaces.Tuple((spaces.Discrete(4, start=1), spaces.Box(0, 9, ()), spaces.MultiDiscrete([2, 5]))),
    }
)


def test_a_nested_space():
    layout = Layout.of(NESTED)
    names = ("arm.angle[0]", "arm.angle[1]", "arm.grip", "lamps[0]", "lamps[1]")
    rooms = ("room[0]", "room[1]", "room[2][0]", "room[2][1]")
    assert layout.names.observations == names + rooms
    assert layout.categorical == (2, 5, 7, 8)
    one = {
        "room": (3, np.array(7.5), np.array([1, 4])),
        "lamps": np.array([1, 0]),
        "arm": {"grip": 2, "angle": np.array([0.5, -0.5])},
    }
    np.testing.assert_array_equal(layout.rows(one, 1), [[0.5, -0.5, 2, 1, 0, 3, 7.5, 1, 4]])


def test_rows_at_once_are_the_rows_one_by_one():
    NESTED.seed(0)
    layout, some = Layout.of(NESTED), [NESTED.sample() for _ in range(5)]
    together = {
        "arm": {name: np.array([one["arm"][name] for one in some]) for name in ("angle", "grip")},
        "lamps": np.array([one["lamps"] for one in some]),
        "room": tuple(np.array([one["room"][place] for one in some]) for place in range(3)),
    }
    expected = np.concatenate([layout.rows(one, 1) for one in some])
    np.testing.assert_array_equal(layout.rows(together, 5), expected)


def test_plain_spaces_have_no_names():
    assert Layout.of(spaces.Box(0, 1, (2, 3))).names.observations == ()
    assert Layout.of(spaces.Box(0, 1, (2, 3))).width == 6
    assert Layout.of(spaces.Discrete(7)).categorical == (0,)


@pytest.mark.parametrize(
    "space", [spaces.Text(5), spaces.Sequence(spaces.Discrete(2)), spaces.Box(0, 255, (210, 160, 3))]
)
def test_other_observations_are_refused(space):
    with pytest.raises(ad.DatasetError, match=r"must be numbers|instead of images"):
        Layout.of(space)


def test_actions():
    np.testing.assert_array_equal(actions_of(spaces.Discrete(3, start=5), [5, 7], 2), [0, 2])
    np.testing.assert_array_equal(actions_of(spaces.Box(0, 1, (2, 1)), np.ones((3, 2, 1)), 3), np.ones((3, 2)))
    with pytest.raises(ad.DatasetError, match="must be Discrete or Box"):
        actions_of(spaces.MultiDiscrete([2, 2]), [[0, 1]], 1)
