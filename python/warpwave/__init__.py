"""Warpwave: exact vector search, tensors and quantized matrices on AMD GPUs, NVIDIA GPUs and CPUs, with the same bits on all of them.

>>> c = warpwave.Collection(2, device="cpu")
>>> c.add([[1, 0], [0, 1], [0.8, 0.6]], ids=["east", "north", "northeast"])
>>> list(c.search([0.9, 0.1], k=2).ids)
['east', 'northeast']
"""
from __future__ import annotations

from . import _native
from ._errors import (Busy, Cancelled, CorruptFile, CutText, DimensionMismatch, DriverError, DuplicateId, Error, ErrorDetail, InternalError, InvalidArgument, IoError, MissingPrompt,
                      MissingFile, NoDevice, NotFound, OtherProcess, OutOfMemory, OutOfRange, Status, Unsupported)
from .device import Device, DeviceInfo, MemoryInfo, backend_absence, devices
from .results import Hit, Results, Row, SearchStats, TextHit
from ._bm25 import bm25
from ._sparse import SparseVector
from .flat import IndexFlat, IndexFlatIP, IndexFlatL2, IndexIVFFlat
from .model import Model, ModelInfo, Reply, Session, ToolCall
from .quant import Gguf, QuantMatrix, open_gguf
from .sql import load
from .store import Store, StoreInfo
from .text import TextCollection
from .tensor import *  # noqa: F403  the names of the array API
from .tensor import __all__ as _tensor_names
from ._ivf import IvfInfo
from ._map import Map
from .vectors import Collection, CollectionInfo, score
from ._plan import Plan, StageReport
from .aio import AsyncCollection, AsyncModel, AsyncStore

__version__: str = _native.ww_version().decode()

__all__ = [
    "AsyncCollection", "AsyncModel", "AsyncStore", "Busy", "Cancelled", "Collection", "CollectionInfo", "CorruptFile", "CutText", "Device", "DeviceInfo", "DimensionMismatch", "DriverError", "DuplicateId", "Error",
    "ErrorDetail", "Gguf", "Hit", "IndexFlat", "IndexFlatIP", "IndexFlatL2", "IndexIVFFlat", "InternalError", "InvalidArgument", "IoError", "IvfInfo", "Map", "MemoryInfo", "MissingFile", "MissingPrompt", "Model", "ModelInfo", "NoDevice", "NotFound", "OtherProcess",
    "OutOfMemory", "OutOfRange", "Plan", "QuantMatrix", "Reply", "Results", "Row", "SearchStats", "Session", "SparseVector", "StageReport", "Status", "Store", "StoreInfo", "TextCollection", "TextHit", "ToolCall", "Unsupported", "backend_absence", "bm25", "devices", "load", "open_gguf", "score"
]
__all__ += _tensor_names
