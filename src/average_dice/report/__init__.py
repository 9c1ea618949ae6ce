"""Rendering: the terminal, the HTML page and the notebook.

Everything here draws the JSON form of an evaluation or a comparison (`to_dict`) and computes no results.
"""
