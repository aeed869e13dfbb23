"""Builds the protobuf code in `uag/` from `protos/`, so that every kind of install has it."""

from importlib.resources import files
from pathlib import Path

from grpc_tools import protoc
from setuptools import setup

ROOT = Path(__file__).parent
PROTOS = ROOT / "protos"


def generate() -> None:
    """Raises SystemExit if protoc refuses a file; protoc itself says why."""
    sources = sorted(str(path.relative_to(PROTOS)) for path in PROTOS.rglob("*.proto"))
    code = protoc.main(
        [
            "protoc",
            f"-I{PROTOS}",
            f"-I{files('grpc_tools') / '_proto'}",
            f"--python_out={ROOT}",
            f"--pyi_out={ROOT}",
            f"--grpc_python_out={ROOT}",
            *sources,
        ]
    )
    if code != 0:
        raise SystemExit(code)


generate()
setup()
