"""The terminal UI in a browser, by textual-serve: each visit is a process of its own that watches, as a terminal is."""

from __future__ import annotations

import logging
import re
import secrets
import shlex
import sys
from typing import TYPE_CHECKING

from hilt import paths
from hilt.engine.errors import SettingsError
from hilt.store import Store, database_path
from hilt.store.identifiers import run_or_campaign

if TYPE_CHECKING:
    from aiohttp import web
    from textual_serve.server import Server

HOST = "127.0.0.1"
"""The page steers runs. It is reached from elsewhere through `ssh -L PORT:127.0.0.1:PORT`."""
_TOKEN_BYTES = 32
_FOREIGN_FONT = re.compile(r"<link[^>]*//fonts\.googleapis\.com[^>]*>")
_NO_ICON = '<link rel="icon" href="data:,">'
"""Keeps a browser from asking for /favicon.ico, which is not there, and from an error in its console."""
_FIT = """<script>
  document.getElementById("terminal").dataset.fontSize = Math.max(7, Math.min(16, Math.floor(innerWidth / 50)));
</script>
"""
"""A character is 0.6 of its font's size wide: 80 of them take 48 times the size."""


def serve(identifier: str | None, port: int) -> None:
    """Serve until it is interrupted.

    Raises SettingsError if textual-serve is missing or for a port that cannot be served on. Raises UnknownRunError
    or StoreError, because a visitor would see nothing.
    """
    if not 1 <= port <= 65535:
        raise SettingsError(f"port is {port}; it must be between 1 and 65535")
    try:
        import textual_serve  # noqa: F401
    except ImportError:
        raise SettingsError("`hilt tui --web` needs textual-serve: pip install 'hilt[web]'") from None
    with Store(database_path(paths.home())) as store:
        if identifier:
            run_or_campaign(store, identifier)
    # textual-serve takes a shell's command line: every word of it is quoted.
    words = [sys.executable, "-m", "hilt.tui", *([identifier] if identifier else [])]
    logging.getLogger("aiohttp.access").addFilter(_without_tokens)
    try:
        _server(shlex.join(words), port).serve()
    except OSError as error:
        raise SettingsError(f"port {port} cannot be served on ({error.strerror}); --port takes another") from None


def _server(command: str, port: int) -> Server:
    """Return textual-serve's server of a command, behind a door."""
    from aiohttp import web
    from textual_serve.server import Server

    door = _Door(port)

    @web.middleware  # type: ignore[untyped-decorator,unused-ignore]
    async def only_from_here(request: web.Request, handler: object) -> web.StreamResponse:
        door.admit(request)
        response: web.StreamResponse = await handler(request)  # type: ignore[operator]
        if not response.prepared:
            response.headers["Content-Security-Policy"] = door.policy
            if isinstance(response, web.Response) and response.content_type == "text/html":
                response.text = page_of(response.text or "")
        return response

    class LocalServer(Server):  # type: ignore[misc,unused-ignore]
        async def _make_app(self) -> web.Application:
            application: web.Application = await super()._make_app()
            application.middlewares.append(only_from_here)
            return application

        async def on_startup(self, app: web.Application) -> None:
            """Print the address, with the token that it takes to enter."""
            door.print_address("hilt is at")
            self.console.print("Whoever has this address steers your runs. Ctrl-C ends it.", highlight=False)

    return LocalServer(command, host=HOST, port=port, title="hilt")


class _Door:
    """Admits the requests of hilt's own page in a browser that had the token."""

    def __init__(self, port: int) -> None:
        self._hosts = {f"{HOST}:{port}", f"localhost:{port}"}
        self._address = f"http://{HOST}:{port}/"
        self._entrance = _Entrance(self._address)
        self._cookie_name, self._cookie = f"hilt-{port}", secrets.token_urlsafe(_TOKEN_BYTES)
        self.policy = _policy(self._hosts)

    def admit(self, request: web.Request) -> None:
        """Return for a request that may pass.

        A page of another site in the same browser is refused, whatever name it has for 127.0.0.1. A client needs the
        token of the printed address, which is good for one exchange, or the cookie that it was exchanged for.

        Raises HTTPForbidden, or HTTPFound with the cookie for a client with the token.
        """
        from aiohttp import web

        origin = request.headers.get("Origin")
        if request.host not in self._hosts or (origin is not None and origin.partition("://")[2] not in self._hosts):
            raise web.HTTPForbidden(text="hilt is served to its own page only")
        if self._entrance.take(request.query.get("token", "")):
            self.print_address("hilt for another browser is at")
            entering = web.HTTPFound(self._address)
            entering.set_cookie(self._cookie_name, self._cookie, httponly=True, samesite="Strict", path="/")
            raise entering
        if not _equal(request.cookies.get(self._cookie_name, ""), self._cookie):
            raise web.HTTPForbidden(text="open the address that `hilt tui --web` printed, with its token")

    def print_address(self, words: str) -> None:
        """Print the address with the token of now."""
        sys.stdout.write(f"{words} {self._entrance.address}\n")
        sys.stdout.flush()


def page_of(text: str) -> str:
    """Return textual-serve's page without its font of another site, and with 80 columns in a narrow window."""
    return _FOREIGN_FONT.sub(_NO_ICON, text).replace("</body>", f"{_FIT}</body>")


class _Entrance:
    """The address that lets one browser in; each browser that enters makes a new one."""

    def __init__(self, page: str) -> None:
        self._page = page
        self._token = secrets.token_urlsafe(_TOKEN_BYTES)

    @property
    def address(self) -> str:
        return f"{self._page}?token={self._token}"

    def take(self, given: str) -> bool:
        """Return whether the token is the right one; then it is used up."""
        right = _equal(given, self._token)
        if right:
            self._token = secrets.token_urlsafe(_TOKEN_BYTES)
        return right


def _equal(given: str, secret: str) -> bool:
    """Compare in a time that tells nothing of the secret. `given` may hold bytes that are no text."""
    return secrets.compare_digest(given.encode(errors="backslashreplace"), secret.encode())


def _without_tokens(record: logging.LogRecord) -> bool:
    """Hide tokens in a line of the access log."""
    record.msg, record.args = re.sub(r"token=[^\s&\"]+", "token=...", record.getMessage()), ()
    return True


def _policy(hosts: set[str]) -> str:
    """No other site's page may frame it, where a click would be ours, and it loads nothing from elsewhere.

    Where that cannot be reached, as textual-serve's font from Google, the page would stay blank for as long as it
    was tried.
    """
    own = " ".join(f"http://{host} ws://{host}" for host in sorted(hosts))
    return f"default-src {own} data: blob: 'unsafe-inline'; frame-ancestors 'none'"
