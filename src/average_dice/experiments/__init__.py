"""Tasks, shipped target policies, rollouts and true values. Only rolling out and training need a simulator."""
