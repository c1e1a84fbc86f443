"""Reads single elements of SANY's XML export."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping

from conformance.tla.errors import SpecError
from conformance.tla.front.syntax import BindingKind, Declaration, Location

BUILTIN_NAMES: Mapping[str, str] = {
    "$ConjList": r"\land",
    "$DisjList": r"\lor",
    "$CartesianProd": r"\X",
    "$SetEnumerate": "{}",
    "$Tuple": "<<>>",
    "$SetOfFcns": "[->]",
    "$SquareAct": "[A]_v",
    "$AngleAct": "<<A>>_v",
    "$WF": "WF",
    "$SF": "SF",
}
"""SANY's names of the language's own operators, where ours are others."""

BINDING_KINDS: Mapping[str, BindingKind] = {
    "$BoundedForall": r"\A",
    "$UnboundedForall": r"\A",
    "$BoundedExists": r"\E",
    "$UnboundedExists": r"\E",
    "$BoundedChoose": "CHOOSE",
    "$UnboundedChoose": "CHOOSE",
    "$SubsetOf": "filter",
    "$SetOfAll": "map",
    "$FcnConstructor": "function",
    "$NonRecursiveFcnSpec": "function",
}
"""What binds names."""

TEMPORAL_QUANTIFIERS: Mapping[str, str] = {"$TemporalExists": r"\EE", "$TemporalForall": r"\AA"}


def child_of(node: ET.Element, tag: str) -> ET.Element:
    """The child element; SpecError if SANY did not write it."""
    element = node.find(tag)
    if element is None:
        raise SpecError(
            f"SANY's XML export has a {node.tag} without {tag}: this version of the TLA+ tools is "
            "not one that the reader knows. Unset TLA2TOOLS_JAR to use the bundled one."
        )
    return element


def text_of(node: ET.Element, tag: str) -> str:
    """The text of a child element."""
    return child_of(node, tag).text or ""


def string_of(node: ET.Element) -> str:
    """The value of a string literal, or SANY's mark of OTHER."""
    return (node.findtext("StringValue") or node.text or "").strip()


def location_of(node: ET.Element) -> Location:
    """Where the node stands in its module."""
    place = node.find("location")
    if place is None:
        return Location("", 0, 0, 0, 0)
    column, line = place[0], place[1]
    return Location(
        module=place[2].text or "",
        line=int(line[0].text or 0),
        column=int(column[0].text or 0),
        end_line=int(line[1].text or 0),
        end_column=int(column[1].text or 0),
    )


def own_arity(node: ET.Element) -> int:
    """The arity that a standard operator has by itself, without an instance's parameters."""
    body = child_of(node, "body")[0]
    bound_outside: set[str] = set()
    while body.tag == "SubstInNode":
        for ref in child_of(body, "substs").iter("FormalParamNodeRef"):
            bound_outside.add(text_of(ref, "UID"))
        body = child_of(body, "body")[0]
    refs = node.findall("params/leibnizparam/*[UID]")
    return sum(text_of(ref, "UID") not in bound_outside for ref in refs)


def declarations(nodes: Iterable[ET.Element], kind: str) -> tuple[Declaration, ...]:
    """The declarations of a kind, in the order of the text."""
    result = [
        Declaration(location_of(node), text_of(node, "uniquename"), int(text_of(node, "arity")))
        for node in nodes
        if text_of(node, "kind") == kind
    ]
    # SANY lists declarations in a hash table's order; the text's order is the one people know.
    return tuple(
        sorted(result, key=lambda d: (d.location.module, d.location.line, d.location.column))
    )


def builtin_name(entry: ET.Element) -> str:
    """The name of one of the language's own operators."""
    name = text_of(entry, "uniquename")
    return BUILTIN_NAMES.get(name, name)


def local_operators(entries: Iterable[ET.Element]) -> frozenset[str]:
    """The uids of the operators that are defined in a LET."""
    lets = (ref for e in entries for ref in e.iterfind(".//LetInNode/opDefs/UserDefinedOpKindRef"))
    return frozenset(text_of(ref, "UID") for ref in lets)
