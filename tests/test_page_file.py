"""The report's page as a file: what is in it, and what is not."""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import math
import operator
import re
from html.parser import HTMLParser

import pytest

from piaget.report.page import page
from tests import page_schema
from tests.sample_report import (
    HOSTILE_NOTE,
    HOSTILE_STREAM,
    HOSTILE_TASK,
    data_of,
    empty_report,
    odd_report,
    sample_report,
    small_report,
)


class Parsed(HTMLParser):
    """The elements of a page and the contents of its scripts and styles."""

    def __init__(self, text: str):
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.contents: list[tuple[str, str]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("script", "style", "title"):
            self.contents.append((self.open[-1], data))


@pytest.fixture(scope="module")
def text():
    return page(sample_report())


@pytest.fixture(scope="module")
def parsed(text):
    return Parsed(text)


@pytest.mark.parametrize("made", [sample_report, empty_report, small_report, odd_report])
def test_data_are_what_their_types_say(made):
    page_schema.check(made())


@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        (["runs", 0, "final"], ..., "report.runs"),
        (["runs", 0, "final", 1], "90", "report.runs"),
        (["streams", 0, "digits"], True, "report.streams"),
        (["explorers", 0, "tasks", 0, "usable"], None, "report.explorers"),
        (["paper", 0], [0, 1, 2.0], "report.paper"),
        (["more"], 1, "report has"),
    ],
)
def test_what_is_missing_or_of_another_type_is_seen(path, value, place):
    report = json.loads(json.dumps(sample_report()))
    page_schema.check(report)
    *parents, last = path
    inner = functools.reduce(operator.getitem, parents, report)
    if value is ...:
        del inner[last]
    else:
        inner[last] = value
    with pytest.raises(AssertionError, match=re.escape(place)):
        page_schema.check(report)


def test_scripts_are_checked_against_the_types_of_now():
    """If this fails: python -m tests.page_schema, and make js."""
    assert page_schema.FILE.read_text() == page_schema.typescript()


def test_structure(text, parsed):
    assert text.startswith("<!DOCTYPE html>")
    assert parsed.open == []  # every element is closed
    tags = [tag for tag, _ in parsed.elements]
    for tag in ("html", "head", "title", "body", "header", "nav", "main", "footer", "style"):
        assert tags.count(tag) == 1, tag
    assert tags.count("script") == 2
    assert dict(parsed.elements)["html"]["lang"] == "en"
    assert "{{" not in re.sub(r"<script.*?</script>", "", text, flags=re.S)


def test_data_come_back(text, parsed):
    report = sample_report()
    assert data_of(text) == json.loads(json.dumps(report))
    data = next(data for tag, data in parsed.contents if tag == "script")
    assert re.fullmatch("[A-Za-z0-9+/=]+", data)
    assert HOSTILE_TASK not in text
    assert HOSTILE_STREAM not in text
    assert HOSTILE_NOTE not in text


def test_title_is_escaped():
    report = sample_report()
    report["title"] = "</title><script>alert(4)</script>{{data}}"
    assert [data for tag, data in Parsed(page(report)).contents if tag == "title"] == [report["title"]]


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_only_finite_numbers(number):
    report = sample_report()
    report["runs"][0]["components"] = number
    with pytest.raises(ValueError, match="JSON compliant"):
        page(report)


def test_policy_allows_only_what_is_there(parsed):
    policy = next(
        a["content"] for _, a in parsed.elements if a.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for tag, content in (parsed.contents[1], parsed.contents[-1]):  # after the title; after the data
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


def test_nothing_is_loaded(text, parsed):
    addresses = set(re.findall(r"\w+://[^\s\"'`]+", text))
    assert addresses <= {"http://www.w3.org/2000/svg"}  # a name, not an address
    assert not [a for tag, a in parsed.elements if "src" in a or tag == "link"]
    style = next(data for tag, data in parsed.contents if tag == "style")
    assert "url(" not in style
    assert "@import" not in style


def test_text_enters_as_text(parsed):
    script = parsed.contents[-1][1]
    for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("):
        assert way not in script


def test_size(text):
    data = len(json.dumps(sample_report()))
    assert len(text) < 0.5 * data + 150_000
