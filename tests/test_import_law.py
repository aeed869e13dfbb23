"""The import law: which part may know which library, and which part."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SERVICES = ("draft_service", "verify_service", "orchestrator")
GRPC = {"grpc", "grpc_health", "grpc_reflection", "grpc_status", "google", "uag"}
TORCH = {"torch", "transformers", "accelerate", "safetensors", "gguf"}
GRPC_FILES = {
    "uag_common/rpc/",
    "draft_service/servicer.py",
    "draft_service/__main__.py",
    "verify_service/servicer.py",
    "verify_service/__main__.py",
    "orchestrator/messages.py",
    "orchestrator/servicer.py",
    "orchestrator/__main__.py",
    "orchestrator/draft_client.py",
    "orchestrator/verify_client.py",
    "orchestrator/peer.py",
    "orchestrator/cli/",
    "orchestrator/client/async_client.py",
    "orchestrator/client/client.py",
    "orchestrator/client/connection.py",
    "orchestrator/client/request.py",
    "orchestrator/client/response.py",
    "orchestrator/client/status.py",
    "orchestrator/client/values.py",
}
COMPOSITION = ("draft_service/__main__.py", "verify_service/__main__.py")


def sources() -> Iterator[tuple[str, Path]]:
    for package in ("uag_common", *SERVICES):
        for path in sorted((ROOT / package).rglob("*.py")):
            yield str(path.relative_to(ROOT)), path


def imported(path: Path) -> set[str]:
    """Full names of the modules that a file imports, anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names.add(node.module)
    return names


def tops(path: Path) -> set[str]:
    return {name.partition(".")[0] for name in imported(path)}


SOURCES = list(sources())


@pytest.mark.parametrize(("name", "path"), SOURCES, ids=[name for name, _ in SOURCES])
def test_each_file_keeps_the_law(name: str, path: Path) -> None:
    package = name.partition("/")[0]
    others = {service for service in SERVICES if service != package}
    assert not tops(path) & others, "services never import each other"
    if not name.startswith("uag_common/engine/"):
        assert not tops(path) & TORCH, "torch stands in uag_common/engine alone"
        if name not in COMPOSITION:
            engine = {module for module in imported(path) if module.startswith("uag_common.engine")}
            assert not engine, "the engine is composed in __main__ alone"
    if not any(name.startswith(allowed) for allowed in GRPC_FILES):
        assert not tops(path) & GRPC, "gRPC and protobuf stand at the edge"


@pytest.mark.parametrize("module", ["orchestrator.__main__", "orchestrator.cli.main"])
def test_the_process_never_loads_torch(module: str) -> None:
    check = (
        f"import importlib, sys; importlib.import_module({module!r}); "
        f"sys.exit(', '.join(sorted(set({sorted(TORCH)!r}) & set(sys.modules))) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", check], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{module} loads {done.stderr}"


def test_each_file_says_what_it_is() -> None:
    missing = [name for name, path in SOURCES if path.read_text() and not _docstring(path)]
    assert not missing


def _docstring(path: Path) -> str | None:
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
