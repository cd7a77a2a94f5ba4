"""The command line's own part: version, closed outputs, and Ctrl-C in this process."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hilt.cli import interrupts as interrupts_module
from hilt.cli import main as main_module
from hilt.cli.interrupts import Interrupts, _is_being_handled, _without_interrupts, _would_be_lost
from hilt.cli.main import run


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"hilt {metadata.version('hilt')}\n"


@pytest.mark.parametrize(
    ("words", "begin", "end"),
    [
        (["tune"], "hilt: Missing argument '", "'; `hilt --help` and `hilt COMMAND --help` say how\n"),
        (["tuen"], "hilt: No such command 'tuen'. Did you mean 'tune'", "?\n"),
    ],
)
def test_an_error_in_the_command_line_is_one_line_with_an_advice_or_a_question(
    words: list[str], begin: str, end: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == 2
    said = capsys.readouterr().err
    assert said.startswith(begin) and said.endswith(end) and said.count("\n") == 1


class Output(io.StringIO):
    """A standard output whose reader has gone."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor

    def flush(self) -> None:
        raise BrokenPipeError

    def fileno(self) -> int:
        return self._descriptor


def test_who_reads_no_more_and_who_closed_the_outputs_get_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []
    monkeypatch.setattr(main_module, "interrupts", SimpleNamespace(begin=lambda: begun.append("begun"), end=list))
    monkeypatch.setattr(main_module, "run", lambda words: len(words))
    monkeypatch.setattr(main_module, "allow_any_character", lambda stream: begun.append(stream.mode))
    monkeypatch.setattr(sys, "argv", ["hilt", "runs", "--json"])
    with (tmp_path / "out").open("w") as file:
        monkeypatch.setattr(sys, "stdout", SimpleNamespace(flush=Output(0).flush, fileno=file.fileno, mode="broken"))
        monkeypatch.setattr(sys, "stderr", None)
        with pytest.raises(SystemExit) as ending:
            main_module.main()
        assert ending.value.code == 2, "the command's own"
        assert begun == ["begun", "broken", "w"], "an output that was closed goes nowhere"
        os.write(file.fileno(), b"lost")
    assert (tmp_path / "out").read_bytes() == b"", "the interpreter's own flush at exit reaches nobody"


def raised(error: BaseException, within: BaseException | None = None) -> bool:
    """Return `_is_being_handled()` in the handler of `error`, which was raised while `within` was handled."""
    try:
        try:
            if within is not None:
                raise within
        finally:
            raise error
    except BaseException:
        return _is_being_handled()


def test_an_interrupt_is_being_handled_while_it_or_an_error_in_its_place_is_on_its_way() -> None:
    assert not _is_being_handled()
    assert raised(KeyboardInterrupt())
    assert raised(ImportError("no such library"), KeyboardInterrupt())
    assert not raised(ValueError("other"))


def frame(name: str, file: str = "a.py", back: Any = None) -> Any:
    return SimpleNamespace(f_code=SimpleNamespace(co_filename=file, co_qualname=name), f_back=back)


def test_a_press_would_be_lost_in_the_importer_and_in_an_extensions_import() -> None:
    extension = frame("ExtensionFileLoader.exec_module", back=frame("main"))
    assert _would_be_lost(frame("_find_and_load", "<frozen importlib._bootstrap>"))
    assert _would_be_lost(extension) and _would_be_lost(frame("init", back=frame("deeper", back=extension)))
    assert not _would_be_lost(frame("main", back=frame("run"))) and not _would_be_lost(None)
    assert not _would_be_lost(frame("run", back=frame("_find", "<frozen importlib._bootstrap>"))), "a plain import"


def test_only_interrupts_are_kept_from_the_eyes(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []
    monkeypatch.setattr(sys, "__unraisablehook__", shown.append)
    lost, other = SimpleNamespace(exc_type=KeyboardInterrupt), SimpleNamespace(exc_type=ValueError)
    _without_interrupts(lost)  # type: ignore[arg-type]
    _without_interrupts(other)  # type: ignore[arg-type]
    assert shown == [other]


@pytest.fixture
def pressed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Yield Interrupts in place of this process's handler; it presses again after a hundredth of a second."""
    monkeypatch.setattr(interrupts_module, "_AGAIN_SECONDS", 0.01)
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    made = Interrupts()
    made.begin()
    yield made
    made.end()
    signal.signal(signal.SIGINT, before)


def test_a_press_comes_again_until_the_command_has_ended(pressed: Interrupts) -> None:
    heard = 0
    for press in range(3):
        try:
            if not press:
                os.kill(os.getpid(), signal.SIGINT)
            threading.Event().wait(10)
        except KeyboardInterrupt:
            heard += 1
    assert heard == 3
    pressed.end()
    assert not threading.Event().wait(0.05), "nobody presses any more"


def test_a_repeat_leaves_who_handles_the_press_in_peace(pressed: Interrupts) -> None:
    handled = False
    try:
        os.kill(os.getpid(), signal.SIGINT)
        threading.Event().wait(10)
    except KeyboardInterrupt:
        handled = not threading.Event().wait(0.05)  # repeats come meanwhile
        pressed.end()
    assert handled


def test_a_repeat_behind_the_end_is_not_heard(pressed: Interrupts) -> None:
    """The thread that presses again may have been about to when the command ended."""
    pressed.end()
    pressed._is_repeat = True
    pressed._pressed(signal.SIGINT, None)
    with pytest.raises(KeyboardInterrupt):
        pressed._pressed(signal.SIGINT, None)


def test_a_handler_that_counts_presses_hears_the_repeat_once(pressed: Interrupts) -> None:
    """The first press may be lost before the handler is there; it is given on, and not again and again."""
    counted: list[int] = []
    try:
        os.kill(os.getpid(), signal.SIGINT)
        threading.Event().wait(10)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, lambda number, _: counted.append(number))
    threading.Event().wait(0.1)
    assert counted == [signal.SIGINT]


def test_an_ignored_signal_and_anothers_handler_stay() -> None:
    before = signal.getsignal(signal.SIGINT)
    try:
        for handler in (signal.SIG_IGN, lambda number, frame: None):
            signal.signal(signal.SIGINT, handler)
            Interrupts().begin()
            assert signal.getsignal(signal.SIGINT) == handler
    finally:
        signal.signal(signal.SIGINT, before)
