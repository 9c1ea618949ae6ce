"""Code that several methods share. Not part of the public API."""
