"""Compiles a layout of fields to a Python reader and a Python writer.

One function per struct; neighbouring numbers are one `struct` call. Source of the encoding:
Kafka's protocol guide; org.apache.kafka.message.MessageDataGenerator for tagged fields and
nullable structs.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

Reader = Callable[[bytes, int], tuple[dict[str, Any], int]]
Writer = Callable[[bytearray, Mapping[str, Any]], None]

ZERO_UUID = "A" * 22
TAGGED = "_tagged"
"""The key of tagged fields that the schema does not know: tag -> bytes."""

_NUMBERS = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
}


@dataclass(frozen=True, slots=True)
class WireField:
    """A field as one version has it on the wire."""

    name: str
    type: str
    """The elementary type, or `struct`; of an array that of its elements."""
    array: bool
    nullable: bool
    flexible: bool
    tag: int | None
    default: object
    struct: Struct | None

    @property
    def number(self) -> str | None:
        """The format letter of a plain number that cannot be absent."""
        return None if self.array else _NUMBERS.get(self.type)


@dataclass(frozen=True, slots=True)
class Struct:
    """The fields of a struct in their order on the wire."""

    fields: tuple[WireField, ...]
    flexible: bool

    @classmethod
    def of(cls, definition: Mapping[str, Any], version: int, *, flexible: bool) -> Struct:
        """The layout of a message's schema in one version."""
        common = {entry["name"]: entry for entry in definition.get("commonStructs", ())}
        return _struct(definition.get("fields", []), common, version, flexible)

    @property
    def plain(self) -> tuple[WireField, ...]:
        """The fields that are always sent, in the schema's order."""
        return tuple(entry for entry in self.fields if entry.tag is None)

    @property
    def tagged(self) -> tuple[WireField, ...]:
        """The tagged fields, by tag."""
        fields = [entry for entry in self.fields if entry.tag is not None]
        return tuple(sorted(fields, key=lambda entry: entry.tag or 0))

    def defaults(self) -> dict[str, Any]:
        """The value with every field at its default."""
        return {entry.name: entry.default for entry in self.fields}


def _within(text: str | None, version: int) -> bool:
    if text is None or text == "none":
        return False
    low, dash, high = text.rstrip("+").partition("-")
    if version < int(low):
        return False
    return text.endswith("+") or version <= int(high if dash else low)


def _present(entry: Mapping[str, Any]) -> str | None:
    """The versions that have the field: by default those in which it is tagged."""
    versions: str | None = entry.get("versions", entry.get("taggedVersions"))
    return versions


def _struct(
    fields: list[dict[str, Any]], common: Mapping[str, Any], version: int, flexible: bool
) -> Struct:
    present = [entry for entry in fields if _within(_present(entry), version)]
    return Struct(tuple(_field(entry, common, version, flexible) for entry in present), flexible)


def _field(
    entry: Mapping[str, Any], common: Mapping[str, Any], version: int, flexible: bool
) -> WireField:
    kind: str = entry["type"]
    array = kind.startswith("[]")
    kind = kind.removeprefix("[]")
    inner = None
    if kind[0].isupper():
        inner_fields = entry.get("fields") or common[kind]["fields"]
        inner = _struct(inner_fields, common, version, flexible)
        kind = "struct"
    own = entry.get("flexibleVersions")
    tagged = _within(entry.get("taggedVersions"), version)
    nullable = _within(entry.get("nullableVersions"), version)
    return WireField(
        name=camel(entry["name"]),
        type=kind,
        array=array,
        nullable=nullable,
        flexible=flexible if own is None else _within(own, version),
        tag=int(entry["tag"]) if tagged else None,
        default=_default(kind, array, inner, entry.get("default")),
        struct=inner,
    )


def camel(name: str) -> str:
    """`TopicId` is `topicId`, as in Kafka's JSON form."""
    return name[0].lower() + name[1:]


def _default(kind: str, array: bool, inner: Struct | None, given: Any) -> object:
    if given == "null":
        return None
    if array:
        return []
    if inner is not None:
        return inner.defaults()
    if kind == "bool":
        return str(given).lower() == "true"
    if kind == "float64":
        return float(given or 0)
    if kind in _NUMBERS:
        return int(given, 0) if isinstance(given, str) and given else int(given or 0)
    return {"string": given or "", "uuid": given or ZERO_UUID}.get(kind, b"")


def read_unsigned_varint(data: bytes, position: int) -> tuple[int, int]:
    """The number at `position` and the position behind it. At most 32 bits."""
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift > 28:
            raise ValueError("a varint of more than 32 bits")


def append_unsigned_varint(out: bytearray, value: int) -> None:
    """Append a number that is not negative."""
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def uuid_text(data: bytes) -> str:
    """Kafka's form of a uuid: 22 letters of URL-safe base 64."""
    if len(data) != 16:
        raise ValueError("a uuid is cut off")
    return base64.urlsafe_b64encode(data)[:22].decode("ascii")


def uuid_bytes(text: str) -> bytes:
    """The 16 bytes of `uuid_text`'s form."""
    data = base64.urlsafe_b64decode(text + "==")
    if len(data) != 16:
        raise ValueError(f"{text!r} is no uuid of 22 letters")
    return data


def _absent() -> object:
    raise ValueError("null where the schema allows none")


def _negative(count: int) -> object:
    raise ValueError(f"a length of {count}")


def _unknown(given: Mapping[str, Any], known: frozenset[str]) -> None:
    further = given.keys() - known - {TAGGED}
    if further:
        raise ValueError(f"it has no field {', '.join(sorted(further))}")


def _environment() -> dict[str, Any]:
    return {
        "Struct": struct.Struct,
        "absent": _absent,
        "append_uv": append_unsigned_varint,
        "negative": _negative,
        "pack": struct.pack,
        "read_uv": read_unsigned_varint,
        "unknown": _unknown,
        "unpack_from": struct.unpack_from,
        "uuid_bytes": uuid_bytes,
        "uuid_text": uuid_text,
    }


class _Source:
    """Lines of a module with one function per struct, inner ones first."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[int, str] = {}
        self.environment = _environment()

    def constant(self, value: object) -> str:
        name = f"k{len(self.environment)}"
        self.environment[name] = value
        return name

    def function(self, layout: Struct, body: Callable[[Struct], Iterator[str]], head: str) -> str:
        if id(layout) not in self.names:
            lines = list(body(layout))
            name = f"f{len(self.names)}"
            self.names[id(layout)] = name
            self.lines += [f"def {name}({head}):", *(f"    {line}" for line in lines)]
        return self.names[id(layout)]

    def compiled(self, name: str) -> Any:
        exec(compile("\n".join(self.lines), "<kafka schema>", "exec"), self.environment)
        return self.environment[name]


def _indented(lines: Iterator[str], by: int = 1) -> Iterator[str]:
    for line in lines:
        yield "    " * by + line


def _runs(fields: tuple[WireField, ...]) -> Iterator[tuple[str, list[WireField]]]:
    """Neighbouring numbers together (with their format), every other field by itself."""
    for is_number, group in groupby(fields, key=lambda entry: entry.number is not None):
        members = list(group)
        if is_number:
            yield ">" + "".join(entry.number or "" for entry in members), members
        else:
            yield from (("", [entry]) for entry in members)


def compile_reader(layout: Struct) -> Reader:
    """The reader of a layout. It may raise IndexError, struct.error or ValueError on bad bytes."""
    source = _Source()
    reader: Reader = source.compiled(_reader(source, layout))
    return reader


def _reader(source: _Source, layout: Struct) -> str:
    return source.function(layout, lambda inner: _read_struct(source, inner), "b, p")


def _read_struct(source: _Source, layout: Struct) -> Iterator[str]:
    names = {entry.name: f"v{index}" for index, entry in enumerate(layout.fields)}
    for numbers, members in _runs(layout.plain):
        if numbers:
            unpack = source.constant(struct.Struct(numbers).unpack_from)
            yield f"{', '.join(names[entry.name] for entry in members)}, = {unpack}(b, p)"
            yield f"p += {struct.calcsize(numbers)}"
        else:
            yield from _read_field(source, members[0], names[members[0].name])
    result = "{" + ", ".join(f"{name!r}: {local}" for name, local in names.items()) + "}"
    if not layout.flexible:
        yield f"return {result}, p"
        return
    for entry in layout.tagged:
        yield f"{names[entry.name]} = {entry.default!r}"  # made again: the caller may change it
    yield "n = b[p]; p += 1"
    yield "if n:"
    yield from _indented(_read_tagged(source, layout, names, result))
    yield f"return {result}, p"


def _read_tagged(
    source: _Source, layout: Struct, names: Mapping[str, str], result: str
) -> Iterator[str]:
    yield "if n > 127: n, p = read_uv(b, p - 1)"
    yield "further = {}"
    yield "for _ in range(n):"
    yield "    tag, p = read_uv(b, p)"
    yield "    size, p = read_uv(b, p)"
    yield "    end = p + size"
    yield "    if end > len(b): negative(size)"
    for entry in layout.tagged:
        yield f"    if tag == {entry.tag}:"
        yield from _indented(_read_field(source, entry, names[entry.name]), 2)
        yield "        if p != end: negative(size)"
        yield "        continue"
    yield "    further[tag] = b[p:end]; p = end"
    yield f"if further: return {{**{result}, {TAGGED!r}: further}}, p"


def _read_field(source: _Source, entry: WireField, name: str) -> Iterator[str]:
    if entry.array:
        yield from _read_array(source, entry, name)
    elif entry.struct is not None:
        yield from _read_inner(source, entry, name)
    elif entry.number:
        yield f"{name}, = unpack_from('>{entry.number}', b, p); p += {_size(entry)}"
    elif entry.type == "uuid":
        yield f"{name} = uuid_text(b[p:p + 16]); p += 16"
    else:
        yield from _read_length(entry, wide=entry.type != "string")
        yield f"if n < 0: {name} = None" if entry.nullable else "if n < 0: absent()"
        yield "else:"
        yield "    e = p + n"
        yield "    if e > len(b): negative(n)"
        yield f"    {name} = b[p:e]{'.decode()' if entry.type == 'string' else ''}"
        yield "    p = e"


def _size(entry: WireField) -> int:
    return struct.calcsize(">" + _NUMBERS[entry.type])


def _read_length(entry: WireField, *, wide: bool) -> Iterator[str]:
    """Set n to the length, -1 for null."""
    if entry.flexible:
        yield "n = b[p]; p += 1"
        yield "if n > 127: n, p = read_uv(b, p - 1)"
        yield "n -= 1"
    else:
        size, letter = (4, "i") if wide else (2, "h")
        yield f"n, = unpack_from('>{letter}', b, p); p += {size}"
        yield "if n < -1: negative(n)"


def _read_inner(source: _Source, entry: WireField, name: str) -> Iterator[str]:
    assert entry.struct is not None
    call = f"{name}, p = {_reader(source, entry.struct)}(b, p)"
    if not entry.nullable:
        yield call
        return
    # Tagged, it has an unsigned varint in front: 0 for null, 1 for a value.
    yield "n, = unpack_from('>b', b, p); p += 1"
    yield f"if n < {0 if entry.tag is None else 1}: {name} = None"
    yield f"else: {call}"


def _read_array(source: _Source, entry: WireField, name: str) -> Iterator[str]:
    yield from _read_length(entry, wide=True)
    yield f"if n < 0: {name} = None" if entry.nullable else "if n < 0: absent()"
    yield "else:"
    if entry.type in _NUMBERS:
        yield f"    {name} = list(unpack_from(f'>{{n}}{_NUMBERS[entry.type]}', b, p))"
        yield f"    p += n * {_size(entry)}"
        return
    yield "    if n > len(b): negative(n)"  # each element has a byte at least
    yield f"    {name} = l = []"
    if entry.struct is not None:
        yield f"    for _ in range(n): v, p = {_reader(source, entry.struct)}(b, p); l.append(v)"
        return
    yield "    for _ in range(n):"
    yield from _indented(_read_field(source, _element(entry), "v"), 2)
    yield "        l.append(v)"


def _element(entry: WireField) -> WireField:
    """An array's element as a field of its own; none of Kafka's arrays has null elements."""
    return WireField("", entry.type, False, False, entry.flexible, None, None, entry.struct)


def compile_writer(layout: Struct) -> Writer:
    """The writer of a layout. It may raise struct.error, TypeError or ValueError on bad values."""
    source = _Source()
    writer: Writer = source.compiled(_writer(source, layout))
    return writer


def _writer(source: _Source, layout: Struct) -> str:
    return source.function(layout, lambda inner: _write_struct(source, inner), "o, d")


def _write_struct(source: _Source, layout: Struct) -> Iterator[str]:
    known = source.constant(frozenset(entry.name for entry in layout.fields))
    yield f"if not d.keys() <= {known}: unknown(d, {known})"
    for numbers, members in _runs(layout.plain):
        if numbers:
            pack = source.constant(struct.Struct(numbers).pack)
            values = ", ".join(f"d.get({m.name!r}, {m.default!r})" for m in members)
            yield f"o += {pack}({values})"
        else:
            yield from _write_field(source, members[0], _given(source, members[0]))
    if not layout.flexible:
        yield "return"
        return
    yield "t = {}"
    for entry in layout.tagged:
        default = source.constant(entry.default)
        yield f"x = d.get({entry.name!r}, {default})"
        yield f"if x != {default}:"
        yield "    outer, o = o, bytearray()"
        yield from _indented(_write_field(source, entry, "x"))
        yield f"    t[{entry.tag}] = o; o = outer"
    yield f"t.update(d.get({TAGGED!r}, {{}}))"
    yield "append_uv(o, len(t))"
    yield "for tag in sorted(t):"
    yield "    append_uv(o, tag); append_uv(o, len(t[tag])); o += t[tag]"


def _given(source: _Source, entry: WireField) -> str:
    return f"d.get({entry.name!r}, {source.constant(entry.default)})"


def _write_field(source: _Source, entry: WireField, value: str) -> Iterator[str]:
    if entry.array:
        yield from _write_array(source, entry, value)
    elif entry.struct is not None:
        yield from _write_inner(source, entry, value)
    elif entry.number:
        yield f"o += pack('>{entry.number}', {value})"
    elif entry.type == "uuid":
        yield f"o += uuid_bytes({value})"
    else:
        yield f"x = {value}"
        yield from _write_null(entry, wide=entry.type != "string")
        yield "else:"
        if entry.type == "string":
            yield "    x = x.encode()"
        yield from _indented(_write_length(entry, wide=entry.type != "string"))
        yield "    o += x"


def _write_null(entry: WireField, *, wide: bool) -> Iterator[str]:
    if not entry.nullable:
        yield "if x is None: absent()"
    elif entry.flexible:
        yield "if x is None: o.append(0)"
    else:
        yield f"if x is None: o += {bytes([255] * (4 if wide else 2))!r}"


def _write_length(entry: WireField, *, wide: bool) -> Iterator[str]:
    if entry.flexible:
        yield "append_uv(o, len(x) + 1)"
    else:
        yield f"o += pack('>{'i' if wide else 'h'}', len(x))"


def _write_inner(source: _Source, entry: WireField, value: str) -> Iterator[str]:
    assert entry.struct is not None
    call = f"{_writer(source, entry.struct)}(o, x)"
    yield f"x = {value}"
    if entry.nullable:
        yield f"if x is None: o.append({255 if entry.tag is None else 0})"
        yield f"else: o.append(1); {call}"
    else:
        yield call


def _write_array(source: _Source, entry: WireField, value: str) -> Iterator[str]:
    yield f"x = {value}"
    yield from _write_null(entry, wide=True)
    yield "else:"
    yield from _indented(_write_length(entry, wide=True))
    if entry.type in _NUMBERS:
        yield f"    o += pack(f'>{{len(x)}}{_NUMBERS[entry.type]}', *x)"
        return
    yield "    for y in x:"
    if entry.struct is not None:
        yield f"        {_writer(source, entry.struct)}(o, y)"
    else:
        yield from _indented(_write_field(source, _element(entry), "y"), 2)
