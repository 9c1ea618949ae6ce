"""Models of Stable-Baselines3: probabilities and densities are those of the model, actions those of `predict`."""

import numpy as np
import pytest

import average_dice as ad
from average_dice.policies import DeterministicPolicy, as_policy
from named_log import probabilities

sb3 = pytest.importorskip("stable_baselines3")
gymnasium = pytest.importorskip("gymnasium")
torch = pytest.importorskip("torch")
vec_env = pytest.importorskip("stable_baselines3.common.vec_env")

OBSERVATIONS = np.random.default_rng(0).normal(size=(40, 3))
LOW, HIGH = np.array([-2.0, 0.0], np.float32), np.array([2.0, 5.0], np.float32)
ACTIONS = np.random.default_rng(1).uniform(LOW + 0.1, HIGH - 0.1, size=(40, 2))
PROBE = {"device": "cpu", "seed": 0}


class Env(gymnasium.Env):
    """Spaces, and nothing that happens in them."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (3,))

    def __init__(self, discrete):
        self.action_space = gymnasium.spaces.Discrete(4) if discrete else gymnasium.spaces.Box(LOW, HIGH)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(3, np.float32), {}

    def step(self, action):
        return np.zeros(3, np.float32), 0.0, True, False, {}


def tensor(observations):
    return torch.as_tensor(observations, dtype=torch.float32)


@pytest.mark.parametrize("kind", ["PPO", "A2C"])
def test_categorical_models(kind):
    model = getattr(sb3, kind)("MlpPolicy", Env(discrete=True), **PROBE)
    model.policy.action_net.weight.data *= 100
    expected = model.policy.get_distribution(tensor(OBSERVATIONS)).distribution.probs.detach().numpy()
    assert expected.std() > 0.05
    np.testing.assert_allclose(probabilities(as_policy(model), OBSERVATIONS), expected, atol=1e-6)
    np.testing.assert_allclose(probabilities(as_policy(model.policy), OBSERVATIONS), expected, atol=1e-6)
    greedy = as_policy(model, deterministic=True)
    np.testing.assert_array_equal(greedy.actions(OBSERVATIONS), model.predict(OBSERVATIONS, deterministic=True)[0])


@pytest.mark.parametrize("options", [{}, {"use_sde": True}], ids=["diagonal", "state-dependent"])
def test_gaussian_models(options):
    model = sb3.PPO("MlpPolicy", Env(discrete=False), **PROBE, **options)
    found = as_policy(model).log_prob(OBSERVATIONS, ACTIONS)
    expected = model.policy.get_distribution(tensor(OBSERVATIONS)).log_prob(tensor(ACTIONS)).detach().numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_sac_is_squashed_between_the_bounds_of_the_environment():
    model = sb3.SAC("MlpPolicy", Env(discrete=False), **PROBE)
    policy = as_policy(model)
    mean, log_std, _ = model.actor.get_action_dist_params(tensor(OBSERVATIONS))
    base = torch.distributions.Normal(mean.double(), log_std.double().exp())
    low, half = torch.as_tensor(LOW).double(), torch.as_tensor((HIGH - LOW) / 2).double()
    transforms = [torch.distributions.TanhTransform(), torch.distributions.AffineTransform(low + half, half)]
    density = (
        torch.distributions.TransformedDistribution(base, transforms).log_prob(torch.as_tensor(ACTIONS)).sum(dim=1)
    )
    np.testing.assert_allclose(policy.log_prob(OBSERVATIONS, ACTIONS), density.detach().numpy(), atol=1e-6)
    samples = policy.sample(OBSERVATIONS, generator=np.random.default_rng(0))
    assert (samples >= LOW).all()
    assert (samples <= HIGH).all()
    middle = policy._squashed(mean.detach().numpy().astype(float))
    np.testing.assert_allclose(middle, model.predict(OBSERVATIONS, deterministic=True)[0], atol=1e-5)


def test_sac_density_in_the_units_of_the_actor():
    """With bounds of −1 and 1 it is the log_prob that SAC itself trains on, but for the 1e-6 that SAC adds."""
    model = sb3.SAC("MlpPolicy", Env(discrete=False), **PROBE)
    mean, log_std, _ = model.actor.get_action_dist_params(tensor(OBSERVATIONS))
    scaled = model.policy.scale_action(ACTIONS)
    own = model.actor.action_dist.proba_distribution(mean, log_std).log_prob(tensor(scaled)).detach().numpy()
    found = as_policy(model).log_prob(OBSERVATIONS, ACTIONS) + np.log((HIGH - LOW) / 2).sum()
    np.testing.assert_allclose(found, own, atol=1e-3)


@pytest.mark.parametrize(("kind", "discrete"), [("DQN", True), ("TD3", False), ("DDPG", False)])
def test_deterministic_models(kind, discrete):
    model = getattr(sb3, kind)("MlpPolicy", Env(discrete), **PROBE)
    policy = as_policy(model)
    assert isinstance(policy, DeterministicPolicy)
    assert policy.num_actions == (4 if discrete else None)
    np.testing.assert_allclose(policy.actions(OBSERVATIONS), model.predict(OBSERVATIONS, deterministic=True)[0])


def test_vec_normalize_is_found_given_or_left_out():
    env = vec_env.VecNormalize(vec_env.DummyVecEnv([lambda: Env(discrete=True)]))
    env.obs_rms.mean, env.obs_rms.var = np.array([1.0, -1.0, 0.5]), np.array([4.0, 0.25, 1.0])
    model = sb3.PPO("MlpPolicy", env, **PROBE)
    model.policy.action_net.weight.data *= 100

    def expected(observations):
        return model.policy.get_distribution(tensor(observations)).distribution.probs.detach().numpy()

    normalised = expected(env.normalize_obs(OBSERVATIONS))
    np.testing.assert_allclose(probabilities(as_policy(model), OBSERVATIONS), normalised, atol=1e-6)
    plain = probabilities(as_policy(model, normalise=False), OBSERVATIONS)
    np.testing.assert_allclose(plain, expected(OBSERVATIONS), atol=1e-6)
    assert np.abs(plain - normalised).max() > 0.01
    given = as_policy(model.policy, normalise=env)
    np.testing.assert_allclose(probabilities(given, OBSERVATIONS), normalised, atol=1e-6)


def test_a_discrete_state():
    class States(Env):
        observation_space = gymnasium.spaces.Discrete(3)

    model = sb3.PPO("MlpPolicy", States(discrete=True), **PROBE)
    model.policy.action_net.weight.data *= 100
    states = np.array([0, 1, 2, 2])
    expected = model.policy.get_distribution(torch.as_tensor(states)).distribution.probs.detach().numpy()
    np.testing.assert_allclose(probabilities(as_policy(model), states[:, None].astype(float)), expected, atol=1e-6)


def test_a_model_of_another_log_is_refused():
    log = ad.LoggedDataset.from_arrays(
        observation=np.zeros((2, 5)),
        action=[0, 1],
        reward=[0.0, 1.0],
        next_observation=np.zeros((2, 5)),
        terminated=[True, True],
        episode=[0, 1],
    )
    model = sb3.PPO("MlpPolicy", Env(discrete=True), **PROBE)
    with pytest.raises(ad.PolicyError, match="takes observations of 3 numbers, the log has 5"):
        as_policy(model, log)
