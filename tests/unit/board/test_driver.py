"""The driver on a bitstream with the public registers only, and its clock, by stand-ins of pynq's own classes."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import pytest

from hilt.bitstreams import find
from hilt.virtual.bitstream import bitfile
from hilt_board.bitfile import BitfileError
from hilt_board.protocol import Manifest
from hilt_runtime import register_protocol, registers
from hilt_runtime.registers import Register

from .examples import MANIFEST

PUBLIC = replace(MANIFEST, identity=None)


class PublicRegisters:
    """TVM's HLS design as its source has it (tvm-vta, hardware/xilinx/src/vta.cc): compute writes 0 to `done` when it
    begins with an instruction, tokens included, and 1 at FINISH. Nothing else clears it, a start least of all."""

    def __init__(self) -> None:
        self.done = 0
        self.until_first = 0
        self.until_finish = 0
        self.polls = 0

    def write(self, offset: int, value: int) -> None:
        if (offset, value) == (Register.FETCH_CONTROL, registers.START):
            self.polls = 0

    def read(self, offset: int) -> int:
        assert offset == Register.DONE_READ
        self.polls += 1
        if self.polls > self.until_first:
            self.done = int(self.polls > self.until_finish)
        return self.done


class Board:
    """A record of the driver's calls to pynq, in order."""

    def __init__(self) -> None:
        self.registers = PublicRegisters()
        self.did: list[str] = []
        self.pll_mhz = 1000.0
        self.divisors = [2, 5]
        self.clocks: list[float] = []
        """The frequencies of the fabric, in MHz, since the divisors were written first."""

    @property
    def fclk_mhz(self) -> float:
        return self.pll_mhz / (self.divisors[0] * self.divisors[1])

    def divide(self, *divisors: int) -> None:
        """Write one divisor after the other, as pynq does while the design runs."""
        for number, divisor in enumerate(divisors):
            self.divisors[number] = divisor
            self.clocks.append(self.fclk_mhz)

    def set_widths(self, parser: Any) -> None:
        """Note the widths as pynq's EmbeddedDevice reads them from a parser (pynq 2.7 to 4.0)."""
        assert parser.family_ps == "zynq_ultra_ps_e"
        widths = parser.ip_dict[parser.ps_name]["parameters"]
        self.did.append(" ".join(f"{name} {widths[name]}" for name in sorted(widths)))

    def module(self) -> ModuleType:
        board = self

        class Bitstream:
            def __init__(self, path: str) -> None:
                board.did.append(f"open {Path(path).name}")

            def download(self) -> None:
                board.did.append("download")

        class Generator(type):
            @property
            def fclk0_mhz(cls) -> float:
                return board.fclk_mhz

            @fclk0_mhz.setter
            def fclk0_mhz(cls, wanted: float) -> None:
                board.did.append(f"clock {wanted:g}")
                product = round(board.pll_mhz / wanted)
                first = next(divisor for divisor in range(1, 64) if product % divisor == 0 and product // divisor < 64)
                board.divide(first, product // first)

            def set_pl_clk(cls, index: int, first: int, second: int) -> None:
                assert index == 0
                board.did.append("slow clock")
                board.divide(first, second)

        class Clocks(metaclass=Generator):
            pass

        pynq = ModuleType("pynq")
        vars(pynq).update(
            Bitstream=Bitstream,
            Clocks=Clocks,
            Device=SimpleNamespace(active_device=SimpleNamespace(set_axi_port_width=board.set_widths)),
            MMIO=lambda base, length: board.registers,
        )
        return pynq


@pytest.fixture
def board() -> Board:
    return Board()


@pytest.fixture
def module(board: Board, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.setitem(sys.modules, "pynq", board.module())
    monkeypatch.setattr("platform.machine", lambda: "armv7l")
    yield importlib.import_module("hilt_board.driver")
    del sys.modules["hilt_board.driver"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "vta.bit"
    file.write_bytes(bitfile("vta", PUBLIC.part, b"payload"))
    return file


@pytest.fixture
def program(module: ModuleType, path: Path) -> Callable[[Manifest], Any]:
    def program(manifest: Manifest) -> Any:
        driver = module.Driver(1.0, lambda: None)
        driver.program(path, manifest)
        return driver

    return program


class Code:
    """The part of a buffer that the driver asks for."""

    physical_address: ClassVar[int] = 0x1680_0000
    nbytes: ClassVar[int] = 4096


def test_done_of_the_run_before_is_not_taken_for_this_one(board: Board, program: Callable[[Manifest], Any]) -> None:
    driver = program(PUBLIC)
    for _ in range(3):
        # Compute's first instruction waits for a LOAD: `done` still stands when it is read first.
        board.registers.until_first, board.registers.until_finish = 5, 60
        ran = driver.run(Code, 8, 1.0)
        assert ran.outcome == "ok"
        assert board.registers.polls == 61


def test_a_program_that_was_over_at_once_is_believed_and_timed_by_its_first_sight(
    board: Board, module: ModuleType, program: Callable[[Manifest], Any]
) -> None:
    driver = program(PUBLIC)
    board.registers.done = 1
    ran = driver.run(Code, 1, 1.0)
    assert ran.outcome == "ok"
    assert board.registers.polls > 1
    assert ran.seconds < register_protocol.OLD_DONE_SECONDS


def test_time_begins_when_fetch_is_started(
    board: Board, module: ModuleType, program: Callable[[Manifest], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of a run begins when fetch is started.

    Each access to a register moves the test's clock by 5 microseconds, which pynq's MMIO may take on a Cortex-A9.
    """
    driver = program(PUBLIC)
    clock = 0.0
    read, write = board.registers.read, board.registers.write

    def slow(access: Callable[..., Any]) -> Callable[..., Any]:
        def slowed(*words: int) -> Any:
            nonlocal clock
            clock += 5e-6
            return access(*words)

        return slowed

    monkeypatch.setattr(board.registers, "read", slow(read))
    monkeypatch.setattr(board.registers, "write", slow(write))
    monkeypatch.setattr(register_protocol, "time", SimpleNamespace(perf_counter=lambda: clock))
    board.registers.until_finish = 20
    ran = driver.run(Code, 8, 1.0)
    assert ran.seconds == pytest.approx((4 + 21) * 5e-6), "four starts, and polls until it is done"


def test_a_limit_shorter_than_that_wait_is_kept(board: Board, program: Callable[[Manifest], Any]) -> None:
    driver = program(PUBLIC)
    board.registers.done = 1
    assert driver.run(Code, 1, 0.0).outcome == "ok"
    board.registers.until_finish = 10**9
    assert driver.run(Code, 1, 0.0).outcome == "timeout"


def test_a_program_that_ended_while_the_board_did_something_else_is_no_timeout(
    board: Board, module: ModuleType, program: Callable[[Manifest], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel takes the processor away for longer than the limit, just after `done` was read as 0."""
    driver = program(PUBLIC)
    seconds = 0.0
    read = board.registers.read

    def slow(offset: int) -> int:
        nonlocal seconds
        seconds += 1.0
        return read(offset)

    monkeypatch.setattr(board.registers, "read", slow)
    monkeypatch.setattr(register_protocol, "time", SimpleNamespace(perf_counter=lambda: seconds))
    board.registers.until_finish = 1
    assert driver.run(Code, 8, 0.01).outcome == "ok"
    assert board.registers.polls == 2
    board.registers.until_finish = 10**9
    assert driver.run(Code, 8, 0.01).outcome == "timeout"


def test_the_clock_is_set_before_the_design_is_loaded(board: Board, program: Callable[[Manifest], Any]) -> None:
    board.divisors = [4, 5]
    program(PUBLIC)
    assert board.did == ["open vta.bit", "slow clock", "clock 100", "download"]
    assert board.fclk_mhz == pytest.approx(100.0)


@pytest.mark.parametrize("old", [(2, 5), (20, 1), (1, 20), (5, 2), (63, 1), (1, 1), (3, 4)])
@pytest.mark.parametrize("wanted_mhz", [100, 50, 250, 1000])
def test_no_clock_on_the_way_is_faster_than_the_old_one_or_the_new_one(
    board: Board, program: Callable[[Manifest], Any], old: tuple[int, int], wanted_mhz: int
) -> None:
    """The design that is loaded runs on while its clock is changed."""
    board.divisors = list(old)
    fastest = max(board.fclk_mhz, float(wanted_mhz))
    program(replace(PUBLIC, clock_hz=wanted_mhz * 1_000_000))
    assert board.fclk_mhz == pytest.approx(wanted_mhz)
    assert max(board.clocks, default=0.0) <= fastest + 1e-9


def test_the_way_to_another_clock_leads_over_the_slowest(board: Board, program: Callable[[Manifest], Any]) -> None:
    board.divisors = [4, 5]
    program(PUBLIC)
    assert min(board.clocks) == pytest.approx(board.pll_mhz / (63 * 63)), "both divisors have 6 bits"


def test_an_old_done_is_believed_after_five_milliseconds(
    board: Board, program: Callable[[Manifest], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = program(PUBLIC)
    beats: list[None] = []
    driver._beat = lambda: beats.append(None)
    clock = iter(range(1000))
    driver._now = lambda: next(clock) / 1024  # nearly a millisecond
    board.registers.done = 1
    ran = driver.run(Code, 1, 1.0)
    assert (ran.outcome, ran.seconds) == ("ok", 1 / 1024)
    assert board.registers.polls == 6 and len(beats) == 5


def test_a_clock_that_is_right_is_not_touched(board: Board, program: Callable[[Manifest], Any]) -> None:
    program(PUBLIC)
    assert board.did == ["open vta.bit", "download"]


def test_a_clock_that_cannot_be_had_loads_nothing(
    board: Board, module: ModuleType, program: Callable[[Manifest], Any]
) -> None:
    """333 MHz of a PLL of 1,500 MHz, as pynq divides on an UltraScale+: 300 or 375."""
    board.pll_mhz = 1500.0
    with pytest.raises(module.ClockError, match="clock is 300 MHz, the manifest says 333 MHz: .* --clock-mhz"):
        program(replace(PUBLIC, clock_hz=333_000_000))
    assert "download" not in board.did


def test_a_design_with_a_pll_of_its_own_gets_the_clock_that_the_pll_needs(
    board: Board, program: Callable[[Manifest], Any]
) -> None:
    entry = find("ultra96")
    assert (entry.fclk_hz, entry.clock_hz) == (100_000_000, 333_000_000)
    board.pll_mhz, board.divisors = 1500.0, [2, 3]
    driver = program(replace(PUBLIC, clock_hz=entry.clock_hz, fclk_hz=entry.fclk_hz))
    assert board.fclk_mhz == pytest.approx(100.0)
    assert driver.manifest.clock_hz == 333_000_000


def test_another_clock_than_a_pll_needs_is_not_offered(
    board: Board, module: ModuleType, program: Callable[[Manifest], Any]
) -> None:
    board.pll_mhz = 260.0
    with pytest.raises(module.ClockError) as caught:
        program(replace(PUBLIC, clock_hz=333_000_000, fclk_hz=100_000_000))
    said = str(caught.value)
    assert said.endswith("clock is 86.6667 MHz, and the design's own PLL needs 100 MHz to make 333 MHz of it")


def test_an_ultrascale_gets_the_port_widths_that_no_hwh_file_tells(
    board: Board, program: Callable[[Manifest], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    program(PUBLIC)
    widths = "C_MAXIGP0_DATA_WIDTH 128 C_SAXIGP0_DATA_WIDTH 128 C_SAXIGP2_DATA_WIDTH 128"
    assert board.did[-2:] == ["download", widths]


def test_a_reload_downloads_the_same_bitstream_object(board: Board, program: Callable[[Manifest], Any]) -> None:
    """pynq writes its file to /lib/firmware once for each object: 4 MB on the card."""
    driver = program(PUBLIC)
    driver.reload()
    driver.soft_reset()
    assert board.did == ["open vta.bit", *["download"] * 3]


def test_a_reload_that_failed_can_be_tried_again(
    board: Board, module: ModuleType, program: Callable[[Manifest], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = program(PUBLIC)
    download, failures = driver._bitstream.download, [OSError(110, "Connection timed out")]

    def first_fails() -> None:
        if failures:
            raise failures.pop()
        download()

    monkeypatch.setattr(driver._bitstream, "download", first_fails)
    with pytest.raises(module.NotLoadedError, match="timed out"):
        driver.soft_reset()
    driver.reload()
    assert driver.manifest == PUBLIC


@pytest.mark.parametrize("why", [FileNotFoundError(2, "No such file", "/gone.bit"), ValueError("no JSON")])
def test_pynqs_note_of_a_missing_bitstream_does_not_block_another(
    why: Exception,
    board: Board,
    module: ModuleType,
    program: Callable[[Manifest], Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """pynq 3.0.1, of the image 3.0.1: the file of the overlay that was loaded last is opened to load the next."""
    noted = True

    def clear() -> None:
        nonlocal noted
        noted = False

    def download(self: Any) -> None:
        if noted:
            raise why
        board.did.append("download")

    notes = SimpleNamespace(global_state_file_exists=lambda: noted, clear_global_state=clear)
    monkeypatch.setitem(sys.modules, "pynq.pl_server.global_state", notes)
    monkeypatch.setattr(module.pynq.Bitstream, "download", download)
    program(PUBLIC)
    assert board.did == ["open vta.bit", "download"]


def test_pynqs_note_of_the_agents_own_bitstream_is_taken_away(
    board: Board, path: Path, program: Callable[[Manifest], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver removes pynq's note of the agent's own bitstream.

    pynq opens the file that it has noted. After removal of ~/.hilt no notebook could load anything.
    """
    noted = [str(path)]
    notes = SimpleNamespace(
        global_state_file_exists=lambda: bool(noted),
        load_global_state=lambda: SimpleNamespace(bitfile_name=noted[0]),
        clear_global_state=noted.clear,
    )
    monkeypatch.setitem(sys.modules, "pynq.pl_server.global_state", notes)
    driver = program(PUBLIC)
    assert noted == []
    noted.append(str(path))
    driver.reload()
    assert noted == []


def test_another_missing_file_is_told(
    board: Board, module: ModuleType, program: Callable[[Manifest], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def download(self: Any) -> None:
        raise FileNotFoundError(2, "No such file or directory", "/lib/firmware/vta.bin")

    monkeypatch.setattr(module.pynq.Bitstream, "download", download)
    with pytest.raises(FileNotFoundError, match="firmware"):
        program(PUBLIC)


def test_a_file_for_another_part_is_not_opened(board: Board, module: ModuleType, path: Path) -> None:
    driver = module.Driver(1.0, lambda: None)
    with pytest.raises(BitfileError, match="xc7z045"):
        driver.program(path, replace(PUBLIC, part="xc7z045ffg900"))
    assert board.did == []


class IdentityRegisters:
    """hilt's own registers of a design as MANIFEST describes it, but for `wrong`."""

    def __init__(self, wrong: dict[int, int]) -> None:
        identity = MANIFEST.identity
        assert identity is not None
        self.values = {
            Register.IDENTITY: registers.IDENTITY_VALUE,
            Register.MAP_VERSION: identity.version,
            Register.GEOMETRY: identity.geometry,
            Register.BUFFER_SIZES: identity.buffer_sizes,
            Register.BUILD: identity.build,
        } | wrong

    def read(self, offset: int) -> int:
        return self.values[offset]


def test_a_design_with_the_manifests_identity_is_loaded(board: Board, program: Callable[[Manifest], Any]) -> None:
    board.registers = IdentityRegisters({})  # type: ignore[assignment]
    assert program(MANIFEST).manifest == MANIFEST


@pytest.mark.parametrize("offset", list(IdentityRegisters({}).values))
def test_a_design_of_another_identity_is_not_used(board: Board, module: ModuleType, path: Path, offset: int) -> None:
    board.registers = IdentityRegisters({offset: 0xBAD})  # type: ignore[assignment]
    driver = module.Driver(1.0, lambda: None)
    with pytest.raises(module.IdentityMismatchError, match=f"^register 0x{offset:02x} reads 0x00000bad, the manifest"):
        driver.program(path, MANIFEST)
    with pytest.raises(module.NotLoadedError):
        _ = driver.manifest


@pytest.mark.parametrize(("clock_hz", "near"), [(101_000_000, True), (99_000_000, True), (101_000_001, False)])
def test_a_clock_within_one_percent_of_the_manifests_is_taken(
    board: Board, module: ModuleType, path: Path, clock_hz: int, near: bool
) -> None:
    """A virtual board reports its clock; there is no generator to set."""
    module.pynq.Device.active_device.clock_hz = clock_hz
    driver = module.Driver(1.0, lambda: None)
    if near:
        driver.program(path, PUBLIC)
    else:
        with pytest.raises(module.ClockError, match="clock is 101 MHz, the manifest says 100 MHz"):
            driver.program(path, PUBLIC)
    assert ("download" in board.did) == near and board.clocks == []


@pytest.mark.parametrize(("scale", "polls"), [(1.0, 8), (2.0, 16)])
def test_a_simulator_may_take_longer_by_its_time_scale(
    board: Board, module: ModuleType, path: Path, scale: float, polls: int
) -> None:
    """The reading after the first one past the limit decides; the limit itself is not past."""
    driver = module.Driver(scale, lambda: None)
    driver.program(path, PUBLIC)
    looks = iter(range(1000))
    driver._now = lambda: next(looks) / 16
    board.registers.until_finish = 10**9
    ran = driver.run(Code, 8, 0.5)
    assert (ran.outcome, ran.reason) == ("timeout", "no FINISH within 0.5 s")
    assert board.registers.polls == polls + 2 and ran.seconds == (polls + 2) / 16


def test_the_virtual_boards_own_clock_times_a_run(board: Board, module: ModuleType, path: Path) -> None:
    looks = iter(range(1000))
    module.pynq.Device.active_device.wall_clock = lambda: 100.0 + next(looks)
    driver = module.Driver(1.0, lambda: None)
    driver.program(path, PUBLIC)
    board.registers.until_finish = 2
    ran = driver.run(Code, 8, 60.0)
    assert (ran.outcome, ran.seconds) == ("ok", 3.0)
