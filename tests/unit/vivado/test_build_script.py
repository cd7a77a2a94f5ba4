# SPDX-License-Identifier: Apache-2.0
"""hls/vivado under tclsh, with stand-ins that record Vivado's commands: every path, part, parameter and connection."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from hilt import bitstreams, paths
from hilt.simulator import toolchain

HERE = Path(__file__).parent
VIVADO = paths.hls_directory() / "vivado"
RTL = paths.hls_directory() / "rtl"
BOARDS = {
    entry.name.removeprefix("hilt-"): entry.name for entry in bitstreams.load_manifest().values() if entry.identity
}

pytestmark = pytest.mark.skipif(shutil.which("tclsh") is None, reason="tclsh is not installed (package tcl)")


@dataclass(frozen=True)
class Build:
    """The result of a run of build.tcl."""

    process: subprocess.CompletedProcess[str]
    commands: list[tuple[str, ...]]
    folder: Path

    def calls(self, name: str) -> list[tuple[str, ...]]:
        return [command[1:] for command in self.commands if command[0] == name]


def build(
    folder: Path,
    *arguments: str,
    setup: str = "0.125",
    hold: str = "0.031",
    clock: str = "",
    script: str = str(VIVADO / "build.tcl"),
    **stand_ins: str,
) -> Build:
    """Run build.tcl. `stand_ins`: answers of the stand-ins (PULSE, ROUTING_ERRORS, UNCONSTRAINED, CRITICAL)."""
    log = folder / "commands.log"
    entry = bitstreams.find(BOARDS.get(arguments[0] if arguments else "", "hilt-pynq-z2"))
    answers = {
        "PULSE": "0",
        "ROUTING_ERRORS": "0",
        "UNCONSTRAINED": "0",
        "CRITICAL": "0",
        "CLOCK": clock or str(entry.clock_hz),
    }
    process = subprocess.run(
        ["tclsh", str(HERE / "stand_ins.tcl"), str(log), script, *arguments],
        env={
            **os.environ,
            "STAND_IN_SLACK": f"-setup {setup} -hold {hold}",
            **{f"STAND_IN_{name}": value for name, value in (answers | stand_ins).items()},
        },
        capture_output=True,
        text=True,
        timeout=60,
    )
    lines = log.read_text().splitlines() if log.exists() else []
    return Build(process, [tuple(line.split("\t")) for line in lines], folder)


@pytest.fixture(scope="module", params=sorted(BOARDS))
def board(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def built(board: str, tmp_path_factory: pytest.TempPathFactory) -> Build:
    folder = tmp_path_factory.mktemp(board)
    result = build(folder, board, str(folder / "out"))
    assert result.process.returncode == 0, result.process.stderr
    return result


def test_it_ends_in_a_bitstream_and_its_handoff(board: str, built: Build) -> None:
    out = built.folder / "out"
    assert (out / f"{BOARDS[board]}.bit").is_file()
    assert (out / f"{BOARDS[board]}.hwh").is_file()
    assert f"--like {BOARDS[board]}" in built.process.stdout


def test_the_manifest_says_the_same(board: str, built: Build) -> None:
    entry = bitstreams.find(BOARDS[board])
    for call in built.calls("create_project"):
        part = call[call.index("-part") + 1]
        assert part.startswith(entry.part) or part.startswith("xc" + entry.part)
    (registers,) = [call for call in built.calls("assign_bd_address") if "-offset" in call]
    assert int(registers[registers.index("-offset") + 1], 0) == entry.register_base
    properties = " ".join(" ".join(call) for call in built.calls("set_property"))
    clock = re.search(r"(?:FPGA0_PERIPHERAL|PL0_REF_CTRL_)_FREQMHZ ([\d.]+)", properties)
    width = re.search(r"(?:S_AXI_HP0|SAXIGP2_)_DATA_WIDTH (\d+)", properties)
    assert clock is not None
    assert width is not None
    assert round(float(clock[1]) * 1e6) == entry.clock_hz
    assert int(width[1]) == entry.bus_bits
    assert entry.identity


def parameters_of_the_wrapper(built: Build) -> dict[str, int]:
    instance = (built.folder / "out" / "vta.v").read_text().partition("vta_top #(")[2].partition(")\n  ) u_top")[0]
    return {name: int(value) for name, value in re.findall(r"\.(\w+)\((\d+)", instance)}


def test_the_sources_are_the_rtl_with_the_entrys_parameters(board: str, built: Build) -> None:
    (call,) = [call for call in built.calls("add_files") if "vta_pkg" in call[-1]]
    sources = [Path(source) for source in call[-1].split()]
    assert all(source.is_file() for source in sources)
    listed = [line for line in (RTL / "vta.f").read_text().split("\n") if line and not line.startswith("//")]
    headers = sorted(path.name for path in RTL.glob("*.svh"))
    assert [source.name for source in sources] == [*listed, *headers, "vta.v"]
    assert set(listed) == {path.name for path in RTL.glob("*.sv")}
    assert ("file_type", "Verilog Header", "*.svh") in built.calls("set_property")
    wanted = bitstreams.find(BOARDS[board]).accelerator().rtl_parameters()
    assert parameters_of_the_wrapper(built) == wanted | {"InsnQueueDepth": 64}


def buses_of(board: str) -> set[str]:
    """Return the buses of a build: of the load stage's masters those of its read ports."""
    others = [f"weights{port}" for port in range(1, bitstreams.find(BOARDS[board]).read_ports)]
    return {"s_axi", *(f"m_axi_{name}" for name in ("fetch", "load", "compute", "store", *others))}


def test_every_port_of_the_top_is_connected(board: str, built: Build) -> None:
    top = (RTL / "vta_top.sv").read_text()
    ports = top[: top.index(");")]
    found = set(re.findall(r"\b([sm]_axi(?:_(?:fetch|load|compute|weights\d|store))?)_(?:ar|aw|r|w|b)\w+", ports))
    buses = buses_of(board)
    assert found == buses | {f"m_axi_weights{port}" for port in (1, 2, 3)}
    joined = {pin for call in built.calls("get_bd_intf_pins") for pin in call}
    assert {f"vta/{bus}" for bus in buses} <= joined
    pins = {pin for call in built.calls("get_bd_pins") for pin in call}
    assert {"vta/clk", "vta/rst_n"} <= pins
    associated = {call[call.index("-busif") + 1] for call in built.calls("ipx::associate_bus_interfaces")}
    assert associated == buses
    cells = {call[-1] for call in built.calls("create_bd_cell")}
    assert {pin.split("/")[0] for pin in joined | pins} <= cells, "every pin belongs to a cell that was made"


def test_the_pads_of_a_zynq_7000_are_ports(board: str, built: Build) -> None:
    """An UltraScale+'s are not in the netlist."""
    pads = {call[-1] for call in built.calls("make_bd_intf_pins_external")}
    assert pads == ({"ps/DDR", "ps/FIXED_IO"} if board.startswith("pynq") else set())


def test_remaining_signals_are_assigned_after_the_registers(built: Build) -> None:
    """The command without arguments assigns all that is not (UG835): the memory, once the masters are joined to it."""
    names = [command[0] for command in built.commands]
    assert [bool(call) for call in built.calls("assign_bd_address")] == [True, False]
    last_joined = max(place for place, name in enumerate(names) if name == "connect_bd_intf_net")
    assert last_joined < names.index("assign_bd_address") < names.index("validate_bd_design")


@pytest.mark.slow
def test_the_packaged_top_is_verilog_around_the_whole_of_vta_top(built: Build) -> None:
    """UG1118 takes no SystemVerilog top. All warnings are on: a port that is missing or of another width is one."""
    (sources,) = [call[-1].split() for call in built.calls("add_files") if "vta_pkg" in call[-1]]
    modules = [source for source in sources if not source.endswith(".svh")]
    assert ("top", "vta", "") in built.calls("set_property")
    verilator = toolchain.verilator()
    done = subprocess.run(
        [
            *(str(verilator.program), "--lint-only", "-Wall", "--top-module", "vta", "+1364-2001ext+v"),
            *(f"+incdir+{RTL}", str(RTL / "vta_waivers.vlt"), *modules),
        ],
        env=verilator.environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0 and not done.stderr, done.stderr


AXI_SIGNALS = {  # of AXI4, as Vivado's aximm names them
    *("AWADDR", "AWLEN", "AWSIZE", "AWBURST", "AWCACHE", "AWPROT", "AWVALID", "AWREADY"),
    *("WDATA", "WSTRB", "WLAST", "WVALID", "WREADY", "BRESP", "BVALID", "BREADY"),
    *("ARADDR", "ARLEN", "ARSIZE", "ARBURST", "ARCACHE", "ARPROT", "ARVALID", "ARREADY"),
    *("RDATA", "RRESP", "RLAST", "RVALID", "RREADY"),
}
OF_BURSTS = {f"{channel}{signal}" for channel in ("AW", "AR") for signal in ("LEN", "SIZE", "BURST", "CACHE")}


def test_every_bus_is_said_to_be_one(board: str, built: Build) -> None:
    wrapper = (built.folder / "out" / "vta.v").read_text()
    signals: dict[str, set[str]] = {}
    for bus, signal, port in re.findall(
        r'X_INTERFACE_INFO = "xilinx.com:interface:aximm:1.0 (\w+) (\w+)" \*\)\n'
        r"(?:  \(\* X_INTERFACE_PARAMETER .*\n)?  (?:input|output) wire (?:\[\d+:0\] )?(\w+)",
        wrapper,
    ):
        assert port == f"{bus}_{signal.lower()}"
        signals.setdefault(bus, set()).add(signal)
    reads = {signal for signal in AXI_SIGNALS if signal.startswith(("AR", "R"))}
    assert signals == {
        "s_axi": AXI_SIGNALS - OF_BURSTS - {"WLAST", "RLAST", "AWPROT", "ARPROT"},
        **dict.fromkeys(buses_of(board) - {"s_axi", "m_axi_store"}, reads),
        "m_axi_store": AXI_SIGNALS - reads,
    }
    said = dict(re.findall(r'X_INTERFACE_PARAMETER = "XIL_INTERFACENAME (\w+), ([^"]*)"', wrapper))
    assert "ASSOCIATED_RESET rst_n" in said.pop("clk")
    assert "ACTIVE_LOW" in said.pop("rst_n")
    assert said.keys() == signals.keys()
    assert all(f"{'WRITE' if bus == 'm_axi_store' else 'READ'}_ONLY" in said[bus] for bus in signals.keys() - {"s_axi"})


@pytest.mark.parametrize(("kind", "slacks"), [("setup", {"setup": "-0.250"}), ("hold", {"hold": "-0.250"})])
def test_a_missed_timing_leaves_no_bitstream(tmp_path: Path, kind: str, slacks: dict[str, str]) -> None:
    """Not that of an earlier build either."""
    assert build(tmp_path, "pynq-z2", str(tmp_path / "out")).process.returncode == 0
    result = build(tmp_path, "pynq-z2", str(tmp_path / "out"), **slacks)
    assert result.process.returncode != 0
    assert f"{kind} timing is missed by 0.25 ns at 100 MHz" in result.process.stderr
    assert not [*(tmp_path / "out").glob("*.bit"), *(tmp_path / "out").glob("*.hwh")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "usage: build.tcl BOARD FOLDER"),
        (
            ("de10nano", "out"),
            "no board de10nano; boards: pynq-z2 ultra96 zcu104 zcu102 pynq-z2-143 ultra96-2x16 zcu104-1x32 zcu104-2x32 "
            "zcu102-1x32 zcu104-1x32-2p zcu104-2x32-2p "
            "zcu104-2x32-4p zcu102-1x32-2p",
        ),
        (("pynq-z2", "out", "none.json"), "no parameter file none.json"),
    ],
)
def test_bad_arguments_are_one_line(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    result = build(tmp_path, *arguments)
    assert result.process.returncode != 0
    assert message in result.process.stderr.splitlines()[0]
    assert not result.commands


def test_parameters_of_ones_own(tmp_path: Path) -> None:
    shipped = json.loads((paths.bitstreams_directory() / "parameters" / "pynq.json").read_text())
    (tmp_path / "own.json").write_text(json.dumps(shipped | {"LOG_WGT_BUFF_SIZE": 17}))
    result = build(tmp_path, "pynq-z2", str(tmp_path / "out"), str(tmp_path / "own.json"))
    assert result.process.returncode == 0, result.process.stderr
    assert parameters_of_the_wrapper(result)["LogWgtBuffSize"] == 17


def test_a_clock_that_the_pll_does_not_make_is_refused(tmp_path: Path) -> None:
    """The clock that timing is analysed at must be the one that the board is set to."""
    result = build(tmp_path, "zcu104", str(tmp_path / "out"), clock="272725000")
    assert result.process.returncode != 0
    assert "clock ps/pl_clk0 is 272.725 MHz, but 300 MHz was asked for" in result.process.stderr
    assert not result.calls("launch_runs")


@pytest.mark.parametrize("name", ["ultra96", "zcu104", "zcu102"])
def test_the_clock_of_pl0_is_near_enough(name: str, tmp_path: Path) -> None:
    """PL0 of an UltraScale+ makes 299.997 MHz for a request of 300 MHz (a public netlist of the IP has the figure)."""
    result = build(tmp_path, name, str(tmp_path / "out"), clock="299997009")
    assert result.process.returncode == 0, result.process.stderr


@pytest.mark.parametrize(
    ("stand_ins", "message"),
    [
        ({"PULSE": "-0.1"}, "pulse width is missed by 0.1 ns"),
        ({"ROUTING_ERRORS": "3"}, "3 nets with routing errors"),
        ({"UNCONSTRAINED": "7"}, "check_timing: unconstrained_internal_endpoints has 7"),
        ({"CRITICAL": "2"}, "cdc: 2 of severity Critical"),
        ({"PULSE": ""}, "the run has no figure of pulse width"),
    ],
)
def test_a_design_with_a_problem_leaves_no_bitstream(tmp_path: Path, stand_ins: dict[str, str], message: str) -> None:
    result = build(tmp_path, "pynq-z2", str(tmp_path / "out"), **stand_ins)
    assert result.process.returncode != 0
    assert message in result.process.stderr
    assert not list((tmp_path / "out").glob("*.bit"))


def test_every_strategy_is_tried_before_timing_is_given_up(tmp_path: Path) -> None:
    result = build(tmp_path, "pynq-z2", str(tmp_path / "out"), setup="-0.250")
    strategies = [call[1] for call in result.calls("set_property") if call[0] == "strategy"]
    assert len(strategies) == len(set(strategies)) == len(result.calls("launch_runs")) == 3


def test_the_reports_of_every_strategy_are_kept(tmp_path: Path) -> None:
    result = build(tmp_path, "pynq-z2", str(tmp_path / "out"), hold="-0.250")
    strategies = [call[1] for call in result.calls("set_property") if call[0] == "strategy"]
    assert len(strategies) == 3
    for command, file in (("report_timing_summary", "timing.txt"), ("report_drc", "drc.txt"),
                          ("report_cdc", "cdc.txt"), ("report_utilization", "utilization.txt")):  # fmt: skip
        written = [call[-1] for call in result.calls(command)]
        assert {str(tmp_path / "out" / strategy / file) for strategy in strategies} <= set(written)
    assert f"reports of all strategies: {tmp_path / 'out'}" in result.process.stderr


def test_the_accelerator_is_synthesised_alone_first(tmp_path: Path) -> None:
    result = build(tmp_path, "pynq-z2-143", str(tmp_path / "out"))
    names = [command[0] for command in result.commands]
    assert names.index("synth_design") < names.index("ipx::package_project")
    (call,) = result.calls("synth_design")
    flags = ("-top", "vta", "-part", "xc7z020clg400-1", "-mode", "out_of_context", "-include_dirs", str(RTL))
    assert call == flags
    assert {Path(call[-1]).suffix for call in result.calls("read_verilog")} == {".sv", ".v"}
    assert len(result.calls("read_verilog")) == len(list(RTL.glob("*.sv"))) + 1
    (constraints,) = result.calls("read_xdc")
    text = (tmp_path / "out" / "out_of_context" / "clock.xdc").read_text()
    assert constraints[-1].endswith("clock.xdc") and text == "create_clock -name clk -period 7.000 [get_ports clk]\n"


@pytest.mark.parametrize(("setup", "message"), [("-3.0", "misses 100 MHz by 3.0 ns"), ("none", "no timed path")])
def test_a_hopeless_accelerator_ends_before_the_block_design(tmp_path: Path, setup: str, message: str) -> None:
    result = build(tmp_path, "pynq-z2", str(tmp_path / "out"), setup=setup)
    assert result.process.returncode != 0 and message in result.process.stderr
    assert not result.calls("create_bd_design")


def test_timing_without_a_path_is_a_problem(tmp_path: Path) -> None:
    result = build(tmp_path, "pynq-z2", str(tmp_path / "out"), hold="none")
    assert result.process.returncode != 0
    assert "hold timing has no path: nothing is constrained" in result.process.stderr


def test_a_folder_may_have_a_space_and_a_bracket(tmp_path: Path) -> None:
    out = tmp_path / "v s [1]"
    result = build(tmp_path, "pynq-z2", str(out))
    assert result.process.returncode == 0, result.process.stderr
    assert {path.name for path in out.glob("hilt*")} == {"hilt-pynq-z2.bit", "hilt-pynq-z2.hwh"}


@pytest.mark.parametrize(
    ("file", "right", "wrong", "message"),
    [
        ("design.tcl", "CONFIG.NUM_MI 1] $memory", "CONFIG.NUM_MASTERS 1] $memory", "no property CONFIG.NUM_MASTERS"),
        ("build.tcl", "-to_step", "-to_stage", "launch_runs has no option -to_stage"),
        ("verdict.tcl", "report_drc -file", "report_rules -file", 'invalid command name "report_rules"'),
    ],
)
def test_the_stand_ins_refuse_names_that_vivado_has_not(
    tmp_path: Path, file: str, right: str, wrong: str, message: str
) -> None:
    copy = tmp_path / "vivado"
    shutil.copytree(VIVADO, copy)
    (copy.parent / "rtl").symlink_to(RTL)
    text = (copy / file).read_text()
    assert text.count(right) == 1
    (copy / file).write_text(text.replace(right, wrong))
    parameters = paths.bitstreams_directory() / "parameters" / "pynq.json"
    result = build(tmp_path, "pynq-z2", str(tmp_path / "out"), str(parameters), script=str(copy / "build.tcl"))
    assert result.process.returncode != 0 and message in result.process.stderr


def test_each_master_may_have_a_port_of_its_own(tmp_path: Path) -> None:
    copy = tmp_path / "vivado"
    shutil.copytree(VIVADO, copy)
    boards = (copy / "boards.tcl").read_text()
    (copy / "boards.tcl").write_text(boards.replace("memory_ports 1", "memory_ports 4"))
    (copy.parent / "rtl").symlink_to(RTL)
    for board, last in (("pynq-z2", "ps/S_AXI_HP3"), ("zcu104", "ps/S_AXI_HP3_FPD")):
        folder = tmp_path / board
        folder.mkdir()
        parameters = paths.bitstreams_directory() / "parameters" / "pynq.json"
        result = build(folder, board, str(folder / "out"), str(parameters), script=str(copy / "build.tcl"))
        assert result.process.returncode == 0, result.process.stderr
        joined = {pin for call in result.calls("get_bd_intf_pins") for pin in call}
        assert {last, *(f"memory{port}/S00_AXI" for port in range(4))} <= joined


@pytest.mark.parametrize(
    ("board", "ports"),
    [
        ("zcu104-1x32-2p", [["load"], ["fetch", "compute", "weights1", "store"]]),
        ("zcu104-2x32-4p", [["load"], ["fetch", "weights1"], ["compute", "weights2"], ["weights3", "store"]]),
    ],
)
def test_read_ports_are_ports_of_the_memory(tmp_path: Path, board: str, ports: list[list[str]]) -> None:
    result = build(tmp_path, board, str(tmp_path / "out"))
    joined = [tuple(call[-1] for call in pair) for pair in itertools.pairwise(result.calls("get_bd_intf_pins"))]
    places = {
        (f"vta/m_axi_{master}", f"memory{port}/S0{number}_AXI")
        for port, masters in enumerate(ports)
        for number, master in enumerate(masters)
    }
    assert places <= set(joined)
    assert {(f"memory{n}/M00_AXI", f"ps/S_AXI_HP{n}_FPD") for n in range(len(ports))} <= set(joined)


def test_read_ports_need_as_many_memory_ports(tmp_path: Path) -> None:
    copy = tmp_path / "vivado"
    shutil.copytree(VIVADO, copy)
    (copy / "boards.tcl").write_text((copy / "boards.tcl").read_text().replace("memory_ports 2", "memory_ports 1"))
    (copy.parent / "rtl").symlink_to(RTL)
    parameters = paths.bitstreams_directory() / "parameters" / "block32.json"
    script = str(copy / "build.tcl")
    result = build(tmp_path, "zcu104-1x32-2p", str(tmp_path / "out"), str(parameters), script=script)
    assert result.process.returncode != 0
    assert (
        "memory_ports is 1 and read_ports 2: they must be 1 and 1, 4 and 1, 2 and 2, or 4 and 4"
        in result.process.stderr
    )
