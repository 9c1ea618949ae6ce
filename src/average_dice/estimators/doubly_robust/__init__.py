"""Doubly robust methods: a critic, corrected by weighted TD errors."""
