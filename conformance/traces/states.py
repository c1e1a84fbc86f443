"""The columns of states/*.parquet: a fingerprint, and one typed column per variable."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from conformance.errors import DataError
from conformance.tla import (
    INTEGER,
    Json,
    Schema,
    Type,
    UntypableError,
    Value,
    from_itf,
    infer,
    to_itf,
)
from conformance.tla.arrow import arrow_type, read_values, write_values
from conformance.traces.model import PartialState

FINGERPRINT = "fingerprint"
UNFIT = "#unfit"
"""The values that fit no column, as ITF by variable; a file without any lacks the column."""


@dataclass(frozen=True, slots=True)
class StateColumns:
    """Turns states into tables and back. A variable that was not observed is null."""

    schema: Schema

    def __post_init__(self) -> None:
        """Refuse a spec whose variable would hide the fingerprint."""
        if FINGERPRINT in self.schema.names():
            raise DataError(
                f"A variable of the spec is called {FINGERPRINT}, which is the name of a column "
                "of the trace store. Rename the variable."
            )

    @property
    def arrow(self) -> pa.Schema:
        """The Arrow schema of a file of states."""
        fields = [pa.field(FINGERPRINT, pa.int64(), nullable=False)]
        fields += [pa.field(name, arrow_type(kind)) for name, kind in self.schema.variables]
        return pa.schema(fields)

    def table(
        self, fingerprints: npt.NDArray[np.int64], states: Sequence[PartialState]
    ) -> pa.Table:
        """One row per state.

        A value that its column's type cannot hold is null there, and stands in the column `UNFIT`.
        """
        columns = list(zip(*states, strict=True)) or [()] * len(self.schema.variables)
        arrays = []
        unfit: list[dict[str, Json]] = [{} for _ in states]
        for (name, kind), column in zip(self.schema.variables, columns, strict=True):
            array = _write(kind, column)
            arrays.append(array)
            if array.null_count > column.count(None):
                for row, (value, fits) in enumerate(zip(column, array.is_valid(), strict=True)):
                    if value is not None and not fits.as_py():
                        unfit[row][name] = to_itf(value)
        table = pa.Table.from_arrays([pa.array(fingerprints), *arrays], schema=self.arrow)
        if any(unfit):
            texts = [json.dumps(values) if values else None for values in unfit]
            table = table.append_column(UNFIT, pa.array(texts, pa.string()))
        return table

    def states(self, table: pa.Table) -> list[PartialState]:
        """The states of a table's rows; DataError if it does not fit the schema."""
        names = [name for name, _ in self.schema.variables if name not in table.column_names]
        if names:
            raise DataError(f"A file of states lacks the variable {names[0]}.")
        columns = [_read(kind, table.column(name)) for name, kind in self.schema.variables]
        states: list[PartialState] = [()] * len(table)
        if columns:
            states = list(zip(*columns, strict=True))
        if UNFIT not in table.column_names:
            return states
        texts = table.column(UNFIT).to_pylist()
        return [
            self._with_unfit(state, text) if text else state
            for state, text in zip(states, texts, strict=True)
        ]

    def _with_unfit(self, state: PartialState, text: str) -> PartialState:
        unfit = json.loads(text)
        return tuple(
            from_itf(unfit[name]) if name in unfit else value
            for name, value in zip(self.schema.names(), state, strict=True)
        )

    def to_json(self) -> bytes:
        """The schema for the manifest."""
        return msgspec.json.encode(self.schema.to_json())

    @staticmethod
    def from_json(data: bytes) -> StateColumns:
        """The columns that `to_json` describes; DataError if it describes none."""
        return StateColumns(Schema.from_json(msgspec.json.decode(data)))


def infer_columns(
    variables: Sequence[str],
    states: Iterable[PartialState],
    reference: Iterable[PartialState] = (),
) -> StateColumns:
    """Columns that hold the states.

    Where an implementation's values have no common type, the type is that of `reference`
    (states of the spec), and what does not fit it is stored aside, in the column `UNFIT`.
    Where that has none either, as in a set of records of several shapes or with model values
    beside strings, the place with values of several kinds is stored as text.
    """
    values = list(zip(*states, strict=True)) or [()] * len(variables)
    known = list(zip(*reference, strict=True)) or [()] * len(variables)
    kinds = []
    for name, column, sure in zip(variables, values, known, strict=True):
        try:
            kind = infer(_present((*sure, *column)), name)
        except UntypableError:
            kind = _type_of_reference(_present(sure), name)
            if kind is None:
                kind = infer(_present((*sure, *column)), name, mixed=True)
        kinds.append((name, kind or INTEGER))
    return StateColumns(Schema(tuple(kinds)))


def _type_of_reference(values: Sequence[Value], name: str) -> Type | None:
    try:
        return infer(values, name)
    except UntypableError:
        return None


def _present(values: Iterable[Value | None]) -> list[Value]:
    return [value for value in values if value is not None]


def _write(kind: Type, column: Sequence[Value | None]) -> pa.Array:
    present = _present(column)
    if len(present) == len(column):
        try:
            return write_values(kind, present)
        except DataError:
            pass  # some value does not fit: find which
    fits = [value is not None and _fits(kind, value) for value in column]
    kept = [value for value, fit in zip(column, fits, strict=True) if fit and value is not None]
    if not kept:
        return pa.nulls(len(column), arrow_type(kind))
    positions = np.cumsum(fits) - 1
    return write_values(kind, kept).take(pa.array(positions, mask=~np.array(fits)))


def _fits(kind: Type, value: Value) -> bool:
    try:
        write_values(kind, [value])
    except DataError:
        return False
    return True


def _read(kind: Type, column: pa.ChunkedArray) -> list[Value | None]:
    array = column.combine_chunks()
    values = iter(read_values(kind, array.drop_null()))
    return [next(values) if valid else None for valid in array.is_valid().to_pylist()]
