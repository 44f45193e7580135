"""The documentation site: `make docs` builds it, without network and with warnings as errors."""

import logging
import os
import re
import sys
from pathlib import Path

DOCS = Path(__file__).parent
ROOMS = [str(DOCS.parent / "src"), str(DOCS.parent)]  # piaget; tools.site and examples
sys.path[:0] = ROOMS
os.environ["PYTHONPATH"] = os.pathsep.join([*ROOMS, os.environ.get("PYTHONPATH", "")])  # for notebooks
os.environ.setdefault("OMP_NUM_THREADS", "1")  # they are small, and several run at once

# Kernels of notebooks note at every start that others on this machine could listen. They have settings of
# their own, whatever the user's are, and only errors are of interest.
os.environ["IPYTHONDIR"] = str(DOCS / "_build" / "ipython")
profile = DOCS / "_build" / "ipython" / "profile_default"
profile.mkdir(parents=True, exist_ok=True)
(profile / "ipython_kernel_config.py").write_text('c.IPKernelApp.log_level = "ERROR"\n')
logging.getLogger("traitlets").setLevel(logging.WARNING)  # nor that a notebook is run

import piaget  # noqa: E402

project = "piaget"
author = "the authors of piaget"
project_copyright = "the authors of piaget, MIT licence"
version = release = piaget.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "tools.site.mathml",
    "tools.site.docstrings",
    "tools.site.plain_text",
]
exclude_patterns = ["_build", "results-notes"]
highlight_language = "text"  # of indented blocks: commands, and what they print
templates_path: list[str] = []

myst_enable_extensions = ["dollarmath", "deflist", "colon_fence"]
myst_heading_anchors = 4  # as on GitHub: page.md#a-heading
myst_links_external_new_tab = False

nb_execution_mode = "force"  # tutorials are run whenever they are built
nb_execution_raise_on_error = True
nb_execution_timeout = 600
nb_merge_streams = True

html_theme = "furo"
html_title = "piaget"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"  # drawn by the browser itself: no script, no font from elsewhere
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}

default_role = "py:obj"  # single backticks in docstrings: a link where the name is known
add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
python_maximum_signature_line_length = 88
python_use_unqualified_type_names = True


def add_other_pages(app: object, docname: str, source: list[str]) -> None:
    """Pages that the index does not name stand in its last list: a new page needs no change there."""
    if docname == "index":
        named = {"index", *re.findall(r"^[\w/-]+$", source[0], re.MULTILINE)}
        others = sorted(page.stem for page in DOCS.glob("*.md") if page.stem not in named)
        if others:
            source[0] += "\n".join(["", "```{toctree}", ":caption: More", ":hidden:", "", *others, "```", ""])


def setup(app: object) -> None:
    app.connect("source-read", add_other_pages)  # type: ignore[attr-defined]
