"""The web face: served on 127.0.0.1, to its own page only, and drawn by a browser where there is one."""

from __future__ import annotations

import http.client
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hilt.engine.errors import SettingsError
from hilt.store import UnknownRunError
from hilt.tui.web import serve

from .live import UUID, make_run

pytest.importorskip("textual_serve", reason="the extra `web` is not installed")
_CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    home = tmp_path_factory.mktemp("home")
    make_run(home, trials=9)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        ordinal = free.getsockname()[1]
    code = f"from hilt.tui.web import serve; serve({UUID!r}, {ordinal})"
    environment = os.environ | {"HILT_HOME": str(home)}
    with subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.DEVNULL) as server:
        try:
            deadline = time.monotonic() + 60
            while True:
                try:
                    socket.create_connection(("127.0.0.1", ordinal), 1).close()
                    break
                except OSError:
                    assert server.poll() is None and time.monotonic() < deadline
                    time.sleep(0.1)  # a port cannot be awaited
            yield ordinal
        finally:
            server.terminate()


def status(port: int, path: str, **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    return response.status, response.read().decode()


def test_its_own_page_is_served(port: int) -> None:
    found, text = status(port, "/")
    assert found == 200 and "textual-terminal" in text


@pytest.mark.parametrize(
    "headers",
    [{"Host": "evil.example"}, {"Origin": "https://evil.example"}, {"Origin": "null"}],
)
@pytest.mark.parametrize("path", ["/", "/ws"])
def test_other_pages_are_refused(port: int, path: str, headers: dict[str, str]) -> None:
    assert status(port, path, **headers)[0] == 403


def test_only_this_machine_is_listened_to(port: int) -> None:
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    listening = {line[1] for line in lines if line[3] == "0A" and int(line[1].rpartition(":")[2], 16) == port}
    assert listening == {f"0100007F:{port:04X}"}


def test_no_other_page_may_frame_it_and_it_loads_nothing_from_elsewhere(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/")
    policy = connection.getresponse().headers["Content-Security-Policy"]
    sources = policy.partition("default-src ")[2].partition(";")[0].split()
    assert "frame-ancestors 'none'" in policy
    hosts = {each.partition("://")[2] for each in sources if "://" in each}
    assert hosts == {f"127.0.0.1:{port}", f"localhost:{port}"}


def test_a_port_that_is_taken_is_refused(port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    with pytest.raises(SettingsError, match=f"port {port} cannot be served on .*; --port"):
        serve(None, port)


def test_a_run_that_there_is_not_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    with pytest.raises(UnknownRunError, match="nosuch"):
        serve("nosuch", 8000)


@pytest.mark.parametrize("wrong", [0, 65536])
def test_a_port_that_cannot_be_is_refused(wrong: int) -> None:
    with pytest.raises(SettingsError, match="between 1 and 65535"):
        serve(None, wrong)


@pytest.mark.skipif(_CHROMIUM is None, reason="no Chromium is in PATH (Debian: apt-get install chromium)")
def test_a_browser_draws_it(port: int) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright, of the group `test`, is missing")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=_CHROMIUM, args=["--no-sandbox"], timeout=120_000)
        page = browser.new_page(viewport={"width": 1200, "height": 800})
        page.set_default_timeout(120_000)
        answered: list[str] = []
        page.on("response", lambda response: answered.append(response.url))
        page.goto(f"http://127.0.0.1:{port}/")
        page.wait_for_selector("body.-first-byte", timeout=120_000)  # the terminal has begun to draw
        page.wait_for_selector(".textual-terminal.-connected")
        deadline = time.monotonic() + 120
        while len(page.screenshot()) < 30_000:  # an empty terminal is less than 10,000 bytes, the run's screen 80,000
            assert time.monotonic() < deadline, "the page stays blank"
            page.wait_for_timeout(500)
        assert answered and {url.split("/")[2] for url in answered if "://" in url} == {f"127.0.0.1:{port}"}
        browser.close()
