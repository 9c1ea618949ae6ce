"""Ratio methods: they learn the density ratio between π's states (or pairs) and those of the log."""
