"""Importance sampling: rewards weighted by products of importance ratios."""
