"""Services as child processes: started, watched, ended, whatever happens."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import psutil
import pytest

from orchestrator.cli import supervisor as module
from orchestrator.cli.supervisor import Child, ServiceDiedError, ServiceSpec, Supervisor
from tests.cli.processes import ROOT, environment, wait_until
from uag_common.addresses import with_real_port

FAKE = "tests.cli.fake_service"


def fake(behaviour: str) -> ServiceSpec:
    return ServiceSpec(FAKE, "FAKE_", with_real_port("127.0.0.1:0"), {"behaviour": behaviour})


@pytest.fixture
def supervisor() -> Iterator[Supervisor]:
    with Supervisor() as supervisor:
        yield supervisor


def alive(child: Child) -> bool:
    return psutil.pid_exists(child.process.pid)


def test_a_service_is_waited_for_and_ended() -> None:
    with Supervisor() as supervisor:
        child = supervisor.start(fake("serve"))
        supervisor.wait_serving(child)
        assert child.serves()
    assert not alive(child)


def test_a_service_that_cannot_start_tells_its_last_words(supervisor: Supervisor) -> None:
    child = supervisor.start(fake("fail"))
    with pytest.raises(ServiceDiedError) as told:
        supervisor.wait_serving(child)
    assert str(told.value) == f"{FAKE} ended with exit code 1: FAKE_MODEL=x: no such model"


def test_the_death_of_any_service_is_noticed_while_another_is_waited_for() -> None:
    with Supervisor() as supervisor:
        doomed = supervisor.start(fake("die"))
        wait_until(lambda: doomed.process.poll() is not None)
        other = supervisor.start(fake("serve"))
        with pytest.raises(ServiceDiedError, match="ended with exit code 3: out of luck"):
            supervisor.wait_serving(other)
    assert not alive(other)


def test_a_killed_service_is_named_with_its_signal(supervisor: Supervisor) -> None:
    child = supervisor.start(fake("serve"))
    supervisor.wait_serving(child)
    child.process.kill()
    child.process.wait()
    with pytest.raises(ServiceDiedError, match=r"was ended by SIGKILL$"):
        supervisor.check()


def test_a_service_that_does_not_end_is_ended_by_force(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STOP_SECONDS", 0.3)
    with Supervisor() as supervisor:
        child = supervisor.start(fake("stubborn"))
        supervisor.wait_serving(child)
    assert not alive(child)


def test_a_second_interrupt_ends_them_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    supervisor = Supervisor()
    child = supervisor.start(fake("stubborn"))
    supervisor.wait_serving(child)
    wait = Child.wait

    def interrupted(*_: object) -> None:
        monkeypatch.setattr(Child, "wait", wait)
        raise KeyboardInterrupt

    monkeypatch.setattr(Child, "wait", interrupted)
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        supervisor.stop()
    assert time.monotonic() - began < 5
    assert not alive(child)


def test_log_lines_are_passed_on_with_their_service() -> None:
    log = StringIO()
    with Supervisor(log) as supervisor:
        child = supervisor.start(fake("serve"))
        supervisor.wait_serving(child)
    assert log.getvalue() == f"[{FAKE}] serving\n"


def test_a_supervisor_that_is_killed_leaves_no_service(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    code = f"""
import time
from pathlib import Path
from orchestrator.cli.supervisor import Supervisor
from tests.cli.test_supervisor import fake
supervisor = Supervisor()
child = supervisor.start(fake("stubborn"))
supervisor.wait_serving(child)
Path({str(pid_file)!r}).write_text(str(child.process.pid))
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, env=environment()) as parent:
        wait_until(lambda: pid_file.exists() and bool(pid_file.read_text()))
        service = psutil.Process(int(pid_file.read_text()))
        assert service.is_running()
        parent.kill()
    wait_until(lambda: not service.is_running(), seconds=10)
    assert not service.is_running()


def test_settings_win_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_BEHAVIOUR", "from outside")
    monkeypatch.setenv("FAKE_OTHER", "passes through")
    settings = fake("serve").environment()
    assert settings["FAKE_BEHAVIOUR"] == "serve"
    assert settings["FAKE_OTHER"] == "passes through"
    assert settings["FAKE_STOP_WITH_PARENT"] == "true"
