"""A prior over structures, learned from all tasks: what suits tables with groups.

    known = prior.begin("binary")                      # or "regression"; "multiclass", classes=5
    known = prior.learn(known, "site 1", x, y)         # a new task: x (n, inputs), y (n,) tensors
    known = prior.update(known, "site 1", x, y)        # more rows of it
    known = prior.forget(known, "site 1")              # as if it had never been learned
    known = prior.settled(known)                       # all adapted to all: after a table, before a save
    prior.probabilities(known, x, "site 1")            # (n, classes); values(...): mean and deviation (n,)
    prior.probabilities(known, x, "never seen")        # the prior's mean, less sure
    prior.appraise(known, x, y)                        # how well components explain a new task
    plain, tensors = prior.describe(known)             # to save; prior.restore(plain, tensors)
    known.coordinates()                                # where tasks lie along the directions that they share

A task's weights are w = mu + Phi psi + own: what all tasks have in common, directions that they share, and
a rest. `Knowledge` is a value: each function returns new knowledge, and an error leaves the old one as it
was. Where things are: gaussian.py (exact inference), evidence.py (components), likelihoods.py, labels.py and
records.py (what tasks say, and what is kept of them), boosting.py, correcting.py and bending.py (beyond
linear).
"""

from piaget.prior.adapting import adapt, anew
from piaget.prior.answers import Values, probabilities, values
from piaget.prior.appraising import Appraisal, appraise, appraise_many
from piaget.prior.knowledge import Form, Knowledge, begin
from piaget.prior.learning import assimilate, forget, learn, settled, update
from piaget.prior.module import module
from piaget.prior.saving import describe, restore

__all__ = [
    "Appraisal",
    "Form",
    "Knowledge",
    "Values",
    "adapt",
    "anew",
    "appraise",
    "appraise_many",
    "assimilate",
    "begin",
    "describe",
    "forget",
    "learn",
    "module",
    "probabilities",
    "restore",
    "settled",
    "update",
    "values",
]
