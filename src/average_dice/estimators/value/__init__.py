"""Value methods: they learn the value of states (or states and actions) under π."""
