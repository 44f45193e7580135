"""The errors that piaget raises about what it was given."""


class PiagetError(Exception):
    """Anything a user can put right; its text says what was found and what was expected.

    >>> try:
    ...     piaget.Learner(structure="soft ordering")
    ... except piaget.PiagetError as error:
    ...     print(type(error).__name__)
    SettingError
    """


class TaskError(PiagetError, ValueError):
    """A task's data is not usable.

    >>> issubclass(piaget.TaskError, ValueError)
    True
    """


class SettingError(PiagetError, ValueError):
    """A setting has a wrong value, or settings do not fit together.

    >>> piaget.Learner(epochs=-1)
    Traceback (most recent call last):
    piaget.errors.SettingError: epochs=-1; expected ...
    """


class UnknownTaskError(PiagetError, KeyError):
    """A task's name is not known to the learner, or the task is still pending.

    >>> piaget.Learner().predict(np.zeros((1, 4)), task="site 1")
    Traceback (most recent call last):
    piaget.errors.UnknownTaskError: task 'site 1' is not known; known tasks: none yet
    """

    def __str__(self) -> str:  # KeyError would show the text in quotes
        return str(self.args[0])


class NotFinite(PiagetError, ArithmeticError):
    """A number that is infinite, or none at all, where an answer or a parameter was to be.

    >>> issubclass(piaget.NotFinite, ArithmeticError)
    True
    """


class Diverged(NotFinite):
    """Learning, or what was learned, led to numbers that are not finite.

    The learner is as it was before the task; if the task had been interrupted, as it was last, and finite.

    >>> issubclass(piaget.Diverged, piaget.NotFinite)
    True
    """

    def __init__(self, text: str, task: str, stage: str, epoch: int, seed: int) -> None:
        super().__init__(text, task, stage, epoch, seed)  # all of them: it travels between processes
        self.task, self.stage, self.epoch, self.seed = task, stage, epoch, seed

    def __str__(self) -> str:
        return str(self.args[0])


class LoadError(PiagetError):
    """A folder does not hold a learner that can be loaded.

    >>> piaget.load("no such folder")
    Traceback (most recent call last):
    piaget.errors.LoadError: ...
    """


class DataError(PiagetError):
    """A data file or table that is missing, damaged, or not what is expected.

    >>> piaget.streams.from_folder("no such folder")
    Traceback (most recent call last):
    piaget.errors.DataError: no such folder does not exist, or is no folder
    """


class DataNote(UserWarning):
    """Something about the data that a user should know, and that was dealt with.

    To be silent about them: `warnings.simplefilter("ignore", piaget.DataNote)`.

    >>> issubclass(piaget.DataNote, UserWarning)
    True
    """


class PackageError(PiagetError):
    """A package that is an optional extra is needed, and not installed."""


class CompileNote(UserWarning):
    """A step runs slower than it could."""
