"""The settings that every service has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from uag_common.settings import Settings, setting


@dataclass(frozen=True, kw_only=True)
class ServiceSettings(Settings):
    """Where to listen, when to stop, what to log."""

    listen: str = setting("host:port to listen on; port 0 takes a free one")
    drain_seconds: float = setting(
        "after SIGTERM, seconds that running calls have to finish", default=30.0, minimum=0
    )
    stop_with_parent: bool = setting(
        "true stops the service when its standard input ends, as `uag up` needs it", default=False
    )
    log_level: Literal["debug", "info", "warning", "error"] = setting(
        "what is logged, from this level on", default="info"
    )
    log_format: Literal["json", "text"] = setting(
        "json: one line an event, for machines; text: for people", default="json"
    )
    metrics_listen: str | None = setting(
        "host:port of the page GET /metrics for Prometheus, by HTTP; not set: none", default=None
    )
