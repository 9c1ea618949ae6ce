"""Adapters: objects of other libraries, functions, tables and rules as policies. One file for each; see `registry`."""
