"""Models of an earlier hilt that the cache still has: boards made of one, and the runs that go on with it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hilt.engine.errors import RunMismatchError
from hilt.engine.run_spec import RunSpec, make_run, resolve_run
from hilt.measure import describe_board, name_with_model
from hilt.measure.board_description import VirtualTarget
from hilt.simulator.build import LIBRARY, Form, model_key
from hilt.virtual.bitstream import bitstream_identity, kept_model, twin_identity
from hilt.virtual.board_model import BoardModel, board_model
from hilt.virtual.errors import BoardNameError
from hilt.virtual.names import chaos_of, model_of, parse_virtual_name, with_model

OLD = "a0163c" + "5" * 58
CONTENTS = b"the model of an earlier hilt"


def keep(cache: Path, model: BoardModel, identity: str, contents: bytes = CONTENTS) -> None:
    """Put a bitstream in the cache as `make_bitstream` names it."""
    made_for = kept_name(model, identity)
    (cache / "bitstreams").mkdir(exist_ok=True)
    (cache / "bitstreams" / made_for).write_bytes(contents)


def kept_name(model: BoardModel, identity: str) -> str:
    from hilt.virtual.bitstream import _suffix

    return f"{identity}-{_suffix(model)}"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that has one model of virtual:pynq."""
    monkeypatch.setenv("HILT_CACHE", str(tmp_path))
    keep(tmp_path, board_model("pynq"), OLD)
    return tmp_path


def test_a_board_is_made_of_the_kept_model(cache: Path) -> None:
    target = VirtualTarget(f"virtual:pynq@desk?model={OLD[:16]}&rate=0.5")
    assert target.bitstream() == CONTENTS
    assert target.description.bitstream == OLD
    assert target.description.twin == "", "today's twin says nothing of it"
    today = VirtualTarget("virtual:pynq@desk").description
    assert today.bitstream == bitstream_identity(board_model("pynq")) != OLD
    assert today.twin == twin_identity(board_model("pynq")) != ""
    assert VirtualTarget("virtual:pynq@desk", form="golden").description.twin == ""


def test_the_first_build_of_a_model_is_said_and_no_later_one(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def build(model: BoardModel, form: Form | None) -> None:
        made.append(form or model.form)
        library = cache / "models" / model_key(model.accelerator, form or model.form) / LIBRARY
        library.parent.mkdir(parents=True)
        library.touch()

    monkeypatch.setattr("hilt.measure.board_description.make_bitstream", build)
    monkeypatch.setattr("hilt.measure.board_description.board_environment.ensure", lambda report: None)
    said: list[str] = []
    forms: tuple[Form | None, ...] = (None, None, "golden", "golden")
    for form in forms:
        VirtualTarget("virtual:pynq@desk", form=form).prepare(said.append)
    assert said == ["compiling its RTL, once: a minute or two", "compiling its golden model, once"]
    assert made == ["rtl", "golden"]
    VirtualTarget(f"virtual:pynq@desk?model={OLD[:16]}").prepare(said.append)
    assert len(made) == 2, "a kept model is not built"


def test_a_model_that_the_cache_has_not_is_refused(cache: Path) -> None:
    for name in (f"virtual:pynq?model={'b' * 16}", f"virtual:pynq_batched?model={OLD[:16]}"):
        with pytest.raises(BoardNameError, match="no such model for this board"):
            VirtualTarget(name)
    keep(cache, board_model("pynq"), OLD[:-1] + "6")
    with pytest.raises(BoardNameError, match="no such model"):
        VirtualTarget(f"virtual:pynq?model={OLD[:16]}")
    assert VirtualTarget(f"virtual:pynq?model={OLD}").description.bitstream == OLD


def test_a_model_that_was_made_for_another_memory_is_not_found(cache: Path) -> None:
    slower = replace(board_model("pynq"), read_latency=board_model("pynq").read_latency + 1)
    assert kept_model(slower, OLD) is None
    found = kept_model(board_model("pynq"), OLD)
    assert found is not None and (found.identity, found.path.read_bytes()) == (OLD, CONTENTS)


def test_a_twin_counts_with_its_memory() -> None:
    model = board_model("pynq")
    slower = replace(model, read_latency=model.read_latency + 1)
    assert len({twin_identity(model), twin_identity(slower), twin_identity(board_model("pynq_batched"))}) == 3
    public = next(each for each in map(board_model, ("pynq_public",)) if each.machine)
    assert twin_identity(public) == "", "a public bitstream has no twin"


def test_names_of_models_and_faults_do_not_mix() -> None:
    name = with_model("virtual:pynq@desk?rate=0.5&seed=3", OLD)
    assert name == f"virtual:pynq@desk?model={OLD[:16]}&rate=0.5&seed=3"
    chaos = chaos_of(name)
    assert chaos is not None and (chaos.rate, chaos.seed) == (0.5, 3)
    assert with_model(name, "b" * 64) == name.replace(OLD[:16], "b" * 16)
    alone = with_model("virtual:pynq", OLD)
    assert chaos_of(alone) is None
    assert (model_of(alone), model_of("virtual:pynq?rate=0.5"), model_of("virtual:pynq")) == (OLD[:16], None, None)
    assert parse_virtual_name(name)[1].name == "desk"


@pytest.mark.parametrize(
    "text",
    ["", "model=", "model=xyz", "model=a0163c", f"model={'A' * 16}", f"rate=0.5&model={OLD[:16]}", "model=../../x"],
)
def test_other_spellings_are_refused(text: str) -> None:
    with pytest.raises(BoardNameError):
        VirtualTarget(f"virtual:pynq?{text}")


def test_a_run_of_a_kept_model_is_offered_its_board(cache: Path) -> None:
    settings = RunSpec("resnet18.C11", "virtual:pynq", "random", 8)
    today = describe_board("virtual:pynq")
    run = replace(make_run(settings, today), bitstream=OLD)
    assert run.versions["twin"] == today.twin
    board = f"virtual:pynq?model={OLD[:16]}"
    offer = f"is in the cache: `hilt resume {run.uuid[:8]} --board '{board}'`, or begin it anew"
    with pytest.raises(RunMismatchError) as refused:
        resolve_run(run, today)
    assert offer in str(refused.value)
    resolve_run(run, describe_board(board))
    with pytest.raises(RunMismatchError, match="Bring back the board and settings it began with, or begin it anew"):
        resolve_run(replace(run, bitstream="c" * 64), today)
    with pytest.raises(RunMismatchError, match="Bring back"):
        resolve_run(replace(run, bitstream=today.bitstream, clock_hz=1), today)


def test_every_board_of_a_fleet_is_offered_the_model(cache: Path) -> None:
    digits = OLD[:16]
    fleet = name_with_model("virtual:pynq,virtual:pynq@2", OLD)
    assert fleet == f"virtual:pynq?model={digits},virtual:pynq@2?model={digits}"
    assert describe_board(fleet).bitstream == OLD
    assert name_with_model("virtual:pynq,desk", OLD) is None
    assert name_with_model("virtual:pynq", "d" * 64) is None
