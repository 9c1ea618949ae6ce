"""Modules of torch: densities and probabilities are those of torch.distributions."""

import numpy as np
import pytest

import average_dice as ad
from average_dice.policies import ConditionalGaussianPolicy, DensityPolicy, DeterministicPolicy, as_policy
from named_log import continuous_log, named_log, probabilities

torch = pytest.importorskip("torch")
D = torch.distributions

DISCRETE = named_log()
CONTINUOUS = continuous_log(width=2)


class Module(torch.nn.Module):
    """A linear layer with dropout, and what a test makes of it."""

    def __init__(self, inputs, outputs, head, dtype=torch.float64):
        super().__init__()
        torch.manual_seed(0)
        self.layer = torch.nn.Linear(inputs, outputs, dtype=dtype)
        self.dropout = torch.nn.Dropout(0.5)
        self.head = head

    def forward(self, observations):
        return self.head(self.dropout(self.layer(observations)))


def evaluated(module, log):
    """What the module returns for the log's observations, in evaluation mode."""
    was = module.training
    module.eval()
    with torch.no_grad():
        found = module(torch.tensor(log.observation, dtype=module.layer.weight.dtype))
    module.train(was)
    return found


def scaled(output):
    mean, raw = output.chunk(2, dim=-1)
    return mean, torch.nn.functional.softplus(raw) + 0.1


def tanh_of_normal(output):
    return D.TransformedDistribution(D.Normal(*scaled(output)), [D.TanhTransform()])


def bounded(output):
    """Between −1 and 3 in the first dimension, −2 and 0 in the second."""
    shift = D.AffineTransform(torch.tensor([1.0, -1.0]), torch.tensor([2.0, 1.0]))
    base = D.Independent(D.Normal(*scaled(output)), 1)
    return D.TransformedDistribution(base, [D.TanhTransform(), shift])


def correlated(output):
    mean, std = scaled(output)
    factor = torch.diag_embed(std)
    factor[:, 1, 0] = 0.3
    return D.MultivariateNormal(mean, scale_tril=factor)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "head",
    [
        lambda output: output,
        lambda output: output.log_softmax(dim=1),
        lambda output: output.softmax(dim=1),
        lambda output: D.Categorical(logits=output),
        lambda output: D.OneHotCategorical(probs=output.softmax(dim=1)),
    ],
    ids=["logits", "log probabilities", "probabilities", "Categorical", "OneHotCategorical"],
)
def test_discrete_modules(head, dtype):
    module = Module(2, 2, head, dtype)
    module.layer.weight.data /= 30
    plain = torch.softmax(module.layer(torch.tensor(DISCRETE.observation, dtype=dtype)), dim=1).detach().numpy()
    found = probabilities(as_policy(module, DISCRETE), DISCRETE.observation)
    np.testing.assert_allclose(found, plain, atol=1e-6)


def test_bernoulli_and_actions():
    module = Module(2, 1, lambda output: D.Bernoulli(logits=output.squeeze(1) / 30))
    expected = evaluated(module, DISCRETE).probs.numpy()
    np.testing.assert_allclose(probabilities(as_policy(module, DISCRETE), DISCRETE.observation)[:, 1], expected)
    greedy = Module(2, 2, lambda output: output.argmax(dim=1))
    policy = as_policy(greedy, DISCRETE)
    assert isinstance(policy, DeterministicPolicy)
    np.testing.assert_array_equal(policy.actions(DISCRETE.observation), evaluated(greedy, DISCRETE).numpy())


HEADS = {
    "pair": scaled,
    "Normal": lambda output: D.Normal(*scaled(output)),
    "Independent": lambda output: D.Independent(D.Normal(*scaled(output)), 1),
    "MultivariateNormal": correlated,
    "tanh": tanh_of_normal,
    "Independent tanh": lambda output: D.Independent(tanh_of_normal(output), 1),
    "tanh, shift and scale": bounded,
    "Beta": lambda output: D.TransformedDistribution(
        D.Beta(*scaled(output.exp())), [D.AffineTransform(-1.0, 2.0)], validate_args=False
    ),
}


def torch_log_prob(found, actions):
    found = D.Normal(*found) if isinstance(found, tuple) else found
    return found.log_prob(torch.tensor(actions)).reshape(len(actions), -1).sum(dim=1).numpy()


@pytest.mark.parametrize("head", HEADS)
def test_continuous_densities_are_those_of_torch(head):
    module = Module(3, 4, HEADS[head])
    policy = as_policy(module, CONTINUOUS)
    assert isinstance(policy, DensityPolicy if head == "Beta" else ConditionalGaussianPolicy)
    actions = CONTINUOUS.action - [0.0, 1.0] if head == "tanh, shift and scale" else CONTINUOUS.action
    expected = torch_log_prob(evaluated(module, CONTINUOUS), actions)
    np.testing.assert_allclose(policy.log_prob(CONTINUOUS.observation, actions), expected, atol=1e-6)


@pytest.mark.parametrize("head", HEADS)
def test_samples_follow_the_distribution(head):
    """The mean of a bounded function over samples is that over torch's own samples."""
    module = Module(3, 4, HEADS[head])
    policy = as_policy(module, CONTINUOUS)
    found = evaluated(module, CONTINUOUS)
    torch.manual_seed(1)
    expected = (D.Normal(*found) if isinstance(found, tuple) else found).sample((4_000,)).tanh().mean(dim=0).numpy()
    generator = np.random.default_rng(0)
    actions, weights = policy.weighted_actions(CONTINUOUS.observation, num_draws=4_000, generator=generator)
    np.testing.assert_allclose(np.einsum("rd,rda->ra", weights, np.tanh(actions)), expected, atol=0.08)
    one = policy.sample(np.repeat(CONTINUOUS.observation[:1], 4_000, axis=0), generator=generator)
    np.testing.assert_allclose(np.tanh(one).mean(axis=0), expected[0], atol=0.08)
    again = policy.sample(CONTINUOUS.observation, generator=np.random.default_rng(3))
    np.testing.assert_array_equal(again, policy.sample(CONTINUOUS.observation, generator=np.random.default_rng(3)))


def test_actions_that_float32_rounds_to_the_bound_have_a_finite_density():
    policy = as_policy(Module(3, 4, tanh_of_normal), CONTINUOUS)
    found = policy.log_prob(CONTINUOUS.observation[:2], np.array([[1.0, -1.0], [1.1, 0.0]]))
    assert np.isfinite(found[0])
    assert found[1] == -np.inf


def test_a_module_of_continuous_actions_is_deterministic():
    module = Module(3, 2, torch.tanh)
    policy = as_policy(module, CONTINUOUS)
    assert isinstance(policy, DeterministicPolicy)
    np.testing.assert_allclose(policy.actions(CONTINUOUS.observation), evaluated(module, CONTINUOUS).numpy(), atol=1e-6)


def test_the_module_is_left_as_it_was():
    """Each part trains or evaluates as before, no gradient remains, and torch's random state is the same."""
    module = Module(3, 4, HEADS["Beta"])
    module.train()
    module.dropout.eval()
    state = torch.random.get_rng_state()
    policy = as_policy(module, CONTINUOUS)
    policy.log_prob(CONTINUOUS.observation, CONTINUOUS.action)
    policy.sample(CONTINUOUS.observation, generator=np.random.default_rng(0))
    assert (module.training, module.layer.training, module.dropout.training) == (True, True, False)
    assert module.layer.weight.grad is None
    assert torch.equal(torch.random.get_rng_state(), state)


def test_many_rows_are_evaluated_in_batches():
    module = Module(3, 4, scaled)
    observations = np.random.default_rng(0).normal(size=(10_000, 3))
    sizes = []
    module.layer.register_forward_hook(lambda layer, inputs, output: sizes.append(len(inputs[0])))
    found = as_policy(module, CONTINUOUS).log_prob(observations, observations[:, :2])
    assert max(sizes) < 10_000
    mean, std = module.eval()(torch.as_tensor(observations))
    expected = D.Normal(mean, std).log_prob(torch.as_tensor(observations[:, :2])).sum(dim=1).detach().numpy()
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_a_problem_accepts_a_module():
    module = Module(3, 4, scaled, torch.float32)
    problem = ad.Problem(CONTINUOUS, module, 0.9)
    expected = torch_log_prob(evaluated(module, CONTINUOUS), CONTINUOUS.action)  # log μ is 0
    np.testing.assert_allclose(problem.log_ratio, expected, atol=1e-5)


def test_a_function_of_the_user_may_call_torch():
    """It gets an array that it may write to: torch warns about others."""
    module = Module(2, 2, lambda output: D.Categorical(logits=output / 30)).eval()
    policy = as_policy(lambda rows: module(torch.from_numpy(rows)), DISCRETE)
    expected = evaluated(module, DISCRETE).probs.numpy()
    np.testing.assert_allclose(probabilities(policy, DISCRETE.observation), expected, atol=1e-9)


def test_a_module_without_a_log_says_what_it_needs():
    module = Module(2, 2, lambda output: output)
    with pytest.raises(ad.PolicyError, match=r"as_policy\(policy, data\)"):
        as_policy(module).log_prob(DISCRETE.observation, DISCRETE.action)
    known = as_policy(module, output="logits")
    expected = probabilities(as_policy(module, DISCRETE), DISCRETE.observation)
    np.testing.assert_array_equal(probabilities(known, DISCRETE.observation), expected)
