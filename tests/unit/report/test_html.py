"""The report as a page: whole, harmless, and true to the store."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from hilt.atomic_write import UnwritableFileError
from hilt.engine.campaign_results import load_result
from hilt.engine.event_log import EventLog
from hilt.engine.events import BoardChanged
from hilt.engine.run_files import RunFiles
from hilt.report import html
from hilt.report.facts import Facts, facts_of_campaign, facts_of_run
from hilt.report.html import render, write_report
from hilt.report.reproduce import records_digest
from hilt.store import Campaign, Run, RunState, Store, database_path
from hilt.trial import Outcome

from .campaign_store import EVIL, LATENCIES, make

pytestmark = pytest.mark.slow  # plotly's pages

_VOID = {"meta", "br", "hr", "img", "link", "input"}


class Page(HTMLParser):
    """A parser that checks that elements nest and keeps words by element, attributes, and links."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.elements: list[str] = []
        self.words: list[str] = []
        self.handlers: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == [], "every element is closed"

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        if tag not in _VOID:
            self.open.append(tag)
        for name, value in attributes:
            if name in ("href", "src", "xlink:href", "action", "poster", "data"):
                self.links.append(value or "")
            elif name == "id":
                self.ids.append(value or "")
            self.handlers += [name] if name.startswith("on") else []

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)
        if tag not in _VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def made(home: Path) -> tuple[Campaign, Run]:
    return make(home)


@pytest.fixture(scope="module")
def facts(home: Path, made: tuple[Campaign, Run]) -> Facts:
    with Store(database_path(home)) as store:
        campaign = store.campaign(made[0].uuid)
        assert campaign is not None
        return facts_of_campaign(store, load_result(store, campaign))


@pytest.fixture(scope="module")
def source(facts: Facts) -> str:
    """The page without Plotly's library, whose text is not ours."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("plotly.offline.get_plotlyjs", lambda: "")
        return render(facts)


@pytest.mark.slow
def test_it_holds_every_layers_figures(source: str) -> None:
    text = Page(source).text
    tuned, fallback = 3 * 4700.5 + 350.75, 3 * 44_000.0 + 12_000.0
    assert f"{tuned / 1e3:,.2f} ms" in text and f"{fallback / 1e3:,.2f} ms" in text
    assert f"{fallback / tuned:.2f} ×" in text
    for figure in ("44,000.0", "4,700.5", "12,000.0", "350.8", "9.36", "34.21"):
        assert figure in text, figure
    assert "resnet18.C5" in text and "resnet18.C10" in text
    assert "Configuration 120, trial 3" in text and "tile_w=10" in text
    assert "timeout" in text and "crash" in text
    assert "hilt campaign" in text and "--budget 9" in text and "--seed 7" in text
    assert 'data-label="hottest, °C">63<' in source
    assert "recovering: reboot over SSH" in text and "the board drifts" in text and "nothing of note" not in text
    assert "9 trials answered" in text
    assert "Conv: dilation" in text


@pytest.mark.slow
def test_user_names_are_words_and_nothing_else(source: str) -> None:
    page = Page(source)
    assert page.handlers == []
    scripts = re.findall(r"<script>(.*?)</script>", source, re.DOTALL)
    drawn = re.compile(r'(new IntersectionObserver\([^"]*)?Plotly\.newPlot\("[a-z0-9-]+", \[')
    assert scripts[0] == "" and all(drawn.match(script) for script in scripts[1:])
    assert len(scripts) == source.count("<script"), "no text of a user's begins a script"
    assert page.text.count("<script>alert('x')</script>&\"$\\alpha$") >= 4, "said as it is"


def test_it_needs_nothing_else(source: str) -> None:
    page = Page(source)
    assert all(link.startswith(("#", "data:image/png;base64,")) for link in page.links)
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)
    assert "@import" not in source
    assert all(found.startswith("#") for found in re.findall(r"url\(([^)]*)\)", source))
    addresses = set(re.findall(r"https?://[^\s\"'<>]+", source))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}, "names of namespaces only"


def test_pictures_do_not_share_names(source: str) -> None:
    ids = Page(source).ids
    assert len(ids) == len(set(ids))
    assert source.count("<svg") == 3 + 2 * 2, "network, allocation, roofline; a curve and a space for each layer"


def test_a_static_page_has_all_but_the_interactive_plots(facts: Facts, source: str) -> None:
    page = render(facts, static=True)
    assert "<script" not in page and "Interactive" not in page and "<script" in source
    assert page.count("<svg") == source.count("<svg")
    assert Page(page).ids == [
        each for each in Page(source).ids if not each.startswith(("trials-", "importance-", "coordinates-"))
    ]


def test_a_layer_whose_trials_were_all_right_has_no_table_of_outcomes(facts: Facts, source: str) -> None:
    right = [replace(each, trials=[trial for trial in each.trials if trial.outcome is Outcome.OK])
             for each in facts.runs]  # fmt: skip
    page = render(replace(facts, runs=tuple(right)), static=True)
    assert "<th>outcome</th>" in source and "<th>outcome</th>" not in page


def test_the_documents_example_is_a_campaigns_static_page() -> None:
    page = (Path(__file__).parents[3] / "docs" / "examples" / "campaign-report.html").read_text(encoding="utf-8")
    assert "<script" not in page and "hilt campaign" in page and '<a href="#layer-0">conv_0</a>' in page
    assert '<meta name="viewport"' in page and "@media print" in page and len(page) < 500_000


def test_no_cell_breaks_a_number_or_a_heading(source: str) -> None:
    """The page breaks long words anywhere; a narrow column made `126.` and `0` of a latency, and `time` and `s`."""
    style = source[source.index("<style>") : source.index("</style>")]
    assert style.index("overflow-wrap: anywhere") < style.index("thead th, td { overflow-wrap: normal; }")
    cells = re.findall(r"<td data-label=\"(?:share|of bound)\">(.*?)</td>", source)
    assert cells and not any(" %" in cell for cell in cells)


def test_it_is_for_phones_and_paper(source: str) -> None:
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in source
    assert "@media print" in source and "@media (max-width" in source


def test_a_run_by_itself(home: Path, made: tuple[Campaign, Run]) -> None:
    with Store(database_path(home)) as store:
        facts = facts_of_run(store, store.run(made[1].uuid))
    page = Page(render(facts))
    assert "4,700.5 µs" in page.text and "hilt tune resnet18.C5" in page.text
    assert EVIL in page.text, "the reason of its timeout"


def test_a_run_without_trials(home: Path, made: tuple[Campaign, Run], tmp_path: Path) -> None:
    with Store(tmp_path / "hilt.db") as store:
        store.create_run(replace(made[1], campaign=None))
        page = Page(render(facts_of_run(store, store.run(made[1].uuid))))
    assert "Nothing verified was found yet." in page.text and "No trial reached a board." in page.text


def test_the_same_records_have_the_same_hash(facts: Facts, tmp_path: Path) -> None:
    campaign, _ = make(tmp_path)
    with Store(database_path(tmp_path)) as store:
        found = store.campaign(campaign.uuid)
        assert found is not None
        again = facts_of_campaign(store, load_result(store, found))
    assert records_digest(again.runs) == records_digest(facts.runs)
    assert records_digest(again.runs[:1]) != records_digest(facts.runs)


def test_the_networks_curve(facts: Facts) -> None:
    """The network's curve begins when both layers have a schedule: after the second one's fallback."""
    curve = facts.total_curve
    assert curve[-1] == (sum(map(len, LATENCIES)), pytest.approx(3 * 4700.5 + 350.75))
    assert curve[0][0] == 2 and curve[0][1] == pytest.approx(3 * 44_000 + 12_000)
    totals = [total for _, total in curve]
    assert totals == sorted(totals, reverse=True)


def test_an_older_network_has_the_events_of_its_layers_engines(
    home: Path, made: tuple[Campaign, Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older network has the events of its layers' engines.

    With schema 7 and older, `hilt tune model.onnx` gave each layer an engine of its own.
    """
    monkeypatch.setattr(html, "pictures", lambda facts: ())
    publish = EventLog(RunFiles(tmp_path, made[1].uuid).event_log_path).recording(lambda event: None)
    publish(BoardChanged("table:plain", "recovering", "power cycle", 1000.0))
    campaign = replace(made[0], fallback_first=False)
    with Store(database_path(home)) as store, Store(database_path(tmp_path)) as own:
        own.create_campaign(campaign)
        for place, run in enumerate(store.runs_of(campaign.uuid)):
            own.create_run(replace(run, state=RunState.STOPPED if place else RunState.FINISHED))
            own.record(run.uuid, store.trials(run.uuid))
        page = Page(render(facts_of_campaign(own, load_result(own, campaign))))
    assert "recovering: power cycle" in page.text and "No fault of a board" not in page.text


def test_where_no_file_can_be(facts: Facts, tmp_path: Path) -> None:
    with pytest.raises(UnwritableFileError, match="cannot write"):
        write_report(tmp_path / "nowhere" / "report.html", replace(facts, runs=()))
    assert list(tmp_path.iterdir()) == []
