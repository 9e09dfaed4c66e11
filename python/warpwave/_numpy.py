"""NumPy's arrays for C: their types, and the addresses of their elements."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

# Old versions of NumPy have no numpy.typing.
if TYPE_CHECKING:
    import numpy.typing as npt

    FloatArray = npt.NDArray[np.float32]
    IntArray = npt.NDArray[np.int64]
else:
    FloatArray = IntArray = np.ndarray


def address(array: npt.NDArray[Any]) -> int:
    """Return the address of the first element."""
    found: int = array.__array_interface__["data"][0]
    return found
