"""The report's first look, in sentences: which method is best and how sure that is, what is forgotten, and
whether components are reused; with what the answer rests on, and where to read on."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pandas as pd

from piaget.report import metrics
from piaget.report.contents import Contents
from piaget.report.groups import Group
from piaget.report.statistics import LEAST, LEVEL, Tested, detectable, least_signed_rank, tested
from piaget.report.wording import amount, counted, interval, listed, p_value, score, sentence

GOOD, BAD, OPEN = "good", "bad", "open"  # how an answer reads: reassuring, a warning, not decided
SHARED = 2  # tasks that need a component, for it to be reused
LITTLE = 0.01  # of the score: what is lost and called a little
MOST_NAMED = 3  # methods, in a sentence


Links = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Answer:
    """A question, its answer in a few words, what it rests on in one line, and more of that; `links`: (place
    in the page, what is there)."""

    question: str
    tone: str
    headline: str
    basis: str
    evidence: tuple[str, ...]
    links: Links


@dataclass(frozen=True)
class Look:
    """What there is to say of one stream at first; `limits`: what tests over so few seeds can tell."""

    stream: str
    answers: tuple[Answer, ...]
    limits: str
    best: str = ""  # the method with the best mean, if there are several
    sure: bool = False


def looks(contents: Contents) -> list[Look]:
    """Of each stream with results."""
    return [_Stream(contents, stream).look() for stream in contents.streams if contents.on(stream)]


def overall(every: Sequence[Look]) -> str:
    """Of several streams: which method is best how often."""
    compared = [look for look in every if look.best]
    if len(compared) < 2:
        return ""
    wins = Counter(look.best for look in compared).most_common()
    most = [label for label, times in wins if times == wins[0][1]]
    sure = sum(look.sure for look in compared)
    often = f"{wins[0][1]} of {len(compared)} streams"
    if len(most) == 1:
        lead = f"{most[0]} leads on {often}"
    elif wins[0][1] > 1:
        lead = f"{listed(most, MOST_NAMED)} lead on {often} each"
    else:
        lead = f"A different method leads on each of {len(compared)} streams"
    return f"{lead}; the leading method is significantly best on {sure or 'none'}."


@dataclass(frozen=True)
class _Stream:
    """One stream: its methods on the same data with as many epochs, the best first."""

    contents: Contents
    stream: str

    @cached_property
    def groups(self) -> list[Group]:
        """The largest set of methods that can be compared with each other."""
        by_work: dict[tuple[str, int], list[Group]] = {}
        for group in self.contents.on(self.stream):
            by_work.setdefault(group.first.work, []).append(group)
        return max(by_work.values(), key=len)

    @cached_property
    def ranked(self) -> list[tuple[Group, float, float]]:
        """Those with a final performance, its mean and standard error; the best first."""
        lines = [(group, *group.summary(self.contents.final, group.unit)) for group in self.groups]
        known = [line for line in lines if math.isfinite(line[1])]
        return sorted(known, key=lambda line: -line[1] if line[0].higher_is_better else line[1])

    @cached_property
    def tests(self) -> dict[tuple[int, int], Tested]:
        """Of pairs of methods, corrected for all of them: the same as in the table of differences."""
        pairs = [(a, b, test) for a, b, test in self.contents.differences if a.stream == self.stream]
        return {(a.position, b.position): test for a, b, test in pairs}

    def look(self) -> Look:
        if not self.ranked:
            return Look(self.stream, (), "")
        answers = [self.best(), self.forgotten(), self.reused()]
        told = tuple(answer for answer in answers if answer is not None)
        several = len(self.ranked) > 1
        sure = several and not self.open_rivals()
        return Look(self.stream, told, self.limits(), self.ranked[0][0].label if several else "", sure)

    # --- which is best? ---

    def lead(self, ours: Group, theirs: Group) -> Tested | None:
        """How much better the first is on the same seeds, whether that is more or less of the score."""
        there, back = (ours.position, theirs.position), (theirs.position, ours.position)
        test = self.tests.get(there) or self.tests.get(back)
        if test is None:
            return None
        sign = (1 if there in self.tests else -1) * (1 if ours.higher_is_better else -1)
        return replace(test, mean=sign * test.mean)

    def open_rivals(self) -> list[Group]:
        """The methods than which the best one is not significantly better."""
        first, *others = (group for group, *_ in self.ranked)
        leads = [(group, self.lead(first, group)) for group in others]
        return [group for group, lead in leads if lead is None or lead.p >= LEVEL or lead.mean <= 0]

    def best(self) -> Answer:
        group, mean, error = self.ranked[0]
        value = score(group, mean, error)
        links: Links = (("performance", "figure"), ("table-final", "table"))
        if len(self.ranked) == 1:
            basis = f"The only method, with {self._seeds(group)}: nothing to compare it with."
            return Answer("How good is it?", OPEN, f"{group.label}: {value}", basis, (*self._paper(),), links)
        rivals, question = self.open_rivals(), "Which method is best, and is that certain?"
        links = (*links, ("table-differences", "all pairs")) if self.tests else links
        evidence = (*self._others(rivals), *self._paper())
        if not rivals:
            headline = f"{group.label} leads with {value}, significantly"
        else:
            headline = f"{group.label} leads with {value}{', but not significantly' if self.tests else ''}"
        return Answer(question, OPEN if rivals else GOOD, headline, self._lead_over_next(), evidence, links)

    def _seeds(self, group: Group) -> str:
        return counted(len(group.of(self.contents.final)), "seed")

    def _lead_over_next(self) -> str:
        (group, *_), (second, mean, error), *_ = self.ranked
        lead, next_one = self.lead(group, second), f"{second.label} ({score(second, mean, error)})"
        if lead is None:
            ours, theirs = (one.of(self.contents.final).keys() for one in (group, second))
            return f"Next is {next_one}. Not tested: {counted(len(ours & theirs), 'common seed')}."
        return (
            f"{amount(group, lead.mean, signed=True)} over {next_one}: 95 % interval "
            f"{interval(group, lead)}, {p_value(lead.p)}, {counted(lead.seeds, 'seed')}."
        )

    def _others(self, rivals: Sequence[Group]) -> list[str]:
        """How the best one stands to all others."""
        if not self.tests:
            return []
        others, labels = len(self.ranked) - 1, [rival.label for rival in rivals]
        lines = []
        if rivals and others > 1:
            lines.append(sentence(f"Not told apart from it: {listed(labels, MOST_NAMED)}"))
        elif others > 1:
            lines.append(f"Better than each of the {others} others.")
        pairs = f", corrected for {counted(len(self.tests), 'pair')} of methods (Holm)"
        return [*lines, f"Paired t-test over common seeds{pairs if len(self.tests) > 1 else ''}."]

    def _paper(self) -> list[str]:
        group = self.ranked[0][0]
        known = group.first.paper
        if known is None:
            return []
        values = list(group.of(self.contents.final, group.unit).values())
        word = group.judged(values, known, group.first.trials, group.higher_is_better, group.digits)
        if word not in ("matches", "better", "worse"):
            word = f"not compared ({word})"
        return [f"The paper has {score(group, *known)} for it: {word}."]

    # --- is anything forgotten? ---

    def forgotten(self) -> Answer | None:
        group = self.ranked[0][0]
        changes = self.contents.compute(metrics.backward_transfer)
        values = [value for value in group.of(changes, group.unit).values() if math.isfinite(value)]
        if not values:
            return None
        mean, test = statistics.fmean(values), tested(values)
        tone, headline = self._loss(group, mean, test)
        basis = f"Not tested: {self._seeds(group)}."
        if test is not None:
            sure = f"{p_value(test.p)}, {counted(test.seeds, 'seed')}"
            basis = f"95 % interval {interval(group, test)}, {sure}."
        over = "" if test is None else "; t-test over seeds"
        evidence = [
            "Change of a task's score from right after it was learned to the end, mean over all tasks but "
            f"the last{over}."
        ]
        evidence += [line for line in (self._worst_task(group), self._most_forgetful(changes)) if line]
        links = (("forgetting", "figure"), ("table-transfer", "table"))
        return Answer("Is anything forgotten?", tone, headline, basis, tuple(evidence), links)

    def _loss(self, group: Group, mean: float, test: Tested | None) -> tuple[str, str]:
        """In few words, from the mean change since tasks were learned."""
        certain, size = test is not None and test.p < LEVEL, amount(group, abs(mean))
        if round(mean, group.digits) == 0 or (test is not None and not certain):
            tone = GOOD if test is not None else OPEN
            return tone, f"Nothing measurable by {group.label}: {amount(group, mean, signed=True)}"
        if mean > 0:
            return GOOD if certain else OPEN, f"No: {group.label} gains {size} on average"
        little = abs(mean) < LITTLE * self.ranked[0][1]
        word, tone = ("A little", OPEN) if little else ("Yes", BAD if certain else OPEN)
        return tone, f"{word}: {group.label} loses {size} on average"

    def _worst_task(self, group: Group) -> str:
        lines = pd.concat([self.contents.of(name, metrics.by_task) for name in group.names])
        change = metrics.gain(lines["metric"], lines["final"], lines["first"]) * group.unit
        by_task = change.groupby(lines["evaluated"], sort=False)
        means = by_task.mean()[by_task.size() == len(group.names)].dropna()
        if means.empty or round(least := float(means.min()), group.digits) >= 0:
            return ""
        return f"The worst task is {means.idxmin()}: {amount(group, least, signed=True)}."

    def _most_forgetful(self, changes: pd.Series) -> str:
        """Of all methods, the one that loses most, if that is not the best one."""
        means = [(group, group.summary(changes, group.unit)[0]) for group, *_ in self.ranked]
        known = [(group, mean) for group, mean in means if math.isfinite(mean)]
        if len(known) < 2:
            return ""
        group, mean = min(known, key=lambda each: each[1])
        if group is self.ranked[0][0] or round(mean, group.digits) >= 0:
            return ""
        return f"{group.label} loses most: {amount(group, mean, signed=True)}."

    # --- are components reused? ---

    def reused(self) -> Answer | None:
        """Of the best method that has components."""
        needs = self.contents.compute(metrics.needs)
        for group, *_ in self.ranked:
            lines = needs[needs["run"].isin(group.names)]
            if len(lines):
                return self._reuse(group, lines.groupby("run")["tasks"])
        return None

    def _reuse(self, group: Group, by_run: Any) -> Answer:
        size = float(by_run.size().mean())
        shared = float(by_run.agg(lambda tasks: (tasks >= SHARED).sum()).mean())
        most, least = float(by_run.max().mean()), float(by_run.min().mean())
        tasks = self.contents.compute(metrics.by_task).groupby("run").size()[list(by_run.groups)].mean()
        word = "Yes" if 2 * shared >= size else "Partly" if round(shared, 1) > 0 else "No"
        headline = f"{word}: {shared:.1f} of {size:.1f} components serve several tasks"
        leads = group is self.ranked[0][0]
        seeds = counted(by_run.ngroups, "seed")
        basis = f"The most needed one serves {most:.1f} of {tasks:.0f} tasks, {seeds}."
        basis = basis if leads else f"In {group.label}, the best with components. {basis}"
        evidence = [
            f"The least needed component serves {least:.1f}; numbers are means over seeds. A task "
            f"needs a component if its score is more than {100 * metrics.DROP:.0f} % worse without it."
        ]
        tried = self.contents.compute(metrics.candidates)
        tried = tried[tried["run"].isin(group.names)]
        if len(tried):
            all_tried, kept = (number / len(group.names) for number in (len(tried), tried["kept"].sum()))
            evidence.append(f"Of {all_tried:.1f} new components that were tried, {kept:.1f} were kept.")
        tone = GOOD if word == "Yes" else OPEN if word != "No" else BAD
        links = (("reuse", "figure"), ("table-reuse", "table"))
        return Answer("Are components reused?", tone, headline, basis, tuple(evidence), links)

    # --- what tests can tell ---

    def limits(self) -> str:
        seeds = max(len(group.of(self.contents.final)) for group, *_ in self.ranked)
        if seeds < LEAST:
            return (
                f"With {counted(seeds, 'seed')} nothing can be tested: what differs may be chance. Tests "
                f"begin at {LEAST} seeds; 6 or more can tell something (--seeds 6)."
            )
        if not self.tests:
            return ""
        group, *others = (line[0] for line in self.ranked)
        lead = self.lead(group, others[0]) if others else None
        seeds = lead.seeds if lead else min(test.seeds for test in self.tests.values())
        spread = statistics.median(test.error * math.sqrt(test.seeds) for test in self.tests.values())
        found = f"{detectable(seeds, len(self.tests)) * spread:.{group.digits}f}"
        points = " points" if group.metric == "accuracy" else ""
        pairs = "" if len(self.tests) == 1 else f", corrected for {len(self.tests)} pairs,"
        told = (
            f"What {seeds} seeds can tell: the paired t-test{pairs} finds a difference of {found}{points} or "
            "more four times in five; smaller ones mostly go unseen."
        )
        least = least_signed_rank(seeds)
        if least >= LEVEL:
            told += f" Wilcoxon's test cannot go below p = {least:g}, so it can show nothing."
        return told
