"""The terminal UI in a browser, by textual-serve: each visit is a process of its own that watches, as a terminal is."""

from __future__ import annotations

import shlex
import sys

from hilt import paths
from hilt.engine.errors import SettingsError
from hilt.store import Store, database_path

HOST = "127.0.0.1"
"""Whoever reaches the page steers runs: from elsewhere, through `ssh -L PORT:127.0.0.1:PORT`."""


def serve(identifier: str | None, port: int) -> None:
    """Serves until it is interrupted. Raises SettingsError where textual-serve is missing or for a port that cannot be
    served on, UnknownRunError, StoreError: a visitor would see nothing."""
    if not 1 <= port <= 65535:
        raise SettingsError(f"port is {port}; it must be between 1 and 65535")
    try:
        from aiohttp import web
        from textual_serve.server import Server
    except ImportError:
        raise SettingsError("`hilt tui --web` needs textual-serve: pip install 'hilt[web]'") from None
    with Store(database_path(paths.home())) as store:
        if identifier:
            store.run(identifier)
    hosts = {f"{HOST}:{port}", f"localhost:{port}"}
    policy = _policy(hosts)

    @web.middleware  # type: ignore[untyped-decorator,unused-ignore]
    async def only_from_here(request: web.Request, handler: object) -> web.StreamResponse:
        """Other sites' pages in the same browser must not reach it, whatever name they have for 127.0.0.1."""
        origin = request.headers.get("Origin")
        if request.host not in hosts or (origin is not None and origin.partition("://")[2] not in hosts):
            raise web.HTTPForbidden(text="hilt is served to its own page only")
        response: web.StreamResponse = await handler(request)  # type: ignore[operator]
        if not response.prepared:
            response.headers["Content-Security-Policy"] = policy
        return response

    class LocalServer(Server):  # type: ignore[misc,unused-ignore]
        async def _make_app(self) -> web.Application:
            application: web.Application = await super()._make_app()
            application.middlewares.append(only_from_here)
            return application

    # textual-serve takes a shell's command line: every word of it is quoted.
    words = [sys.executable, "-m", "hilt.tui", *([identifier] if identifier else [])]
    try:
        LocalServer(shlex.join(words), host=HOST, port=port, title="hilt").serve()
    except OSError as error:
        raise SettingsError(f"port {port} cannot be served on ({error.strerror}); --port takes another") from None


def _policy(hosts: set[str]) -> str:
    """No other site's page may frame it, where a click would be ours, and it loads nothing from elsewhere: where that
    cannot be reached, as textual-serve's font from Google, the page would stay blank for as long as it was tried."""
    own = " ".join(f"http://{host} ws://{host}" for host in sorted(hosts))
    return f"default-src {own} data: blob: 'unsafe-inline'; frame-ancestors 'none'"
