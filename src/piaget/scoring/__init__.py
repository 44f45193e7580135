"""How good a learner is: rows, scores, and what components do."""
