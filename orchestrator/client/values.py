"""What value a field of the contract takes, in words."""

from __future__ import annotations

from google.protobuf.descriptor import FieldDescriptor

_WHOLE = {
    FieldDescriptor.CPPTYPE_INT32: (-(1 << 31), (1 << 31) - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(1 << 63), (1 << 63) - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, (1 << 32) - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, (1 << 64) - 1),
}
_OTHERS = {
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
    if field.cpp_type in _WHOLE:
        low, high = _WHOLE[field.cpp_type]
        return f"a whole number from {low} to {high}"
    return _OTHERS[field.cpp_type]
