"""Tensors: arrays with the same bits on every device. Names follow the Python array API where it has one."""
from __future__ import annotations

import builtins
import math
import sys
from ctypes import byref, c_int32, c_void_p
from typing import TYPE_CHECKING, Any, Callable, Optional, Sequence, Union

import numpy as np

from . import _capsule
from . import _native as c
from ._calls import NotPicklable
from ._checked import integer, integers
from ._errors import check
from ._numpy import address
from .device import Device, DeviceLike, resolve

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = [
    "Tensor", "abs", "arange", "argmax", "argmin", "asarray", "astype", "atan2", "bfloat16", "broadcast_to", "ceil", "concat", "cos", "cumulative_sum",
    "divide", "elu", "empty", "equal", "erf", "exp", "expand_dims", "expm1", "float16", "float32", "float64", "float8_e4m3", "floor", "from_dlpack",
    "full", "gelu", "gelu_erf", "greater", "greater_equal", "int16", "int32", "int64", "int8", "layer_norm", "less", "less_equal", "load_npy",
    "load_safetensors", "log", "log1p", "matmul", "matrix_transpose", "maximum", "mean", "minimum", "multiply", "negative", "normal", "not_equal",
    "ones", "permute_dims", "pow", "prod", "reciprocal", "relu", "reshape", "rms_norm", "rsqrt", "sigmoid", "sign", "silu", "sin", "softmax", "sort",
    "sqrt", "square", "squeeze", "stack", "subtract", "add", "take", "tanh", "top_k", "uint32", "uint8", "uniform", "where", "zeros"
]

uint8, uint32, int8, int16, int32, int64 = "u8", "u32", "i8", "i16", "i32", "i64"
bfloat16, float16, float32, float64, float8_e4m3 = "bf16", "f16", "f32", "f64", "f8e4m3"

_NUMPY = {"u8": "uint8", "u32": "uint32", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "f16": "float16", "f32": "float32",
          "f64": "float64"}
_ML = {"bf16": "bfloat16", "f8e4m3": "float8_e4m3fn"}  # NumPy has these types with the package ml_dtypes
_OF_NUMPY = {**{name: ours for ours, name in _NUMPY.items()}, **{name: ours for ours, name in _ML.items()}, "bool": "u8"}
_NUMBERS = {name: int(c.ww_dtype_of_name(name.encode())) for name in (*_NUMPY, *_ML)}
_NAMES = {number: name for name, number in _NUMBERS.items()}
_FLOATS = {"bf16", "f16", "f32", "f64", "f8e4m3"}
Scalar = Union[int, float, bool]
Axis = Union[int, Sequence[int], None]


def _dtype(value: Any) -> str:
    """Return the name of a type given as our name ("f32"), NumPy's name ("float32") or a NumPy type."""
    if isinstance(value, str) and value in _NUMBERS:
        return value
    try:
        name = value if isinstance(value, str) and value in _OF_NUMPY else np.dtype(value).name
    except TypeError:
        name = str(value)
    if name not in _OF_NUMPY:
        raise TypeError(f"there is no type {name!r}; there are {', '.join(_NUMBERS)}")
    return _OF_NUMPY[name]


def _numpy_dtype(name: str) -> Any:
    if name in _NUMPY:
        return np.dtype(_NUMPY[name])
    try:
        import ml_dtypes
    except ImportError:
        raise TypeError(f"NumPy has no type for {name}: convert with astype('f32'), or install ml_dtypes") from None
    return np.dtype(getattr(ml_dtypes, _ML[name]))


def _shape(shape: Any) -> tuple[int, ...]:
    return tuple(integer(size, "shape", says="holds") for size in ((shape,) if isinstance(shape, (int, np.integer)) else shape))


def _sizes(shape: Sequence[int]) -> Any:
    return integers(shape, "shape")


def _called(function: Any, *arguments: Any, device: Device) -> Tensor:
    """Call an operation and return the tensor that it fills."""
    out = c.ww_tensor()
    status = function(*arguments, out)
    if status:
        check(status)
    return Tensor._of(out, device)


class Tensor(NotPicklable):
    """An array on a device. Created by `asarray`, `zeros`, ..., `from_dlpack`; operators return new tensors, slices views.

    >>> x = warpwave.asarray([[1, 2], [3, 4]], dtype="f32", device="cpu")
    >>> (x @ x + 1).numpy()
    array([[ 8., 11.],
           [16., 23.]], dtype=float32)
    >>> x[:, 1].sum().item()
    6.0
    """

    __slots__ = ("_tensor", "_device", "__weakref__")
    __array_priority__ = 100.0  # operators with a NumPy array use our methods

    _tensor: Any
    _device: Device

    def __init__(self, *_: Any) -> None:
        raise TypeError("make tensors with warpwave.asarray(), zeros(), from_dlpack(), ...")

    @classmethod
    def _of(cls, tensor: Any, device: Device) -> Tensor:
        self = cls.__new__(cls)
        self._tensor = tensor
        self._device = device
        return self

    def __del__(self, _release: Any = c.ww_tensor_release) -> None:
        tensor = getattr(self, "_tensor", None)
        if tensor is not None:
            _release(tensor)

    # ---- what it is ---------------------------------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        layout = self._tensor.layout
        return tuple(layout.shape[: layout.rank])

    @property
    def strides(self) -> tuple[int, ...]:
        """The strides in elements."""
        layout = self._tensor.layout
        return tuple(layout.strides[: layout.rank])

    @property
    def ndim(self) -> int:
        return int(self._tensor.layout.rank)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def dtype(self) -> str:
        return _NAMES[c.ww_tensor_dtype(self._tensor)]

    @property
    def device(self) -> Device:
        return self._device

    @property
    def T(self) -> Tensor:
        """The transposed matrix, a view."""
        if self.ndim != 2:
            raise ValueError(f"T is for matrices, and this tensor has {self.ndim} dimensions; see mT and permute_dims")
        return self.mT

    @property
    def mT(self) -> Tensor:
        """A view with the last two dimensions exchanged."""
        return self._view(c.ww_tensor_transpose, -1, -2)

    def __len__(self) -> int:
        if self.ndim == 0:
            raise TypeError("a tensor of rank 0 has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        head = f"Tensor({self.shape}, {self.dtype}, {self._device.id})"
        if self.size == 0 or self.size > 1000:
            return head
        values = self if self.dtype in _NUMPY else self.astype("f32")
        return f"{head}\n{values.numpy()}"

    # ---- to the host and to other devices -----------------------------------------------------------------------------------------

    def numpy(self) -> npt.NDArray[Any]:
        """Return a copy on the host as a NumPy array, after all queued operations are done."""
        out = np.empty(self.shape, _numpy_dtype(self.dtype))
        check(c.ww_tensor_to_host(self._tensor, address(out)))
        return out

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("a NumPy array of a tensor is a copy; on the CPU np.from_dlpack() shares the memory")
        found = self.numpy()
        return found if dtype is None else found.astype(dtype)

    def item(self) -> Scalar:
        """Return the number of a tensor with one element."""
        if self.size != 1:
            raise ValueError(f"a tensor of shape {self.shape} has {self.size} elements; item() is for one")
        values = self if self.dtype in _NUMPY else self.astype("f32")
        found: Scalar = values.numpy().reshape(()).item()
        return found

    def tolist(self) -> Any:
        return (self if self.dtype in _NUMPY else self.astype("f32")).numpy().tolist()

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        if self.dtype in _FLOATS:
            raise TypeError("a float is not an index")
        return int(self.item())

    def __bool__(self) -> bool:
        return bool(self.item())

    def to_device(self, device: DeviceLike) -> Tensor:
        """Return a copy on another device, or this tensor if it is already there."""
        to = resolve(device)
        if to.id == self._device.id:
            return self
        return _called(c.ww_tensor_copy_to, self._tensor, to._open().pointer, device=to)

    def astype(self, dtype: Any) -> Tensor:
        """Convert to another type, rounding to nearest even; to integers towards zero, saturating, NaN to 0."""
        return _called(c.ww_tensor_cast, self._tensor, _NUMBERS[_dtype(dtype)], device=self._device)

    def contiguous(self) -> Tensor:
        """Return a dense copy in row-major order."""
        return _called(c.ww_tensor_contiguous, self._tensor, device=self._device)

    copy = contiguous

    # ---- DLPack -------------------------------------------------------------------------------------------------------------------

    def __dlpack_device__(self) -> tuple[int, int]:
        kinds = {"cpu": 1, "cuda": 2, "rocm": 10}
        return kinds.get(self._device.backend, 12), 0 if self._device.backend == "cpu" else self._device.index

    def __dlpack__(self, *, stream: Optional[int] = None, max_version: Optional[tuple[int, int]] = None, dl_device: Optional[tuple[int, int]] = None,
                   copy: Optional[bool] = None) -> Any:
        """Return a capsule for another library, without a copy unless requested. `stream`, the consumer's, waits for our queue."""
        source = self
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            if dl_device[0] != 1 or copy is False:
                raise BufferError(f"the tensor is on {self._device.id}, DLPack's device {self.__dlpack_device__()}; {tuple(dl_device)} was asked for")
            source, copy = self.to_device("cpu"), None
        if copy:
            source = source.contiguous()
        return _capsule.give(source._tensor, 0 if stream is None else stream, max_version is not None and max_version[0] >= 1)

    def __array_namespace__(self, *, api_version: Optional[str] = None) -> Any:
        return sys.modules[__name__]

    # ---- views --------------------------------------------------------------------------------------------------------------------

    def _view(self, function: Any, *arguments: Any) -> Tensor:
        return _called(function, self._tensor, *arguments, device=self._device)

    def reshape(self, *shape: Any) -> Tensor:
        """Return the elements in another shape, in which one size may be -1: a view if possible, otherwise a copy."""
        wanted = _shape(shape[0] if len(shape) == 1 else shape)
        out = c.ww_tensor()
        status = c.ww_tensor_reshape(self._tensor, len(wanted), _sizes(wanted), out)
        if status == c.WW_UNSUPPORTED:
            return self.contiguous().reshape(wanted)
        check(status)
        return Tensor._of(out, self._device)

    def __getitem__(self, key: Any) -> Tensor:
        """Return a view for integers, slices with steps of at least 1, `...` and None. Arrays of integers take those slices."""
        if isinstance(key, (Tensor, np.ndarray, list)):
            return take(self, key, axis=0)
        keys = key if isinstance(key, tuple) else (key,)
        given = [k for k in keys if k is not None and k is not Ellipsis]
        if len(given) > self.ndim or keys.count(Ellipsis) > 1:
            raise IndexError(f"{len(given)} indices for a tensor of {self.ndim} dimensions")
        if Ellipsis not in keys:
            keys = (*keys, Ellipsis)
        view, axis = self, 0
        for k in keys:
            if k is None:
                view = view._view(c.ww_tensor_unsqueeze, axis)
                axis += 1
            elif k is Ellipsis:
                axis += self.ndim - len(given)
            elif isinstance(k, slice):
                begin, end, step = k.start, k.stop, 1 if k.step is None else k.step
                size = view.shape[axis]
                view = view._view(c.ww_tensor_slice, axis, 0 if begin is None else begin, size if end is None else end, step)
                axis += 1
            else:
                index, size = int(k.__index__()), view.shape[axis]
                if not -size <= index < size:
                    raise IndexError(f"index {index} for dimension {axis} of size {size}")
                view = view._view(c.ww_tensor_select, axis, index % size)
        return view if view is not self else self._view(c.ww_tensor_view, byref(self._tensor.layout))

    def __setitem__(self, key: Any, value: Any) -> None:
        to = self[key]
        source = value if isinstance(value, Tensor) else asarray(value, dtype=self.dtype, device=self._device)
        if source.shape != to.shape:
            source = broadcast_to(source, to.shape)
        check(c.ww_tensor_copy_strided(source._tensor, to._tensor))

    # ---- operators ----------------------------------------------------------------------------------------------------------------

    def _other(self, value: Any) -> Any:
        """Return the other operand as a tensor: a number takes this tensor's type, an array moves to its device."""
        if isinstance(value, Tensor):
            return value
        if isinstance(value, (bool, int, float, np.generic)):
            return full((), float(value), dtype=self.dtype, device=self._device) if not isinstance(value, int) or abs_int(value) < 2**53 else asarray(
                np.array(value), dtype=self.dtype, device=self._device)
        if isinstance(value, (np.ndarray, list)):
            return asarray(value, dtype=None if isinstance(value, np.ndarray) else self.dtype, device=self._device)
        return NotImplemented

    def _binary(self, op: int, other: Any, swapped: bool = False, compare: bool = False) -> Any:
        y = self._other(other)
        if y is NotImplemented:
            return NotImplemented
        a, b = (y, self) if swapped else (self, y)
        return _called(c.ww_tensor_cmp if compare else c.ww_tensor_binary, op, a._tensor, b._tensor, device=self._device)

    def __add__(self, other: Any) -> Tensor:
        return self._binary(c.WW_ADD, other)  # type: ignore[no-any-return]

    def __radd__(self, other: Any) -> Tensor:
        return self._binary(c.WW_ADD, other, True)  # type: ignore[no-any-return]

    def __sub__(self, other: Any) -> Tensor:
        return self._binary(c.WW_SUB, other)  # type: ignore[no-any-return]

    def __rsub__(self, other: Any) -> Tensor:
        return self._binary(c.WW_SUB, other, True)  # type: ignore[no-any-return]

    def __mul__(self, other: Any) -> Tensor:
        return self._binary(c.WW_MUL, other)  # type: ignore[no-any-return]

    def __rmul__(self, other: Any) -> Tensor:
        return self._binary(c.WW_MUL, other, True)  # type: ignore[no-any-return]

    def _floats(self, what: str) -> None:
        if self.dtype not in _FLOATS:
            raise TypeError(f"{what} is for floats, and the tensor is {self.dtype}: convert with astype()")

    def __truediv__(self, other: Any) -> Tensor:
        self._floats("/")
        return self._binary(c.WW_DIV, other)  # type: ignore[no-any-return]

    def __rtruediv__(self, other: Any) -> Tensor:
        self._floats("/")
        return self._binary(c.WW_DIV, other, True)  # type: ignore[no-any-return]

    def __pow__(self, other: Any) -> Tensor:
        return self._binary(c.WW_POW, other)  # type: ignore[no-any-return]

    def __rpow__(self, other: Any) -> Tensor:
        return self._binary(c.WW_POW, other, True)  # type: ignore[no-any-return]

    def __neg__(self) -> Tensor:
        return _unary(c.WW_NEG, self)

    def __pos__(self) -> Tensor:
        return self.contiguous()

    def __abs__(self) -> Tensor:
        return _unary(c.WW_ABS, self)

    def __matmul__(self, other: Any) -> Tensor:
        y = self._other(other)
        return NotImplemented if y is NotImplemented else matmul(self, y)

    def __rmatmul__(self, other: Any) -> Tensor:
        x = self._other(other)
        return NotImplemented if x is NotImplemented else matmul(x, self)

    def __eq__(self, other: object) -> Any:
        return self._binary(c.WW_EQ, other, compare=True)

    def __ne__(self, other: object) -> Any:
        return self._binary(c.WW_NE, other, compare=True)

    def __lt__(self, other: Any) -> Any:
        return self._binary(c.WW_LT, other, compare=True)

    def __le__(self, other: Any) -> Any:
        return self._binary(c.WW_LE, other, compare=True)

    def __gt__(self, other: Any) -> Any:
        return self._binary(c.WW_GT, other, compare=True)

    def __ge__(self, other: Any) -> Any:
        return self._binary(c.WW_GE, other, compare=True)

    __hash__ = None  # type: ignore[assignment]

    # ---- reductions ---------------------------------------------------------------------------------------------------------------

    def sum(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        return _reduced(c.WW_REDUCE_SUM, self, axis, keepdims)

    def mean(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        return _reduced(c.WW_REDUCE_MEAN, self, axis, keepdims)

    def max(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        return _reduced(c.WW_REDUCE_MAX, self, axis, keepdims)

    def min(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        return _reduced(c.WW_REDUCE_MIN, self, axis, keepdims)

    def prod(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        return _reduced(c.WW_REDUCE_PROD, self, axis, keepdims)

    def argmax(self, axis: int = -1, keepdims: bool = False) -> Tensor:
        return _reduced(c.WW_REDUCE_ARGMAX, self, axis, keepdims)

    def argmin(self, axis: int = -1, keepdims: bool = False) -> Tensor:
        return _reduced(c.WW_REDUCE_ARGMIN, self, axis, keepdims)


abs_int = builtins.abs

# ---- making tensors ---------------------------------------------------------------------------------------------------------------


def asarray(value: Any, dtype: Any = None, device: DeviceLike = None, copy: Optional[bool] = None) -> Tensor:
    """Return a tensor with the numbers of an array, a list, a number or a tensor, copied to the device.

    A DLPack object on a GPU stays there unless `device` is given. Python floats become f32. A tensor that already matches is returned
    unchanged, unless `copy` is true.
    """
    if isinstance(value, Tensor):
        moved = value if device is None else value.to_device(device)
        moved = moved if dtype is None or _dtype(dtype) == moved.dtype else moved.astype(dtype)
        return moved.contiguous() if copy and moved is value else moved
    if not isinstance(value, (np.ndarray, np.generic)) and hasattr(value, "__dlpack__"):
        return asarray(from_dlpack(value), dtype, device, True if copy is None else copy)
    array = np.asarray(value)
    if dtype is None and not isinstance(value, (np.ndarray, np.generic)) and array.dtype == np.float64:
        array = array.astype(np.float32)
    wanted = _dtype(array.dtype if dtype is None else dtype)
    if array.dtype.kind not in "fiubV":
        raise TypeError(f"an array of type {array.dtype} cannot become a tensor; its elements must be numbers")
    if array.dtype == np.uint64 and array.size and array.max() > np.uint64(2**63 - 1):
        raise ValueError(f"value holds {array.max()}; tensors hold integers up to {2**63 - 1}")
    if array.dtype.name not in _OF_NUMPY:  # u16, u64, long double: via a type that can represent them
        array = array.astype(np.int64 if array.dtype.kind in "iu" else np.float64)
    ours = _OF_NUMPY[array.dtype.name]
    array = np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(array.shape)
    to = resolve(device)
    made = _called(c.ww_tensor_from_host, to._open().pointer, _NUMBERS[ours], array.ndim, _sizes(array.shape), address(array), device=to)
    return made if ours == wanted else made.astype(wanted)


def from_dlpack(value: Any, *, device: DeviceLike = None, copy: Optional[bool] = None) -> Tensor:
    """Return a tensor on the memory of another library's array (NumPy, PyTorch, JAX, CuPy), without a copy.

    The memory stays valid until the tensor and its views are gone.

    >>> x = np.arange(3, dtype=np.float32)
    >>> t = warpwave.from_dlpack(x)
    >>> x[0] = 7
    >>> t.tolist()
    [7.0, 1.0, 2.0]
    """
    kind, index = value.__dlpack_device__()
    if kind in (1, 3, 11):
        name = "cpu"
    elif kind in (2, 13):
        name = f"cuda:{index}"
    elif kind == 10:
        name = f"rocm:{index}"
    elif kind == 12 and isinstance(value, Tensor):
        name = value.device.id
    else:
        raise BufferError(f"the array is on DLPack's device ({int(kind)}, {index}), which is not a device of this library")
    found = resolve(name)
    pointer = found._open().pointer
    stream: Optional[int] = None
    if name != "cpu":
        own = c_void_p()
        check(c.ww_device_stream(pointer, byref(own)))
        stream = own.value or 1
    try:
        capsule = value.__dlpack__(max_version=(1, 1)) if stream is None else value.__dlpack__(stream=stream, max_version=(1, 1))
    except TypeError:  # a library older than DLPack 1.0
        capsule = value.__dlpack__() if stream is None else value.__dlpack__(stream=stream)
    tensor = Tensor._of(_capsule.take(capsule, pointer, c.WW_STREAM_NONE), found)
    if device is not None and resolve(device).id != found.id:
        if copy is False:
            raise BufferError(f"the array is on {found.id}; on another device it would be a copy")
        return tensor.to_device(device)
    return tensor.contiguous() if copy else tensor


def _filled(function: Any, shape: Any, dtype: Any, device: DeviceLike, *values: float) -> Tensor:
    wanted = _shape(shape)
    to = resolve(device)
    return _called(function, to._open().pointer, _NUMBERS[_dtype(dtype)], len(wanted), _sizes(wanted), *values, device=to)


def empty(shape: Any, dtype: Any = "f32", device: DeviceLike = None) -> Tensor:
    """Return a tensor with undefined elements."""
    return _filled(c.ww_tensor_empty, shape, dtype, device)


def zeros(shape: Any, dtype: Any = "f32", device: DeviceLike = None) -> Tensor:
    """Return a tensor of zeros."""
    return _filled(c.ww_tensor_zeros, shape, dtype, device)


def full(shape: Any, fill_value: float, dtype: Any = "f32", device: DeviceLike = None) -> Tensor:
    """Return a tensor filled with one number."""
    return _filled(c.ww_tensor_full, shape, dtype, device, fill_value)


def ones(shape: Any, dtype: Any = "f32", device: DeviceLike = None) -> Tensor:
    """Return a tensor of ones."""
    return full(shape, 1.0, dtype, device)


def uniform(shape: Any, low: float = 0.0, high: float = 1.0, dtype: Any = "f32", device: DeviceLike = None) -> Tensor:
    """Return random numbers from `low` up to `high`; `Device.seed` sets the seed."""
    return _filled(c.ww_tensor_uniform, shape, dtype, device, low, high)


def normal(shape: Any, mean: float = 0.0, deviation: float = 1.0, dtype: Any = "f32", device: DeviceLike = None) -> Tensor:
    """Return normally distributed random numbers."""
    return _filled(c.ww_tensor_normal, shape, dtype, device, mean, deviation)


def arange(start: float, stop: Optional[float] = None, step: float = 1, dtype: Any = None, device: DeviceLike = None) -> Tensor:
    """Return start, start + step, ... up to but not including `stop`."""
    if stop is None:
        start, stop = 0, start
    if dtype is None:
        dtype = "i64" if all(isinstance(value, int) for value in (start, stop, step)) else "f32"
    to = resolve(device)
    return _called(c.ww_tensor_arange, to._open().pointer, _NUMBERS[_dtype(dtype)], start, stop, step, device=to)


def load_npy(path: Any, device: DeviceLike = None) -> Tensor:
    """Load the array in a .npy file."""
    return _loaded(c.ww_tensor_load_npy, path, device)


def load_safetensors(path: Any, name: str, device: DeviceLike = None) -> Tensor:
    """Load the tensor called `name` from a .safetensors file."""
    return _loaded(c.ww_tensor_load_safetensors, path, device, name.encode())


def _loaded(function: Any, path: Any, device: DeviceLike, *names: bytes) -> Tensor:
    import os

    to, out = resolve(device), c.ww_tensor()
    check(function(to._open().pointer, os.fsencode(path), *names, out), os.fspath(path))
    return Tensor._of(out, to)


# ---- functions --------------------------------------------------------------------------------------------------------------------


def _unary(op: int, x: Tensor) -> Tensor:
    return _called(c.ww_tensor_unary, op, x._tensor, device=x._device)


def _element_function(op: int, says: str) -> Callable[[Tensor], Tensor]:
    def function(x: Tensor, /) -> Tensor:
        return _unary(op, x)

    function.__doc__ = says
    return function


abs = _element_function(c.WW_ABS, "The magnitude.")  # noqa: A001
negative = _element_function(c.WW_NEG, "-x.")
reciprocal = _element_function(c.WW_RECIP, "1 / x.")
square = _element_function(c.WW_SQR, "x * x.")
sqrt = _element_function(c.WW_SQRT, "The square root.")
rsqrt = _element_function(c.WW_RSQRT, "1 / sqrt(x).")
relu = _element_function(c.WW_RELU, "x where it is positive, else 0.")
floor = _element_function(c.WW_FLOOR, "The whole number below.")
ceil = _element_function(c.WW_CEIL, "The whole number above.")
sign = _element_function(c.WW_SIGN, "-1, 0 or 1.")
exp = _element_function(c.WW_EXP, "e to the power of x.")
expm1 = _element_function(c.WW_EXPM1, "exp(x) - 1.")
log = _element_function(c.WW_LOG, "The natural logarithm.")
log1p = _element_function(c.WW_LOG1P, "log(1 + x).")
sin = _element_function(c.WW_SIN, "The sine.")
cos = _element_function(c.WW_COS, "The cosine.")
tanh = _element_function(c.WW_TANH, "The hyperbolic tangent.")
erf = _element_function(c.WW_ERF, "The error function.")
sigmoid = _element_function(c.WW_SIGMOID, "1 / (1 + exp(-x)).")
silu = _element_function(c.WW_SILU, "x sigmoid(x).")
gelu = _element_function(c.WW_GELU, "x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).")
gelu_erf = _element_function(c.WW_GELU_ERF, "x/2 (1 + erf(x / sqrt(2))).")


def elu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """Return x where it is positive, alpha (exp(x) - 1) elsewhere."""
    return _called(c.ww_tensor_elu, x._tensor, alpha, device=x._device)


def _both(op: int, x: Any, y: Any, compare: bool = False) -> Tensor:
    if isinstance(x, Tensor):
        found = x._binary(op, y, compare=compare)
    else:
        found = y._binary(op, x, swapped=True, compare=compare)
    if found is NotImplemented:
        raise TypeError(f"a {type(y).__name__} is not an operand")
    return found  # type: ignore[no-any-return]


def _pair_function(op: int, says: str, compare: bool = False) -> Callable[[Any, Any], Tensor]:
    def function(x: Any, y: Any, /) -> Tensor:
        return _both(op, x, y, compare)

    function.__doc__ = says
    return function


add = _pair_function(c.WW_ADD, "x + y.")
subtract = _pair_function(c.WW_SUB, "x - y.")
multiply = _pair_function(c.WW_MUL, "x * y.")
divide = _pair_function(c.WW_DIV, "x / y; of integers towards zero, and 0 where y is 0.")
maximum = _pair_function(c.WW_MAXIMUM, "The larger; NaN if either is.")
minimum = _pair_function(c.WW_MINIMUM, "The smaller; NaN if either is.")
pow = _pair_function(c.WW_POW, "x to the power of y.")  # noqa: A001
atan2 = _pair_function(c.WW_ATAN2, "The angle of the point (y, x): x is the ordinate.")
equal = _pair_function(c.WW_EQ, "1 where x == y, as u8.", True)
not_equal = _pair_function(c.WW_NE, "1 where x != y, as u8.", True)
less = _pair_function(c.WW_LT, "1 where x < y, as u8.", True)
less_equal = _pair_function(c.WW_LE, "1 where x <= y, as u8.", True)
greater = _pair_function(c.WW_GT, "1 where x > y, as u8.", True)
greater_equal = _pair_function(c.WW_GE, "1 where x >= y, as u8.", True)


def where(condition: Tensor, x: Any, y: Any) -> Tensor:
    """Return x where the condition (u8, u32 or i64) is not 0, y elsewhere."""
    if not isinstance(x, Tensor) and not isinstance(y, Tensor):
        x = asarray(x, device=condition._device)
    a = x if isinstance(x, Tensor) else y._other(x)
    b = y if isinstance(y, Tensor) else a._other(y)
    return _called(c.ww_tensor_where, condition._tensor, a._tensor, b._tensor, device=condition._device)


def matmul(a: Tensor, b: Tensor, *, math: str = "canonical") -> Tensor:
    """Return the matrix product, with the same bits on every device; math="fast" uses the vendor's library, with close results."""
    modes = {"canonical": c.WW_MATH_CANONICAL, "fast": c.WW_MATH_FAST}
    if math not in modes:
        raise ValueError(f"math is {math!r}; it must be canonical or fast")
    x = a._view(c.ww_tensor_unsqueeze, 0) if a.ndim == 1 else a
    y = b._view(c.ww_tensor_unsqueeze, 1) if b.ndim == 1 else b
    out = _called(c.ww_tensor_matmul, x._tensor, y._tensor, modes[math], device=a._device)
    if b.ndim == 1:
        out = out._view(c.ww_tensor_squeeze, -1)
    return out._view(c.ww_tensor_squeeze, -1 if b.ndim == 1 else -2) if a.ndim == 1 else out


def _axis(axis: Any) -> int:
    return integer(axis, "axis", c_int32)


def _axes(x: Tensor, axis: Axis) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(x.ndim))
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    if any(not -x.ndim <= a < x.ndim for a in axes):
        raise IndexError(f"axis {axis} of a tensor with {x.ndim} dimensions")
    return tuple(a % x.ndim for a in axes)


def _reduced(op: int, x: Tensor, axis: Axis, keepdims: bool) -> Tensor:
    axes = _axes(x, axis)
    if not axes and x.ndim:
        return x.contiguous()
    dims = integers(axes, "axes", c_int32)
    out = _called(c.ww_tensor_reduce, op, x._tensor, dims, len(axes), device=x._device)
    if keepdims:
        out = out.reshape(tuple(1 if i in axes else size for i, size in enumerate(x.shape)))
    return out


def mean(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the mean over some or all dimensions, summed in the same order on every device."""
    return x.mean(axis, keepdims)


def prod(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the product over some or all dimensions."""
    return x.prod(axis, keepdims)


def argmax(x: Tensor, axis: int = -1, keepdims: bool = False) -> Tensor:
    """Return the index of the first maximum, as u32."""
    return x.argmax(axis, keepdims)


def argmin(x: Tensor, axis: int = -1, keepdims: bool = False) -> Tensor:
    """Return the index of the first minimum, as u32."""
    return x.argmin(axis, keepdims)


def cumulative_sum(x: Tensor, axis: int = -1) -> Tensor:
    """Return running sums."""
    return _called(c.ww_tensor_cumsum, x._tensor, _axis(axis), device=x._device)


def softmax(x: Tensor, axis: int = -1) -> Tensor:
    """Return e^(x - m) divided by the sum of these, where m is the maximum."""
    return _called(c.ww_tensor_softmax, x._tensor, _axis(axis), device=x._device)


def layer_norm(x: Tensor, weight: Optional[Tensor] = None, bias: Optional[Tensor] = None, eps: float = 1e-5) -> Tensor:
    """Return (x - mean) / sqrt(variance + eps) * weight + bias, along the last dimension."""
    return _called(c.ww_tensor_layer_norm, x._tensor, None if weight is None else weight._tensor, None if bias is None else bias._tensor, eps,
                   device=x._device)


def rms_norm(x: Tensor, weight: Optional[Tensor] = None, eps: float = 1e-5) -> Tensor:
    """Return x / sqrt(mean of squares + eps) * weight, along the last dimension."""
    return _called(c.ww_tensor_rms_norm, x._tensor, None if weight is None else weight._tensor, eps, device=x._device)


def _ordered(call: Callable[[Any, Any], int], x: Tensor) -> tuple[Tensor, Tensor]:
    values, indices = c.ww_tensor(), c.ww_tensor()
    check(call(values, indices))
    return Tensor._of(values, x._device), Tensor._of(indices, x._device)


def sort(x: Tensor, *, descending: bool = False) -> tuple[Tensor, Tensor]:
    """Sort along the last dimension; return the elements and their former indices (u32)."""
    return _ordered(lambda values, indices: c.ww_tensor_sort(x._tensor, descending, values, indices), x)


def top_k(x: Tensor, k: int, *, largest: bool = True) -> tuple[Tensor, Tensor]:
    """Return the first k elements in sorted order, and their former indices."""
    return _ordered(lambda values, indices: c.ww_tensor_top_k(x._tensor, k, largest, values, indices), x)


def take(x: Tensor, indices: Any, axis: int = 0) -> Tensor:
    """Return the slices of x along `axis` at the given indices."""
    ids = indices if isinstance(indices, Tensor) else asarray(np.asarray(indices), dtype="i64", device=x._device)
    if ids.dtype not in ("u8", "u32", "i64"):
        ids = ids.astype("i64")
    return _called(c.ww_tensor_index_select, x._tensor, ids._tensor, _axis(axis), device=x._device)


def concat(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Join tensors along a dimension."""
    listed = (c.ww_tensor * builtins.max(len(tensors), 1))(*(x._tensor for x in tensors))
    if not tensors:
        raise ValueError("concat: no tensors")
    return _called(c.ww_tensor_cat, listed, len(tensors), _axis(axis), device=tensors[0]._device)


def stack(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Join tensors along a new dimension."""
    return concat([expand_dims(x, axis) for x in tensors], axis)


def reshape(x: Tensor, shape: Any) -> Tensor:
    """Reshape as `Tensor.reshape` does."""
    return x.reshape(shape)


def permute_dims(x: Tensor, axes: Sequence[int]) -> Tensor:
    """Return a view with the dimensions in another order."""
    if len(axes) != x.ndim:
        raise ValueError(f"{len(axes)} axes for a tensor of {x.ndim} dimensions")
    return x._view(c.ww_tensor_permute, integers(axes, "axes", c_int32))


def matrix_transpose(x: Tensor) -> Tensor:
    """Return a view with the last two dimensions exchanged."""
    return x.mT


def broadcast_to(x: Tensor, shape: Any) -> Tensor:
    """Return a view repeated to a larger shape."""
    wanted = _shape(shape)
    return x._view(c.ww_tensor_broadcast_to, len(wanted), _sizes(wanted))


def squeeze(x: Tensor, axis: int) -> Tensor:
    """Return a view without a dimension of size 1."""
    return x._view(c.ww_tensor_squeeze, _axis(axis))


def expand_dims(x: Tensor, axis: int = 0) -> Tensor:
    """Return a view with an extra dimension of size 1."""
    place = _axis(axis)
    return x._view(c.ww_tensor_unsqueeze, place if place >= 0 else place + x.ndim + 1)


def astype(x: Tensor, dtype: Any) -> Tensor:
    """Convert as `Tensor.astype` does."""
    return x.astype(dtype)
