"""A Plotext plot that is drawn more than once. Imported when there is a curve to draw: loading Plotext takes time."""

from __future__ import annotations

from collections.abc import Callable

from textual.app import RenderResult
from textual_plotext import PlotextPlot
from textual_plotext.plot import Plot


class RedrawnPlot(PlotextPlot):
    """Put the data into the plot before each drawing.

    Plotext takes the logarithm of its data in place: data that were drawn once are not drawn right again, and fail
    where a logarithm is negative.
    """

    def __init__(self, fill: Callable[[Plot], None]) -> None:
        super().__init__()
        self._fill = fill

    def render(self) -> RenderResult:
        self.plt.clear_data()
        self._fill(self.plt)
        return super().render()
