"""What value a field of the contract takes, in words."""

from __future__ import annotations

from google.protobuf.descriptor import FieldDescriptor

_WORDS = {
    # What a server takes of these is less, and it tells so itself.
    FieldDescriptor.CPPTYPE_INT32: "a whole number of 32 bits",
    FieldDescriptor.CPPTYPE_INT64: "a whole number of 64 bits",
    FieldDescriptor.CPPTYPE_UINT32: f"a whole number from 0 to {(1 << 32) - 1}",
    FieldDescriptor.CPPTYPE_UINT64: f"a whole number from 0 to {(1 << 64) - 1}",
    FieldDescriptor.CPPTYPE_DOUBLE: "a number",
    FieldDescriptor.CPPTYPE_FLOAT: "a number",
    FieldDescriptor.CPPTYPE_BOOL: "True or False",
    FieldDescriptor.CPPTYPE_STRING: "a text",
}


def wanted(field: FieldDescriptor) -> str:
    """What must stand in the field."""
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        key, value = (_one(entry.fields_by_name[part]) for part in ("key", "value"))
        return f"a mapping; each key {key}, each value {value}"
    return f"a sequence, each {_one(field)}" if field.is_repeated else _one(field)


def _one(field: FieldDescriptor) -> str:
    return _WORDS[field.cpp_type]
