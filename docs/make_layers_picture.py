"""Makes docs/layers.svg: the layers of python/latenz, as `make lint` holds them.

Usage: .venv/bin/python docs/make_layers_picture.py [-o docs/layers.svg]
"""

import argparse
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROW, LEFT, WIDTH, LETTER = 32, 56, 720, 7.6
STYLE = """text { font: 13px monospace; fill: #1a1a1a; }
rect.package { fill: #dbe7f3; stroke: #6f8fae; } rect.file { fill: none; stroke: #a9b9c8; }
path { fill: none; stroke: #b3541e; stroke-width: 2; }
@media (prefers-color-scheme: dark) {
  text { fill: #e8e8e8; } rect.package { fill: #24303b; stroke: #5b7791; }
  rect.file { stroke: #4a5a68; } path { stroke: #e08a55; } }"""


def layers() -> list[list[str]]:
    """Return the names in each layer, from the top."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (contract,) = (each for each in config["contracts"] if each["id"] == "layers")
    return [re.findall(r"\w+", layer) for layer in contract["layers"]]


def picture(rows: list[list[str]]) -> str:
    """Return the drawing: a row for each layer, packages filled, single files in outline."""
    height = ROW * len(rows) + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        'aria-label="The layers of python/latenz; imports lead downwards">',
        f"<style>{STYLE}</style>",
        f'<path d="M 20 12 V {height - 14} m -5 -8 l 5 8 l 5 -8"/>',
        f'<text transform="translate(42 {height // 2}) rotate(-90)" text-anchor="middle">'
        "imports lead downwards</text>",
    ]
    for at, names in enumerate(rows):
        x, y = float(LEFT), 6 + at * ROW
        for name in names:
            is_package = (ROOT / "python" / "latenz" / name).is_dir()
            label = f"{name}/" if is_package else name
            width = LETTER * len(label) + 18
            kind = "package" if is_package else "file"
            box = f'x="{x:.1f}" y="{y}" width="{width:.1f}" height="24" rx="4"'
            parts.append(f'<rect class="{kind}" {box}/>')
            parts.append(f'<text x="{x + 9:.1f}" y="{y + 16}">{label}</text>')
            x += width + 8
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "docs" / "layers.svg")
    parser.parse_args().output.write_text(picture(layers()))
