"""Value methods: they learn what π earns from a state (or pair)."""
