"""Topics of a model, as adapters of several specifications make them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ModelTopic:
    """A topic of a model, by `key`: `name` may be another one's too, at another time.

    Its partitions are the model's from `first` on: `size` of them as it is created, `most` later.
    """

    key: str
    name: str
    first: int
    size: int
    most: int
    is_there: bool
    stays: bool
    """Whether it is as it is at first, in all of the model."""

    @property
    def numbers(self) -> range:
        """Its partitions' numbers in the model."""
        return range(self.first, self.first + self.most)
