"""The recommended estimator: many doubly robust estimates, blended by their estimated errors."""
