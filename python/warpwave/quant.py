"""Quantized matrices in ggml's formats, and the GGUF files that contain them."""
from __future__ import annotations

import os
from ctypes import byref, c_int, c_int64, c_void_p, string_at
from typing import TYPE_CHECKING, Any, Iterator, Mapping, Optional

import numpy as np

from . import _native as c
from ._arrays import as_rows
from ._calls import Handle, NotPicklable, Progress, interruptible
from ._errors import check
from ._numpy import address
from .device import Device, DeviceLike, made, resolve
from .tensor import Tensor, asarray

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["Gguf", "QuantMatrix", "open_gguf"]


class QuantMatrix(NotPicklable):
    """A matrix of quantized weights on a device.

    >>> w = warpwave.QuantMatrix.from_array(np.ones((2, 32)), "q8_0", device="cpu")
    >>> w
    <warpwave.QuantMatrix: 2 x 32, q8_0, on cpu>
    >>> (w @ np.ones(32)).numpy().round(1)
    array([32., 32.], dtype=float32)
    """

    _handle: Handle
    _device: Device
    shape: tuple[int, int]
    type: str
    nbytes: int

    def __init__(self, *_: Any) -> None:
        raise TypeError("make matrices with QuantMatrix.from_array() or load them with open_gguf()")

    @classmethod
    def _of(cls, pointer: c_void_p, device: Device) -> QuantMatrix:
        self = cls.__new__(cls)
        self._handle = Handle(pointer.value or 0, c.ww_quant_destroy)
        self._device = device
        info = made(c.ww_quant_info)
        check(c.ww_quant_describe(pointer, byref(info)))
        self.shape = (info.rows, info.cols)
        self.type = c.ww_quant_name(info.type).decode()
        self.nbytes = info.bytes
        return self

    @classmethod
    def from_array(cls, values: Any, type: str, device: DeviceLike = None) -> QuantMatrix:
        """Quantize a matrix of floats: an array on the host, or a tensor on its device."""
        kind, pointer = c_int(), c_void_p()
        check(c.ww_quant_find(type.encode(), byref(kind)))
        if isinstance(values, Tensor):
            moved = values if device is None else values.to_device(device)
            check(c.ww_quant_from_tensor(kind.value, moved._tensor, byref(pointer)))
            return cls._of(pointer, moved.device)
        array, stride, _ = as_rows(values, 0, "values")
        to = resolve(device)
        check(c.ww_quant_from_f32(to._open().pointer, kind.value, address(array), array.shape[0], array.shape[1], stride, byref(pointer)))
        return cls._of(pointer, to)

    @property
    def device(self) -> Device:
        return self._device

    def numpy(self) -> npt.NDArray[np.float32]:
        """Return the dequantized numbers."""
        out = np.empty(self.shape, np.float32)
        check(c.ww_quant_read_f32(self._handle.pointer, 0, self.shape[0], address(out)))
        return out

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> npt.NDArray[Any]:
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> QuantMatrix:
        """Return rows of the matrix, sharing its memory."""
        first, end, step = rows.indices(self.shape[0])
        if step != 1:
            raise ValueError("rows of a quantized matrix are taken with a step of 1")
        pointer = c_void_p()
        check(c.ww_quant_view(self._handle.pointer, first, max(end - first, 0), byref(pointer)))
        return QuantMatrix._of(pointer, self._device)

    def multiply(self, x: Any, *, activations: str = "coded", math: str = "canonical") -> Tensor:
        """Multiply x, of shape [..., columns], by the matrix's rows, as a network layer does; the result is [..., rows].

        Activations are quantized to 8 bits unless activations="float".
        """
        kinds = {"coded": c.WW_ACTIVATIONS_CODED, "float": c.WW_ACTIVATIONS_FLOAT}
        modes = {"canonical": c.WW_MATH_CANONICAL, "fast": c.WW_MATH_FAST}
        if activations not in kinds or math not in modes:
            raise ValueError(f"activations is {activations!r} (coded or float), math is {math!r} (canonical or fast)")
        tensor = x.to_device(self._device) if isinstance(x, Tensor) else asarray(np.asarray(x, dtype=np.float32), device=self._device)
        options = made(c.ww_quant_product, math=modes[math], activations=kinds[activations])
        out = c.ww_tensor()
        check(c.ww_quant_multiply(self._handle.pointer, tensor._tensor, byref(options), out))
        return Tensor._of(out, self._device)

    def __matmul__(self, x: Any) -> Tensor:
        """Multiply the matrix by a vector [columns] or a matrix [columns, n]."""
        if not isinstance(x, Tensor):
            x = asarray(np.asarray(x, dtype=np.float32), device=self._device)
        if x.ndim == 1:
            return self.multiply(x)
        return self.multiply(x.mT).mT

    def __rmatmul__(self, x: Any) -> Tensor:
        raise TypeError("x @ matrix would need its columns; a layer is x @ matrix.T, which is matrix.multiply(x)")

    @property
    def T(self) -> _Transposed:
        """The transposed matrix, for `x @ matrix.T`."""
        return _Transposed(self)

    def __repr__(self) -> str:
        return f"<warpwave.QuantMatrix: {self.shape[0]} x {self.shape[1]}, {self.type}, on {self._device.id}>"


class _Transposed:
    """The transpose of a quantized matrix."""

    __array_priority__ = 200.0
    __array_ufunc__ = None  # make NumPy leave x @ self to us

    def __init__(self, matrix: QuantMatrix) -> None:
        self._matrix = matrix
        self.shape = matrix.shape[::-1]

    def __rmatmul__(self, x: Any) -> Tensor:
        return self._matrix.multiply(x)


_KINDS = {c.WW_GGUF_U8: "<u1", c.WW_GGUF_I8: "<i1", c.WW_GGUF_U16: "<u2", c.WW_GGUF_I16: "<i2", c.WW_GGUF_U32: "<u4", c.WW_GGUF_I32: "<i4",
          c.WW_GGUF_F32: "<f4", c.WW_GGUF_BOOL: "?", c.WW_GGUF_U64: "<u8", c.WW_GGUF_I64: "<i8", c.WW_GGUF_F64: "<f8"}


def _value(value: Any) -> Any:
    """Convert a metadata value: arrays of numbers become NumPy arrays, arrays of texts lists."""
    block = string_at(value.data, value.data_bytes) if value.data else b""
    if value.kind == c.WW_GGUF_STRING:
        return block[: value.count].decode("utf-8", "replace")
    if value.kind != c.WW_GGUF_ARRAY:
        return np.frombuffer(block, _KINDS[value.kind])[0].item()
    if value.element != c.WW_GGUF_STRING:
        return np.frombuffer(block, _KINDS[value.element]).copy()
    texts, place = [], 0
    for _ in range(value.count):
        length = int.from_bytes(block[place:place + 8], "little")
        texts.append(block[place + 8:place + 8 + length].decode("utf-8", "replace"))
        place += 8 + length
    return texts


class Gguf(NotPicklable, Mapping[str, QuantMatrix]):
    """An open GGUF file: its metadata, and its tensors by name, each loaded to the device on first access."""

    def __init__(self, path: Any, device: DeviceLike = None) -> None:
        pointer = c_void_p()
        self.path = os.fspath(path)
        check(c.ww_gguf_open(os.fsencode(path), byref(pointer)), self.path)
        self._handle = Handle(pointer.value or 0, c.ww_gguf_close, str(self.path))
        self._device = resolve(device)
        self._loaded: dict[str, QuantMatrix] = {}
        info = made(c.ww_gguf_info)
        check(c.ww_gguf_describe(pointer, byref(info)))
        self._count: int = info.tensors
        self._keys: int = info.keys

    def _at(self, index: int) -> Any:
        tensor = made(c.ww_gguf_tensor)
        with self._handle as pointer:
            check(c.ww_gguf_tensor_at(pointer, index, byref(tensor)))
        return tensor

    def _index(self, name: str) -> int:
        index = c_int64()
        with self._handle as pointer:
            check(c.ww_gguf_find_tensor(pointer, name.encode(), byref(index)))
        return index.value

    @property
    def metadata(self) -> dict[str, Any]:
        """All metadata keys and values."""
        found = {}
        with self._handle as pointer:
            for i in range(self._keys):
                value = made(c.ww_gguf_value)
                check(c.ww_gguf_value_at(pointer, i, byref(value)))
                found[value.key.decode("utf-8", "replace")] = _value(value)
        return found

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a tensor without loading it; the row length comes last, as in arrays."""
        with self._handle:
            tensor = self._at(self._index(name))
        return tuple(reversed(tensor.shape[: tensor.rank]))

    def load(self, name: str, *, progress: Progress = None) -> QuantMatrix:
        """Load a tensor as a matrix on the device; its rows stay quantized."""
        index = self._index(name)
        device, pointer = self._device._open(), c_void_p()
        with self._handle as file:
            interruptible(lambda told: c.ww_gguf_load(file, index, device.pointer, told, None, byref(pointer)), progress, name)
        return QuantMatrix._of(pointer, self._device)

    def __getitem__(self, name: str) -> QuantMatrix:
        found = self._loaded.get(name)
        if found is None:
            found = self._loaded[name] = self.load(name)
        return found

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in list(self)

    def __iter__(self) -> Iterator[str]:
        for i in range(self._count):
            with self._handle:  # the name is in the file's memory
                name: str = self._at(i).name.decode()
            yield name

    def __len__(self) -> int:
        return self._count

    def close(self) -> None:
        """Close the file; loaded matrices stay valid."""
        self._handle.close()
        self._loaded.clear()

    def __enter__(self) -> Gguf:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<warpwave.Gguf {self.path!r}: {self._count} tensors, {self._keys} keys{', closed' if self._handle.closed else ''}>"


def open_gguf(path: Any, device: DeviceLike = None) -> Gguf:
    """Open a GGUF file: `open_gguf("model.gguf")["blk.0.ffn_up.weight"] @ x`."""
    return Gguf(path, device)
