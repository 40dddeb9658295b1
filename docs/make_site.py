"""Builds the site of the guide, to be read from a folder or served: build/site/index.html.

Usage: .venv/bin/python docs/make_site.py [-o build/site]

Every Markdown page of the project is in it, with its links as they are; a link that leads nowhere
ends it. The order is that of the tables of docs/README.md.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from sphinx.cmd.build import build_main

ROOT = Path(__file__).resolve().parents[1]
SECTION = re.compile(r"^## (.+)$|^\| \[([^]]+)\]\(([^)]+)\.md\)", re.MULTILINE)
LINK = re.compile(r"\]\(([^)#:]+)")
SETTINGS = """
project = "Latenz"
extensions = ["myst_parser"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = "Latenz"
html_copy_source = html_show_sphinx = False
html_show_copyright = False
suppress_warnings = ["toc.not_included", "misc.highlighting_failure"]
"""


def contents(guide: str) -> str:
    """Return the pages of each section of `guide` (the text of docs/README.md), in its order."""
    sections: dict[str, list[str]] = {"Guide": ["Overview <docs/README>"]}
    for heading, title, target in SECTION.findall(guide):
        if heading:
            pages = sections.setdefault(heading, [])
        else:
            path = target.removeprefix("../") if target.startswith("../") else f"docs/{target}"
            pages.append(f"{title} <{path}>")
    return "".join(
        "\n".join(["", "```{toctree}", ":hidden:", f":caption: {name}", *pages, "```", ""])
        for name, pages in sections.items()
        if pages
    )


def copy_pages(place: Path) -> None:
    """Copy every page of the project to `place`, each in its folder, and the files they show."""
    listed = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-z", "--", "*.md"], capture_output=True, check=True
    )
    for page in (ROOT / name for name in listed.stdout.decode().split("\0") if name):
        shown = (page.parent / target for target in LINK.findall(page.read_text()))
        for each in (page, *(path.resolve() for path in shown if path.is_file())):
            target = place / each.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(each, target)


def main() -> int:
    """Build the site."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "build" / "site")
    output = parser.parse_args().output.resolve()
    with tempfile.TemporaryDirectory() as folder:
        pages, built = Path(folder, "pages"), Path(folder, "built")
        copy_pages(pages)
        (pages / "conf.py").write_text(SETTINGS)
        with (pages / "README.md").rename(pages / "index.md").open("a") as first:
            first.write(contents((ROOT / "docs" / "README.md").read_text()))
        return build_main(["-q", "-W", "--keep-going", "-d", str(built), str(pages), str(output)])


if __name__ == "__main__":
    sys.exit(main())
