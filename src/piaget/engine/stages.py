"""A stage of one run: which parameters learn, which data they see, in which batches.

`Stage.work` lays everything out as tensors for a given number of component slots, so that runs
with different numbers of components can be stacked; what is constant during the stage is computed
here, once. `Stage.plan` draws an epoch. `Stage.commit` takes the results back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import torch
from torch import Tensor

from piaget.engine.batches import PartPlan, draw_plan
from piaget.engine.compiled import CompileMode
from piaget.engine.noise import packed_bytes
from piaget.knowledge.state import State, TaskRecord, resize_moments, resize_own
from piaget.method.adaptation import Adaptation
from piaget.method.expansion import Expansion
from piaget.method.model import BatchLoss, Model
from piaget.method.objective import describe, target_rows
from piaget.method.schedule import StageName
from piaget.method.trees import Tree, map_tree, resize, rounded

# A step is compiled, for 20 to 60 s, if there are so many of its kind on a task, and so many of all kinds.
FEW_STEPS, MANY_STEPS = 250, 2000
FIRST_OUTPUTS = 2**30  # bytes up to which depth 0's outputs are kept for a whole stage


@dataclass(frozen=True, eq=False)
class Part:
    """The data of one group of samples, and how its loss is computed."""

    loss: BatchLoss
    roles: dict[str, str]  # role in the loss -> name of a parameter group
    trained: tuple[str, ...]  # the roles that learn
    fixed: Tree  # tensors that the loss only reads
    bank: Tree  # tensors (n, ...): a batch takes rows of them by index
    memory: Tree  # what the adaptation corrects gradients with; empty where it does not


@dataclass(frozen=True, eq=False)
class Work:
    """A stage as tensors. With several runs stacked, every tensor has a leading run axis."""

    groups: dict[str, Tree]
    moments: dict[str, Tree]
    parts: list[Part]


class Size(NamedTuple):
    """What a stage needs, or what several stages need together."""

    slots: int  # for components
    outputs: int  # columns
    features: int  # of inputs whose encoder learns

    @classmethod
    def of(cls, stages: Sequence[Stage]) -> Size:
        """For all of them, and a little more: so that few different forms occur, and are compiled."""
        slots, outputs, features = (max(sizes) for sizes in zip(*(s.size for s in stages), strict=True))
        return cls(rounded(slots, 4), outputs, rounded(features))


@dataclass(eq=False)
class Stage:
    name: StageName
    epochs: int
    epochs_in_all: int  # of this name on the task, also those that are done
    epochs_on_task: int  # of all names
    model: Model
    adaptation: Adaptation
    expansion: Expansion
    batch: int | None  # None: all samples at once
    state: State
    data: list[tuple[TaskRecord, Tensor, Tensor]]  # what learns; several only in initialization
    # Told of each epoch: how to commit, and if it must.
    after_epoch: Callable[[Callable[[], None], bool], None]
    compile: CompileMode = "never"
    steps: int = 0  # an epoch's batches x passes, once it was planned

    # --- what learns ---------------------------------------------------------------------------

    @property
    def trained(self) -> tuple[str, ...]:
        shared = ("components", "io") if self.state.io else ("components",)
        candidate = ("candidate",) if self.candidate else ()
        learning_own = () if self.model.structure.fixed_initially else ("own",)
        return {
            "initialization": shared + learning_own,
            "assimilation": ("own", *candidate),
            "adaptation": shared,
            "joint": (*shared, "own"),
        }[self.name]

    @property
    def candidate(self) -> bool:
        progress = self.state.progress
        return progress is not None and progress.candidate

    @property
    def passes(self) -> tuple[bool, ...]:
        return self.expansion.passes if self.candidate else (False,)

    @property
    def replay(self) -> list[Tree]:
        shares = "components" in self.trained and self.name != "initialization"
        return self.adaptation.replay(self.state.memory) if shares else []

    @cached_property
    def features(self) -> list[Tensor | None]:
        """For each task whose encoder learns: the features that are not zero in all its samples.

        The weights of the others have no gradient, so they stay as they are and need no work.
        """
        if self.model.encoder != "learned" or "own" not in self.trained:
            return [None] * len(self.data)
        return [torch.nonzero(x.flatten(1).any(0)).flatten() for _, x, _ in self.data]

    @property
    def size(self) -> Size:
        records = self.state.records.values() if self.replay else [r for r, _, _ in self.data]
        widths = [record.outputs for record in records]
        if "decoder" in self.state.io:
            widths.append(len(self.state.io["decoder"]["bias"]))
        return Size(
            slots=self.state.k,
            outputs=max(widths),
            features=max(0 if f is None else len(f) for f in self.features),
        )

    @property
    def epochs_alike(self) -> bool:
        """All samples in one batch, and no noise: each epoch does the same."""
        return self.batch is None and self.model.components.dropout == 0

    @property
    def worth_compiling(self) -> bool:
        """By how many steps there will be, not by time: a run that goes on elsewhere must not differ."""
        largest = max(len(x) for _, x, _ in self.data) + sum(len(s["y"]) for s in self.replay)
        steps = math.ceil(largest / (self.batch or largest))  # an epoch
        return self.model.components.compiles_well and (
            self.epochs_in_all * steps >= FEW_STEPS and self.epochs_on_task * steps >= MANY_STEPS
        )

    def noise_slots(self, k: int) -> int:
        return self.model.structure.noise_slots(k)

    # --- laid out as tensors ---------------------------------------------------------------------

    def work(self, size: Size) -> Work:
        state, structure = self.state, self.model.structure
        k, outputs, _ = size

        def slots(tree: Tree) -> Tree:
            return map_tree(lambda p: resize(p, 0, k), tree)

        groups = {"components": slots(state.components), "io": state.io}
        moments = {"components": slots(state.moments), "io": state.io_moments}
        if self.candidate:
            groups["candidate"] = map_tree(lambda p: p[-1], state.components)
            moments["candidate"] = map_tree(lambda p: p[-1], state.moments)
        parts = []
        for i, (record, x, y) in enumerate(self.data):
            own, features = f"own{i}", self.features[i]

            def sized(tree: Tree, features: Tensor | None = features) -> Tree:
                tree = resize_own(tree, structure, k, outputs)
                if features is None:
                    return tree
                weight = resize(tree["encoder"]["weight"][features], 0, size.features)
                return tree | {"encoder": tree["encoder"] | {"weight": weight}}

            groups[own] = sized(record.own)
            if "own" in self.trained:
                assert state.progress is not None
                moments[own] = resize_moments(state.progress.moments[record.name], sized)
            if features is not None:
                x = resize(x.flatten(1)[:, features], 1, size.features)
            parts += self._parts(record, own, groups, x, y, k, outputs)
        learned = {part.roles[role] for part in parts for role in part.trained}
        return Work(
            groups={name: map_tree(torch.clone, g) if name in learned else g for name, g in groups.items()},
            moments={name: map_tree(torch.clone, m) for name, m in moments.items() if name in learned},
            parts=parts,
        )

    def _parts(
        self,
        record: TaskRecord,
        own: str,
        groups: dict[str, Tree],
        x: Tensor,
        y: Tensor,
        k: int,
        outputs: int,
    ) -> list[Part]:
        """The current task's part, joined by the stored samples that have its form.

        Stored samples of another form (images of another size) make parts of their own.
        """
        model = self.model
        roles = {"components": "components", "io": "io", "own": own}
        if self.candidate and "candidate" in self.trained:
            roles["candidate"] = "candidate"
        params = {role: groups[name] for role, name in roles.items()}
        current = self._rows(params, x) | target_rows(record.kind, y, outputs, x.dtype)
        shape = model.shapes(record.input_shape)[0]
        by_shape: dict[tuple[int, ...], list[Tree]] = {shape: []}
        for stored in self.replay:
            entering = model.shapes(tuple(stored["h"].shape[1:])) if model.encoder == "shared" else None
            form = tuple(entering[0]) if entering else tuple(stored["h"].shape[1:])
            by_shape.setdefault(form, []).append(stored)
        parts = [self._part(roles, self.trained, record, current, by_shape.pop(shape), k, outputs)]
        trained = tuple(role for role in self.trained if role != "own")
        for number, others in enumerate(by_shape.values()):
            # No row is the current task's: any past task of this form stands in its place.
            stand_in = self._past(others[0])
            group = f"past{number}"
            groups[group] = resize_own(stand_in.own, model.structure, k, outputs)
            parts.append(self._part(roles | {"own": group}, trained, stand_in, None, others, k, outputs))
        return parts

    def _past(self, stored: Tree) -> TaskRecord:
        return list(self.state.records.values())[int(stored["task"])]

    def _rows(self, params: Tree, x: Tensor) -> Tree:
        """The current task's rows, as far as they can be computed before training."""
        model = self.model
        encoder_learns = (model.encoder == "learned" and "own" in self.trained) or (
            model.encoder == "shared" and "io" in self.trained
        )
        if encoder_learns:
            return {"x": x}
        with torch.no_grad():
            h = model.encode(model.encoder_of(params), x)
            rows = {"h": h}
            if "components" not in self.trained:
                shape = model.components.output_shape(tuple(h.shape[1:]))
                slots = next(iter(params["components"].values())).shape[0]
                if len(h) * slots * math.prod(shape) * h.element_size() <= FIRST_OUTPUTS:
                    firsts = [
                        model.components.in_memory(
                            model.structure.first_outputs(model.components, params["components"], part)
                        ).contiguous()
                        for part in h.split(model.block(tuple(h.shape[1:]), slots))
                    ]
                    rows["first"] = torch.cat(firsts)
        return rows

    def _part(
        self,
        roles: dict[str, str],
        trained: tuple[str, ...],
        record: TaskRecord,
        current: Tree | None,
        stored: list[Tree],
        k: int,
        outputs: int,
    ) -> Part:
        device = next(iter(self.state.components.values())).device
        past = [self._past(s) for s in stored]
        records = [record, *past]
        slot = torch.zeros(k, dtype=torch.bool)
        slot[self.state.k - 1] = self.candidate
        tasks = [describe(r.kind, r.classes, outputs) for r in records]
        fixed: Tree = {
            "slot": slot,
            "visible": torch.stack([r.visible(k) for r in records]),
            "task": map_tree(lambda *t: torch.stack(t), *tasks),
        }
        if stored:
            table = [resize_own(r.own, self.model.structure, k, outputs) for r in past]
            cut = [{"structure": t["structure"], "decoder": t["decoder"]} for t in table]
            fixed["table"] = map_tree(lambda *t: torch.stack(t), *cut)
            rows = max(8, rounded(len(past), 1))  # those that are added are never asked for
            fixed["table"] = map_tree(lambda t: resize(t, 0, rows), fixed["table"])
            for name in ("visible", "task"):
                tree = {name: fixed[name]}
                fixed |= map_tree(lambda t: resize(t, 0, 1 + rows), tree)
            bank = self._union(current, stored, past, outputs)
        else:
            fixed |= {"visible": fixed["visible"][0], "task": tasks[0]}
            assert current is not None
            bank = current
        fixed = map_tree(lambda t: t.to(device), fixed)
        memory = self.adaptation.constants(self.state.memory, k) if "components" in trained else {}
        shapes = self.model.shapes(tuple(bank["h" if "h" in bank else "x"].shape[1:]))
        loss = BatchLoss(self.model, tuple(shapes), replay=bool(stored))
        return Part(loss, roles, trained, fixed, bank, memory)

    def _union(self, current: Tree | None, stored: list[Tree], past: list[TaskRecord], outputs: int) -> Tree:
        """The task's rows and all stored samples in one bank; `task` tells whose a row is."""
        name = "x" if self.model.encoder == "shared" and "io" in self.trained else "h"
        parts = []
        for i, (s, r) in enumerate(zip(stored, past, strict=True)):
            rows = target_rows(r.kind, s["y"], outputs, s["h"].dtype)
            h = s["h"]
            if self.model.encoder == "shared" and name == "h":
                h = self.model.encode(self.state.io["encoder"], h)
            parts.append(rows | {name: h, "task": torch.full_like(rows["column"], i + 1)})
        if current is not None:
            current = {key: rows for key, rows in current.items() if key != "first"}
            parts.insert(0, current | {"task": torch.zeros_like(current["column"])})
        keys = {key for part in parts for key in part}
        bank = {}
        for key in sorted(keys):
            like = next(part[key] for part in parts if key in part)
            bank[key] = torch.cat(
                [
                    part[key] if key in part else like.new_zeros(len(part["column"]), *like.shape[1:])
                    for part in parts
                ]
            )
        return bank

    # --- an epoch ----------------------------------------------------------------------------------

    def plan(self, work: Work) -> list[PartPlan]:
        """Shuffles and noise for one epoch, from the run's own generator."""
        plans = [self._plan_part(part) for part in work.parts]
        self.steps = sum(len(plan.index) for plan in plans) * len(self.passes)
        return plans

    def _plan_part(self, part: Part) -> PartPlan:
        return draw_plan(
            self.state.generator,
            bank=part.bank,
            visible=part.fixed["visible"],
            candidate=part.fixed["slot"],
            batch=self.batch,
            k=self.state.k,
            passes=self.passes,
            dropout=self.model.components.dropout,
            noise_shape=(self.noise_slots(self.state.k), packed_bytes(part.loss.shapes[1:])),
        )

    # --- back into the state -------------------------------------------------------------------

    def commit(self, groups: dict[str, Tree], moments: dict[str, Tree]) -> None:
        """Takes one run's parameters and moments over into its state (as copies)."""
        state = self.state

        def slots(tree: Tree) -> Tree:
            return map_tree(lambda p: resize(p, 0, state.k).clone(), tree)

        if "components" in moments:
            state.components = slots(groups["components"])
            state.moments = slots(moments["components"])
        if "candidate" in moments:
            state.components = map_tree(_with_last, state.components, groups["candidate"])
            state.moments = map_tree(_with_last, state.moments, moments["candidate"])
        if "io" in moments:
            state.io = map_tree(torch.clone, groups["io"])
            state.io_moments = map_tree(torch.clone, moments["io"])
        for i, (record, _, _) in enumerate(self.data):
            own = f"own{i}"
            if own in moments:
                assert state.progress is not None
                old = state.progress.moments[record.name]
                sized = partial(self._own_of, record, self.features[i])
                record.own = sized(record.own, groups[own])
                state.progress.moments[record.name] = {
                    "mean": sized(old["mean"], moments[own]["mean"]),
                    "square": sized(old["square"], moments[own]["square"]),
                    "count": moments[own]["count"].clone(),
                }

    def _own_of(self, record: TaskRecord, features: Tensor | None, old: Tree, trained: Tree) -> Tree:
        """A task's own parameters (or moments) in their own size, from those of a stage."""
        own = resize_own(trained, self.model.structure, record.k, record.outputs)
        if features is not None:
            rows = own["encoder"]["weight"][: len(features)]
            weight = old["encoder"]["weight"].index_copy(0, features, rows)
            own = own | {"encoder": own["encoder"] | {"weight": weight}}
        return map_tree(torch.clone, own)


def _with_last(stack: Tensor, last: Tensor) -> Tensor:
    stack = stack.clone()
    stack[-1] = last
    return stack
