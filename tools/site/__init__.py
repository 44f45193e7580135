"""What the documentation site needs beyond Sphinx: formulas, docstrings, plain text, and a check of links."""
