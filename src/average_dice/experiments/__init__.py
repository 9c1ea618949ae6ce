"""The paper's experiments and ours: what they run, the result store, figures and claims.

    plan (of a preset) → jobs → rows → result store → figures, tables, claims

`registry.py` lists the experiments; each is one file. A job is one log and the methods that are fitted to it, and it
becomes one row for each method and seed.
"""
