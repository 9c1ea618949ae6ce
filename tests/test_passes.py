"""Passes over a log in blocks: the same answer to the last bit, whoever computes which groups of blocks."""

import pickle
from dataclasses import replace
from functools import partial

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import average_dice as ad
from average_dice import passes
from average_dice.blocked_problem import BlockedProblem
from average_dice.data import LogBlocks
from average_dice.estimators import Blend
from average_dice.estimators.blend._counts import PoissonCounts
from average_dice.estimators.blend.streamed import StreamedBlend
from average_dice.large_evaluation import _on_policy
from average_dice.passes import THREADS, Group, Work, groups, of_group, pieces, total
from average_dice.policies import Network
from average_dice.testing.exact_mdps import early_termination, hidden_clock
from on_disk import uneven_log

SETTINGS = replace(Blend(30).streamed_settings, num_features=30)


class Workers:
    """Other machines: each gets what is sent to it, and computes a range of groups, the last range first."""

    def __init__(self, number):
        self.number, self.sent = number, 0

    def parts(self, work, blocks):
        ranges = np.array_split(np.arange(len(groups(blocks))), self.number)
        found = {}
        for some in reversed(ranges):
            sent = pickle.dumps((work, blocks))
            self.sent += len(sent)
            received = pickle.loads(sent)
            for one in reversed(some.tolist()):
                found[one] = pickle.loads(pickle.dumps(of_group(*received, groups(blocks)[one])))
        return (found[one] for one in sorted(found))


@pytest.fixture
def small_groups(monkeypatch):
    monkeypatch.setattr(passes, "ROWS", 100)
    monkeypatch.setattr(passes, "GROUP_ROWS", 250)


def rows_of(piece):
    return [(piece.first, piece.dataset.num_transitions)]


def joined(left, right):
    return left + right


@given(rows=st.integers(1, 15), piece=st.integers(1, 15), group=st.integers(1, 40))
def test_groups_are_the_log_in_order_in_pieces_of_whole_episodes(rows, piece, group):
    log = uneven_log()
    starts = dict(zip(log.starts.tolist(), range(log.num_episodes), strict=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passes, "ROWS", piece)
        patch.setattr(passes, "GROUP_ROWS", group)
        blocks = LogBlocks.of_dataset(log, rows)
        found = groups(blocks)
        assert [one for first, last in found for one in range(first, last)] == list(range(len(blocks)))
        every = [one for some in found for one in pieces(blocks, some)]
        ends = np.cumsum([one.dataset.num_transitions for one in every])
        assert [one.first for one in every] == [starts[end] for end in (0, *ends[:-1].tolist())]
        for one in every:
            assert one.dataset.num_episodes == 1 or one.dataset.num_transitions <= piece
        for first, last in found:
            in_group = blocks.ends[last - 1] - (blocks.ends[first - 1] if first else 0)
            assert last == first + 1 or in_group <= group
        expected = [(one.first, one.dataset.num_transitions) for one in every]
        assert total(Work(rows_of, joined), blocks, THREADS) == expected
        by_group = [[(one.first, one.dataset.num_transitions) for one in pieces(blocks, some)] for some in found]
        assert list(THREADS.parts(Work(rows_of, joined), blocks)) == by_group


def problem_of(mdp, num_episodes):
    """A log of the MDP, and a policy that can be sent."""
    log = mdp.problem(num_episodes, seed=1).dataset
    weights = np.random.default_rng(0).normal(0, 0.3, (int(log.action.max()) + 1, log.observation.shape[1]))
    return ad.Problem(log, ad.CategoricalPolicy(Network((weights,), (np.zeros(len(weights)),))), 0.9)


def value_and_resamples(blocks, problem, executor):
    blocked = BlockedProblem.of(blocks, problem.policy, problem.discount, executor=executor)
    found = StreamedBlend.fit(SETTINGS, blocked, key=jax.random.key(0))
    return np.array([found.value, *found.diagnostics.values(), *found.replicates(PoissonCounts(10, 0))])


@pytest.mark.parametrize(
    "mdp", [early_termination(), pytest.param(hidden_clock(), marks=pytest.mark.slow)], ids=lambda mdp: mdp.name
)
def test_the_answer_is_the_same_for_any_number_of_workers(mdp, tmp_path, small_groups):
    problem = problem_of(mdp, 120 if mdp.name == "hidden clock" else 70)
    ad.write_dataset(problem.dataset, tmp_path / "log.parquet")
    blocks = LogBlocks.open(tmp_path / "log.parquet", rows=130)
    assert len(groups(blocks)) >= 5
    assert blocks.num_transitions > 5 * passes.ROWS
    expected = value_and_resamples(blocks, problem, THREADS)
    assert np.isfinite(expected).all()
    for number in (1, 2, 5):
        assert value_and_resamples(blocks, problem, Workers(number)).tobytes() == expected.tobytes()


def test_the_whole_evaluation_is_the_same_and_the_sample_is_not_sent(small_groups):
    problem = problem_of(early_termination(), 60)
    blocks, workers = LogBlocks.of_dataset(problem.dataset, 100), Workers(2)
    evaluate = partial(ad.evaluate, blocks, problem.policy, problem.discount, bootstrap=4)
    here, there = evaluate().to_dict(), evaluate(executor=workers).to_dict()
    for one in (*here["estimates"], *there["estimates"]):
        del one["seconds"]
    assert there == here
    assert workers.sent > 0
    blocked = BlockedProblem.of(blocks, problem.policy, problem.discount)
    assert pickle.loads(pickle.dumps(blocked)).sample is None


def test_categories_are_those_of_the_whole_log_and_are_found_once():
    log = uneven_log(categorical=[2])
    blocks = LogBlocks.of_dataset(log, 5)
    policy = ad.CategoricalPolicy(Network((np.zeros((3, 3)),), (np.zeros(3),)))
    on_policy = _on_policy(BlockedProblem.of(blocks, policy, 0.9))
    assert on_policy.blocks.encoding is blocks.encoding
    np.testing.assert_array_equal(blocks.encoding.values[0], np.unique(log.observation[:, 2]))
    for block in on_policy.blocks:
        assert block.encoding is blocks.encoding
        assert not block.action.any()


def test_an_error_in_a_piece_comes_out():
    def fails(piece):
        raise ad.DatasetError("episode 3: a mistake")

    blocks = LogBlocks.of_dataset(uneven_log(), 5)
    work = Work(fails, joined)
    with pytest.raises(ad.DatasetError, match="episode 3: a mistake"):
        total(work, blocks, THREADS)
    with pytest.raises(ad.DatasetError, match="episode 3: a mistake"):
        of_group(work, blocks, Group(0, 2))


def test_an_executor_needs_a_log_in_blocks(small_log):
    policy = early_termination().policy
    for options, match in (
        ({"executor": "ray"}, r"executor ray: a log in memory is evaluated by this process.*LogBlocks\.open"),
        ({"executor": Workers(1)}, "executor Workers: a log in memory"),
        ({"executor": "spark"}, "unknown executor 'spark'. Known are local, ray"),
        ({"address": "here:1"}, "--executor ray"),
    ):
        with pytest.raises(ad.SettingError, match=match):
            ad.evaluate(small_log, policy, 0.9, **options)
    blocks = LogBlocks.of_dataset(small_log)
    for options, match in (({"executor": "spark"}, "unknown executor"), ({"address": "here:1"}, "--executor ray")):
        with pytest.raises(ad.SettingError, match=match):
            ad.evaluate(blocks, policy, 0.9, **options)
