"""Networks on a played board: requests, repeats, and the errors that the user gets."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilt.link.errors import BoardBusyError, LinkError, RefusedError
from hilt.measure import describe_board
from hilt.measure.interfaces import BoardState
from hilt.network import board_run
from hilt.network.board_run import BoardLostInInferenceError, BoardRunner, require_target, target_of
from hilt.simulator.builds import CHISEL, NEWER, OLDER, shipped_builds
from hilt_board.protocol import NetworkRan, RunNetwork
from hilt_runtime import Bundle, InferenceError, MemoryNeededError, NetworkError, TargetError
from hilt_runtime.arrays import encode_arrays

DESCRIPTION = describe_board("virtual:pynq")
TARGET = {
    "parameters": DESCRIPTION.accelerator.parameters.name,
    "isa": str(DESCRIPTION.accelerator.isa),
    "bitstream": DESCRIPTION.bitstream,
}
DATA = b"the bundle's file"
FACTS: dict[str, Any] = {
    "runs": [{"seconds": 0.5}],
    "engine": "native \x1b[31mby zig",
    "engines": {"softmax": "numpy:\x07 no kernel" + "." * 300},
    "overlapped": {"images": 3, "seconds": 1.25},
}
RAN = NetworkRan("ok", result=encode_arrays({"y": np.arange(3)}, FACTS))

Answer = Callable[[RunNetwork], NetworkRan]


class Board:
    """A board, its connection and its recovery in one, whose answers are given one after another."""

    def __init__(self, *answers: NetworkRan | Exception) -> None:
        self.answers = list(answers)
        self.sent: list[RunNetwork] = []
        self.uploaded: list[bytes] = []
        self.told: list[tuple[BoardState, str]] = []
        self.recoveries: list[Exception | None] = []
        self.busy: list[str] = []
        self.released = self.closed = False
        self.name, self.description = "desk", DESCRIPTION
        self.connected = SimpleNamespace(client=self)
        self.closing = SimpleNamespace(wait=lambda seconds: None)

    def missing_blobs(self, digests: list[str], deadline: Any) -> list[str]:
        return [
            digest for digest in digests if digest not in {hashlib.sha256(data).hexdigest() for data in self.uploaded}
        ]

    def upload_blob(self, digest: str, data: bytes, deadline: Any) -> None:
        assert digest == hashlib.sha256(data).hexdigest()
        self.uploaded.append(data)

    def send(self, request: RunNetwork) -> RunNetwork:
        self.sent.append(request)
        return request

    def reply(self, request: Any, kind: type, deadline: Any) -> NetworkRan:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def tell(self, state: BoardState, text: str) -> None:
        self.told.append((state, text))

    def recover_from(self, fault: Exception) -> Exception | None:
        return self.recoveries.pop(0) if self.recoveries else None

    def connect_at_first(self) -> None:
        if self.busy:
            raise BoardBusyError(self.busy.pop(0))

    def release(self) -> None:
        self.released = True

    def close(self) -> None:
        self.closed = True


def bundle(name: str = "net.hilt", **target: str) -> Bundle:
    programs = [{"limit_seconds": 0.5}, {"limit_seconds": 2.0}]
    return Bundle(name, {"name": "net", "programs": programs, "target": {**TARGET, **target}}, {}, "")


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> Callable[..., BoardRunner]:
    def made(board: Board, **options: Any) -> BoardRunner:
        monkeypatch.setattr(board_run, "check_free", lambda name: None)
        monkeypatch.setattr(board_run, "resolve", lambda name: board)
        monkeypatch.setattr(board_run, "BoardConnection", lambda target, listen: board)
        monkeypatch.setattr(board_run, "Recovery", lambda connection: connection)
        return BoardRunner("desk", **options)

    return made


def test_a_bundle_is_sent_once_and_the_answer_is_plain_text(runner: Any) -> None:
    board = Board(RAN, RAN)
    with runner(board) as running:
        found = running.run(bundle(), DATA, b"inputs", images=4, repeat=3, keep=True)
        running.run(bundle(""), DATA, b"inputs")
    assert board.uploaded == [DATA] and board.closed and board.told == []
    digest = hashlib.sha256(DATA).hexdigest()
    assert board.sent[0] == RunNetwork(digest, "net.hilt", 30.0, 4, 3, True, b"inputs")
    assert board.sent[1] == RunNetwork(digest, "net", 2.5, 1, 1, False, b"inputs"), "without a name it has its own"
    np.testing.assert_array_equal(found.arrays["y"], np.arange(3))
    assert found.runs == [{"seconds": 0.5}] and found.overlapped == (3, 1.25)
    assert "\x1b" not in found.engine and found.engine.endswith("by zig")
    (reason,) = found.engines.values()
    assert "\x07" not in reason and len(reason) == 200 and list(found.engines) == ["softmax"]


def test_a_limit_and_a_name_fit_their_message(runner: Any) -> None:
    board = Board(replace(RAN, result=encode_arrays({}, {"runs": []})))
    found = runner(board).run(bundle("n" * 300), DATA, b"", images=10**4, repeat=10**3)
    assert board.sent[0].limit_seconds == 1e6 and board.sent[0].name == "n" * 200
    assert (found.engine, found.engines, found.overlapped) == ("", {}, (0, 0.0))


PLAIN = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**53), 2**53), st.floats(allow_nan=False), st.text(max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=3), inner, max_size=2)),
    max_leaves=4,
)
RUNS = st.lists(st.one_of(PLAIN, st.fixed_dictionaries({"seconds": PLAIN})), max_size=2)


@settings(max_examples=60)
@given(st.fixed_dictionaries({}, optional={"runs": st.one_of(PLAIN, RUNS), "engines": PLAIN, "overlapped": PLAIN}))
def test_facts_that_no_agent_of_ours_gives_are_a_fault_of_the_board(facts: dict[str, Any]) -> None:
    try:
        found = board_run._inferences("desk", encode_arrays({"y": np.arange(2)}, facts))
    except LinkError as error:
        assert str(error).startswith("the agent of desk gave no facts of an inference: ")
    else:
        assert all(isinstance(run["seconds"], float) for run in found.runs)
        assert all(isinstance(word, str) for pair in found.engines.items() for word in pair)


CRASH = NetworkRan("crash", "the worker ended", True)


def test_an_inference_whose_worker_ended_is_repeated_once(runner: Any) -> None:
    board = Board(CRASH, RAN)
    assert runner(board).run(bundle(), DATA, b"").runs == [{"seconds": 0.5}]
    words = "the worker ended (the board is well again)"
    assert board.told == [(BoardState.RECOVERING, f"{words}; the inference is repeated once")]
    board = Board(CRASH, replace(CRASH, canary=False))
    with pytest.raises(InferenceError, match=r"^the worker ended \(the board is not well\)$"):
        runner(board).run(bundle(), DATA, b"")
    assert len(board.sent) == 2


@pytest.mark.parametrize(("code", "kind"), [("out_of_memory", MemoryNeededError), ("network_refused", NetworkError)])
def test_a_refusal_is_an_error_without_its_code(runner: Any, code: str, kind: type[Exception]) -> None:
    board = Board(RefusedError(code, "8 MiB are not free"))
    with pytest.raises(kind, match=r"^8 MiB are not free$"):
        runner(board).run(bundle(), DATA, b"")
    assert len(board.sent) == 1 and board.told == []


def test_a_board_that_comes_back_runs_it_again_three_times_at_most(runner: Any) -> None:
    lost = LinkError("connection lost")
    board = Board(lost, RefusedError("busy", "another"), lost, RAN)
    runner(board).run(bundle(), DATA, b"")
    assert [state for state, _ in board.told] == [BoardState.LOST] * 3
    assert board.told[0][1] == "in the middle of an inference: connection lost"
    board = Board(*[lost] * 5)
    with pytest.raises(
        BoardLostInInferenceError, match=r"^desk was lost .* did not come back: connection lost; nothing"
    ):
        runner(board).run(bundle(), DATA, b"")
    assert len(board.sent) == 4


def test_a_board_that_does_not_come_back_says_why(runner: Any) -> None:
    board = Board(LinkError("connection lost"))
    board.recoveries = [LinkError("no power")]
    with pytest.raises(BoardLostInInferenceError, match="did not come back: no power; nothing was written") as raised:
        runner(board).run(bundle(), DATA, b"")
    assert str(raised.value.__cause__) == "no power" and len(board.sent) == 1


BUSY = "desk is used by ada: wait, or stop that session"


def test_a_board_in_use_is_waited_for_only_if_asked(runner: Any) -> None:
    board = Board()
    board.busy = [BUSY]
    with pytest.raises(BoardBusyError, match="^desk is used by ada; `--wait` waits for it$"):
        runner(board)
    assert board.released
    board = Board()
    board.busy = [BUSY, BUSY, BUSY.replace("ada", "bob"), BUSY]
    runner(board, wait=True)
    names = [text for state, text in board.told if state is BoardState.CONNECTING]
    assert names == [f"waiting: desk is used by {name}" for name in ("ada", "bob", "ada")], "each once in a row"
    assert not board.released


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"parameters": "4x8"}, f"for parameters 4x8, virtual:pynq has {TARGET['parameters']}"),
        ({"isa": "B"}, f"for ISA revision B, virtual:pynq has {TARGET['isa']}"),
        ({"bitstream": "0" * 64}, f"for bitstream {'0' * 12}, virtual:pynq has {DESCRIPTION.bitstream[:12]}"),
    ],
)
def test_a_bundle_for_another_board_is_refused_before_it_is_sent(
    runner: Any, changed: dict[str, str], words: str
) -> None:
    board = Board(RAN)
    with pytest.raises(TargetError) as refused:
        runner(board).run(bundle(**changed), DATA, b"")
    end = "compile it for this board (hilt compile --board virtual:pynq)"
    assert str(refused.value) == f"bundle net.hilt is {words}: {end}" and board.sent == board.uploaded == []


def test_a_bundle_for_any_bitstream_of_the_design_is_taken() -> None:
    board: Any = Board()
    require_target(bundle(bitstream=""), board)
    require_target(bundle(bitstream=DESCRIPTION.bitstream[:12] + "f" * 52), board)


@pytest.mark.parametrize(
    ("board", "machine"),
    [("pynq", None), ("pynq_public", NEWER), ("pynq_public_older", OLDER), ("pynq_chisel", CHISEL)],
)
def test_the_target_of_a_public_bitstream_that_was_not_measured_has_a_shipped_machine(
    board: str, machine: str | None
) -> None:
    wanted = None if machine is None else shipped_builds().machines[machine]
    assert target_of(f"virtual:{board}").machine == wanted


def test_the_target_of_a_virtual_board_has_its_memory() -> None:
    target = target_of("virtual:zcu104")
    assert target.board == "virtual:zcu104" and target.bitstream_file == ""
    assert target.accelerator == describe_board("virtual:zcu104").accelerator
    assert target.bitstream == describe_board("virtual:zcu104").bitstream
