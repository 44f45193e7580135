"""The errors that piaget raises about what it was given."""


class PiagetError(Exception):
    """Anything a user can put right; its text says what was found and what was expected."""


class TaskError(PiagetError, ValueError):
    """A task's data is not usable."""


class SettingError(PiagetError, ValueError):
    """A setting has a wrong value, or settings do not fit together."""


class UnknownTaskError(PiagetError, KeyError):
    """A task's name is not known to the learner, or the task is still pending."""

    def __str__(self) -> str:  # KeyError would show the text in quotes
        return str(self.args[0])


class NotFinite(PiagetError, ArithmeticError):
    """A number that is infinite, or none at all, where an answer or a parameter was to be."""


class Diverged(NotFinite):
    """Learning, or what was learned, led to numbers that are not finite.

    The learner is as it was before the task; if the task had been interrupted, as it was last, and finite.
    """

    def __init__(self, text: str, task: str, stage: str, epoch: int, seed: int) -> None:
        super().__init__(text, task, stage, epoch, seed)  # all of them: it travels between processes
        self.task, self.stage, self.epoch, self.seed = task, stage, epoch, seed

    def __str__(self) -> str:
        return str(self.args[0])


class LoadError(PiagetError):
    """A folder does not hold a learner that can be loaded."""


class DataError(PiagetError):
    """A data file or table that is missing, damaged, or not what is expected."""


class DataNote(UserWarning):
    """Something about the data that a user should know, and that was dealt with."""


class PackageError(PiagetError):
    """A package that is an optional extra is needed, and not installed."""


class CompileNote(UserWarning):
    """A step runs slower than it could."""
