"""The protos as their compiler reads them, with the comments. Knows no page."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet
from grpc_tools import protoc  # type: ignore[import-untyped]

from tests.docs.pages import ROOT

PROTOS = ROOT / "protos"
PUBLIC = "uag.orchestrator.v1"
_INTERNAL = ("uag.model.v1", "uag.draft.v1", "uag.verify.v1")
_FOR_THE_LINTER = "buf:lint:"

Place = tuple[int, ...]
"""Where a thing stands in a file: numbers of fields of descriptor.proto, and indices."""


@dataclass(frozen=True, slots=True)
class ContractFile:
    """A file of the contract, and what its comments say of each place."""

    content: FileDescriptorProto
    comments: Mapping[Place, str]

    def comment(self, *place: int) -> str:
        """In one line; empty if there is none."""
        return self.comments.get(place, "")


def contract() -> tuple[ContractFile, ...]:
    """What clients call first."""
    by_package = {file.package: file for file in _compiled().file}
    unknown = by_package.keys() - {PUBLIC, *_INTERNAL}
    if unknown:
        raise ValueError(f"say here whether clients call {', '.join(sorted(unknown))}")
    packages = (by_package[name] for name in (PUBLIC, *_INTERNAL))
    return tuple(ContractFile(file, _comments(file)) for file in packages)


def used_by_clients() -> frozenset[str]:
    """Full names of the messages and enums of other packages that the public one has in it."""
    messages = {
        f".{file.package}.{item.name}": item
        for file in _compiled().file
        for item in file.message_type
    }
    waiting = [name for name in messages if name.startswith(f".{PUBLIC}.")]
    found = set(waiting)
    while waiting:
        for name in _references(messages[waiting.pop()]) - found:
            found.add(name)
            waiting.extend([name] if name in messages else [])
    return frozenset(name for name in found if not name.startswith(f".{PUBLIC}."))


def _references(message: DescriptorProto) -> set[str]:
    nested = {name for item in message.nested_type for name in _references(item)}
    return nested | {
        field.type_name
        for field in message.field
        if field.type_name and not field.type_name.endswith("Entry")
    }


@cache
def _compiled() -> FileDescriptorSet:
    sources = sorted(str(path.relative_to(PROTOS)) for path in PROTOS.rglob("*.proto"))
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "contract.bin"
        code = protoc.main(
            [
                "protoc",
                f"-I{PROTOS}",
                f"-I{files('grpc_tools') / '_proto'}",
                f"--descriptor_set_out={out}",
                "--include_source_info",
                *sources,
            ]
        )
        if code != 0:
            raise ValueError("protoc refuses the contract; it has said why")
        return FileDescriptorSet.FromString(out.read_bytes())


def _comments(file: FileDescriptorProto) -> dict[Place, str]:
    return {
        tuple(location.path): told
        for location in file.source_code_info.location
        if (told := _one_line(location.leading_comments))
    }


def _one_line(comment: str) -> str:
    lines = (line.strip() for line in comment.splitlines())
    return " ".join(line for line in lines if line and not line.startswith(_FOR_THE_LINTER))
