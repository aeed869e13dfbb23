"""A small HTTP server of one file that can be told to misbehave. Real sockets, no network."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(slots=True)
class Script:
    """`cuts`: bytes of the body to send before the line is cut, one for each request, then none.
    `statuses`: codes to refuse with, one for each request, then none. `ranges`: what was asked.
    """

    content: bytes
    cuts: list[int] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    honours_range: bool = True
    ranges: list[str | None] = field(default_factory=list)


@contextmanager
def serving(script: Script) -> Iterator[str]:
    """Yields the address of the file."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(script))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/file"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(script: Script) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            script.ranges.append(wanted)
            if script.statuses:
                self.send_error(script.statuses.pop(0))
                return
            partial = wanted is not None and script.honours_range
            start = int(str(wanted).removeprefix("bytes=").rstrip("-")) if partial else 0
            self.send_response(206 if partial else 200)
            self.send_header("Content-Length", str(len(script.content) - start))
            self.end_headers()
            end = start + script.cuts.pop(0) if script.cuts else len(script.content)
            self.wfile.write(script.content[start:end])

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    return Handler
