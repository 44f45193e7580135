"""A report as one HTML file that needs nothing else: style, scripts and data are written into it."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from piaget.report.page_data import ReportData
from piaget.report.table_data import OwnReportData

SHARED = ["page/basics", "page/frame", "page/charts", "page/tables"]
SCRIPTS = [
    f"page/{name}"
    for name in (
        *("view", "scores", "picking", "look"),
        *(
            "performance",
            "summaries",
            "curves",
            "forgetting",
            "variations",
            "structures",
            "components",
            "inference",
        ),
        *("sliders", "network", "explorer", "sections"),
    )
]
OWN_SCRIPTS = [f"table_page/{name}" for name in ("run", "figures", "map", "bends", "sections")]


def page(report: ReportData) -> str:
    """The page of a report. ValueError if there is a number in it that is not finite."""
    return _page(report["title"], report, SHARED + SCRIPTS)


def table_page(report: OwnReportData) -> str:
    """The page about tables of one's own."""
    return _page(report["title"], report, SHARED + OWN_SCRIPTS)


def _page(title: str, report: Mapping[str, Any], scripts: Sequence[str]) -> str:
    style = _part("page/style.css")
    script = "\n".join(_part(f"{name}.js") for name in scripts)
    parts = {
        "policy": _policy(style, script),
        "title": html.escape(title),
        "style": style,
        "script": script,
        "data": packed(report),
    }
    # In one go, so that nothing inside a part is taken for a place to be filled in.
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], _part("page/page.html"))


def packed(report: Mapping[str, Any]) -> str:
    """JSON, compressed (of 700 runs, it is several megabytes), in letters that mean nothing in HTML."""
    text = json.dumps(report, allow_nan=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def _policy(style: str, script: str) -> str:
    """Only this style and this script; no network at all."""
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _part(name: str) -> str:
    return files("piaget.report").joinpath(*name.split("/")).read_text(encoding="utf-8")
