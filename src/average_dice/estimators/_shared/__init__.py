"""Machinery that several methods share. Not part of the public surface."""
