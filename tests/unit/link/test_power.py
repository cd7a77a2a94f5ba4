"""Power switches are labgrid's: by configuration, against a relay on the network that is this test's own server."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from hilt.link import power
from hilt.link.board_registry import registered_board
from hilt.link.errors import BoardFileError, PowerError
from hilt.link.power import PowerSwitch

pytest.importorskip("labgrid", reason="labgrid is not installed: pip install 'hilt[power]'")


@pytest.fixture
def relay() -> Iterator[tuple[str, list[str]]]:
    """Return the address of the relay and the list of its requests."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(500 if self.path.startswith("/broken") else 200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    thread.join()
    server.server_close()


def network(host: str) -> dict[str, object]:
    return {
        "resources": {"NetworkPowerPort": {"model": "simplerest", "host": host, "index": "3"}},
        "drivers": {"NetworkPowerDriver": {"delay": 0.0}},
    }


def test_a_network_relay_is_switched(relay: tuple[str, list[str]]) -> None:
    address, asked = relay
    switch = PowerSwitch("desk", network(address + "/relay/{index}/{value}"))
    switch.on()
    switch.off()
    switch.cycle()
    assert asked == ["/relay/3/1", "/relay/3/0", "/relay/3/0", "/relay/3/1"]


def test_a_relay_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of the ladder that waits for ever would end the night; and a switch that was given up while it waited for
    that one is not worked later, when nobody expects it."""
    connections: list[socket.socket] = []

    def wait_from_when_it_asks(futures: list[Future[None]], seconds: float) -> object:
        if not connections:
            connections.append(deaf.accept()[0])
        return wait(futures, seconds)

    with socket.create_server(("127.0.0.1", 0)) as deaf:
        deaf.settimeout(60)
        switch = PowerSwitch("desk", network(f"http://127.0.0.1:{deaf.getsockname()[1]}/{{index}}/{{value}}"))
        monkeypatch.setattr(power, "SECONDS", 0.5)
        monkeypatch.setattr(power, "wait", wait_from_when_it_asks)
        for act in (switch.off, switch.on):
            with pytest.raises(PowerError, match=r"NetworkPowerDriver did not switch power .* within 0.5 s"):
                act()
        first = connections[0]
        assert first.recv(100).startswith(b"GET /3/0 ")
        first.close()  # the first ends with an error
        assert power._LABGRID.acquire(timeout=20)  # the second has waited for it in vain, or comes now
        power._LABGRID.release()
        waiting = [each for each in threading.enumerate() if each.name == "power of desk"]
        for thread in waiting:
            thread.join(20)
        deaf.settimeout(0.0)
        with pytest.raises(BlockingIOError):
            deaf.accept()


def test_two_boards_are_switched_at_once(tmp_path: Path) -> None:
    """labgrid itself is for one thread."""
    log = tmp_path / "log"
    words = {word: f"sh -c 'echo {word} >> {log}; sleep 0.1; echo done >> {log}'" for word in ("on", "off")}
    commands = {f"cmd_{word}": command for word, command in words.items()}
    switches = [PowerSwitch(name, {"drivers": {"ExternalPowerDriver": commands}}) for name in ("desk", "dataset_store")]
    with ThreadPoolExecutor(2) as pool:
        for switched in [pool.submit(switch.on) for switch in switches]:
            switched.result()
    assert log.read_text().split() == ["on", "done"] * 2


def test_a_relay_that_refuses_is_an_error_that_names_it(relay: tuple[str, list[str]]) -> None:
    address, _ = relay
    switch = PowerSwitch("desk", network(address + "/broken/{index}/{value}"))
    with pytest.raises(PowerError, match="board desk: NetworkPowerDriver cannot switch power .off.: 500"):
        switch.off()


def test_a_command_switches(tmp_path: Path) -> None:
    commands = {f"cmd_{action}": f"touch {tmp_path / action}" for action in ("on", "off", "cycle")}
    switch = PowerSwitch("desk", {"drivers": {"ExternalPowerDriver": commands}})
    switch.cycle()
    assert [path.name for path in tmp_path.iterdir()] == ["cycle"]
    failing = PowerSwitch("desk", {"drivers": {"ExternalPowerDriver": {"cmd_on": "false", "cmd_off": "false"}}})
    with pytest.raises(PowerError, match="ExternalPowerDriver cannot switch power .on."):
        failing.on()


@pytest.mark.parametrize(
    "configuration",
    [
        {"drivers": {"NoSuchDriver": {}}},
        {"drivers": {"NetworkPowerDriver": {}}},  # has no port
        {"drivers": {"ExternalPowerDriver": {"cmd_on": "a"}}},
    ],
)
def test_a_refusal_of_labgrid_is_one_line(configuration: dict[str, object]) -> None:
    with pytest.raises(PowerError, match="board desk: labgrid refuses its power configuration"):
        PowerSwitch("desk", configuration)


def test_the_boards_file_says_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    file = tmp_path / "boards.toml"
    head = '[desk]\nhost = "h"\nbitstream = "pynq"\n'
    file.write_text(head + '[desk.power.drivers]\nExternalPowerDriver = { cmd_on = "a", cmd_off = "b" }\n')
    assert registered_board("desk").power == {"drivers": {"ExternalPowerDriver": {"cmd_on": "a", "cmd_off": "b"}}}
    for wrong in ("[desk.power]\n", "[desk.power.driver]\n", '[desk.power.drivers]\nX = "y"\n', "power = 3\n"):
        file.write_text(head + wrong)
        with pytest.raises(BoardFileError, match="power"):
            registered_board("desk")
