"""The images as the Dockerfile describes them: what they are made of, and how they run."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from draft_service.settings import DraftSettings
from orchestrator.settings import OrchestratorSettings
from tests.images.context import is_ignored, read_patterns
from tests.images.dockerfile import (
    DOCKERFILE,
    ROOT,
    Instruction,
    environment,
    inherited,
    last,
    lineage,
    read_stages,
)
from uag_common.service_settings import ServiceSettings
from uag_common.settings import load, variable_name
from verify_service.settings import VerifySettings

STAGES = read_stages(DOCKERFILE.read_text(encoding="utf-8"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CONSTRAINTS = (ROOT / "constraints.txt").read_text(encoding="utf-8")
TARGETS: dict[str, tuple[str, type[ServiceSettings]]] = {
    "orchestrator": ("orchestrator", OrchestratorSettings),
    "draft": ("draft_service", DraftSettings),
    "verify": ("verify_service", VerifySettings),
}
EVERY_TARGET = pytest.mark.parametrize("target", TARGETS)
GIVEN = {"UAG_DRAFT_MODEL": "any", "UAG_VERIFY_MODEL": "any", "PATH": "/bin"}
"""What a user gives: no image names a model."""
OF_CUDA = re.compile(r"(nvidia|cuda|triton)\b")
"""What a CUDA build of torch brings along, where this environment has one: it pins that itself."""


def image(target: str) -> tuple[Instruction, ...]:
    return inherited(STAGES, target)


def test_hadolint_finds_nothing() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([hadolint, DOCKERFILE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_image_begins_with_a_pinned_one() -> None:
    outside = {stage.base for stage in STAGES.values() if stage.base not in STAGES}
    assert outside
    for base in outside:
        assert re.fullmatch(r"[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}", base), base


def test_the_python_of_the_images_is_one_that_the_project_supports() -> None:
    (tag,) = re.findall(r"python:(\d+\.\d+)", STAGES["base"].base)
    assert f">={tag}" == PROJECT["requires-python"], "the version that the tests run on"


@EVERY_TARGET
def test_an_image_runs_as_nobody_in_particular(target: str) -> None:
    assert last(image(target), "USER").text == "10001:10001"
    created = [item.text for item in image(target) if "useradd" in item.text]
    assert len(created) == 1
    assert "--uid 10001 --gid 10001" in created[0]


@EVERY_TARGET
def test_what_runs_is_a_module_and_not_a_shell(target: str) -> None:
    module, _ = TARGETS[target]
    assert last(image(target), "ENTRYPOINT").words == ["python", "-m", module]
    assert find_spec(f"{module}.__main__") is not None
    assert not [item for item in image(target) if item.keyword in ("CMD", "SHELL")]
    assert last(image(target), "STOPSIGNAL").text == "SIGTERM"


@EVERY_TARGET
def test_the_settings_of_an_image_are_settings_of_its_service(target: str) -> None:
    _, settings_class = TARGETS[target]
    variables = environment(image(target), GIVEN)
    # An unknown variable, or a value that is none, is refused here as it is at a start.
    settings = load(settings_class, variables)
    # Another service's variable would be taken by nobody.
    prefixes = {kind.PREFIX for _, kind in TARGETS.values()} - {settings_class.PREFIX}
    assert not [name for name in variables.keys() - GIVEN if name.startswith(tuple(prefixes))]
    assert settings.listen.startswith("0.0.0.0:"), "loopback is out of reach in a container"


@EVERY_TARGET
def test_the_ports_of_an_image_are_those_that_its_service_listens_on(target: str) -> None:
    _, settings_class = TARGETS[target]
    settings = load(settings_class, environment(image(target), GIVEN))
    usual = load(settings_class, GIVEN)
    assert _port(settings.listen) == _port(usual.listen), "one port, wherever it runs"
    listening = {_port(settings.listen), _port(settings.metrics_listen)}
    assert set(last(image(target), "EXPOSE").text.split()) == listening


@EVERY_TARGET
def test_health_is_asked_where_the_service_listens(target: str) -> None:
    _, settings_class = TARGETS[target]
    check = last(image(target), "HEALTHCHECK")
    script, variable = check.words
    assert variable == variable_name(settings_class, "listen")
    (copied,) = [item for item in image(target) if item.text.endswith(f"/usr/local/bin/{script}")]
    assert "--chmod=755" in copied.flags
    assert copied.document.startswith("#!/opt/uag/bin/python\n")


@EVERY_TARGET
def test_labels_tell_name_and_version(target: str) -> None:
    labels = last(STAGES[target].instructions, "LABEL").text
    assert f'org.opencontainers.image.title="uag-{target}"' in labels
    assert f'org.opencontainers.image.version="{PROJECT["version"]}"' in labels


@EVERY_TARGET
def test_code_comes_after_all_that_it_depends_on(target: str) -> None:
    """So a change of the code alone builds, and pulls, the last small layer alone."""
    runs = [item for item in image(target) if item.keyword == "RUN"]
    code = next(index for index, item in enumerate(runs) if "dist/*.whl" in item.text)
    assert not [item for item in runs[code:] if "-c constraints.txt" in item.text]
    copied = [item for item in image(target) if item.keyword in ("COPY", "ADD")]
    assert all(item.document for item in copied), "only the wheel brings files of the project"


@pytest.mark.parametrize("target", ["draft", "verify"])
def test_the_model_images_are_one_but_for_what_they_start(target: str) -> None:
    """So a machine with both holds torch once."""
    assert STAGES[target].base == "model"
    own = {item.keyword for item in STAGES[target].instructions}
    assert own == {"ENV", "LABEL", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT"}


@pytest.mark.parametrize("target", ["draft", "verify"])
def test_the_model_images_install_the_engine_and_choose_their_torch(target: str) -> None:
    """torch comes first, from the index asked for: it would else come from pip's own."""
    installed = [item.command for item in image(target) if "pip install" in item.command]
    assert [line.split()[-1] for line in installed] == [
        "core.txt",
        "torch",
        "engine.txt",
        "dist/*.whl",
    ]
    assert '--no-deps --index-url "${TORCH_INDEX}"' in installed[1]


def test_the_orchestrator_is_built_without_the_engine() -> None:
    names = [stage.name for stage in lineage(STAGES, "orchestrator")]
    assert names == ["base", "core", "orchestrator"]
    assert not re.search(
        r"torch|engine\.txt", " ".join(item.text for item in image("orchestrator"))
    )


@pytest.mark.parametrize("target", ["draft", "verify"])
def test_models_are_kept_in_a_volume_that_the_service_owns(target: str) -> None:
    variables = environment(image(target), GIVEN)
    folders = {variables["UAG_CACHE"], variables["HF_HOME"]}
    volume = last(image(target), "VOLUME").text
    assert all(folder.startswith(f"{volume}/") for folder in folders)
    made = next(item.text for item in image(target) if "install --directory" in item.text)
    assert {volume, *folders} <= set(made.split())
    assert "--owner=10001 --group=10001" in made


@pytest.mark.parametrize(
    "name",
    [
        "models/weights.safetensors",
        "weights.gguf",
        ".git/config",
        ".venv/bin/python",
        ".env",
        "tests/services.py",
        "deploy/compose.yaml",
        "orchestrator/__pycache__/peer.cpython-311.pyc",
    ],
)
def test_what_is_no_part_of_an_image_stays_out_of_the_build(name: str) -> None:
    assert is_ignored(Path(name), read_patterns(ROOT))


@pytest.mark.parametrize(
    "name", ["setup.py", "protos/uag/model/v1/model.proto", "orchestrator/cli/main.py"]
)
def test_what_an_image_is_made_of_is_there(name: str) -> None:
    assert (ROOT / name).is_file()
    assert not is_ignored(Path(name), read_patterns(ROOT))


@pytest.mark.parametrize("extra", ["", "engine"])
def test_every_package_of_an_image_is_pinned(extra: str) -> None:
    """What pip would install besides would be another version on another day."""
    pinned = {canonicalize_name(name) for name in re.findall(r"^([\w.-]+)==", CONSTRAINTS, re.M)}
    wanted = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"].get(extra, ())]
    assert {name for name in _needed(wanted) if not OF_CUDA.match(name)} <= pinned


def _port(address: str | None) -> str:
    assert address is not None
    return address.rpartition(":")[2]


def _needed(requirements: Iterable[str]) -> Iterator[str]:
    """The packages of these requirements and of theirs, as this environment has them."""
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = [Requirement(line) for line in requirements]
    while waiting:
        found = waiting.pop()
        key = (canonicalize_name(found.name), frozenset(found.extras))
        if key in seen:
            continue
        seen.add(key)
        yield key[0]
        for line in distribution(found.name).requires or ():
            needed = Requirement(line)
            extras = found.extras or {""}
            if needed.marker is None or any(
                needed.marker.evaluate({"extra": extra}) for extra in extras
            ):
                waiting.append(needed)
