"""Networks on a board over the link.

The bundle is sent once, and an inference that a fault of the board has cut short is run again when the board is well.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any

from hilt.link.deadline import Deadline
from hilt.link.errors import BoardBusyError, LinkError, RefusedError
from hilt.link.quarantine import check_free
from hilt.measure.board_description import BoardTarget, resolve
from hilt.measure.connection import BoardConnection
from hilt.measure.interfaces import BoardState, Listen
from hilt.measure.recovery import FAULTS, Recovery
from hilt.network.kept_speed import kept_speed
from hilt.network.target import CompileTarget
from hilt.plain_text import plain
from hilt.silicon.kept_machines import kept_machine
from hilt.simulator.builds import CHISEL, NEWER, shipped_builds
from hilt.simulator.device import MemoryModel
from hilt.simulator.machine import MachineParameters
from hilt.vta.accelerator import IsaRevision
from hilt_board.protocol import NetworkRan, RunNetwork
from hilt_runtime import Bundle, InferenceError, MemoryNeededError, NetworkError, TargetError, read_bundle
from hilt_runtime.arrays import decode_arrays

if TYPE_CHECKING:
    from hilt.virtual.board_model import BoardModel

_LOG = logging.getLogger("hilt.network")
_REPLY_SECONDS = 3600.0
_LOSSES_ALLOWED = 3
_RETRY_SECONDS = 2.0


Overlapped = tuple[int, float]


@dataclass(frozen=True)
class Inferences:
    """A board's answer: arrays by name, and each inference's seconds and steps (hilt_runtime.StepRun).

    `overlapped` is the count of further inferences, which overlapped, and the seconds that all of them took.
    `engine` is the engine of the processor's steps, with the reason, `engines` the same of each step by its name.
    """

    arrays: dict[str, Any]
    runs: list[dict[str, Any]]
    engine: str = ""
    engines: Mapping[str, str] = field(default_factory=dict)
    overlapped: Overlapped = (0, 0.0)


class BoardRunner:
    """One board with its agent, ready to run bundles. A context manager; one thread at a time."""

    def __init__(self, name: str, listen: Listen = lambda event: None, *, wait: bool = False) -> None:
        """Connect to the board and program it; with `wait`, once no other client has it, and say who has.

        Raises LinkError or VirtualBoardError if that fails.
        """
        check_free(name)
        self.board: BoardTarget = resolve(name)
        self.connection = BoardConnection(self.board, listen)
        self._recovery = Recovery(self.connection)
        try:
            self._connect(wait)
        except BaseException:
            self.board.release()
            raise

    def _connect(self, wait: bool) -> None:
        said = ""
        while True:
            try:
                return self._recovery.connect_at_first()
            except BoardBusyError as error:
                reason = str(error).removesuffix(": wait, or stop that session")
                if not wait:
                    raise BoardBusyError(f"{reason}; `--wait` waits for it") from error
                if reason != said:
                    self.connection.tell(BoardState.CONNECTING, f"waiting: {reason}")
                said = reason
            self.connection.closing.wait(_RETRY_SECONDS)

    def __enter__(self) -> BoardRunner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the board; a virtual one is switched off."""
        self.connection.close()

    def run(
        self, bundle: Bundle, data: bytes, inputs: bytes, *, images: int = 1, repeat: int = 1, keep: bool = False
    ) -> Inferences:
        """Run inferences with encoded inputs (hilt_runtime.arrays).

        Args:
            bundle: The network.
            data: The bundle's file.
            inputs: Arrays by name; with several images their first axis counts the images.
            images: How many inferences with different inputs.
            repeat: How many inferences with each of the inputs.
            keep: Whether every tensor is wanted, not the outputs only.

        Raises:
            TargetError: The bundle is for another accelerator or bitstream.
            MemoryNeededError: The board has too little contiguous memory.
            InferenceError: VTA did not finish or the worker ended, twice.
            NetworkError: The board refused the bundle or the inputs.
            LinkError: The board was lost and did not come back.
        """
        require_target(bundle, self.board)
        losses, repeated = 0, False
        while True:
            try:
                return self._once(bundle, data, inputs, images, repeat, keep)
            except RefusedError as error:
                if error.code == "out_of_memory":
                    raise MemoryNeededError(_reason(error)) from None
                if error.code == "network_refused":
                    raise NetworkError(_reason(error)) from None
                fault: Exception = error
            except FAULTS as error:
                fault = error
            except InferenceError as error:
                if repeated:
                    raise
                repeated = True
                self.connection.tell(BoardState.RECOVERING, f"{error}; the inference is repeated once")
                continue
            losses += 1
            self.connection.tell(BoardState.LOST, f"in the middle of an inference: {fault}")
            reason = fault if losses > _LOSSES_ALLOWED else self._recovery.recover_from(fault)
            if reason is not None:
                raise BoardLostInInferenceError(
                    f"{self.connection.name} was lost in the middle of an inference and did not come back: {reason}; "
                    "nothing was written; run the command again when the board is well"
                ) from reason

    def _once(self, bundle: Bundle, data: bytes, inputs: bytes, images: int, repeat: int, keep: bool) -> Inferences:
        connected = self.connection.connected
        assert connected is not None
        deadline = Deadline(_REPLY_SECONDS)
        digest = hashlib.sha256(data).hexdigest()
        if connected.client.missing_blobs([digest], deadline):
            connected.client.upload_blob(digest, data, deadline)
        limit = sum(program["limit_seconds"] for program in bundle.manifest["programs"]) * images * repeat
        request = RunNetwork(
            bundle=digest,
            name=bundle.name[:200] or bundle.manifest["name"][:200],
            limit_seconds=min(limit, 1e6),
            images=images,
            repeat=repeat,
            keep=keep,
            inputs=inputs,
        )
        ran = connected.client.reply(connected.client.send(request), NetworkRan, deadline)
        if ran.outcome != "ok":
            raise InferenceError(
                f"{ran.reason} (the board {'is well again' if ran.canary else 'is not well'})", ran.outcome
            )
        return _inferences(self.connection.name, ran.result)


def _inferences(board: str, result: bytes) -> Inferences:
    """Return the results of a reply. Raises LinkError for facts that no agent of ours gives."""
    arrays, facts = decode_arrays(result)
    try:
        return Inferences(
            arrays,
            [{**run, "seconds": float(run["seconds"])} for run in facts["runs"]],
            plain(str(facts.get("engine", "")))[:500],
            {plain(str(name)): plain(str(reason))[:200] for name, reason in dict(facts.get("engines", {})).items()},
            _overlapped(facts.get("overlapped", {})),
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise LinkError(f"the agent of {board} gave no facts of an inference: {error!r}") from None


def _overlapped(facts: Mapping[str, Any]) -> Overlapped:
    return int(facts.get("images", 0)), float(facts.get("seconds", 0.0))


def _reason(error: RefusedError) -> str:
    return str(error).removesuffix(f" ({error.code})")


class BoardLostInInferenceError(LinkError):
    """A board that was lost while a network ran on it, and did not come back."""


def require_target(bundle: Bundle, board: BoardTarget) -> None:
    """Compare a bundle's target with a board before anything is sent.

    Raises:
        TargetError: Parameters, ISA revision or bitstream differ; the message has both values.
    """
    target: Mapping[str, Any] = bundle.manifest["target"]
    description = board.description
    accelerator = description.accelerator
    for fact, wanted, there in (
        ("parameters", target["parameters"], accelerator.parameters.name),
        ("ISA revision", target["isa"], str(accelerator.isa)),
        ("bitstream", target["bitstream"][:12], description.bitstream[:12]),
    ):
        if wanted and wanted != there:
            raise TargetError(
                f"bundle {bundle.name} is for {fact} {wanted}, {description.name} has {there}: "
                f"compile it for this board (hilt compile --board {description.name})"
            )


def target_of(name: str) -> CompileTarget:
    """Return the target of `hilt compile` for a board by name.

    Raises UnknownBoardError, UnknownBoardModelError, BoardFileError or BitstreamError.
    """
    board = resolve(name)
    description, manifest = board.description, board.manifest
    identity = manifest.identity
    return CompileTarget(
        board=name,
        accelerator=description.accelerator,
        memory=_memory_of(name),
        bitstream=description.bitstream,
        bitstream_file="" if board.virtual else description.bitstream,
        register_base=manifest.register_base,
        identity=() if identity is None else (identity.geometry, identity.buffer_sizes, identity.build),
        processor=kept_speed(name),
        machine=_machine_of(name, board),
    )


def _machine_of(name: str, board: BoardTarget) -> MachineParameters | None:
    """Return the machine that measurements gave of a board's bitstream; None is hilt's RTL, which has an identity.

    Of a public bitstream that was not measured it is the shipped one of a virtual board's, or of the newer build.
    """
    kept = kept_machine(board.description.bitstream)
    if kept is not None or board.manifest.identity is not None:
        return kept
    chisel = board.description.accelerator.isa is IsaRevision.B
    family = _virtual_model(name).machine if board.virtual else CHISEL if chisel else NEWER
    return shipped_builds().machines.get(family)


def _memory_of(name: str) -> MemoryModel:
    """Return a virtual board's memory; a real board's is taken to be that of a Zynq-7000, which is MemoryModel's."""
    from hilt.virtual.names import PREFIX

    return _virtual_model(name).memory_model if name.startswith(PREFIX) else MemoryModel()


def _virtual_model(name: str) -> BoardModel:
    from hilt.virtual.names import parse_virtual_name

    return parse_virtual_name(name)[0]


def open_bundle(path: str) -> tuple[Bundle, bytes]:
    """Return a bundle and its file's contents. Raises BundleError."""
    from pathlib import Path

    bundle = read_bundle(path)
    return bundle, Path(path).read_bytes()
