"""What a page holds within itself, so that it needs no network and no text in it can do harm."""

import base64
import hashlib
import json
from importlib.metadata import version
from pathlib import Path

import jinja2
from markupsafe import Markup

from latenz.errors import BadInput

ASSETS = Path(__file__).parent / "assets"


def templates() -> jinja2.Environment:
    """Return the templates of all pages; they escape every text."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(ASSETS),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def json_script(value: object) -> Markup:
    """Return JSON that no text in it can turn into markup inside a script element."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704 - made harmless above


def plotly_code() -> str:
    """Return the plotting library from its Python package; it must not end its own element."""
    import plotly

    text = (Path(plotly.__file__).parent / "package_data" / "plotly.min.js").read_text("utf-8")
    if "</script" in text.lower() or "<!--" in text:
        raise BadInput(
            f"plotly {version('plotly')} cannot be embedded: its code closes a script element",
            "plotly.min.js",
            "install the version in setup/python-base.lock",
        )
    return text


def content_policy(scripts: dict[str, str]) -> str:
    """Return a Content Security Policy: only our scripts, no request of any kind.

    Styles must be allowed inline because plotly.js sets them on the elements it draws; images
    may be `data:` and `blob:`, which is how it saves a plot as a picture.
    """
    digests = (
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in scripts.values()
    )
    return (
        "default-src 'none'; script-src "
        + " ".join(f"'sha256-{digest}'" for digest in digests)
        + "; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
