"""Checks a built site: `python -m tools.site.links FOLDER`.

Every link within the site leads to a file that is there, and to a place in it that is there; links to
elsewhere have the form of one (they are not followed); and no page loads anything from elsewhere.
"""

import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADS = {"img": "src", "script": "src", "link": "href", "iframe": "src", "source": "src", "video": "src"}
OUTSIDE = ("https", "http", "mailto")
# What the theme draws by script: there is no such place in the file.
DRAWN = {"", "top", "furo-main-content"}


@dataclass
class Page(HTMLParser):
    """What a page refers to, and the places in it."""

    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    places: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collects one element's attributes."""
        values = {name: value or "" for name, value in attrs}
        self.places |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        loaded = values.get(LOADS.get(tag, ""), "")
        if loaded:
            self.loads.append(loaded)


def read(folder: Path) -> dict[Path, Page]:
    """All pages of a site."""
    found = {}
    for path in sorted(folder.rglob("*.html")):
        page = found[path.resolve()] = Page()
        page.feed(path.read_text(encoding="utf-8"))
    return found


def faults(folder: Path) -> list[str]:
    """What is wrong with a site's links, one line each."""
    pages, wrong = read(folder), []
    for path, page in pages.items():
        here = path.relative_to(folder.resolve())
        for address in page.loads:
            if urlsplit(address).netloc:
                wrong.append(f"{here}: loads {address}; expected a file of the site")
        for address in [*page.links, *page.loads]:
            problem = _problem(address, path, pages)
            if problem:
                wrong.append(f"{here}: {problem}")
    return wrong


def _problem(address: str, path: Path, pages: dict[Path, Page]) -> str | None:
    parts = urlsplit(address)
    if parts.scheme == "data":
        return None
    if parts.scheme or parts.netloc:
        whole = parts.scheme in OUTSIDE and ("." in parts.netloc or parts.scheme == "mailto")
        return None if whole else f"the address {address} has no form that is known"
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target.is_dir():
        target /= "index.html"
    if not target.is_file():
        return f"the link {address} leads to no file"
    place = unquote(parts.fragment)
    if target in pages and place not in DRAWN and place not in pages[target].places:
        return f"the link {address} leads to no place in {target.name}"
    return None


def main() -> int:
    """Prints what is wrong; 1 if anything is."""
    folder = Path(sys.argv[1])
    wrong = faults(folder)
    for line in wrong:
        print(line, file=sys.stderr)
    count = sum(len(page.links) for page in read(folder).values())
    print(f"{count} links, {len(wrong)} wrong")
    return bool(wrong)


if __name__ == "__main__":
    raise SystemExit(main())
