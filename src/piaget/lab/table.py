"""Old names, until the report imports them from where they are."""

from piaget.lab.final_table import lines as lines, mean_and_error as mean_and_error, with_error as with_error
from piaget.paper.names import ALGORITHMS as ALGORITHMS, BASES as BASES, UNITS as UNITS
from piaget.paper.results import reported as reported
