"""The site for language models: llms.txt, a list of its pages, and llms-full.txt, all of them as one page of
plain text, with docstrings and what tutorials print."""

from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.builders.text import TextBuilder
from sphinx.environment import BuildEnvironment

ABOUT = (
    "A PyTorch library and command-line tool for lifelong learning of compositional structures "
    "(Mendez & Eaton, ICLR 2021): reusable components, assimilated and accommodated task by task."
)


def pages(env: BuildEnvironment, start: str) -> Iterator[str]:
    """All pages in the order of the tables of contents."""
    yield start
    for page in env.toctree_includes.get(start, []):
        yield from pages(env, page)


def first_paragraph(doctree: nodes.document) -> str:
    """What a page says of itself, in one line."""
    texts = (" ".join(paragraph.astext().split()) for paragraph in doctree.findall(nodes.paragraph))
    return next(filter(None, texts), "")


def write(app: Sphinx, error: Exception | None) -> None:
    """Both files, beside the pages."""
    if error is not None or app.builder.format != "html":
        return
    builder, env = TextBuilder(app, app.env), app.env
    builder.init()
    listed, whole = [f"# {app.config.project}", "", f"> {ABOUT}", "", "## Pages", ""], []
    for page in dict.fromkeys(pages(env, app.config.root_doc)):
        doctree = env.get_and_resolve_doctree(page, builder)
        title, address = env.titles[page].astext(), app.builder.get_target_uri(page)
        listed.append(f"- [{title}]({address}): {_cut(first_paragraph(env.get_doctree(page)))}")
        for cell in list(doctree.findall(_folds)):  # as text, it is shown
            cell.replace_self(cell.children)
        text = builder.create_translator(doctree, builder)
        doctree.walkabout(text)
        whole.append(f"<!-- {address} -->\n\n{text.body.strip()}\n")
    listed += ["", "## All in one page", "", "- [All pages as plain text](llms-full.txt)", ""]
    out = Path(app.outdir)
    (out / "llms.txt").write_text("\n".join(listed), encoding="utf-8")
    (out / "llms-full.txt").write_text("\n\n".join(whole), encoding="utf-8")


def _folds(node: nodes.Node) -> bool:
    return type(node).__name__ == "HideCodeCellNode"


def _cut(text: str, most: int = 200) -> str:
    return text if len(text) <= most else text[:most].rsplit(" ", 1)[0] + " ..."


def setup(app: Sphinx) -> dict[str, bool]:
    """When all pages have been written."""
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
