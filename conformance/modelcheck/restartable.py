"""Rewrites TLC's classes so that one JVM runs TLC again and again, each time from the start.

TLC keeps its state in static fields, which Java sets once, as it initializes a class (`<clinit>`).
A rewritten class can be initialized again:

    $assign    what its <clinit> was
    <clinit>   calls $assign, then adds $restart to Restart.steps
    $restart   gives every static field the default of its type, then calls $assign

`Restart.restart()` calls all of Restart.steps in the order in which the classes were first ready:
so each finds those that it needs. Afterwards TLC is as in a new JVM, but its classes are loaded
and the JVM's compiler has done its work. The idea is of Bell and Kaiser,
"Unit Test Virtualization with VMVM", ICSE 2014.

Static fields lose `final`: compiled code takes the first value of a final one for ever. A JVM lets
interfaces have such fields only if it does not verify classes. Enums stay as they are, because
java.lang.Class keeps their constants.

The format of class files: The Java Virtual Machine Specification, chapter 4.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

RESTART = "kconform.Restart"
"""The class that is added to the jar; its static method is `restart`."""

_PACKAGES = ("tlc2/", "tla2sany/", "util/", "pcal/", "model/")
"""The tools' own packages. The libraries in the jar (mail) have no part in checking a model."""

_PUBLIC, _PRIVATE, _PROTECTED, _STATIC, _FINAL, _INTERFACE = 0x1, 0x2, 0x4, 0x8, 0x10, 0x200
_UTF8, _CLASS, _FIELD, _METHOD, _INTERFACE_METHOD, _NAME_AND_TYPE, _HANDLE = 1, 7, 9, 10, 11, 12, 15
_LONG, _DOUBLE = 5, 6
_CONSTANT_BYTES = {
    **dict.fromkeys((3, 4, 9, 10, 11, 12, 18), 4), **dict.fromkeys((5, 6), 8),
    **dict.fromkeys((7, 8, 16), 2), 15: 3,
}  # fmt: skip
"""Bytes of a constant behind its tag; text has its length before it."""
_INVOKE_STATIC_HANDLE = 6
_VERSION_7 = 51
"""The class file version from which on a method handle may be a constant."""

# The instructions that are written here.
_ACONST_NULL, _ICONST_0, _LCONST_0, _FCONST_0, _DCONST_0 = 0x01, 0x03, 0x09, 0x0B, 0x0E
_LDC_W, _ILOAD_0, _ISTORE_0, _POP, _DUP, _IINC = 0x13, 0x1A, 0x3B, 0x57, 0x59, 0x84
_IF_ICMPLT, _GOTO, _RETURN = 0xA1, 0xA7, 0xB1
_GETSTATIC, _PUTSTATIC, _INVOKEVIRTUAL, _INVOKESPECIAL, _INVOKESTATIC = 0xB2, 0xB3, 0xB6, 0xB7, 0xB8
_NEW, _CHECKCAST = 0xBB, 0xC0

_RESTART_CLASS = RESTART.replace(".", "/")
_LIST, _ARRAY_LIST = "java/util/ArrayList", "Ljava/util/ArrayList;"
_NOTHING = "()V"


def write_restartable(jar: Path, target: Path) -> None:
    """A copy of tla2tools.jar whose classes can be initialized again, with the class `RESTART`."""
    with zipfile.ZipFile(jar) as given, zipfile.ZipFile(target, "w") as written:
        for entry in given.infolist():
            content = given.read(entry)
            if entry.filename.endswith(".class") and entry.filename.startswith(_PACKAGES):
                content = restartable(content)
            written.writestr(entry.filename, content)
        written.writestr(f"{_RESTART_CLASS}.class", _restart_class())


def restartable(class_file: bytes) -> bytes:
    """A class file that can be initialized again. One without static state, or of an enum, stays.

    ValueError for a class file older than Java 7's that has such state.
    """
    parsed = _parse(class_file)
    pool = parsed.pool
    has_state = any(map(parsed.is_state, parsed.fields)) or parsed.initializer is not None
    if not has_state or pool.class_name(parsed.super_class) == "java/lang/Enum":
        return class_file
    if parsed.version < _VERSION_7:
        raise ValueError(f"a class file of version {parsed.version}: {_VERSION_7} is needed")
    return _emit(_with_restart(parsed))


class _Pool:
    """The constants of a class file; new ones come behind those that are there."""

    def __init__(self) -> None:
        self.texts: dict[int, bytes] = {}
        self._classes: dict[int, int] = {}
        self._entries: list[bytes] = []
        self._numbers: dict[bytes, int] = {}
        self._next = 1

    def append(self, entry: bytes) -> int:
        """The number of a constant, given as it stands in the file."""
        number = self._next
        self._entries.append(entry)
        self._numbers.setdefault(entry, number)
        self._next += 2 if entry[0] in (_LONG, _DOUBLE) else 1
        if entry[0] == _UTF8:
            self.texts[number] = entry[3:]
        elif entry[0] == _CLASS:
            self._classes[number] = int.from_bytes(entry[1:])
        return number

    def _number(self, tag: int, content: bytes) -> int:
        entry = bytes([tag]) + content
        return self._numbers.get(entry) or self.append(entry)

    def text(self, text: str) -> int:
        return self._number(_UTF8, _two(len(text)) + text.encode())

    def class_(self, name: str) -> int:
        return self._number(_CLASS, _two(self.text(name)))

    def member(self, tag: int, owner: int, name: str, descriptor: str) -> int:
        """A reference to a field or a method of the class with the number `owner`."""
        names = _two(self.text(name)) + _two(self.text(descriptor))
        return self._number(tag, _two(owner) + _two(self._number(_NAME_AND_TYPE, names)))

    def handle(self, method: int) -> int:
        """A java.lang.invoke.MethodHandle of a static method."""
        return self._number(_HANDLE, bytes([_INVOKE_STATIC_HANDLE]) + _two(method))

    def class_name(self, number: int) -> str:
        """Empty for number 0, which java.lang.Object has in place of a super class."""
        return self.texts[self._classes[number]].decode() if number else ""

    def bytes(self) -> bytes:
        return _two(self._next) + b"".join(self._entries)


@dataclass(frozen=True, slots=True)
class _Member:
    """A field or a method. `name` and `descriptor` are numbers of constants, `attributes` pairs of
    such a number and a content."""

    flags: int
    name: int
    descriptor: int
    attributes: Sequence[tuple[int, bytes]]


@dataclass(frozen=True, slots=True)
class _ClassFile:
    """`head`: the magic number and the version; `rest`: what follows the methods."""

    head: bytes
    pool: _Pool
    flags: int
    this_class: int
    super_class: int
    interfaces: bytes
    fields: Sequence[_Member]
    methods: Sequence[_Member]
    rest: bytes

    @property
    def version(self) -> int:
        return int.from_bytes(self.head[6:])

    @property
    def initializer(self) -> _Member | None:
        return next((method for method in self.methods if self.name(method) == "<clinit>"), None)

    def name(self, member: _Member) -> str:
        return self.pool.texts[member.name].decode()

    def is_state(self, member: _Member) -> bool:
        """Whether a field is static and no constant of the compiler's."""
        attributes = {self.pool.texts[name] for name, _ in member.attributes}
        return bool(member.flags & _STATIC) and b"ConstantValue" not in attributes


@dataclass(slots=True)
class _ByteReader:
    content: bytes
    at: int = 0

    def take(self, length: int) -> bytes:
        self.at += length
        return self.content[self.at - length : self.at]

    def number(self, length: int) -> int:
        return int.from_bytes(self.take(length))


def _parse(class_file: bytes) -> _ClassFile:
    reader = _ByteReader(class_file)
    head, pool = reader.take(8), _parse_pool(reader)
    flags, this_class, super_class = (reader.number(2) for _ in range(3))
    interfaces = reader.take(2 * reader.number(2))
    fields, methods = _parse_members(reader), _parse_members(reader)
    rest = class_file[reader.at :]
    return _ClassFile(head, pool, flags, this_class, super_class, interfaces, fields, methods, rest)


def _parse_pool(reader: _ByteReader) -> _Pool:
    pool = _Pool()
    end = reader.number(2)
    number = 1
    while number < end:
        tag = reader.number(1)
        length = reader.number(2) if tag == _UTF8 else 0
        content = _two(length) + reader.take(length) if tag == _UTF8 else b""
        content = content or reader.take(_CONSTANT_BYTES[tag])
        number = pool.append(bytes([tag]) + content) + (2 if tag in (_LONG, _DOUBLE) else 1)
    return pool


def _parse_members(reader: _ByteReader) -> list[_Member]:
    members = []
    for _ in range(reader.number(2)):
        flags, name, descriptor = (reader.number(2) for _ in range(3))
        attributes = [
            (reader.number(2), reader.take(reader.number(4))) for _ in range(reader.number(2))
        ]
        members.append(_Member(flags, name, descriptor, attributes))
    return members


def _emit(parsed: _ClassFile) -> bytes:
    fields, methods = (_emit_members(members) for members in (parsed.fields, parsed.methods))
    classes = _two(parsed.flags) + _two(parsed.this_class) + _two(parsed.super_class)
    interfaces = _two(len(parsed.interfaces) // 2) + parsed.interfaces
    return parsed.head + parsed.pool.bytes() + classes + interfaces + fields + methods + parsed.rest


def _emit_members(members: Sequence[_Member]) -> bytes:
    parts = [_two(len(members))]
    for member in members:
        parts += [_two(member.flags), _two(member.name), _two(member.descriptor)]
        parts.append(_two(len(member.attributes)))
        parts += [_two(name) + _four(len(content)) + content for name, content in member.attributes]
    return b"".join(parts)


def _two(number: int) -> bytes:
    return number.to_bytes(2)


def _four(number: int) -> bytes:
    return number.to_bytes(4)


@dataclass(slots=True)
class _Instructions:
    """Instructions of a method that has no argument, in the order in which they are added."""

    pool: _Pool
    parts: list[bytes] = field(default_factory=list)

    def add(self, *operations: int) -> _Instructions:
        """Instructions without operands, or bytes of operands."""
        self.parts.append(bytes(operations))
        return self

    def with_constant(self, operation: int, constant: int) -> _Instructions:
        """An instruction with the number of a constant."""
        self.parts.append(bytes([operation]) + _two(constant))
        return self

    def method(self, name: str, flags: int, *, stack: int, variables: int = 0) -> _Member:
        """The method; no instruction needs more of the operand stack than `stack` slots."""
        code = b"".join(self.parts)
        content = _two(stack) + _two(variables) + _four(len(code)) + code + _two(0) + _two(0)
        text = self.pool.text
        return _Member(flags, text(name), text(_NOTHING), [(text("Code"), content)])


def _with_restart(parsed: _ClassFile) -> _ClassFile:
    """The class with $assign, $restart and another <clinit>. None of these branches."""
    pool, this = parsed.pool, parsed.this_class
    kind = _INTERFACE_METHOD if parsed.flags & _INTERFACE else _METHOD
    restart, initialize = _Instructions(pool), _Instructions(pool)
    for state in filter(parsed.is_state, parsed.fields):
        descriptor = pool.texts[state.descriptor].decode()
        constant = pool.member(_FIELD, this, parsed.name(state), descriptor)
        restart.add(_default(descriptor)).with_constant(_PUTSTATIC, constant)
    if parsed.initializer is not None:
        assign = pool.member(kind, this, "$assign", _NOTHING)
        restart.with_constant(_INVOKESTATIC, assign)
        initialize.with_constant(_INVOKESTATIC, assign)
    restart.add(_RETURN)
    _add_step(initialize, pool.handle(pool.member(kind, this, "$restart", _NOTHING)))
    methods = [
        _renamed(method, pool) if method is parsed.initializer else method
        for method in parsed.methods
    ]
    methods.append(restart.method("$restart", _PUBLIC | _STATIC, stack=2))
    methods.append(initialize.method("<clinit>", _STATIC, stack=2))
    fields = [
        replace(member, flags=member.flags & ~_FINAL) if parsed.is_state(member) else member
        for member in parsed.fields
    ]
    return replace(parsed, fields=fields, methods=methods)


def _default(descriptor: str) -> int:
    """The instruction that gives the default of a field's type."""
    if descriptor[0] in "L[":
        return _ACONST_NULL
    return {"J": _LCONST_0, "F": _FCONST_0, "D": _DCONST_0}.get(descriptor, _ICONST_0)


def _add_step(code: _Instructions, handle: int) -> None:
    """Restart.steps.add(handle)"""
    pool = code.pool
    steps = pool.member(_FIELD, pool.class_(_RESTART_CLASS), "steps", _ARRAY_LIST)
    add = pool.member(_METHOD, pool.class_(_LIST), "add", "(Ljava/lang/Object;)Z")
    code.with_constant(_GETSTATIC, steps).with_constant(_LDC_W, handle)
    code.with_constant(_INVOKEVIRTUAL, add).add(_POP, _RETURN)


def _renamed(initializer: _Member, pool: _Pool) -> _Member:
    flags = initializer.flags & ~(_PRIVATE | _PROTECTED) | _PUBLIC
    return replace(initializer, flags=flags, name=pool.text("$assign"))


def _restart_class() -> bytes:
    """What javac would make of

    public class Restart {
        public static ArrayList steps = new ArrayList();
        public static void restart() {
            for (int i = 0; i < steps.size(); i++) ((MethodHandle) steps.get(i)).invokeExact();
        }
    }
    """
    pool = _Pool()
    this, parent = pool.class_(_RESTART_CLASS), pool.class_("java/lang/Object")
    steps = pool.member(_FIELD, this, "steps", _ARRAY_LIST)
    new = pool.member(_METHOD, pool.class_(_LIST), "<init>", _NOTHING)
    initialize = _Instructions(pool).with_constant(_NEW, pool.class_(_LIST)).add(_DUP)
    initialize.with_constant(_INVOKESPECIAL, new).with_constant(_PUTSTATIC, steps).add(_RETURN)
    methods = (
        initialize.method("<clinit>", _STATIC, stack=2),
        _loop(pool, steps).method("restart", _PUBLIC | _STATIC, stack=2, variables=1),
    )
    fields = [_Member(_PUBLIC | _STATIC, pool.text("steps"), pool.text(_ARRAY_LIST), ())]
    head = bytes.fromhex("cafebabe0000") + _two(_VERSION_7)
    flags = _PUBLIC | 0x20  # ACC_SUPER, as every class has it
    return _emit(_ClassFile(head, pool, flags, this, parent, b"", fields, methods, _two(0)))


def _loop(pool: _Pool, steps: int) -> _Instructions:
    handle = pool.class_("java/lang/invoke/MethodHandle")
    get = pool.member(_METHOD, pool.class_(_LIST), "get", "(I)Ljava/lang/Object;")
    size = pool.member(_METHOD, pool.class_(_LIST), "size", "()I")
    invoke = pool.member(_METHOD, handle, "invokeExact", _NOTHING)
    body = _Instructions(pool).with_constant(_GETSTATIC, steps).add(_ILOAD_0)
    body.with_constant(_INVOKEVIRTUAL, get).with_constant(_CHECKCAST, handle)
    body.with_constant(_INVOKEVIRTUAL, invoke).add(_IINC, 0, 1)
    length = len(b"".join(body.parts))
    test = _Instructions(pool).add(_ILOAD_0).with_constant(_GETSTATIC, steps)
    test.with_constant(_INVOKEVIRTUAL, size)
    back = -length - len(b"".join(test.parts))
    start = _Instructions(pool).add(_ICONST_0, _ISTORE_0).with_constant(_GOTO, 3 + length)
    end = _Instructions(pool).with_constant(_IF_ICMPLT, back & 0xFFFF).add(_RETURN)
    return _Instructions(pool, [*start.parts, *body.parts, *test.parts, *end.parts])
