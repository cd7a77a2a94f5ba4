"""The board that is a computer: it meets the faults of real boards, and the records are the same.

`make linux` runs all of it. The suite runs only the first tests, where QEMU and the built image are there.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from hilt.link.errors import LinkError
from hilt.store import Trial
from hilt.virtual.board_model import BOARD_MODELS
from hilt.virtual.linux.computer import COMPUTERS
from hilt.virtual.linux.image import built_image
from tests.e2e.conftest import stop_boards
from tests.linux.board import TRIALS, Desk, hilt, tune

ALL = os.environ.get("HILT_LINUX_BOARD") == "1"
NETWORK_GONE_SECONDS = 60.0
FULL_SECONDS = 30.0

nightly = pytest.mark.skipif(not ALL, reason="`make linux` runs it")
pytestmark = [pytest.mark.timeout(1800), pytest.mark.slow]


@pytest.fixture(scope="module", params=[name for name, model in BOARD_MODELS.items() if model.computer])
def desk(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Desk]:
    computer = COMPUTERS[BOARD_MODELS[request.param].computer]
    if shutil.which(computer.emulator) is None:
        pytest.skip(f"no {computer.emulator}: apt-get install qemu-system-arm")
    if built_image(computer) is None:
        pytest.skip(f"the {computer.architecture} image is not built: make linux-board")
    home = tmp_path_factory.mktemp("linux") / "hilt-home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HILT_HOME", str(home))
        yield Desk(home, request.param)
        stop_boards(home)


@pytest.fixture(scope="module")
def undisturbed(desk: Desk) -> list[Trial]:
    began = time.monotonic()
    records, _, said = tune(desk.home, desk.board)
    print(f"\nundisturbed: boot, deployment and {TRIALS} trials in {time.monotonic() - began:.0f} s {said}")
    return records


def test_the_check_goes_from_ssh_to_the_canary(desk: Desk) -> None:
    began = time.monotonic()
    text = hilt("boards", "check", desk.board)
    print(f"\n{text}check: {time.monotonic() - began:.0f} s")
    assert "canary" in text and "Debian GNU/Linux 12" in text
    assert desk.output("dpkg", "--print-architecture").strip() == desk.computer.architecture
    assert desk.output("systemctl", "is-active", "ssh").strip() == "active"


@nightly
def test_its_records_are_those_of_the_model_on_this_machine(desk: Desk, undisturbed: list[Trial]) -> None:
    """Another processor, another compiler, another word size: the same trials and the same cycles."""
    assert len(undisturbed) == TRIALS
    assert sum(each.cycles is not None for each in undisturbed) >= 4
    assert tune(desk.home, f"virtual:{desk.model.parameters}")[0] == undisturbed


def kill_agent(desk: Desk) -> None:
    pid = desk.output("cat", ".hilt/agent.pid").partition('"pid": ')[2].partition("}")[0]
    assert desk.execute("kill", "-9", pid).status == 0


def reboot(desk: Desk) -> None:
    with contextlib.suppress(LinkError):
        desk.execute("reboot", seconds=20.0)


def panic(desk: Desk) -> None:
    desk.put(b"c", "crash")
    with contextlib.suppress(LinkError):
        desk.execute("cp", "/home/xilinx/crash", "/proc/sysrq-trigger", seconds=10.0)
    desk.wait_for_panic()


def freeze(desk: Desk) -> None:
    with desk.monitor() as monitor:
        monitor.freeze()


def cut_network(desk: Desk) -> None:
    with desk.monitor() as monitor:
        monitor.set_network(False)

    def mend() -> None:
        with desk.monitor() as monitor:
            monitor.set_network(True)

    threading.Timer(NETWORK_GONE_SECONDS, mend).start()


def fill_card(desk: Desk) -> None:
    """Leave not a block free, root's reserve included, for half a minute."""
    free = int(desk.output("df", "--output=avail", "-B1", "/").split()[-1])
    assert desk.execute("fallocate", "-l", str(free), "/filled").status == 0
    assert desk.execute("dd", "if=/dev/zero", "of=/filled-too", "bs=64k").status == 1
    assert desk.output("df", "--output=avail", "-B1", "/").split()[-1] == "0"
    threading.Timer(FULL_SECONDS, lambda: desk.execute("rm", "-f", "/filled", "/filled-too")).start()


def set_clock_back(desk: Desk) -> None:
    """To the second of January: Linux sets no time that is less than its uptime."""
    assert desk.execute("date", "-u", "010200001970").status == 0
    assert desk.output("date", "-u", "+%Y").strip() == "1970"


@nightly
@pytest.mark.parametrize(
    "happens",
    [kill_agent, reboot, panic, Desk.cycle_power, freeze, cut_network, fill_card, set_clock_back],
    ids=lambda function: function.__name__,
)
def test_it_recovers_with_the_records_of_an_undisturbed_run(
    desk: Desk, undisturbed: list[Trial], happens: Callable[[Desk], None]
) -> None:
    records, seconds, said = tune(desk.home, desk.board, lambda: happens(desk))
    print(f"\n{happens.__name__}: the run ended {seconds:.0f} s later {said}")
    assert records == undisturbed
