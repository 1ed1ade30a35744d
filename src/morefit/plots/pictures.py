"""Figures and formulas as images inside of HTML, which need no other files."""

from __future__ import annotations

from base64 import b64encode
from html import escape
from io import BytesIO
from typing import TYPE_CHECKING, Any

from morefit.plots.canvas import OWN_STYLE, is_drawable, load_pyplot, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SETTINGS = {"svg.fonttype": "path", "svg.hashsalt": "morefit"}  # the same text for the same picture
FORMULA_SIZE = 12.0  # points


def picture(figure: Figure, title: str) -> str:
    """Return a figure as an image, and close it."""
    text = svg(figure)
    load_pyplot().close(figure)
    return image(text, title)


def formula(text: str) -> str:
    """Return text with mathematics as an image; other text, and what matplotlib does not know, as it is written."""
    load_pyplot()
    if "$" not in text or not is_drawable(text):
        return f"<code>{escape(text.strip('$'))}</code>" if "$" in text else escape(text)
    from matplotlib.figure import Figure

    with styled(OWN_STYLE):
        figure = Figure(figsize=(0.01, 0.01))
        figure.text(0, 0, text, size=FORMULA_SIZE)
        return image(svg(figure, bbox_inches="tight", pad_inches=0.02, transparent=True), text, "formula")


def svg(figure: Figure, **options: Any) -> bytes:
    """Return a figure as SVG."""
    buffer = BytesIO()
    with styled(SETTINGS):
        figure.savefig(buffer, format="svg", metadata={"Date": None}, **options)
    return buffer.getvalue()


def image(content: bytes, title: str, kind: str = "plot") -> str:
    """Return an element of HTML with an image."""
    data = b64encode(content).decode("ascii")
    return f'<img class="{kind}" alt="{escape(title)}" src="data:image/svg+xml;base64,{data}">'
