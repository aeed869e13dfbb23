"""The images' build steps carried out in empty environments, and the services started from them as
their entrypoints say: without capabilities, in a folder that cannot be written to.

The orchestrator's image is built from what pip fetches, which takes the network and is `full`. The
models' borrow the packages of this environment: torch is not fetched twice.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.images.build import Image, build
from tests.images.dockerfile import read_image
from tests.services import free_address, wait_for_health

AS_IN_A_CONTAINER = ("setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs")
"""root without capabilities, whom the permissions of files hold for as for anybody."""


@pytest.fixture(scope="module")
def orchestrator() -> Iterator[Image]:
    with tempfile.TemporaryDirectory() as folder:
        yield build("orchestrator", Path(folder))


@pytest.fixture(scope="module")
def lent_packages() -> Iterator[str]:
    """This environment's packages but for UAG itself, which is to come from the built wheel."""
    with tempfile.TemporaryDirectory() as folder:
        for item in Path(sysconfig.get_path("purelib")).iterdir():
            if not item.name.startswith(("uag-", "__editable__", "pip")):
                (Path(folder) / item.name).symlink_to(item)
        yield folder


@pytest.fixture(scope="module")
def model_folder(lent_packages: str) -> Iterator[Path]:
    """What the draft's and the verify image have in common, which is all but a few words."""
    with tempfile.TemporaryDirectory() as folder:
        # Whatever the steps ask for beyond the packages that are here is an error.
        build("model", Path(folder), around={"PYTHONPATH": lent_packages, "PIP_NO_INDEX": "1"})
        yield Path(folder)


@pytest.mark.full
def test_the_orchestrator_stands_by_itself(orchestrator: Image) -> None:
    told = orchestrator.run("python", "-m", "orchestrator", "--help")
    assert "UAG_ORCHESTRATOR_LISTEN" in told.stdout, told.stderr
    assert orchestrator.run("uag", "--version").returncode == 0
    listed = orchestrator.run("uag", "models", "list")
    assert "smollm2-135m-instruct" in listed.stdout, listed.stderr


@pytest.mark.full
@pytest.mark.parametrize("module", ["torch", "transformers", "grpc_tools", "pytest"])
def test_the_orchestrator_holds_nothing_that_it_does_not_need(
    orchestrator: Image, module: str
) -> None:
    done = orchestrator.run("python", "-c", f"import {module}")
    assert f"No module named '{module}'" in done.stderr


@pytest.mark.full
def test_the_orchestrator_lives_and_is_not_ready_without_a_target(orchestrator: Image) -> None:
    listen = free_address()
    settings = {
        "UAG_ORCHESTRATOR_LISTEN": listen,
        "UAG_ORCHESTRATOR_METRICS_LISTEN": free_address(),
        "UAG_ORCHESTRATOR_VERIFY": free_address(),
        "UAG_ORCHESTRATOR_DRAFT": free_address(),
    }
    with _started(orchestrator, settings) as process:
        wait_for_health(listen, "live", serving=True)
        assert orchestrator.run(*orchestrator.health_check, **settings).returncode == 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0
    gone = orchestrator.run(*orchestrator.health_check, **settings)
    assert gone.returncode == 1
    assert gone.stderr.startswith("UNAVAILABLE"), "one line, and no traceback"


@pytest.mark.parametrize("target", ["draft", "verify"])
def test_a_model_service_becomes_ready_as_its_image_starts_it(
    target: str, model_folder: Path, lent_packages: str, llama: Path
) -> None:
    image, prefix = Image(model_folder, read_image(target)), f"UAG_{target.upper()}_"
    settings = {
        "PYTHONPATH": lent_packages,
        f"{prefix}LISTEN": free_address(),
        f"{prefix}METRICS_LISTEN": free_address(),
        f"{prefix}MODEL": str(llama),
        f"{prefix}THREADS": "1",
    }
    with _started(image, settings) as process:
        wait_for_health(settings[f"{prefix}LISTEN"], "ready", serving=True)
        checked = image.run(*image.health_check, **settings)
        assert checked.returncode == 0, checked.stderr
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0


@contextmanager
def _started(image: Image, settings: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """The process of the entrypoint, killed at the end if it is still there."""
    confined = AS_IN_A_CONTAINER if os.geteuid() == 0 else ()
    nowhere = image.root / "nowhere"
    nowhere.mkdir(mode=0o555, exist_ok=True)
    variables = image.variables | settings
    written = subprocess.run(
        [*confined, "touch", nowhere / "file"], check=False, capture_output=True
    )
    assert written.returncode != 0, "the folder can be written to"
    command = [*confined, *image.entrypoint]
    with subprocess.Popen(command, cwd=nowhere, env=variables) as process:
        try:
            yield process
        finally:
            process.kill()
