"""Arrow's columns as numpy's arrays, and rows grouped by what they have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Array = npt.NDArray[Any]


def numbers_of(column: pa.Array | pa.ChunkedArray) -> Array:
    """A column of numbers or truths, without copying where that is possible."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        if isinstance(column, pa.ChunkedArray):
            return np.zeros(0, np.int64)
    result: Array = column.to_numpy(zero_copy_only=False)
    return result


def firsts(sorted_values: Array) -> Array:
    """Of sorted values, which are another one than the one before."""
    result = np.ones(len(sorted_values), bool)
    result[1:] = sorted_values[1:] != sorted_values[:-1]
    return result


def ranks(groups: Array, values: Array, most: int) -> Array:
    """Of each row, how many smaller values its group has; `most` stands for as many and more."""
    order = np.lexsort((values, groups))
    new_group = firsts(groups[order])
    new_value = new_group | firsts(values[order])
    steps = np.cumsum(new_value)
    begins = np.maximum.accumulate(np.where(new_group, steps, 0))
    result = np.empty(len(groups), np.int64)
    result[order] = np.minimum(steps - begins, most)
    return result


TRAIT_BITS = 20
"""What a row is within its group must fit into so many bits."""


def distinct_groups(groups: Array, traits: Array, examples: int) -> list[tuple[int, int, Array]]:
    """Groups that are alike: that have the same set of traits.

    A number that tells the sets apart, how many groups have it, and the first of them. The number
    is a sum of 64 bits: that two of n sets share one has a probability below n^2 / 2^65.
    """
    if not len(groups):
        return []
    keys = np.sort(groups << TRAIT_BITS | traits, kind="stable")  # nearly sorted, mostly
    keys = keys[firsts(keys)]
    of, trait = keys >> TRAIT_BITS, (keys & ((1 << TRAIT_BITS) - 1)).astype(np.uint64)
    begins = np.flatnonzero(firsts(of))
    sums = np.add.reduceat(_mixed(trait), begins)
    distinct, numbers, counts = np.unique(sums, return_inverse=True, return_counts=True)
    order = np.argsort(numbers, kind="stable")
    ends = np.cumsum(counts)
    return [
        (int(sum_), int(count), of[begins[order[end - count : min(end, end - count + examples)]]])
        for sum_, count, end in zip(distinct, counts, ends, strict=True)
    ]


def spread(texts: pa.Array) -> Array:
    """A number for each text, equal for equal ones, by which they can be divided evenly."""
    texts = texts.cast(pa.large_string())
    _, ends, data = texts.buffers()
    if data is None:
        return np.zeros(len(texts), np.uint64)
    bounds = np.frombuffer(ends, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    places = np.arange(bounds[0], bounds[-1]) - np.repeat(bounds[:-1], np.diff(bounds))
    letters = np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]].astype(np.uint64)
    sums = np.cumsum(_mixed(letters | places.astype(np.uint64) << np.uint64(8)))
    sums = np.concatenate((np.zeros(1, np.uint64), sums))
    result: Array = sums[bounds[1:] - bounds[0]] - sums[bounds[:-1] - bounds[0]]
    return result


def packed(*parts: tuple[Array, int]) -> Array:
    """Small numbers in one, each in so many bits."""
    result = np.zeros(len(parts[0][0]), np.int64)
    for numbers, bits in parts:
        result = result << bits | numbers.astype(np.int64)
    return result


def _mixed(numbers: Array) -> Array:
    """The finalizer of splitmix64: a sum of such numbers tells sets apart."""
    with np.errstate(over="ignore"):
        mixed = numbers + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return mixed ^ (mixed >> np.uint64(31))


class RowsOf:
    """The rows of a group, found without looking at all of them."""

    def __init__(self, groups: Array) -> None:
        self._order = np.argsort(groups, kind="stable")
        self._sorted = groups[self._order]

    def __call__(self, group: int) -> Array:
        """In the order of the rows."""
        begin = np.searchsorted(self._sorted, group)
        end = np.searchsorted(self._sorted, group, side="right")
        return self._order[begin:end]
