"""The terminal UI in a browser, by textual-serve: each visit is a process of its own that watches, as a terminal is."""

from __future__ import annotations

import logging
import re
import secrets
import shlex
import sys

from hilt import paths
from hilt.engine.errors import SettingsError
from hilt.store import Store, database_path
from hilt.store.identifiers import run_or_campaign

HOST = "127.0.0.1"
"""The page steers runs. It is reached from elsewhere through `ssh -L PORT:127.0.0.1:PORT`."""
_TOKEN_BYTES = 32
_FOREIGN_FONT = re.compile(r"<link[^>]*//fonts\.googleapis\.com[^>]*>")
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
        from aiohttp import web
        from textual_serve.server import Server
    except ImportError:
        raise SettingsError("`hilt tui --web` needs textual-serve: pip install 'hilt[web]'") from None
    with Store(database_path(paths.home())) as store:
        if identifier:
            run_or_campaign(store, identifier)
    hosts = {f"{HOST}:{port}", f"localhost:{port}"}
    policy = _policy(hosts)
    address = f"http://{HOST}:{port}/"
    entrance, cookie = _Entrance(address), secrets.token_urlsafe(_TOKEN_BYTES)
    cookie_name = f"hilt-{port}"

    @web.middleware  # type: ignore[untyped-decorator,unused-ignore]
    async def only_from_here(request: web.Request, handler: object) -> web.StreamResponse:
        """Refuse pages of other sites in the same browser, and clients without the token.

        A page is refused whatever name it has for 127.0.0.1. A client needs the token of the printed address, which
        is good for one exchange, or the cookie that it was exchanged for.
        """
        origin = request.headers.get("Origin")
        if request.host not in hosts or (origin is not None and origin.partition("://")[2] not in hosts):
            raise web.HTTPForbidden(text="hilt is served to its own page only")
        if entrance.take(request.query.get("token", "")):
            print_address("hilt for another browser is at")
            entering = web.HTTPFound(address)
            entering.set_cookie(cookie_name, cookie, httponly=True, samesite="Strict", path="/")
            raise entering
        if not _equal(request.cookies.get(cookie_name, ""), cookie):
            raise web.HTTPForbidden(text="open the address that `hilt tui --web` printed, with its token")
        response: web.StreamResponse = await handler(request)  # type: ignore[operator]
        if not response.prepared:
            response.headers["Content-Security-Policy"] = policy
            if isinstance(response, web.Response) and response.content_type == "text/html":
                response.text = page_of(response.text or "")
        return response

    def print_address(words: str) -> None:
        sys.stdout.write(f"{words} {entrance.address}\n")
        sys.stdout.flush()

    class LocalServer(Server):  # type: ignore[misc,unused-ignore]
        async def _make_app(self) -> web.Application:
            application: web.Application = await super()._make_app()
            application.middlewares.append(only_from_here)
            return application

        async def on_startup(self, app: web.Application) -> None:
            """Print the address, with the token that it takes to enter."""
            print_address("hilt is at")
            self.console.print("Whoever has this address steers your runs. Ctrl-C ends it.", highlight=False)

    # textual-serve takes a shell's command line: every word of it is quoted.
    words = [sys.executable, "-m", "hilt.tui", *([identifier] if identifier else [])]
    logging.getLogger("aiohttp.access").addFilter(_without_tokens)
    try:
        LocalServer(shlex.join(words), host=HOST, port=port, title="hilt").serve()
    except OSError as error:
        raise SettingsError(f"port {port} cannot be served on ({error.strerror}); --port takes another") from None


def page_of(text: str) -> str:
    """Return textual-serve's page without its font of another site, and with 80 columns in a narrow window."""
    return _FOREIGN_FONT.sub("", text).replace("</body>", f"{_FIT}</body>")


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
