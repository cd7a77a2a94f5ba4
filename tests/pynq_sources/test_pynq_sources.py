"""The agent's expectations of pynq, against the released sources of each version that an image has.

The tests are skipped if the sources are not in the cache: `make pynq` fetches them. docs/boards.md has the table of
differences.
"""

from __future__ import annotations

import ast
import re

import pytest

from hilt import paths
from hilt_board.leftovers import FIRMWARE, SOCKETS, frees_buffers

from .sources import FETCH, VERSIONS, Release, source_directory

BOARD = paths.board_package_directory()
EMBEDDED = "pl_server/embedded_device.py"
XRT = "pl_server/xrt_device.py"
STATE = "pl_server/global_state.py"


@pytest.fixture(scope="module", params=VERSIONS)
def release(request: pytest.FixtureRequest) -> Release:
    directory = source_directory(request.param)
    if directory is None:
        pytest.skip(f"pynq {request.param} is not in the cache; `make pynq` fetches it (it sets {FETCH})")
    return Release(request.param, directory)


def attributes_of_pynq() -> set[str]:
    """Return the names that the agent takes from the package: `pynq.X` in its sources."""
    return {
        node.attr
        for path in BOARD.glob("*.py")
        if path.name != "verilated.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "pynq"
    }


def test_the_package_has_every_name_that_the_agent_uses(release: Release) -> None:
    used = attributes_of_pynq()
    assert used >= {"Bitstream", "Clocks", "Device", "MMIO", "allocate"}
    assert used <= release.names("__init__.py")


def test_a_bitstream_is_made_of_a_path_and_downloaded(release: Release) -> None:
    assert release.parameters("bitstream.py", "Bitstream.__init__")[:2] == ["self", "bitfile_name"]
    assert release.parameters("bitstream.py", "Bitstream.download") == ["self", "parser"]
    assert "self.binfile_name = ''" in release.body("bitstream.py", "Bitstream.__init__")


def test_one_bitstream_object_writes_its_firmware_once_and_under_the_name_of_its_file(release: Release) -> None:
    """One bitstream object writes its firmware once, under the name of its file.

    A reload therefore downloads the same object. hilt_board.leftovers removes that file.
    """
    download = release.body(EMBEDDED, "EmbeddedDevice.download")
    assert "if not bitstream.binfile_name:\n        _preload_binfile(" in download
    written = release.body(EMBEDDED, "_preload_binfile")
    assert "Path(bitstream.bitfile_name).stem + '.bin'" in written
    assert f"Path('{FIRMWARE}') / bitstream.binfile_name" in written


def test_registers_are_read_and_written_by_offset(release: Release) -> None:
    assert release.parameters("mmio.py", "MMIO.__init__")[:3] == ["self", "base_addr", "length"]
    assert release.parameters("mmio.py", "MMIO.read")[:2] == ["self", "offset"]
    assert release.parameters("mmio.py", "MMIO.write_reg") == ["self", "offset", "data"]


def test_memory_is_allocated_cached_by_shape_and_type(release: Release) -> None:
    assert release.parameters("buffer.py", "allocate") == ["shape", "dtype", "target", "**kwargs"]
    assert "cacheable" in release.parameters(XRT, "_xrt_allocate")


def test_a_buffer_is_flushed_and_invalidated_as_a_whole_and_says_where_it_is(release: Release) -> None:
    for name in ("flush", "invalidate", "physical_address"):
        assert release.parameters("buffer.py", f"PynqBuffer.{name}") == ["self"]
    assert "self.offset = obj.offset" in release.body("buffer.py", "PynqBuffer.__array_finalize__")


def test_which_pynq_frees_a_buffer_that_nobody_holds(release: Release) -> None:
    """A buffer of its own memory: `pointer` is None. Since 3.1 the memory goes with the last reference to `bo`."""
    ends = release.body("buffer.py", "PynqBuffer.freebuffer")
    freed = "xclFreeBO" in ends or "del self.bo" in ends
    assert "if pointer is not None:\n        weakref.finalize(" in release.body(XRT, "_xrt_allocate")
    assert freed is frees_buffers(release.version)


def test_no_memory_is_one_of_the_errors_that_the_agent_knows(release: Release) -> None:
    raised = release.body(XRT, "XrtDevice.allocate_bo")
    assert set(re.findall(r"raise (\w+)", raised)) <= {"RuntimeError", "MemoryError", "OSError"}
    assert "raise" in raised


def test_a_clock_is_two_divisors_of_six_bits_written_one_after_the_other(release: Release) -> None:
    """A clock is two divisors of six bits, written one after the other.

    The agent therefore passes through the slowest clock (hilt_board.driver).
    """
    names = [node.name for node in release.module("ps.py").body if isinstance(node, ast.ClassDef)]
    base = next(name for name in names if "Base" in name and "DIVISOR0 = div0" in _class(release, name))
    body = release.body("ps.py", f"{base}.set_pl_clk")
    assert body.index("DIVISOR0 = div0") < body.index("DIVISOR1 = div1")
    assert "div0_width = 6" in body and "div1_width = 6" in body
    public = next(name for name in names if name.endswith("Meta"))
    assert release.parameters("ps.py", f"{public}.set_pl_clk")[:4] == ["cls", "clk_idx", "div0", "div1"]
    assert "fclk0_mhz" in _class(release, public)


def _class(release: Release, name: str) -> str:
    return ast.unparse(
        next(node for node in release.module("ps.py").body if isinstance(node, ast.ClassDef) and node.name == name)
    )


def test_port_widths_are_read_of_a_parser_as_the_agents_own_one_has_them(release: Release) -> None:
    body = release.body(EMBEDDED, "EmbeddedDevice.set_axi_port_width")
    assert "parser.ip_dict[parser.ps_name]['parameters']" in body
    assert "parser.family_ps == 'zynq_ultra_ps_e'" in body
    for name in ("C_MAXIGP0_DATA_WIDTH", "C_SAXIGP0_DATA_WIDTH", "C_SAXIGP2_DATA_WIDTH"):
        assert name in release.text(EMBEDDED)


def test_pynq_3_notes_the_last_bitstream_in_a_file_that_the_agent_can_clear(release: Release) -> None:
    if release.version.startswith("2."):
        assert not release.has(STATE)
        return
    for name in ("global_state_file_exists", "load_global_state", "clear_global_state"):
        function = release.function(STATE, name)
        assert len(function.args.args) == len(function.args.defaults), f"{name} is called without arguments"
    assert "bitfile_name: str" in release.text(STATE)
    assert "save_global_state(gs)" in release.body(EMBEDDED, "EmbeddedDevice.gen_cache")


def test_only_pynq_2_starts_a_server_with_a_socket_for_each_process(release: Release) -> None:
    if not release.version.startswith("2."):
        assert not release.has("pl_server/server.py")
        return
    assert f"PL_SERVER_TEMPLATE = '{SOCKETS}/pynq.{{}}.socket'" in release.text("pl_server/server.py")
    assert '"{}.{}".format(tag, os.getpid())' in release.text("pl_server/device.py")


def test_without_xilinx_xrt_no_device_is_found(release: Release) -> None:
    """pynq finds no device without XILINX_XRT.

    The agent therefore sets it (hilt_board.inspection.complete_environment).
    """
    assert "XILINX_XRT" in release.text("pl_server/__init__.py")
