"""The form of a new run: its fields, the run that Enter starts, and the place of an error."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Button, Input, Label

from hilt.store import Run
from hilt.tui import new_work
from hilt.tui.messages import CampaignChosen, RunChosen
from hilt.tui.screens.new_run_screen import NewRunScreen
from tests.unit.store import examples

from .live import until

FIELDS = ("workload", "board", "tuner", "trials", "seed")


class Forms(App[None]):
    def __init__(self, home: Path, like: Run | None) -> None:
        super().__init__()
        self.form = NewRunScreen(home, like)
        self.chosen: list[RunChosen | CampaignChosen] = []

    def on_mount(self) -> None:
        self.push_screen(self.form)

    def on_run_chosen(self, message: RunChosen) -> None:
        self.chosen.append(message)

    def on_campaign_chosen(self, message: CampaignChosen) -> None:
        self.chosen.append(message)

    @property
    def fields(self) -> dict[str, str]:
        return {name: self.form.query_one(f"#{name}", Input).value for name in FIELDS}

    @property
    def errors(self) -> dict[str, str]:
        """Return the error lines that are seen."""
        lines = {name: self.form.query_one(f"#{name}-error", Label) for name in (*FIELDS, "form")}
        return {name: str(line.content) for name, line in lines.items() if line.display}


class Starts:
    """The run that the form starts, and its result."""

    def __init__(self) -> None:
        self.asked: list[tuple[dict[str, str], Run | None, Path]] = []
        self.end: Exception | new_work.Started = new_work.Started("u" * 8, False)
        self.go_on = threading.Event()
        self.go_on.set()

    def __call__(self, values: dict[str, str], like: Run | None, home: Path) -> new_work.Started:
        self.asked.append((values, like, home))
        assert self.go_on.wait(600)
        if isinstance(self.end, Exception):
            raise self.end
        return self.end


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Starts:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    made = Starts()
    monkeypatch.setattr(new_work, "start", made)
    return made


@contextmanager
def form_of(home: Path, like: Run | None = None) -> Iterator[Forms]:
    yield Forms(home, like)


async def ready(pilot: Pilot[None], app: Forms) -> None:
    await until(pilot, lambda: app.screen is app.form and app.focused is not None)


async def test_the_form_begins_with_an_example_and_knows_the_names(tmp_path: Path, starts: Starts) -> None:
    with form_of(tmp_path) as app:
        async with app.run_test() as pilot:
            await ready(pilot, app)
            wanted = ("resnet18.C5", "virtual:pynq", "hilt", "64", "0")
            assert app.fields == dict(zip(FIELDS, wanted, strict=True)) and app.errors == {}
            assert app.focused is not None and app.focused.id == "workload"
            known = {
                "workload": ["resnet18.C1", "resnet18"],
                "board": ["virtual:pynq", "virtual:ultra96"],
                "tuner": ["hilt", "random", "ga"],
            }
            for name in FIELDS:
                field = app.form.query_one(f"#{name}", Input)
                assert field.type == ("integer" if name in ("trials", "seed") else "text"), name
                assert (field.suggester is not None) == (name in known), name
                for word in known.get(name, ()):
                    assert field.suggester is not None
                    assert str(await field.suggester.get_suggestion(word[:-1])).startswith(word[:-1]), word
            await pilot.press("down", "down", "up")
            assert app.focused.id == "board"


async def test_the_form_begins_with_the_watched_run_and_the_next_seed(tmp_path: Path, starts: Starts) -> None:
    like = examples.run("3f2a91bc-0000-4000-8000-000000000001", budget=1000, seed=4, board="desk", tuner="ga")
    with form_of(tmp_path, like) as app:
        async with app.run_test() as pilot:
            await ready(pilot, app)
            assert app.fields == dict(zip(FIELDS, (like.workload, "desk", "ga", "1000", "5"), strict=True))
            assert "As run 3f2a91bc" in str(app.form.query_one("#taken-over", Label).content)
            await pilot.press("enter")
            await until(pilot, lambda: app.chosen)
    assert starts.asked == [
        (dict(zip(FIELDS, (like.workload, "desk", "ga", "1000", "5"), strict=True)), like, tmp_path)
    ]


@pytest.mark.parametrize(("is_campaign", "how"), [(True, "enter"), (False, "button")])
async def test_what_was_started_is_shown_and_the_form_leaves(
    tmp_path: Path, starts: Starts, is_campaign: bool, how: str
) -> None:
    starts.end = new_work.Started("some-uuid", is_campaign)
    with form_of(tmp_path) as app:
        async with app.run_test() as pilot:
            await ready(pilot, app)
            app.form.query_one("#seed", Input).value = "  7 "
            if how == "enter":
                app.form.query_one("#seed", Input).focus()
                await pilot.press("enter")
            else:
                app.form.query_one("#start", Button).press()
            await until(pilot, lambda: app.chosen and app.screen is not app.form)
            (chosen,) = app.chosen
    assert starts.asked[0][0]["seed"] == "7" and len(starts.asked) == 1
    wanted: Any = CampaignChosen("some-uuid", show=True) if is_campaign else RunChosen("some-uuid")
    assert chosen == wanted


@pytest.mark.parametrize("how", ["escape", "button"])
async def test_cancel_starts_nothing(tmp_path: Path, starts: Starts, how: str) -> None:
    with form_of(tmp_path) as app:
        async with app.run_test() as pilot:
            await ready(pilot, app)
            if how == "escape":
                await pilot.press("escape")
            else:
                app.form.query_one("#cancel", Button).press()
            await until(pilot, lambda: app.screen is not app.form)
    assert starts.asked == [] and app.chosen == []


async def test_an_error_is_shown_at_its_field_until_the_next_start(tmp_path: Path, starts: Starts) -> None:
    with form_of(tmp_path) as app:
        async with app.run_test() as pilot:
            await ready(pilot, app)
            starts.end = new_work.FieldError("tuner", "no tuner [bold]gaa[/]")
            await pilot.press("enter")
            await until(pilot, lambda: app.errors == {"tuner": "no tuner [bold]gaa[/]"})
            assert app.focused is not None and app.focused.id == "tuner"
            starts.end = ValueError("the engine did not start")
            await pilot.press("enter")
            await until(pilot, lambda: app.errors == {"form": "the engine did not start"})
            assert app.focused.id == "tuner", "no field is at fault: the cursor stays"
            starts.end = new_work.Started("u", False)
            starts.go_on.clear()
            await pilot.press("enter")
            await until(pilot, lambda: len(starts.asked) == 3)
            assert app.errors == {}
            starts.go_on.set()
            await until(pilot, lambda: app.chosen)


async def test_while_an_engine_starts_no_other_does_and_nobody_leaves(tmp_path: Path, starts: Starts) -> None:
    starts.go_on.clear()
    starts.end = ValueError("it did not start")
    with form_of(tmp_path) as app:
        async with app.run_test() as pilot:
            await ready(pilot, app)
            await pilot.press("enter")
            await until(pilot, lambda: starts.asked)
            await pilot.press("enter", "escape")
            await pilot.pause()
            assert len(starts.asked) == 1 and app.screen is app.form
            starts.go_on.set()
            await until(pilot, lambda: app.errors)
            await pilot.press("escape")
            await until(pilot, lambda: app.screen is not app.form)


async def test_a_damaged_list_of_boards_completes_none(tmp_path: Path, starts: Starts) -> None:
    (tmp_path / "boards.toml").write_text("[desk\n")
    with form_of(tmp_path) as app:
        async with app.run_test(notifications=True) as pilot:
            await ready(pilot, app)
            suggester = app.form.query_one("#board", Input).suggester
            assert suggester is not None and await suggester.get_suggestion("virtual:p") is None
            told = [notice.title for notice in app._notifications]
            assert told == ["No board's name is completed"]
