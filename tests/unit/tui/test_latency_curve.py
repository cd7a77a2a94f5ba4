"""The curve of the best latency."""

from __future__ import annotations

from textual.app import App, ComposeResult

from hilt.tui.widgets.latency_curve import LatencyCurve

from .live import until

FALLING = [(0, 500.0), (3, 300.0), (7, 20.0)]


class Alone(App[None]):
    def compose(self) -> ComposeResult:
        yield LatencyCurve()


async def test_a_logarithmic_curve_is_drawn_again_as_it_was() -> None:
    """Plotext takes logarithms in place: the second drawing had those of the first, and the fourth failed."""
    app = Alone()
    async with app.run_test(size=(60, 16)) as pilot:
        curve = app.query_one(LatencyCurve)
        curve.put(FALLING, FALLING, trials=9, bound=10.0)
        await until(pilot, lambda: curve._picture is not None and "log" in str(curve.border_title))
        await until(pilot, lambda: "500" in str(curve._picture.render()))
        first = str(curve._picture.render())
        for _ in range(5):
            assert str(curve._picture.render()) == first
        curve.toggle_scale()
        await until(pilot, lambda: "linear" in str(curve.border_title))
        assert str(curve._picture.render()) != first
