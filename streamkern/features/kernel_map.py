"""Maps that are drawn for a kernel, as files hold them: by their arguments and what was drawn."""

from __future__ import annotations

from abc import abstractmethod
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, Self

from streamkern.errors import ParameterError
from streamkern.features.base import checked_n_components, checked_seed
from streamkern.features.written import WrittenFeatures
from streamkern.kernels import Gaussian, Kernel, kernel_from

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamkern._typing import Array


class KernelMap(WrittenFeatures):
    """Features that are drawn for a kernel.

    Arguments of the constructor are attributes of the same names, which files hold.
    """

    # That of the transformer that is not given another one.
    usual_kernel: ClassVar[Kernel] = Gaussian("median")

    def __init__(self, kernel: Kernel, n_components: int, random_state: int = 0) -> None:
        self.check_kernel(kernel)
        self.kernel: Any = kernel
        self.n_components = checked_n_components(n_components)
        self.random_state = checked_seed(random_state)

    def check_kernel(self, kernel: Kernel) -> None:
        """Raise ParameterError unless the map is one for this kernel."""

    def check_some_inputs(self, n_features: int) -> None:
        """Raise ParameterError unless there are inputs."""
        if n_features < 1:
            raise ParameterError(f"a map needs at least 1 input, not {n_features}; give some.")

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the constructor besides the kernel."""
        names = [name for name in signature(type(self)).parameters if name != "kernel"]
        return {name: getattr(self, name) for name in names}

    def parameters(self) -> dict[str, Any]:
        """Return the arguments of the constructor as plain JSON values."""
        kernel = {"kernel": self.kernel.name, "kernel_parameters": self.kernel.parameters()}
        return {**kernel, **self.arguments()}

    @classmethod
    def restore(cls, parameters: Mapping[str, Any], arrays: Mapping[str, Array]) -> Self:
        """Rebuild the map from its file form: what was drawn, not a new draw."""
        options = dict(parameters)
        kernel = kernel_from(options.pop("kernel"), options.pop("kernel_parameters"))
        restored = cls(kernel, **options)
        restored.take_arrays(arrays)
        return restored

    @abstractmethod
    def take_arrays(self, arrays: Mapping[str, Array]) -> None:
        """Take what was drawn from `arrays()`, or raise ParameterError where it does not fit."""
