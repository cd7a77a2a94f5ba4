"""The parts of an interactive page: Plotly's data of a plot, and text that cannot leave its place."""

from __future__ import annotations

import json
import re
from typing import Any

from hilt.report.interactive import Plot, html_cards, html_table, page, plotly_script, script_json

LINE = {"type": "scatter", "x": [1, 2], "y": [3, 4]}


def told(html: str) -> tuple[str, list[Any], dict[str, Any], dict[str, Any]]:
    """Return the arguments of Plotly.newPlot: name, traces, layout, options."""
    (call,) = re.findall(r"Plotly\.newPlot\((.*)\)[;)]?", html)
    decoder, arguments, place = json.JSONDecoder(), [], 0
    while len(arguments) < 4:
        value, place = decoder.raw_decode(call, place)
        arguments.append(value)
        place += len(", ")
    return tuple(arguments)  # type: ignore[return-value]


def test_a_plot_has_its_traces_and_fits_its_place() -> None:
    name, traces, layout, options = told(Plot("front", "Best ones", [LINE]).html())
    assert (name, traces) == ("front", [LINE])
    assert layout["autosize"] and options == {"responsive": True, "displaylogo": False}
    assert layout["legend"]["y"] > 1 and layout["legend"]["yanchor"] == "bottom", "above the picture"
    assert layout["font"]["size"] == 13
    assert min(layout["margin"].values()) >= 24, "room for labels"


def test_a_plots_own_layout_comes_first_and_every_axis_has_its_grid() -> None:
    layout = {"height": 600, "xaxis": {"title": "us"}, "yaxis2": {"gridcolor": "red"}}
    html = Plot("front", "", [LINE], layout).html()
    _, _, made, _ = told(html)
    assert made["xaxis"] == {"title": "us", "gridcolor": "#e4e6ea", "zerolinecolor": "#e4e6ea"}
    assert made["yaxis2"] == {"gridcolor": "red", "zerolinecolor": "#e4e6ea"}
    assert made["height"] == 600 and 'style="min-height: 600px"' in html
    assert 'style="min-height: 380px"' in Plot("front", "", [LINE]).html(), "another plot's layout stays"


def test_only_a_plot_on_webgl_waits_until_it_is_seen() -> None:
    drawn_at_once = Plot("front", "", [LINE]).html()
    seen = Plot("many", "", [LINE, {"type": "parcoords", "dimensions": []}]).html()
    assert "IntersectionObserver" not in drawn_at_once and "<script>Plotly.newPlot(" in drawn_at_once
    assert seen.count("IntersectionObserver") == 1 and 'getElementById("many")' in seen
    assert told(seen)[0] == "many"


def test_text_cannot_end_a_script_or_an_element() -> None:
    html = Plot('a"><b', "</figcaption><b>", [{**LINE, "name": "</script><b>&\u2028"}]).html()
    assert "<b" not in html and html.count("</script>") == html.count("</figcaption>") == 1
    assert told(html)[1][0]["name"] == "</script><b>&\u2028", "as it was, to Plotly"
    assert script_json("<>&\u2028") == '"\\u003c\\u003e\\u0026\\u2028"'


def test_a_table_folds_to_cards_that_name_each_cell() -> None:
    made = html_cards(["layer", "<i>us</i>", "share"], [["C2", "1", "2&nbsp;%"], ["C3", "4", "5"]])
    assert re.findall(r"<thead><tr>(.*)</tr></thead>", made) == ["<th>layer</th><th><i>us</i></th><th>share</th>"]
    assert re.findall(r"<tr>(<th scope.*)</tr>\n", made) == [
        '<th scope="row">C2</th><td data-label="<i>us</i>">1</td><td data-label="share">2&nbsp;%</td>',
        '<th scope="row">C3</th><td data-label="<i>us</i>">4</td><td data-label="share">5</td>',
    ]
    assert html_table(["a & b"], [["<c>"]]) == html_cards(["a &amp; b"], [["&lt;c&gt;"]])


def test_a_page_is_whole_and_has_its_library_before_its_sections() -> None:
    made = page("a <run>", ["<p>first</p>", "<p>second</p>"])
    assert made.startswith('<!doctype html>\n<html lang="en">') and made.endswith("</body>\n</html>\n")
    assert "<title>a &lt;run&gt; – hilt</title>" in made and "<h1>a &lt;run&gt;</h1>" in made
    places = [made.index(each) for each in ("<style>", plotly_script(), "<h1>", "<p>first</p>", "<p>second</p>")]
    assert places == sorted(places)
