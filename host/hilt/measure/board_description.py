"""Boards by name: a virtual one is made on this machine, a real one is looked up. Both are reached in the same way."""

from __future__ import annotations

import shlex
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from hilt import bitstreams
from hilt.link.board_registry import Endpoint, RegisteredBoard, registered_board, registered_boards
from hilt.link.errors import BoardFileError
from hilt.link.labgrid_place import PREFIX as LABGRID
from hilt.link.labgrid_place import HeldPlace, look
from hilt.link.power import PowerSwitch
from hilt.measure.interfaces import BoardDescription
from hilt.simulator.build import Form
from hilt.virtual import board_environment
from hilt.virtual.bitstream import (
    VirtualBitstream,
    bitstream_identity,
    is_built,
    kept_model,
    make_bitstream,
    twin_identity,
)
from hilt.virtual.board_model import BOARD_MODELS, BoardModel
from hilt.virtual.directory import USER
from hilt.virtual.errors import BoardNameError, VirtualBoardError
from hilt.virtual.linux.computer import COMPUTERS
from hilt.virtual.linux.image import ensure_image
from hilt.virtual.names import PREFIX, chaos_of, model_of, parse_virtual_name
from hilt.virtual.own_models import kept_names
from hilt.virtual.supervisor_control import SupervisorControl, SupervisorStatus
from hilt.vta.accelerator import Accelerator
from hilt_board.protocol import Identity, Manifest
from hilt_runtime.isa import BANDS_OF_BUILD, READ_PORTS_OF_BUILD, TABLE_OF_BUILD, WINDOW_OF_BUILD

_REGISTER_MAP_VERSION = 1


class BoardTarget(Protocol):
    """A board that can be measured on."""

    @property
    def description(self) -> BoardDescription: ...

    @property
    def manifest(self) -> Manifest:
        """The manifest of the board's bitstream."""

    def prepare(self, report: Callable[[str], None]) -> None:
        """Make everything that the board needs on this machine first. Raises VirtualBoardError."""

    def bitstream(self) -> bytes:
        """Return the .bit file. Raises BitstreamError; for a virtual board it is built, which raises BuildError."""

    def endpoint(self) -> Endpoint:
        """Return the board's current endpoint; a virtual board is switched on. Raises VirtualBoardError."""

    @property
    def virtual(self) -> bool:
        """True if the board is a process tree of this machine."""

    def power(self) -> PowerSwitch | None:
        """Return its power switch; None if it has none that we can reach. Raises PowerError."""

    def release(self) -> None:
        """Release the board: nobody measures on it any more."""


def resolve(name: str) -> BoardTarget:
    """Return the board of that name.

    Raises UnknownBoardModelError, VirtualBoardError, UnknownBoardError, BoardFileError, BitstreamError, PlaceError.
    """
    return VirtualTarget(name) if name.startswith(PREFIX) else real_target(name)


def real_target(name: str) -> RealTarget:
    """Return the board of that name that is not a virtual one.

    Raises UnknownBoardError, BoardFileError, BitstreamError, PlaceError.
    """
    if name.startswith(LABGRID):
        return LabgridTarget(name)
    return RealTarget(name, registered_board(name))


def board_names() -> list[str]:
    """Return all names that `resolve` knows, the user's own first. Raises BoardFileError."""
    return [*registered_boards(), *(PREFIX + name for name in [*BOARD_MODELS, *kept_names()])]


class RealTarget:
    """A board of HILT_HOME/boards.toml with a bitstream of the manifest."""

    virtual = False

    def __init__(self, name: str, board: RegisteredBoard) -> None:
        self._power = board.power
        self._endpoint = board.endpoint
        self._bitstream = bitstreams.find(board.bitstream)
        accelerator = self._bitstream.accelerator()
        self.description = BoardDescription(
            name=name,
            accelerator=accelerator,
            bitstream=self._bitstream.sha256 or self._bitstream.name,
            clock_hz=accelerator.clock_hz,
            deterministic=False,
        )
        self.manifest = Manifest(
            board=self._bitstream.board,
            part=self._bitstream.part,
            parameters=accelerator.parameters.name,
            isa=str(accelerator.isa),
            clock_hz=accelerator.clock_hz,
            register_base=self._bitstream.register_base,
            identity=identity_of(accelerator) if self._bitstream.identity else None,
            fclk_hz=self._bitstream.fclk_hz or None,
        )

    @property
    def address(self) -> Endpoint:
        """Its endpoint, without holding the board."""
        return self._endpoint

    def prepare(self, report: Callable[[str], None]) -> None:
        pass

    def bitstream(self) -> bytes:
        path = bitstreams.path_of(self._bitstream)
        bitstreams.verify(self._bitstream, path)
        return path.read_bytes()

    def endpoint(self) -> Endpoint:
        return self._endpoint

    def power(self) -> PowerSwitch | None:
        return None if self._power is None else PowerSwitch(self.description.name, self._power)

    def release(self) -> None:
        pass


class LabgridTarget(RealTarget):
    """A place of a labgrid coordinator: held from `prepare`, or the first `endpoint`, to `release`.

    labgrid has the address and the turn. The rest comes from the table of the place's name in HILT_HOME/boards.toml;
    without it the place's tag `bitstream` and the defaults hold.
    """

    def __init__(self, name: str) -> None:
        place = name.removeprefix(LABGRID)
        facts = look(place)
        table = registered_boards().get(place)
        service = facts.resources.get("NetworkService")
        endpoint = table.endpoint if table else None
        if service is not None:
            where = {"host": str(service["address"]), "user": str(service["username"]), "port": int(service["port"])}
            endpoint = replace(endpoint, **where) if endpoint else Endpoint(name=place, **where)  # type: ignore[arg-type]
        bitstream = table.bitstream if table else facts.tags.get("bitstream")
        if endpoint is None or bitstream is None:
            missing = "a NetworkService" if endpoint is None else "a tag `bitstream`"
            raise BoardFileError(
                f"place {place} has neither {missing} nor a table [{place}] in boards.toml: add one of them"
            )
        power = table.power if table else None
        if power is None and (port := facts.resources.get("NetworkPowerPort")):
            port = {key: value for key, value in port.items() if key in ("model", "host", "index")}
            power = {"resources": {"NetworkPowerPort": port}, "drivers": {"NetworkPowerDriver": {}}}
        super().__init__(name, RegisteredBoard(endpoint, bitstream, power))
        self._held = HeldPlace(place)

    def prepare(self, report: Callable[[str], None]) -> None:
        self._held.hold(report)

    def endpoint(self) -> Endpoint:
        self._held.hold(lambda text: None)
        return super().endpoint()

    def release(self) -> None:
        self._held.release()


class VirtualTarget:
    """A virtual board.

    Its supervisor is held from the first `endpoint` to `release`, and started again if it died. Threads may share
    it; once released, it stays so.
    """

    virtual = True

    def __init__(self, name: str, form: Form | None = None) -> None:
        self._board_model, self._directory = parse_virtual_name(name)
        self._chaos = chaos_of(name)
        if self._chaos and self._board_model.computer:
            raise BoardNameError(f"{name}: an emulated board has no injected faults; take another virtual board")
        self._form = form
        self._kept = _kept(name, self._board_model)
        self._supervisor: SupervisorControl | None = None
        self._holding = threading.Lock()
        self._released = False
        accelerator = self._board_model.accelerator
        self.description = BoardDescription(
            name=name,
            accelerator=accelerator,
            bitstream=self._kept.identity if self._kept else bitstream_identity(self._board_model, form),
            clock_hz=accelerator.clock_hz,
            deterministic=self._board_model.deterministic,
            twin="" if self._kept else twin_identity(self._board_model, form),
        )
        self.manifest = Manifest(
            board=self._board_model.label,
            part=self._board_model.bit_part,
            parameters=accelerator.parameters.name,
            isa=str(accelerator.isa),
            clock_hz=accelerator.clock_hz,
            register_base=self._board_model.register_base,
            identity=None if self._board_model.machine else identity_of(accelerator),
        )

    def prepare(self, report: Callable[[str], None]) -> None:
        if self._board_model.computer:
            ensure_image(COMPUTERS[self._board_model.computer], report)
            report("switching it on: its Linux boots under QEMU")
            self.endpoint()  # apart from the seconds that a board has to answer, because it depends on this machine
        else:
            board_environment.ensure(report)
            if self._kept is None and not is_built(self._board_model, self._form):
                form = self._form or self._board_model.form
                report(
                    "compiling its RTL, once: a minute or two" if form == "rtl" else f"compiling its {form} model, once"
                )
                make_bitstream(self._board_model, self._form)

    def bitstream(self) -> bytes:
        return (self._kept or make_bitstream(self._board_model, self._form)).path.read_bytes()

    def endpoint(self) -> Endpoint:
        port = self._on_supervisor(SupervisorControl.power_on).port
        if port is None:
            raise VirtualBoardError(f"{self.description.name} has no SSH server although it is on")
        return Endpoint(
            name=self.description.name,
            host="127.0.0.1",
            port=port,
            user=USER,
            key_file=self._directory.client_key,
            host_key=self._directory.host_public_key(),
            python="python3",
            sudo=bool(self._board_model.computer),
        )

    def power(self) -> PowerSwitch:
        """Return labgrid's driver for a command, as a board on a desk may have it."""
        board = f"{self._board_model.name}@{self._directory.name}"
        switch = shlex.join([sys.executable, "-m", "hilt.virtual", board, "--power"])
        commands = {f"cmd_{action}": f"{switch} {action}" for action in ("on", "off", "cycle")}
        return PowerSwitch(self.description.name, {"drivers": {"ExternalPowerDriver": commands}})

    def release(self) -> None:
        with self._holding:
            self._released = True
            self._let_go()

    def _let_go(self) -> None:
        if self._supervisor is not None:
            self._supervisor.close()
            self._supervisor = None

    def _on_supervisor(self, act: Callable[[SupervisorControl], SupervisorStatus]) -> SupervisorStatus:
        """Act on the supervisor that we hold; one that died in the meantime is replaced, once."""
        with self._holding:
            if self._released:
                raise VirtualBoardError(f"{self.description.name} was released")
            if self._supervisor is not None:
                try:
                    return act(self._supervisor)
                except VirtualBoardError:
                    self._let_go()
            self._supervisor = SupervisorControl.hold(self._directory, self._board_model)
            self._directory.write_chaos(self._chaos)
            return act(self._supervisor)


def _kept(name: str, board_model: BoardModel) -> VirtualBitstream | None:
    """Return the kept model that a board's name asks for. Raises BoardNameError if the cache has it not."""
    digits = model_of(name)
    kept = kept_model(board_model, digits) if digits else None
    if digits and kept is None:
        raise BoardNameError(f"{name}: the cache has no such model for this board; see HILT_CACHE")
    return kept


def identity_of(accelerator: Accelerator) -> Identity:
    """Return the words that the board compares after it has loaded a bitstream of this accelerator.

    They are the values of hilt's identity registers, at 0x44 to 0x50 of the fetch page (docs/registers.md).
    """
    parameters = accelerator.parameters
    return Identity(
        version=_REGISTER_MAP_VERSION,
        geometry=parameters.log_batch
        | parameters.log_block << 4
        | parameters.log_inp_width << 8
        | parameters.log_wgt_width << 12
        | parameters.log_acc_width << 16,
        buffer_sizes=parameters.log_uop_buff_size
        | parameters.log_inp_buff_size << 8
        | parameters.log_wgt_buff_size << 16
        | parameters.log_acc_buff_size << 24,
        build=accelerator.isa.number
        | (accelerator.bus_bits.bit_length() - 1) << 8
        | int(accelerator.hazards == "interlock") << 12
        | (TABLE_OF_BUILD if accelerator.table else 0)
        | (accelerator.read_ports.bit_length() - 1) * (READ_PORTS_OF_BUILD & -READ_PORTS_OF_BUILD)
        | (WINDOW_OF_BUILD if accelerator.window_rows else 0)
        | (BANDS_OF_BUILD if accelerator.bands else 0),
    )
