"""Numbers at ticks as plain text, which matplotlib draws in less time than mathematics."""

from __future__ import annotations

from matplotlib.ticker import ScalarFormatter


class TickNumbers(ScalarFormatter):
    """Numbers in the font of the text; a power of ten that they share is mathematics, if the style says so."""

    def __init__(self) -> None:
        super().__init__()
        self.mathematics = self.get_useMathText()
        self.set_useMathText(False)

    def get_offset(self) -> str:
        """Return the power of ten, or what is added to all numbers."""
        self.set_useMathText(self.mathematics)
        text = super().get_offset()
        self.set_useMathText(False)
        return text
