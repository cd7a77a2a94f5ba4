"""Every screen as it looks, in a small terminal and in a large one, beside the picture that was accepted of it."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from textual.pilot import Pilot
from textual.widgets import Input

import hilt.tui
from hilt.engine.event_log import EventLog
from hilt.engine.events import BoardChanged, Logged, RunProgress, StateChanged, TunerUpdated
from hilt.engine.run_files import RunFiles
from hilt.engine.run_spec import RunSpec, make_run
from hilt.measure import describe_board
from hilt.report.campaign_inference import INFERENCE
from hilt.schedule import Reason, load_workload, space_for, verdicts
from hilt.schedule.onnx_model import Layer, Network
from hilt.store import Campaign, RunState, Store, Trial, database_path
from hilt.trial import Outcome, Verification
from hilt.tui.app import HiltApp
from hilt.tui.run_context import RunContext
from hilt.tui.screens import configuration_screen, run_screen
from hilt.tui.widgets import board_facts
from hilt.tui.widgets.latency_curve import LatencyCurve
from tests.unit.report.views import long_view

from .live import LiveEngine, live_engine, text_of, until

SIZES = {"small": (80, 24), "large": (200, 60)}
HOME = Path("home")
BOARD = replace(describe_board("virtual:pynq"), bitstream="5eed" * 16)
"""The board's own name for its bitstream changes whenever the RTL does."""
LIVE, FINISHED, LAYER = (f"{digit * 8}-0000-4000-8000-000000000001" for digit in "372")
ACCEPT = (
    "the screen is not as it was; build/snapshots.html shows both pictures. If it is as it should be: "
    "build/host-env/bin/pytest tests/unit/tui/test_snapshots.py --snapshot-update"
)
EXPLANATION = """\
resnet18.C5, configuration 2: as a picture has it

checks
  compiler  accepted
  tvm       rejected, tvm_output_box: TVM v0.9 stores an output box of 2 dimensions, this one has 3

buffers, in elements
  inp  [████····························]     288 of 2,048 (14%)
  wgt  [██████████████████··············]     576 of 1,024 (56%)
"""
INSTRUCTIONS = [f"{ordinal:>3}  LOAD INP  sram {ordinal * 16:#06x}  dram {ordinal * 64:#010x}" for ordinal in range(70)]


_LEFT_OUT = re.compile(
    r"\n *<!--.*?-->|\n *@font-face {.*?}|\n *<clipPath id=\"[^\"]*-line-.*?</clipPath>"
    r"| clip-path=\"[^\"]*-line-[^\"]*\"|[ \t]+$",
    re.DOTALL | re.MULTILINE,
)
"""Fonts to be loaded from elsewhere, and a third of the file that clips each line to where it is anyway."""


class PicturedApp(HiltApp):
    """An app whose pictures hold the content of a terminal and no more."""

    CSS_PATH = Path(hilt.tui.__file__).parent / "hilt.tcss"

    def export_screenshot(self, *, title: str | None = None, simplify: bool = True) -> str:
        svg = super().export_screenshot(title=title, simplify=simplify)
        return _LEFT_OUT.sub("", svg)


@pytest.fixture(scope="module")
def filled_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    fill(home)
    return home


@pytest.fixture(autouse=True)
def the_same_everywhere(filled_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Set relative paths, clocks in UTC and colours, and leave out text that appears only once it is computed."""
    shutil.copytree(filled_home, tmp_path / HOME)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HILT_HOME", str(HOME))
    monkeypatch.setattr(Input, "cursor_blink", False)
    monkeypatch.setattr(board_facts, "describe_board", lambda _: BOARD)
    monkeypatch.setattr(run_screen, "_FIRST_AGREEMENT_SECONDS", 3600.0)
    # tests/unit/report compares the text of an explanation.
    explained = SimpleNamespace(code=SimpleNamespace(instructions=()), accelerator=BOARD.accelerator)
    monkeypatch.setattr(RunContext, "explain", lambda _, index: SimpleNamespace(index=index, **vars(explained)))
    monkeypatch.setattr(configuration_screen, "explanation_text", lambda _: EXPLANATION)
    monkeypatch.setattr(configuration_screen, "disassemble", lambda *_: INSTRUCTIONS)
    with monkeypatch.context() as zone:
        zone.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


def record_run(
    home: Path, uuid: str, created: float, workload: str = "resnet18.C5", campaign: str | None = None
) -> None:
    """Twelve trials of it, of every kind of outcome; the later the faster."""
    settings = RunSpec(workload=workload, board="virtual:pynq", tuner="autotvm", trials=64)
    run = replace(make_run(settings, BOARD, campaign), uuid=uuid, created=created)
    wanted = load_workload(workload)
    space = space_for(wanted, BOARD.accelerator)
    accepted = np.flatnonzero(verdicts(wanted, BOARD.accelerator, space.columns(np.arange(len(space)))) == Reason.OK)
    failed = {
        2: (Outcome.REJECTED, "acc_overflow"), 5: (Outcome.TIMEOUT, "no FINISH"), 8: (Outcome.WRONG_ANSWER, "differs"),
    }  # fmt: skip
    trials = []
    for ordinal in range(12):
        index = int(accepted[97 * ordinal])
        knobs = dict(space.knobs_at(index))
        if ordinal in failed:
            board = "" if failed[ordinal][0] is Outcome.REJECTED else "virtual:pynq"
            trials.append(Trial(ordinal, index, knobs, *failed[ordinal], output_elements=1, board=board))
            continue
        cycles, right = 460_000 + 900_000 // (ordinal + 1), Verification(run.output_elements, 0)
        trials.append(
            Trial(
                ordinal, index, knobs, Outcome.OK, "", cycles, cycles / 100, (cycles / 100,), right,
                run.output_elements, "virtual:pynq",
            )
        )  # fmt: skip
    with Store(database_path(home)) as store:
        store.create_run(run)
        store.record(uuid, trials)
        if uuid != LIVE:  # a run that has finished stays so
            store.set_state(uuid, RunState.FINISHED)


def keep_network(home: Path, campaign: str) -> None:
    """Let a campaign have ended with an inference of a small network."""
    view = long_view(18)
    after = {"latency": view["latency"]}
    values = {"board": "virtual:pynq", "before": after, "after": after, "verified": {"tensors": 3, "elements": 9}}
    (RunFiles(home, campaign).directory / INFERENCE).write_text(json.dumps(values | {"view": view}), encoding="utf-8")


def fill(home: Path) -> None:
    """A finished run, a layer of a campaign, and the one to be watched."""
    layers = (Layer("resnet18.C2", nodes=["a", "b"]), Layer("resnet18.C7", nodes=["c"]))
    network = Network("little", layers, {})
    settings = {"board": "virtual:pynq", "tuner": "autotvm", "trials": 64}
    campaign = Campaign("c" * 32, "little", network.to_dict(), settings, 1.0, {"trials": 40})
    with Store(database_path(home)) as store:
        store.create_campaign(campaign)
    keep_network(home, campaign.uuid)
    record_run(home, LAYER, 60.0, "resnet18.C2", campaign.uuid)
    record_run(home, FINISHED, 120.0)
    record_run(home, LIVE, 180.0)
    publish = EventLog(RunFiles(home, LIVE).event_log_path).recording(lambda event: None)
    publish(StateChanged(RunState.RUNNING, at=1000.0))
    publish(BoardChanged("virtual:pynq", "ready", "1x16 at 100 MHz programmed in 0.4 s, chip at 51 °C", 181.0, 51.2))
    publish(Logged("info", "twelve seconds to a better configuration", 185.0))
    publish(Logged("warning", "virtual:pynq: timeout after trial 5: soft 0.01 s; canary well", 190.0))
    publish(Logged("error", "the disk is nearly full", 195.0))
    publish(TunerUpdated(8, 0.875, 200.0))


def publish_live_events(engine: LiveEngine) -> None:
    counts = {"ok": 9, "rejected": 1, "timeout": 1, "wrong_answer": 1}
    engine.tell(
        BoardChanged("virtual:pynq", "running", "57 of 64 MiB free", 205.0),
        RunProgress(12, 64, counts, 9, 8.0, 1.5, 35.0, 11, 1067, 535_000, 5350.0, 43.2, 84.4),
    )


SCREENS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "run": ((), ("1.5 trials/s", "87.5% sure", "┤")),
    "campaign": (("1",), ("little on virtual:pynq", "resnet18.C7", "belongs to no campaign")),
    "board": (("3",), ("running since", "timeout after trial 5")),
    "space": (("4",), ("accepted (", "of the bound")),
    "configuration": (("5",), ("configuration ", "buffers, in elements")),
    "log": (("6",), ("the disk is nearly full", "timeout after trial 5")),
    "runs": (("7",), ("running", "little (1 layer)")),
    "network": (("8",), ("features.block_4.conv", "processor", "of bound", "belongs to no campaign")),
    "help": (("question_mark",), ("keys and words",)),
    "new-run": (("n",), ("Start (Enter)",)),
    "export": (("e",), ("Write (Enter)",)),
    "stop": (("s",), ("Keep running (n)",)),
}
"""Name: the keys that lead there from the run, and words that are there once all is."""
NOT_WHEN_LOW = ("87.5% sure",)
READING = ("default", "read", "arrange", "draw", "explain")
"""Groups of workers whose end changes the screen."""


async def settled(pilot: Pilot[None]) -> None:
    """Wait until nothing changes any more: styles of the focused widget, a curve that is drawn last."""
    before, now = "", text_and_styles(pilot)
    while before != now or is_at_work(pilot):
        await pilot.pause(0.1)
        before, now = now, text_and_styles(pilot)
    pilot.app.screen.refresh()  # as text it was drawn alone; the picture also has the screen behind it
    await pilot.pause()


def is_at_work(pilot: Pilot[None]) -> bool:
    """Return whether something is being read or computed that will be drawn, or a curve waits to be."""
    curves = [curve for screen in pilot.app.screen_stack for curve in screen.query(LatencyCurve)]
    reading = any(worker.group in READING and not worker.is_finished for worker in pilot.app.workers)
    return reading or any(curve._waiting is not None for curve in curves)


def text_and_styles(pilot: Pilot[None]) -> str:
    return repr(pilot.app.screen._compositor.render_strips())


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", SCREENS)
def test_it_looks_as_it_did(name: str, size: str, snap_compare: Callable[..., bool]) -> None:
    keys, words = SCREENS[name]

    async def go_there(pilot: Pilot[None]) -> None:
        await shown(pilot, SCREENS["run"][1])
        await settled(pilot)  # the screen behind a question has scrolled to its end
        await pilot.press(*keys)
        await shown(pilot, words)
        await settled(pilot)

    async def shown(pilot: Pilot[None], words: tuple[str, ...]) -> None:
        for each in words:
            if size == "large" or each not in NOT_WHEN_LOW:
                await until(pilot, lambda each=each: each in text_of(pilot))

    with live_engine(HOME, LIVE) as engine, Store(database_path(HOME)) as store:
        publish_live_events(engine)
        app = PicturedApp(HOME, store, store.run(LIVE))
        app.animation_level = "none"
        assert snap_compare(app, terminal_size=SIZES[size], run_before=go_there), ACCEPT
