"""The reference of the contract in Markdown: services, messages, enums, each name a link."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    MethodDescriptorProto,
    ServiceDescriptorProto,
)

from tests.docs.contract import PUBLIC, ContractFile, contract, used_by_clients
from tests.docs.pages import slug, table

# Numbers of fields in descriptor.proto.
_PACKAGE, _MESSAGE, _ENUM, _SERVICE = 2, 4, 5, 6
_FIELD, _ONEOF, _VALUE, _METHOD = 2, 8, 2, 2

_REFERENCES = (FieldDescriptorProto.TYPE_MESSAGE, FieldDescriptorProto.TYPE_ENUM)


def reference() -> str:
    """All packages, the one that clients call first."""
    return "\n".join(part for file in contract() for part in _package(file))


def _package(file: ContractFile) -> Iterator[str]:
    content = file.content
    public = content.package == PUBLIC
    yield f"## {'' if public else 'Internal: '}{content.package}\n"
    yield f"{file.comment(_PACKAGE)}\n"
    if not public:
        yield from _internal(content.package)
    for place, service in enumerate(content.service):
        yield from _service(file, service, place)
    for place, message in enumerate(content.message_type):
        yield from _message(file, message, place)
    for place, enum in enumerate(content.enum_type):
        yield from _enum(file, enum, place)


def _internal(package: str) -> Iterator[str]:
    """Between the services alone; but for what the public messages have in them."""
    used = sorted(name for name in used_by_clients() if name.startswith(f".{package}."))
    if used:
        yield f"Internal, except what public messages hold: {', '.join(map(_link, used))}.\n"
    else:
        yield "Internal: between the orchestrator and its services. No client calls it.\n"


def _service(file: ContractFile, service: ServiceDescriptorProto, place: int) -> Iterator[str]:
    yield _heading(file, service.name)
    yield f"Service. {file.comment(_SERVICE, place)}\n"
    for index, method in enumerate(service.method):
        told = file.comment(_SERVICE, place, _METHOD, index)
        yield f"- {_call(method)}: {told}"
    yield ""


def _call(method: MethodDescriptorProto) -> str:
    takes = "stream of " * method.client_streaming + _link(method.input_type)
    gives = "stream of " * method.server_streaming + _link(method.output_type)
    return f"**{method.name}** ({takes}) gives {gives}"


def _message(file: ContractFile, message: DescriptorProto, place: int) -> Iterator[str]:
    yield _heading(file, message.name)
    if told := file.comment(_MESSAGE, place):
        yield f"{told}\n"
    for index, name in enumerate(_oneofs(message)):
        told = file.comment(_MESSAGE, place, _ONEOF, index)
        members = (field.name for field in message.field if _oneof(message, field) == name)
        yield f"`{name}` is one of {', '.join(f'`{member}`' for member in members)}. {told}".strip()
        yield ""
    rows = [
        (str(field.number), f"`{field.name}`", _type(message, field), told)
        for index, field in enumerate(message.field)
        for told in (file.comment(_MESSAGE, place, _FIELD, index),)
    ]
    yield table(("no.", "field", "type", "meaning"), rows) if rows else "No fields.\n"


def _enum(file: ContractFile, enum: EnumDescriptorProto, place: int) -> Iterator[str]:
    yield _heading(file, enum.name)
    yield f"Enum. {file.comment(_ENUM, place)}".strip() + "\n"
    rows = [
        (str(value.number), f"`{value.name}`", file.comment(_ENUM, place, _VALUE, index))
        for index, value in enumerate(enum.value)
    ]
    yield table(("no.", "value", "meaning"), rows)


def _oneofs(message: DescriptorProto) -> Sequence[str]:
    """Those that stand in the file: an `optional` field is a oneof to the compiler too."""
    hidden = {field.oneof_index for field in message.field if field.proto3_optional}
    return [item.name for index, item in enumerate(message.oneof_decl) if index not in hidden]


def _oneof(message: DescriptorProto, field: FieldDescriptorProto) -> str | None:
    if field.proto3_optional or not field.HasField("oneof_index"):
        return None
    return message.oneof_decl[field.oneof_index].name


def _type(message: DescriptorProto, field: FieldDescriptorProto) -> str:
    for nested in message.nested_type:
        if nested.options.map_entry and field.type_name.endswith(f".{nested.name}"):
            key, value = nested.field
            return f"map of {_bare(key)} to {_bare(value)}"
    if field.label == FieldDescriptorProto.LABEL_REPEATED:
        return f"repeated {_bare(field)}"
    return f"optional {_bare(field)}" if field.proto3_optional else _bare(field)


def _bare(field: FieldDescriptorProto) -> str:
    if field.type in _REFERENCES:
        return _link(field.type_name)
    return FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()


def _heading(file: ContractFile, name: str) -> str:
    return f"### {_title(f'.{file.content.package}.{name}')}\n"


def _link(full_name: str) -> str:
    return f"[{full_name.rpartition('.')[2]}](#{slug(_title(full_name))})"


def _title(full_name: str) -> str:
    """Names of different packages may be the same: all but the public ones stand in full."""
    return full_name.removeprefix(f".{PUBLIC}.").removeprefix(".")
