"""The report as one HTML file that needs nothing else: style, scripts and data are written into it."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import re
from importlib.resources import files

from piaget.report.page_data import ReportData

SCRIPTS = ["basics", "view", "charts", "tables", "scores", "figures", "components", "explorer", "sections"]


def page(report: ReportData) -> str:
    """The page of a report. ValueError if there is a number in it that is not finite."""
    style = _part("style.css")
    script = "\n".join(_part(f"{name}.js") for name in SCRIPTS)
    parts = {
        "policy": _policy(style, script),
        "title": html.escape(report["title"]),
        "style": style,
        "script": script,
        "data": packed(report),
    }
    # In one go, so that nothing inside a part is taken for a place to be filled in.
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], _part("page.html"))


def packed(report: ReportData) -> str:
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
    return files("piaget.report").joinpath("page", name).read_text(encoding="utf-8")
