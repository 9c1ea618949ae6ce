"""Training target policies for a few hundred steps; `make test-training` installs what it needs."""

import json

import numpy as np
import pytest

from average_dice import SettingError
from average_dice.policies import load_policy
from average_dice.progress import listening

torch = pytest.importorskip("torch", reason="needs PyTorch: make test-training")
pytest.importorskip("stable_baselines3", reason="needs Stable-Baselines3: make test-training")

from average_dice.tasks import TASKS, ppo  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

SHORT = ppo.PPOSettings(num_steps=512, num_envs=2, rollout=64, batch_size=32, num_epochs=2)


@pytest.mark.parametrize("name", ["CartPole-v1", "Hopper-v5"])
def test_the_exported_policy_is_the_trained_one(name):
    model, envs = ppo.make_model(TASKS[name], SHORT, seed=0)
    model.learn(256)
    policy = ppo.export(model, envs, TASKS[name])
    observation = np.random.default_rng(0).normal(size=(50, envs.observation_space.shape[0]))
    action = policy.sample(observation, generator=np.random.default_rng(1))
    seen = torch.as_tensor(envs.normalize_obs(observation), dtype=torch.float32)
    _, expected, _ = model.policy.evaluate_actions(seen, torch.as_tensor(action))
    np.testing.assert_allclose(policy.log_prob(observation, action), expected.detach().numpy(), rtol=1e-4, atol=1e-4)


def test_an_interrupted_training_continues(tmp_path, monkeypatch):
    monkeypatch.setattr(ppo, "STEPS_BETWEEN_CHECKPOINTS", 128)
    checkpoint = tmp_path / "policy.checkpoint"
    seen = []

    def interrupt(done, total):
        seen.append(done)
        if done >= 384:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), listening(interrupt):
        ppo.train(TASKS["CartPole-v1"], SHORT, 0, checkpoint)
    assert checkpoint.exists()
    resumed = []
    with listening(lambda done, total: resumed.append(done)):
        ppo.train(TASKS["CartPole-v1"], SHORT, 0, checkpoint)
    assert seen[0] == 0
    assert resumed[0] == 384
    # A finished training does not run again.
    again = []
    with listening(lambda done, total: again.append(done)):
        ppo.train(TASKS["CartPole-v1"], SHORT, 0, checkpoint)
    assert again == []


def test_a_restored_model_is_the_saved_one(tmp_path):
    """Weights, the optimiser's moments and the statistics of observations and returns."""
    task, path = TASKS["Hopper-v5"], tmp_path / "x.checkpoint"
    saved, envs = ppo.make_model(task, SHORT, seed=0)
    saved.learn(256)
    ppo._save(saved, envs, SHORT, 0, path)
    restored, again = ppo.make_model(task, SHORT, seed=1)
    ppo._restore(restored, again, SHORT, 0, path)
    for one, other in zip(saved.policy.parameters(), restored.policy.parameters(), strict=True):
        assert torch.equal(one, other)
    moments, restored_moments = (model.policy.optimizer.state_dict()["state"] for model in (saved, restored))
    assert set(moments) == set(restored_moments)
    for index, state in moments.items():
        assert all(torch.equal(state[name], restored_moments[index][name]) for name in state), index
    np.testing.assert_array_equal(envs.obs_rms.var, again.obs_rms.var)
    assert envs.ret_rms.count == again.ret_rms.count
    assert restored.num_timesteps == saved.num_timesteps


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    checkpoint = tmp_path / "policy.checkpoint"
    ppo.train(TASKS["CartPole-v1"], SHORT, 0, checkpoint)
    with pytest.raises(SettingError, match="other settings or another seed"):
        ppo.train(TASKS["CartPole-v1"], SHORT, 1, checkpoint)


def test_the_record_has_settings_command_and_return(tmp_path):
    out = tmp_path / "policy.safetensors"
    record = ppo.train_and_record(TASKS["CartPole-v1"], out, seed=3, num_steps=512)
    assert json.loads(out.with_suffix(".json").read_text()) == record
    assert record["settings"]["num_steps"] == 512
    assert record["command"] == "average-dice train CartPole-v1 --seed 3 --steps 512 --out policy.safetensors"
    assert 5 < record["mean_return"] < 500
    assert load_policy(out).log_prob(np.zeros((1, 4)), np.array([0]))[0] < 0


def test_actions_are_repeated_and_their_rewards_added():
    import gymnasium

    class Counting(gymnasium.Env):
        steps = 0

        def step(self, action):
            self.steps += 1
            return np.zeros(1), 1.0, self.steps == 5, False, {}

    env = ppo.RepeatAction(Counting(), 3)
    assert env.step(0)[1:3] == (3.0, False)
    assert env.step(0)[1:3] == (2.0, True)
