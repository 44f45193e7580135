"""Steps as machine code: a whole step compiled once, and kept on disk.

A step is traced to a graph of elementary operations, forward, backward and Adam together, and compiled
ahead of time by PyTorch's own compiler (AOTInductor) into one file, which is called with a flat list of
tensors: nothing is traced or checked again when it runs. The file is found again, also by other
processes, by a key of all that it depends on; its hash lies beside it, and a file that is not what was
made is made again. Where it cannot be made (no C++ compiler, an operation that cannot be traced), the step
is run as it is, with the same results up to rounding.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import io
import logging
import math
import os
import platform
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import filelock
import torch
from platformdirs import user_cache_path
from torch import Tensor

from piaget.engine.stage import Stage
from piaget.errors import CompileNote
from piaget.files import write_atomically
from piaget.method.trees import leaves, rebuild

Compiled = Callable[[list[Tensor]], Any]  # takes the leaves of the arguments' tree; writes into some

# Compiling takes about 15 s of a core for each of three kinds of steps, once; it saves 2 ms a step of one
# run, and 5 ms of ten together (docs/performance.md). So steps are compiled if there are so many of all
# kinds, and of their own kind, times the number of runs and five more.
MANY_STEPS, FEW_STEPS = 100_000, 3_000

READY: dict[Any, Compiled | None] = {}  # in this process, by key; None: it cannot be compiled


def pays(stages: Sequence[Stage]) -> bool:
    """Are the steps of these stages to be compiled?

    By how many steps there will be, not by time: a run that goes on elsewhere must not differ.
    """
    mode = stages[0].settings.compile
    return mode == "always" or (mode == "auto" and any(_enough(stage, 5 + len(stages)) for stage in stages))


def _enough(stage: Stage, weight: int) -> bool:
    settings = stage.settings

    def steps(more: int) -> int:  # an epoch, of all tasks of the stage
        sizes = [len(data.split) + more for data in stage.data]
        return sum(math.ceil(size / (settings.batch_size or size)) for size in sizes)

    in_all = stage.epochs_in_all * steps(0) // len(stage.data)
    of_kind = stage.epochs * stage.repeats * steps(stage.stored_rows)
    return settings.components.compiles_well and (
        weight * in_all >= MANY_STEPS and weight * of_kind >= FEW_STEPS
    )


def compiled(step: Callable[..., None], arguments: tuple[Any, ...]) -> Compiled | None:
    """The step as machine code for arguments of this form, or None. `step(*arguments)` is the original."""
    name = key_of(step, arguments)
    # What the description of a user's own part leaves out may be anything: the object itself tells.
    key = name if is_library_part(step) else (name, step)
    if key not in READY:
        path = (
            cache_folder() / name if is_library_part(step) else Path(_scratch().name) / f"{name}-{len(READY)}"
        )
        try:
            READY[key] = machine_code(step, arguments, path.with_suffix(".pt2"))
        except Exception as error:  # whatever the compiler's reason: there is another way
            READY[key] = None
            message = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            warnings.warn(
                f"a step could not be compiled, and runs slower: {message}", CompileNote, stacklevel=2
            )
    return READY[key]


def cache_folder() -> Path:
    """Where compiled steps are kept, for all processes of the user."""
    return user_cache_path("piaget") / "compiled"


@functools.cache
def _scratch() -> tempfile.TemporaryDirectory[str]:
    """For steps with a user's own parts, whose code may change: they are not kept."""
    return tempfile.TemporaryDirectory(prefix="piaget-compiled-")


# --- what a compiled step depends on --------------------------------------------------------------------


def is_library_part(part: Any) -> bool:
    """Is it made of the library's own parts alone? Then its description says all."""
    if dataclasses.is_dataclass(part) and not isinstance(part, type):
        ours = type(part).__module__.split(".")[0] == "piaget"
        return ours and all(is_library_part(getattr(part, field.name)) for field in dataclasses.fields(part))
    if isinstance(part, tuple):
        return all(is_library_part(one) for one in part)
    return part is None or isinstance(part, bool | int | float | str)


def key_of(step: Callable[..., None], arguments: tuple[Any, ...]) -> str:
    """A name for the machine code of a step with arguments of this form: of all that it depends on."""
    form = [(tuple(t.shape), t.stride(), str(t.dtype), str(t.device)) for t in leaves(arguments)]
    names = _names(arguments)
    text = repr((step, names, form, torch.get_num_threads(), torch.__version__, _sources(), _processor()))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _names(tree: Any) -> Any:
    """The form of a tree, without its tensors."""
    if isinstance(tree, dict):
        return [(key, _names(value)) for key, value in tree.items()]
    return [_names(branch) for branch in tree] if isinstance(tree, tuple) else tree is None


@functools.cache
def _sources() -> str:
    """The code that a step may consist of: all of the rooms `method` and `engine`."""
    digest = hashlib.sha256()
    house = Path(__file__).parent.parent
    for path in sorted([*house.glob("method/*.py"), *house.glob("engine/*.py")]):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


@functools.cache
def _processor() -> str:
    """Machine code is for one kind of processor; a cache folder may be shared by several."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    return next((line for line in lines if line.startswith(("flags", "Features"))), platform.machine())


# --- making it ------------------------------------------------------------------------------------------


def machine_code(step: Callable[..., None], arguments: tuple[Any, ...], path: Path) -> Compiled:
    """From its file, which several processes may want at the same time."""
    if not all(tensor.is_contiguous() for tensor in leaves(arguments)):
        raise ValueError("its arguments are not contiguous")  # which the machine code takes for granted
    if (found := _load(path)) is not None:
        return found
    path.parent.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(path.with_suffix(".lock")):
        found = _load(path)
        if found is None:
            _compile(step, arguments, path)
            found = _load(path)
    if found is None:
        raise RuntimeError(f"{path} was made, but cannot be loaded")
    return found


def _compile(step: Callable[..., None], arguments: tuple[Any, ...], path: Path) -> None:
    from torch._inductor import aoti_compile_and_package
    from torch.fx.experimental.proxy_tensor import make_fx

    logging.getLogger("piaget").info("compiling a step, for up to a minute; kept in %s", path.parent)

    def flat(*tensors: Tensor) -> tuple[()]:
        step(*rebuild(arguments, tensors))
        return ()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the compiler's own affairs
        example = tuple(t.clone() for t in leaves(arguments))  # tracing runs the step
        graph = make_fx(flat)(*example)
        program = torch.export.export(graph, example)
        temporary = path.with_name(f"{path.stem}-{os.getpid()}.pt2")
        options = {
            "cpp.threads": torch.get_num_threads(),
            "aot_inductor.compile_wrapper_opt_level": "O0",  # around the kernels: nothing worth optimizing
            "aot_inductor.enable_line_tables": False,  # for debuggers
            "cpp.vec_isa_ok": True,  # what the processor says is believed, without a trial compilation
        }
        aoti_compile_and_package(program, package_path=str(temporary), inductor_configs=options)
    # The hash first: whatever a crash leaves, a file that is not whole never has its own hash beside it.
    write_atomically(_hash_file(path), _hash(temporary.read_bytes()).encode())
    os.replace(temporary, path)


def _load(path: Path) -> Compiled | None:
    """None: it is not there, or is not what was made, to the byte. Damaged code would not fail, but crash."""
    from torch._inductor import aoti_load_package

    try:
        data, expected = path.read_bytes(), _hash_file(path).read_text("ascii", "replace")
    except OSError:
        return None
    if _hash(data) != expected:
        return None
    try:  # from memory, so that what is loaded is what was looked at
        return aoti_load_package(io.BytesIO(data)).loader.run  # past a wrapper that sorts arguments
    except RuntimeError:
        return None


def _hash_file(path: Path) -> Path:
    return path.with_suffix(".sha256")


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
