"""Formulas as MathML, made when the site is built: browsers draw it themselves, so a page needs neither a
script nor the network, and screen readers can read it."""

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx


def inline(translator: Any, node: nodes.math) -> None:
    """A formula in a line."""
    translator.body.append(f'<span class="math">{convert(node.astext())}</span>')
    raise nodes.SkipNode


def block(translator: Any, node: nodes.math_block) -> None:
    """A formula of its own."""
    translator.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """As `html_math_renderer = "mathml"`."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
