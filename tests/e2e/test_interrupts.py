"""Ctrl-C in each phase of a command: it ends with 130, leaves nothing half-written, and the board is free."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from hilt import paths
from hilt.bitstreams.manifest import load_manifest, user_directory
from hilt.link.errors import BoardBusyError
from hilt.measure.dataset import DatasetStore
from hilt.network import zoo
from hilt.network.board_run import BoardRunner
from hilt.store import Store, database_path
from hilt.vta import isa
from hilt.vta.accelerator import Accelerator, IsaRevision, load_parameters
from hilt.vta.parameters import VTAParameters

from .test_compiled_network import save_quantised

pytestmark = [pytest.mark.ssh, pytest.mark.rtl, pytest.mark.slow]
BOARD = "virtual:pynq"
HILT = (sys.executable, "-c", "from hilt.cli.entry import main; main()")
EXPLORE = ("explore", "resnet8", "--output", "out", "--sweep")
SIM = ("sim", "--params", "pynq", "--image", "sums.bin@0", "--insns", "0:2", "--max-cycles", str(1 << 60))
SIM_WAVES = ("sim", "--params", "small.json", "--isa", "A", "--image", "small.bin@0", "--insns", "0:2", *SIM[-2:])
SMALL = Accelerator(VTAParameters.from_name("1x8_i8w8a32_12_13_14_15"), IsaRevision.A)
"""The accelerator whose waves tests/rtl/test_waves.py reads: its model takes half a minute to compile."""
PUBLISHED = str(Path(__file__).parents[1] / "unit" / "silicon" / "published.jsonl")
SLOWNESS = 3
"""A machine that is busy with others takes so many times as long."""


@pytest.fixture(scope="module")
def files(shared_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    onnx.save(zoo.make("mobilenet_v1"), folder / "float.onnx")
    np.savez(folder / "data.npz", input=zoo.calibration_data("mobilenet_v1", 8))
    save_quantised("ds_cnn", folder / "int8.onnx")
    labelled = {"x": zoo.calibration_data("ds_cnn", 600), "y": np.zeros(600, np.int64)}
    np.savez(folder / "labelled.npz", **labelled)
    (folder / "sweep.toml").write_text("[base]\nparameters = 'pynq'\n[sweep]\nLOG_INP_BUFF_SIZE = [13, 14, 15]\n")
    (folder / "one.toml").write_text("[base]\nparameters = 'pynq'\n[sweep]\nLOG_INP_BUFF_SIZE = [15]\n")
    endless_program(Accelerator.for_parameters(load_parameters("pynq"))).tofile(folder / "sums.bin")
    endless_program(SMALL).tofile(folder / "small.bin")
    (folder / "small.json").write_text(json.dumps(SMALL.parameters.to_mapping()))
    done = subprocess.run([*HILT, "compile", "int8.onnx", "-o", "net.hilt"], cwd=folder, timeout=280)
    assert done.returncode == 0
    return folder


def endless_program(accelerator: Accelerator) -> NDArray[np.uint64]:
    """Return a GEMM of 5 x 10^11 micro-ops and FINISH, as words (2, 2): neither model ends it.

    A program that stalls would not do: the golden model passes any number of cycles of it at once.
    """
    program = np.zeros(2, isa.INSTRUCTION)
    program["opcode"] = isa.Opcode.GEMM, isa.Opcode.FINISH
    gemm = program[:1]
    gemm["reset"], gemm["uop_end"], gemm["iter_out"], gemm["iter_in"] = 1, 2047, 16383, 16383
    return isa.encode(program, accelerator)


class Command:
    """A command of hilt on a terminal of its own."""

    def __init__(self, words: list[str], folder: Path, **variables: str) -> None:
        self._terminal, other = pty.openpty()
        self.text = ""
        self._process = subprocess.Popen(
            [*HILT, *words], cwd=folder, stdin=other, stdout=other, stderr=other,
            start_new_session=True, env={**os.environ, "COLUMNS": "120", "TERM": "xterm", **variables},
        )  # fmt: skip
        os.close(other)

    def read(self) -> bool:
        """Append the available output to `text`; return False at the end."""
        try:
            found = os.read(self._terminal, 65536)
        except OSError:
            return False
        self.text += found.decode(errors="replace")
        return bool(found)

    def wait_for(self, text: str) -> None:
        while text not in self.text:
            assert self.read(), f"ended without {text!r}: {self.text[-500:]}"

    def interrupt(self) -> tuple[int, float]:
        """Return the exit code, and seconds to the end from Ctrl-C, which a terminal sends to all that is below."""
        began = time.monotonic()
        os.killpg(self._process.pid, signal.SIGINT)
        while self.read():
            pass
        status = self._process.wait(60)
        return status, time.monotonic() - began

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        os.close(self._terminal)


@pytest.fixture
def started(files: Path) -> Iterator[Callable[..., Command]]:
    commands: list[Command] = []

    def start(words: list[str], **variables: str) -> Command:
        commands.append(Command(words, files, **variables))
        return commands[-1]

    yield start
    for command in commands:
        command.close()


@pytest.mark.parametrize(
    ("words", "phase", "made"),
    [
        (["quantize", "float.onnx", "--calibration", "data.npz", "-o", "q.onnx"], "reading", "q.onnx"),
        (["quantize", "float.onnx", "--calibration", "data.npz", "-o", "q.onnx"], "quantising:", "q.onnx"),
        (["compile", "int8.onnx", "-o", "c.hilt"], "placing", "c.hilt"),
        (["compile", "int8.onnx", "-o", "c.hilt"], "placing: ", "c.hilt"),
        ([*EXPLORE, "sweep.toml"], "reading", "out/designs.html"),
        ([*EXPLORE, "sweep.toml"], "compiling for: ", "out/designs.html"),
        (["explore", "int8.onnx", "--sweep", "one.toml", "--verify", "1", "--output", "v"], "RTL: 1", "v/designs.html"),
        (["trace", "resnet18.C5", "0", "--perfetto", "t.json"], "timing", "t.json"),
        (["trace", "resnet18.C5", "0", "--waves", "w.fst"], "compiling the RTL", "w.fst"),
        ([*SIM_WAVES, "--waves", "w.fst"], "running 2", "w.fst"),
        ([*SIM, "--dump", "0:16:out.bin"], "running 2", "out.bin"),
        ([*SIM, "--device", "golden", "--dump", "0:16:out.bin"], "running 2", "out.bin"),
        (["bench", "certainty", "--quick", "--output", "bench"], "certainty", "bench/certainty/about.json"),
        (["silicon", "fit", PUBLISHED, "--output", "fit.json"], "fitting", "fit.json"),
        (["silicon", "choose"], "choosing the schedule of layer 1", "nothing"),
    ],
    ids=["quantize", "quantize-search", "compile", "compile-nodes", "explore", "explore-designs", "explore-verify",
         "trace", "trace-waves", "sim-waves", "sim", "sim-golden", "bench", "silicon-fit", "silicon-choose"],
)  # fmt: skip
def test_a_command_without_a_board(
    shared_home: Path,
    started: Callable[..., Command],
    files: Path,
    tmp_path: Path,
    words: list[str],
    phase: str,
    made: str,
) -> None:
    (files / made).unlink(missing_ok=True)  # of another phase, which failed
    fresh = {"HILT_CACHE": str(tmp_path)} if phase == "compiling the RTL" else {}  # other tests compile it too
    command = started(words, **fresh)
    command.wait_for(phase)
    ends(command)
    assert not (files / made).exists()
    assert not list(files.glob(f".{made}*"))


def test_a_dataset(shared_home: Path, started: Callable[..., Command]) -> None:
    before = list(DatasetStore().paths())
    command = started(["dataset", "build", "resnet18.C10", "--orders", "1"])
    command.wait_for("parts")
    ends(command)
    assert list(DatasetStore().paths()) == before


def is_in_use() -> bool:
    try:
        BoardRunner(BOARD).close()
    except BoardBusyError:
        return True
    return False


@pytest.mark.parametrize("phase", ["the input is random", "of 60,000 inferences"], ids=["opens", "infers"])
def test_a_network_on_a_board(shared_home: Path, started: Callable[..., Command], phase: str) -> None:
    command = started(["run", "net.hilt", "--board", BOARD, "--repeat", "60000"])
    command.wait_for(phase)
    ends_and_frees_the_board(command)


@pytest.mark.parametrize(
    ("words", "phase"),
    [
        (["tune", "resnet18.C5", "--board", BOARD, "--tuner", "random", "--trials", "5000"], "opening board"),
        (["tune", "resnet18.C5", "--board", BOARD, "--tuner", "random", "--trials", "5000"], "trials"),
        (["campaign", "int8.onnx", "--board", BOARD, "--budget", "5000"], "trials"),
        (["compile", "int8.onnx", "--board", BOARD, "--measure", "-o", "m.hilt"], "measuring the board's processor"),
        (["eval", "net.hilt", "--board", BOARD, "--data", "labelled.npz"], "images"),
        (["boards", "check", BOARD], "SSH"),
        (["boards", "check", BOARD], "memory"),
        (["boards", "selftest", BOARD, "--minutes", "1"], "step 1"),
        (["boards", "selftest", BOARD, "--minutes", "1"], "step 4"),
    ],
    ids=["tune-opening", "tune", "campaign", "compile-measure", "eval", "check", "check-device", "selftest",
         "selftest-later"],
)  # fmt: skip
def test_a_command_with_a_board(
    shared_home: Path, started: Callable[..., Command], words: list[str], phase: str
) -> None:
    command = started(words)
    command.wait_for(phase)
    ends_and_frees_the_board(command)


@pytest.fixture(scope="module")
def tuned(files: Path) -> str:
    """Return the id of a campaign that was interrupted in the first phases of its last stage."""
    command = Command(["campaign", "int8.onnx", "--board", BOARD, "--budget", "48"], files)
    command.wait_for("fallback bundle")
    ends_and_frees_the_board(command)
    command.close()
    with Store(database_path(paths.home())) as store:
        return store.campaigns()[0].uuid


@pytest.mark.parametrize("phase", [": conv_6", "inferences", "every tensor"])
def test_the_last_stage_of_a_campaign(tuned: str, started: Callable[..., Command], phase: str) -> None:
    """`: conv_6` is the second layer that is measured in the network."""
    command = started(["resume", tuned])
    command.wait_for(phase)
    ends_and_frees_the_board(command)


@pytest.mark.parametrize("words", [["report"], ["compare", "net.hilt"]], ids=["report", "compare"])
@pytest.mark.parametrize("phase", ["reading", "drawing"])
def test_a_page(tuned: str, started: Callable[..., Command], files: Path, words: list[str], phase: str) -> None:
    command = started([*words, tuned, "--html", "page.html"])
    command.wait_for(phase)
    status, seconds = command.interrupt()
    page = files / "page.html"
    assert not page.exists() or page.read_text().rstrip().endswith("</html>"), "half a page is left"
    assert status == 130 or (status == 0 and page.exists()), "a quick page may be whole before Ctrl-C comes"
    assert seconds < 2 * SLOWNESS
    assert "Traceback" not in command.text
    page.unlink(missing_ok=True)


def test_a_download(shared_home: Path, started: Callable[..., Command]) -> None:
    """Interrupt it at a server that takes the connection and never answers."""
    shipped = (paths.bitstreams_directory() / "manifest.toml").read_text(encoding="utf-8")
    own = user_directory() / "manifest.toml"
    own.parent.mkdir(parents=True, exist_ok=True)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        source = f"https://127.0.0.1:{silent.getsockname()[1]}/x.bit"
        own.write_text(re.sub(r"https://[^\"]+", source, shipped), encoding="utf-8")
        name = next(entry.name for entry in load_manifest().values() if entry.source == source)
        command = started(["bitstream", "fetch", name])
        taken, _ = silent.accept()
        with taken:
            ends(command)
    own.unlink()


def ends(command: Command) -> None:
    status, seconds = command.interrupt()
    assert status == 130 and seconds < 2 * SLOWNESS, (status, seconds, command.text[-500:])
    assert "Traceback" not in command.text


def ends_and_frees_the_board(command: Command) -> None:
    ends(command)
    ended = time.monotonic()
    while is_in_use():
        assert time.monotonic() - ended < 2 * SLOWNESS
