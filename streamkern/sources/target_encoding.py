"""What targets stand for: numbers for themselves, labels for classes that an extension knows."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

from streamkern.sources.arrays import as_source
from streamkern.sources.base import Source


class TargetEncoding(ABC):
    """How what rows have as targets becomes the targets of a regression."""

    reads_labels: ClassVar[bool]  # whether files are opened with targets of any kind

    @abstractmethod
    def source(self, X: Any, y: Any = None, sample_weight: Any = None) -> Source:
        """Return rows with the targets of the regression."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """Return what a report says of it, as plain JSON values."""

    @abstractmethod
    def traits(self) -> Iterator[str]:
        """Yield in words what moments that merge have in common."""


class Numbers(TargetEncoding):
    reads_labels = False

    def source(self, X: Any, y: Any = None, sample_weight: Any = None) -> Source:
        return as_source(X, y, sample_weight)

    def facts(self) -> dict[str, Any]:
        return {}

    def traits(self) -> Iterator[str]:
        yield "no classes"
        yield "classes that weigh the same"


NUMBERS = Numbers()


def encoding_of(source: Source) -> TargetEncoding:
    return source.encoding or NUMBERS
