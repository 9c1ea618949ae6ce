"""Intervals, diagnostics and the verdict: how far an estimate can be trusted."""
