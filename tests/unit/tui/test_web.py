"""The web face: served on 127.0.0.1, to its own page only, and drawn by a browser if there is one."""

from __future__ import annotations

import http.client
import json
import logging
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import IO

import pytest

from hilt.engine.errors import SettingsError
from hilt.store import UnknownRunError
from hilt.tui.web import _without_tokens, serve

from .live import UUID, make_run

pytest.importorskip("textual_serve", reason="the extra `web` is not installed")
_CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@dataclass
class Served:
    """A server's port, and the token of the address that it printed last."""

    port: int
    token: str
    printed: IO[str]
    errors: IO[str]

    def enter(self) -> Message:
        """Enter with the token, which is then used up, and return the headers."""
        found, _, headers = ask(self.port, f"/?token={self.token}")
        assert found == 302 and headers["Location"] == f"http://127.0.0.1:{self.port}/"
        self.renew()
        return headers

    def renew(self) -> None:
        """Read the next token, after a browser has entered."""
        pattern = re.compile(r"hilt for another browser is at http.*token=(.*)\n")
        while not (found := pattern.fullmatch(self.printed.readline())):
            pass
        self.token = found[1]

    def cookie(self) -> str:
        """Enter and return the cookie."""
        return self.enter()["Set-Cookie"].partition(";")[0]


@pytest.fixture(scope="module")
def port(served: Served) -> int:
    return served.port


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    home = tmp_path_factory.mktemp("home")
    make_run(home, trials=9)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        ordinal = free.getsockname()[1]
    code = f"from hilt.tui.web import serve; serve({UUID!r}, {ordinal})"
    environment = os.environ | {"HILT_HOME": str(home)}
    errors = (home / "errors").open("w+")
    with (
        errors,
        subprocess.Popen(
            [sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as server,
    ):
        try:
            assert server.stdout is not None
            printed = server.stdout.readline()
            token = re.fullmatch(rf"hilt is at http://127\.0\.0\.1:{ordinal}/\?token=([\w-]{{43}})\n", printed)
            assert token, printed
            deadline = time.monotonic() + 60
            while True:
                try:
                    socket.create_connection(("127.0.0.1", ordinal), 1).close()
                    break
                except OSError:
                    assert server.poll() is None and time.monotonic() < deadline
                    time.sleep(0.1)  # a port cannot be awaited
            yield Served(ordinal, token[1], server.stdout, errors)
        finally:
            server.terminate()


def ask(port: int, path: str, **headers: str) -> tuple[int, str, Message]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    return response.status, response.read().decode(), response.headers


def status(port: int, path: str, **headers: str) -> int:
    return ask(port, path, **headers)[0]


def test_its_own_page_is_served(served: Served) -> None:
    found, text, _ = ask(served.port, "/", Cookie=served.cookie())
    assert found == 200 and "textual-terminal" in text


WEBSOCKET = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


@pytest.mark.parametrize("path", ["/", "/ws?width=80&height=24", "/static/js/textual.js", "/download/x", "/nowhere"])
@pytest.mark.parametrize("cookie", [None, "hilt-{port}=", "hilt-{port}=guess", "hilt-1=guess"])
def test_another_user_of_this_machine_gets_nothing_without_the_token(port: int, path: str, cookie: str | None) -> None:
    """A websocket client that sends no Origin, as only browsers must, steered every run and wrote files."""
    headers = {} if cookie is None else {"Cookie": cookie.format(port=port)}
    found, text, answered = ask(port, path, **(WEBSOCKET if path.startswith("/ws") else {}), **headers)
    assert found == 403 and "token" in text
    assert "Set-Cookie" not in answered


_NOBODY = 65534


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another account")
def test_a_second_account_finds_no_token_and_is_refused(served: Served, tmp_path: Path) -> None:
    """Ask as another uid, with all that it can read of the server's process."""
    answers = tmp_path / "answers.json"
    answers.touch()
    answers.chmod(0o666)
    tmp_path.chmod(0o755)
    with answers.open("w") as file:
        child = os.fork()
        if child == 0:
            try:
                os.setgroups([])
                os.setgid(_NOBODY)
                os.setuid(_NOBODY)
                commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline")]
                page, socket_asked = status(served.port, "/"), status(served.port, "/ws", **WEBSOCKET)
                found = any(served.token.encode() in command for command in commands)
                json.dump([os.getuid(), page, socket_asked, found], file)
                file.flush()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
    assert json.loads(answers.read_text()) == [_NOBODY, 403, 403, False]


@pytest.mark.parametrize("token", ["", "guess", "x" * 43])
def test_a_guessed_token_is_none(port: int, token: str) -> None:
    found, _, headers = ask(port, f"/?token={token}")
    assert found == 403 and "Set-Cookie" not in headers


def test_the_websocket_opens_with_the_cookie_of_the_token(served: Served) -> None:
    assert status(served.port, "/ws", **WEBSOCKET) == 403
    with socket.create_connection(("127.0.0.1", served.port), 120) as connection:
        lines = {**WEBSOCKET, "Host": f"127.0.0.1:{served.port}", "Cookie": served.cookie()}
        text = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        connection.sendall(f"GET /ws?width=80&height=24 HTTP/1.1\r\n{text}\r\n".encode())
        assert connection.recv(64).startswith(b"HTTP/1.1 101 ")


def test_a_token_is_good_for_one_exchange_and_no_log_has_it(served: Served) -> None:
    used = served.token
    served.enter()
    assert served.token != used
    assert status(served.port, f"/?token={used}") == 403
    assert status(served.port, "/", Cookie=f"hilt-{served.port}=\xff\xfe") == 403
    served.errors.seek(0)
    assert used not in served.errors.read()


def test_the_access_log_hides_tokens() -> None:
    record = logging.LogRecord("aiohttp.access", logging.INFO, "", 1, '"GET %s HTTP/1.1" 302', ("/?token=abc",), None)
    assert _without_tokens(record) and record.getMessage() == '"GET /?token=... HTTP/1.1" 302'


def test_no_script_of_a_page_reads_the_cookie_and_no_other_site_sends_it(served: Served) -> None:
    headers = served.enter()
    assert "HttpOnly" in headers["Set-Cookie"] and "SameSite=Strict" in headers["Set-Cookie"]
    assert served.token not in headers["Set-Cookie"]


@pytest.mark.parametrize(
    "headers",
    [{"Host": "evil.example"}, {"Origin": "https://evil.example"}, {"Origin": "null"}],
)
@pytest.mark.parametrize("path", ["/", "/ws"])
def test_other_pages_are_refused(served: Served, path: str, headers: dict[str, str]) -> None:
    assert status(served.port, path, **headers) == 403
    assert status(served.port, path, Cookie=served.cookie(), **headers) == 403
    assert status(served.port, f"{path}?token={served.token}", **headers) == 403


def test_only_this_machine_is_listened_to(port: int) -> None:
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    listening = {line[1] for line in lines if line[3] == "0A" and int(line[1].rpartition(":")[2], 16) == port}
    assert listening == {f"0100007F:{port:04X}"}


def test_no_other_page_may_frame_it_and_it_loads_nothing_from_elsewhere(served: Served) -> None:
    port = served.port
    policy = ask(port, "/", Cookie=served.cookie())[2]["Content-Security-Policy"]
    sources = policy.partition("default-src ")[2].partition(";")[0].split()
    assert "frame-ancestors 'none'" in policy
    hosts = {each.partition("://")[2] for each in sources if "://" in each}
    assert hosts == {f"127.0.0.1:{port}", f"localhost:{port}"}


def test_the_page_names_no_other_site_and_fits_80_columns_to_a_narrow_window(served: Served) -> None:
    text = ask(served.port, "/", Cookie=served.cookie())[1]
    assert re.findall(r'(?:src|href)="(?:https?:)?//(?!127\.0\.0\.1|localhost)[^"]*"', text) == []
    assert 'rel="icon" href="data:,"' in text, "a browser asks for /favicon.ico, and its console has an error"
    assert text.index('id="terminal"') < text.index("dataset.fontSize = ") < text.index("</body>")


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
def test_a_browser_draws_it_and_a_phone_gets_80_columns(served: Served) -> None:
    port = served.port
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright, of the group `test`, is missing")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=_CHROMIUM, args=["--no-sandbox"], timeout=120_000)
        page = browser.new_page(viewport={"width": 1200, "height": 800})
        page.set_default_timeout(120_000)
        answered: list[str] = []
        errors: list[str] = []
        page.on("response", lambda response: answered.append(response.url))
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.goto(f"http://127.0.0.1:{port}/?token={served.token}")
        served.renew()
        page.wait_for_selector("body.-first-byte", timeout=120_000)  # the terminal has begun to draw
        page.wait_for_selector(".textual-terminal.-connected")
        deadline = time.monotonic() + 120
        while len(page.screenshot()) < 30_000:  # an empty terminal is less than 10,000 bytes, the run's screen 80,000
            assert time.monotonic() < deadline, "the page stays blank"
            page.wait_for_timeout(500)
        assert answered and {url.split("/")[2] for url in answered if "://" in url} == {f"127.0.0.1:{port}"}
        page.set_viewport_size({"width": 400, "height": 800})
        with page.expect_websocket() as opened:
            page.reload()
        size = re.search(r"width=(\d+)&height=(\d+)", opened.value.url)
        assert size and int(size[1]) >= 80 and int(size[2]) >= 24  # the screens' own tests hold tabs and chart there
        assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
        assert errors == []
        browser.close()


_OPEN_A_SOCKET = """port => new Promise(answer => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/ws?width=80&height=24`);
    socket.onopen = () => answer("open");
    socket.onerror = () => answer("refused");
})"""


@pytest.mark.skipif(_CHROMIUM is None, reason="no Chromium is in PATH (Debian: apt-get install chromium)")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another account")
def test_the_browser_of_a_second_account_is_refused(served: Served, tmp_path: Path) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright, of the group `test`, is missing")
    with tempfile.TemporaryDirectory(dir="/tmp") as profile:  # pytest's own folders are closed to other accounts
        os.chown(profile, _NOBODY, _NOBODY)
        program = tmp_path / "chromium-as-nobody"
        as_nobody = f"setpriv --reuid {_NOBODY} --regid {_NOBODY} --clear-groups"
        program.write_text(f'#!/bin/sh\nexport HOME={profile} TMPDIR={profile}\nexec {as_nobody} {_CHROMIUM} "$@"\n')
        program.chmod(0o755)
        with playwright.sync_playwright() as driver:
            browser = driver.chromium.launch_persistent_context(
                profile, executable_path=program, args=["--no-sandbox"], timeout=120_000
            )
            page = browser.pages[0]
            page.set_default_timeout(120_000)
            assert _owners_of(f"--user-data-dir={profile}") == {_NOBODY}
            for address in ("/", "/?token=guess", "/static/js/textual.js"):
                response = page.goto(f"http://127.0.0.1:{served.port}{address}")
                assert response is not None and response.status == 403
                assert "with its token" in page.inner_text("body")
            assert page.evaluate(_OPEN_A_SOCKET, served.port) == "refused"
            browser.close()


def _owners_of(word: str) -> set[int]:
    """Return the uids of the processes that have the word in their command line."""
    owners = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it ended meanwhile
            if word.encode() in path.read_bytes():
                owners.add(path.stat().st_uid)
    return owners
