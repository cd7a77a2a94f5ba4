"""`python -m hilt.virtual pynq[@NAME]`: a virtual board on the network, for as long as it runs."""

from __future__ import annotations

import argparse
import os
import sys

from hilt.virtual.directory import USER, BoardDirectory
from hilt.virtual.errors import VirtualBoardError
from hilt.virtual.names import chaos_of, parse_virtual_name
from hilt.virtual.supervisor import run_supervisor
from hilt.virtual.supervisor_control import IDLE_SECONDS, SupervisorControl

SWITCHES = {
    "on": SupervisorControl.switch_on,
    "off": SupervisorControl.power_off,
    "cycle": SupervisorControl.power_cycle,
}


def main() -> None:
    arguments = _arguments()
    try:
        board_model, directory = parse_virtual_name(f"virtual:{arguments.board}")
        directory.create()
        directory.write_board_model(board_model.device_settings())
        if chaos := chaos_of(f"virtual:{arguments.board}"):
            directory.write_chaos(chaos)
        if arguments.power:
            with SupervisorControl.hold(directory, board_model) as supervisor:
                SWITCHES[arguments.power](supervisor)
        elif arguments.detach:
            _detach(directory, arguments.idle_seconds, board_model.computer)
        else:
            with SupervisorControl.hold(directory, board_model) as supervisor:
                _show(supervisor)
    except VirtualBoardError as error:
        sys.exit(str(error))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m hilt.virtual", description="A virtual board on the network.")
    parser.add_argument("board", metavar="BOARD_MODEL[@NAME]")
    parser.add_argument("--power", choices=SWITCHES, help="work its power switch, and return when that is done")
    parser.add_argument("--detach", action="store_true", help="return when the supervisor listens; power stays off")
    parser.add_argument("--idle-seconds", type=float, default=IDLE_SECONDS, help="end when nobody held it so long")
    return parser.parse_args()


def _show(supervisor: SupervisorControl) -> None:
    """Switch the board on, print its address and wait for the end of standard input."""
    port = supervisor.power_on().port
    directory = supervisor.directory
    sys.stdout.write(
        f"virtual board {directory.name} is on until end of input (Ctrl-D)\n"
        f"ssh -p {port} -i {directory.client_key} {USER}@127.0.0.1 COMMAND\n"
    )
    sys.stdout.flush()
    sys.stdin.read()


def _detach(directory: BoardDirectory, idle_seconds: float, computer: str) -> None:
    """Run the supervisor in a child that lives on; this process ends well once it listens."""
    reading, writing = os.pipe()
    if os.fork() > 0:
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            if pipe.read() != b"ready":
                sys.exit(f"the supervisor died at its start; see {directory.log}")
        return
    os.close(reading)
    os.setsid()
    _write_to(directory)

    def ready() -> None:
        os.write(writing, b"ready")
        os.close(writing)

    run_supervisor(directory, idle_seconds, ready, computer)
    os._exit(0)


def _write_to(directory: BoardDirectory) -> None:
    """Send standard output and error to the board's log from here on."""
    log = os.open(directory.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for descriptor in (1, 2):
        os.dup2(log, descriptor)
    os.close(log)


if __name__ == "__main__":
    main()
