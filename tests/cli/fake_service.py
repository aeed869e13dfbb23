"""A service without a model, as a process: `python -m tests.cli.fake_service`.

Takes FAKE_LISTEN and FAKE_BEHAVIOUR: "serve"; "die" soon after it serves; "fail" at start;
"stubborn": serves and does not listen to SIGTERM.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc


def main() -> None:
    behaviour = os.environ["FAKE_BEHAVIOUR"]
    if behaviour == "fail":
        sys.exit("tests.cli.fake_service: FAKE_MODEL=x: no such model")
    if behaviour == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    server = grpc.server(ThreadPoolExecutor(max_workers=2))
    servicer = health.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    server.add_insecure_port(os.environ["FAKE_LISTEN"])
    servicer.set("", health_pb2.HealthCheckResponse.SERVING)
    server.start()
    sys.stderr.write("serving\n")
    if behaviour == "die":
        threading.Thread(target=_die, daemon=True).start()
    # The end of standard input is the end of the parent.
    sys.stdin.read()
    os._exit(0)


def _die() -> None:
    time.sleep(0.3)
    sys.stderr.write("out of luck\n")
    sys.stderr.flush()
    os._exit(3)


if __name__ == "__main__":
    main()
