"""Ratio methods: they learn the density ratio of states (or states and actions) between π and the log."""
