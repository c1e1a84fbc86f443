"""Hypothesis strategies: arbitrary TLA+ values, types, and values of a type."""

from __future__ import annotations

from hypothesis import strategies as st

from conformance.tla import (
    BOOLEAN,
    INTEGER,
    MODEL_VALUE,
    STRING,
    Fn,
    MapOf,
    ModelValue,
    Scalar,
    SequenceOf,
    SetOf,
    StructOf,
    TupleOf,
    Type,
    Value,
    canonical_sorted,
    make_function,
)

integers = st.integers(-(2**40), 2**40) | st.integers(-3, 3)
strings = st.text("ab1 \"\\\n\t\r\f{}<>[]()|@:.,-_'#/é\uffff\U0001f600", max_size=5)
model_values = st.sampled_from([ModelValue(name) for name in ("b1", "b2", "None_", "A_x")])
scalars = st.booleans() | integers | strings | model_values


def _containers(inner: st.SearchStrategy[Value]) -> st.SearchStrategy[Value]:
    return (
        st.frozensets(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(inner, inner, max_size=3).map(make_function)
        | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, min_size=1).map(Fn)
    )


values: st.SearchStrategy[Value] = st.recursive(scalars, _containers, max_leaves=12)

_SCALARS = {BOOLEAN: st.booleans(), INTEGER: integers, STRING: strings, MODEL_VALUE: model_values}
scalar_types = st.sampled_from(list(_SCALARS))
_domains = st.one_of(
    st.sets(st.sampled_from(["a", "b", "key 1"]), min_size=1),
    st.sets(st.integers(-1, 3), min_size=1).filter(
        lambda keys: keys != set(range(1, len(keys) + 1))
    ),
    st.sets(model_values, min_size=1),
).map(canonical_sorted)


def _struct(domain: list[Value], inner: list[Type]) -> Type:
    return StructOf(tuple(zip(domain, inner, strict=False)))


def _container_types(inner: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    return st.one_of(
        inner.map(SetOf),
        inner.map(SequenceOf),
        st.builds(_struct, _domains, st.lists(inner, min_size=3, max_size=3)),
        st.tuples(scalar_types, inner).map(lambda pair: MapOf(*pair)),
        st.lists(inner, min_size=2, max_size=3).map(lambda items: TupleOf(tuple(items))),
    )


types: st.SearchStrategy[Type] = st.recursive(scalar_types, _container_types, max_leaves=5)


def values_of(kind: Type) -> st.SearchStrategy[Value]:
    """Values that a column of the type holds."""
    match kind:
        case Scalar():
            return _SCALARS[kind]
        case SetOf(element=element):
            assert element is not None
            return st.frozensets(values_of(element), max_size=3)
        case SequenceOf(element=element):
            assert element is not None
            return st.lists(values_of(element), max_size=3).map(tuple)
        case TupleOf(items=items):
            return st.tuples(*map(values_of, items))
        case StructOf(fields=fields):
            return st.fixed_dictionaries({key: values_of(item) for key, item in fields}).map(Fn)
        case MapOf(key=key, value=value):
            pairs = st.dictionaries(values_of(key), values_of(value), max_size=3)
            return pairs.map(make_function)
