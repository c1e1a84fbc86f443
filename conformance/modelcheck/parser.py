"""Parses the modules of models, those of one specification together.

SANY's start and the specification's text are nearly all of the work, and models of one
specification differ in a few definitions only. So one module that holds the definitions of all
of them is parsed, and each model gets a view of it in which only its own have their names.
"""

from __future__ import annotations

import re
import tempfile
import threading
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from conformance.errors import SpecError
from conformance.modelcheck.cache import Cache, cache_dir, cache_key, module_files
from conformance.modelcheck.generate import GeneratedModule, definitions, module_text
from conformance.modelcheck.manifest import MODEL_VALUES, Model
from conformance.tla import OWN_MODULES, Module, Tools, check_size, export_xml, read_xml

_IDENTIFIER = re.compile(r'"(?:[^"\\]|\\.)*"|\w+')
_FIELD = re.compile(r"[.!]\s*\w+|\b\w+\s*(?:\|->|:(?!>))")
"""Where an identifier may be a record's field or an instance's operator."""

_KIND, _LEVEL = "module", 1
"""Of what is kept in the cache: its name, and how hard it is compressed (to a twelfth)."""

_Key = tuple[Path, str]


class Parser:
    """Remembers what it has parsed; threads may share it.

    SANY's answer is kept in the cache, by the text of every module: a JVM starts for new text
    only. `cold` ignores what the cache has, and replaces it.
    """

    def __init__(self, cache: Cache | None = None, *, cold: bool = False) -> None:
        self.cold = cold
        self._cache = cache or Cache(cache_dir())
        self._lock = threading.Lock()
        self._announced: dict[_Key, Model] = {}
        self._parsed: dict[_Key, Module] = {}

    def announce(self, models: Iterable[Model]) -> None:
        """These models will be asked for: parse them with the first of their specification."""
        with self._lock:
            self._announced.update((_key(model), model) for model in models)

    def module(self, model: Model, plain: GeneratedModule, tools: Tools) -> Module:
        """The model's module, `plain` being its text. SpecError with SANY's message."""
        key = _key(model)
        with self._lock:
            if key not in self._parsed:
                self._parse(key, model, plain, tools)
            return self._parsed[key]

    def _parse(self, key: _Key, model: Model, plain: GeneratedModule, tools: Tools) -> None:
        family = [
            other
            for known, other in self._announced.items()
            if known not in self._parsed and other.spec_path == model.spec_path
        ]
        if model not in family:
            family.append(model)
        if len(family) > 1 and all(map(_can_be_renamed, family)):
            try:
                self._parsed.update(self._parse_family(family, tools))
                return
            except SpecError:
                # Whose definition it is, the model's own text tells best.
                for other in family:
                    self._announced.pop(_key(other), None)
        self._parsed[key] = self._load(plain.name, plain.module, model, tools)

    def _parse_family(self, family: Sequence[Model], tools: Tools) -> dict[_Key, Module]:
        renamings = [_rename(model, f"m{number}_") for number, model in enumerate(family)]
        name = f"{family[0].spec}__models"
        text = module_text(
            name, family[0].spec, [line for renaming in renamings for line in renaming.lines]
        )
        whole = self._load(name, text, family[0], tools)
        foreign = {new for renaming in renamings for new in renaming.names.values()}
        shared = {name: uid for name, uid in whole.operators.items() if name not in foreign}
        return {
            _key(model): _view(whole, shared, renaming.names, f"{model.spec}__model")
            for model, renaming in zip(family, renamings, strict=True)
        }

    def _load(self, name: str, text: str, model: Model, tools: Tools) -> Module:
        with tempfile.TemporaryDirectory(prefix="kconform-model-") as folder:
            path = Path(folder) / f"{name}.tla"
            path.write_text(text, encoding="utf-8")
            try:
                return read_xml(self.xml(path, model.search, tools), path, model.search)
            except SpecError as error:
                if not str(error).startswith(str(path)):
                    raise  # the spec's own text is at fault, not what the model adds to it
                raise _unreadable(model, text, str(error)) from None

    def xml(self, path: Path, search: Sequence[Path], tools: Tools) -> bytes:
        """SANY's export of the module, from the cache or by a JVM."""
        files = module_files(path, [*search, *OWN_MODULES])
        # Two modules that name each other have the same files: which is the root, the key says.
        key = cache_key(["xml", path.stem, tools.jar_sha256], files)
        kept = None if self.cold else self._cache.load(_KIND, key)
        if kept is not None:
            return zlib.decompress(kept)
        for file in files:
            check_size(file)
        xml = export_xml(path, tools, search)
        self._cache.store(_KIND, key, zlib.compress(xml, _LEVEL))
        return xml


def _key(model: Model) -> _Key:
    return model.spec_path, "\n".join(definitions(model))


@dataclass(frozen=True, slots=True)
class _FamilyRenaming:
    """The definitions of one model of a family, and what they are called in it."""

    lines: tuple[str, ...]
    names: Mapping[str, str]


def _view(
    whole: Module, shared: Mapping[str, int], names: Mapping[str, str], module_name: str
) -> Module:
    """The module as if it held the definitions of one model only."""
    own = {old: whole.operators[new] for old, new in names.items()}
    named = {uid: replace(whole.definitions[uid], name=old) for old, uid in own.items()}
    return replace(
        whole,
        name=module_name,
        operators=MappingProxyType({**shared, **own}),
        definitions=MappingProxyType({**whole.definitions, **named}),
    )


def _heads(model: Model) -> list[str]:
    return [line.partition("==")[0].partition("(")[0].strip() for line in definitions(model)]


def _can_be_renamed(model: Model) -> bool:
    """Whether no head is an infix operator or spelt like a field in the model's own texts."""
    heads = set(_heads(model))
    used = {
        word
        for line in definitions(model)
        for place in _FIELD.findall(line.partition("==")[2])
        for word in re.findall(r"\w+", place)
    }
    return all(head.isidentifier() for head in heads) and not heads & used


def _rename(model: Model, prefix: str) -> _FamilyRenaming:
    names = {head: prefix + head for head in _heads(model)}
    lines = tuple(
        _IDENTIFIER.sub(lambda match: names.get(match[0], match[0]), line)
        for line in definitions(model)
    )
    return _FamilyRenaming(lines, names)


def _unreadable(model: Model, text: str, error: str) -> SpecError:
    """SANY's complaint about a module that nobody has seen, told of the model's own text."""
    complaint = error.partition("SANY says: ")[2]
    number = int(match[1]) if (match := re.search(r"line (\d+)", complaint)) else 1
    lines = [line for line in text.splitlines()[:number] if line.strip() and line != "===="]
    unknown = "Unknown operator" in complaint and model.config is None
    return SpecError(
        f"{model.origin}: the model's constants or definitions do not parse, at or before "
        f"`{lines[-1]}`. SANY says: {complaint}{f' {MODEL_VALUES}' if unknown else ''}"
    )
