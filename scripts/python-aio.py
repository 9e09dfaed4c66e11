#!/usr/bin/env python3
"""Makes python/warpwave/aio.pyi, what type checkers know of AsyncCollection, AsyncStore and AsyncModel: every public method of their synchronous
classes as a coroutine. At run time these methods are made by name (python/warpwave/aio.py).

    scripts/python-aio.py --check     compares it with the file in the tree; `--write` writes it
"""
import ast
import pathlib
import sys

PACKAGE = pathlib.Path(__file__).resolve().parent.parent / "python" / "warpwave"
TARGET = PACKAGE / "aio.pyi"
# The class, the modules of the classes that it is made of, and the classes, first those that are looked at first.
CLASSES = {
    "AsyncCollection": [("text", "TextCollection"), ("vectors", "Collection"), ("_frames", "Frames"), ("_ivf", "Indexed"), ("_map", "Mapped")],
    "AsyncStore": [("store", "Store")],
    "AsyncModel": [("model", "Model")],
}
OWN = {"AsyncCollection": {"iterate", "items", "close"}, "AsyncStore": {"close"}, "AsyncModel": {"close"}}
WRAPPED = {"Collection", "TextCollection"}  # results that become an AsyncCollection
HEAD = '''"""Types of aio.py; made by scripts/python-aio.py."""
from __future__ import annotations

from typing import Any, AsyncIterator, Callable, Iterator, Literal, Optional, Sequence, Union, overload
import uuid

import os
import numpy as np
import numpy.typing as npt

from ._calls import Progress
from ._ivf import IvfInfo
from ._map import Map
from ._select import Where
from .device import Device, DeviceLike
from .model import Model, ModelInfo, Prompt, Reply, Schema, Session, Stop, Tools
from .results import Results, Row
from .store import Store, StoreInfo
from .text import Rerank
from .vectors import Collection, CollectionInfo, Embed
'''
TAIL = {
    "AsyncCollection": '''
    sync: Collection
    name: str
    dim: int
    metric: str
    type: str
    embed: Optional[Embed]
    def __init__(self, sync: Collection) -> None: ...
    @classmethod
    async def open(cls, *arguments: Any, **options: Any) -> AsyncCollection: ...
    async def close(self) -> None: ...
    async def __aenter__(self) -> AsyncCollection: ...
    async def __aexit__(self, *_: object) -> None: ...
    def __len__(self) -> int: ...
    def __aiter__(self) -> AsyncIterator[str]: ...
    def iterate(self, where: Optional[Where] = None, *, parameters: Any = None, vectors: bool = True, payloads: bool = True, sparse: bool = False, multi: bool = False) -> AsyncIterator[Row]: ...
    items = iterate
''',
    "AsyncStore": '''
    sync: Store
    path: str
    def __init__(self, sync: Store) -> None: ...
    @classmethod
    async def open(cls, *arguments: Any, **options: Any) -> AsyncStore: ...
    async def close(self) -> None: ...
    async def __aenter__(self) -> AsyncStore: ...
    async def __aexit__(self, *_: object) -> None: ...
    async def collection(self, name: str) -> AsyncCollection: ...
''',
    "AsyncModel": '''
    sync: Model
    info: ModelInfo
    kind: str
    pooling: str
    has_chat: bool
    embeds: bool
    reranks: bool
    def __init__(self, sync: Model) -> None: ...
    @classmethod
    async def open(cls, *arguments: Any, **options: Any) -> AsyncModel: ...
    async def close(self) -> None: ...
    async def __aenter__(self) -> AsyncModel: ...
    async def __aexit__(self, *_: object) -> None: ...
    def stream(self, prompt: Prompt, max_tokens: int = 128, *, stop: Stop = None, chat: bool = False, system: Optional[str] = None, **sampling: Any) -> AsyncIterator[str]: ...
''',
}


def class_of(module, name):
    tree = ast.parse((PACKAGE / f"{module}.py").read_text(encoding="utf-8"))
    return next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)


def written(node, plain):
    """A method as a stub; a property stays one."""
    names = {ast.unparse(one) for one in node.decorator_list}
    if names & {"classmethod", "staticmethod"}:
        return ""
    result = ast.unparse(node.returns) if node.returns else "Any"
    result = "AsyncCollection" if result in WRAPPED else result
    for argument in (*node.args.defaults, *(one for one in node.args.kw_defaults if one is not None)):
        assert isinstance(argument, (ast.Constant, ast.Name, ast.UnaryOp, ast.Attribute)), ast.dump(argument)
    decorators = "".join(f"    @{name}\n" for name in sorted(names) if name in ("property", "overload"))
    word = "def" if "property" in names or plain else "async def"
    return f"{decorators}    {word} {node.name}({ast.unparse(node.args)}) -> {result}: ...\n"


def stub():
    text = HEAD
    for name, bases in CLASSES.items():
        text += f"\n\nclass {name}:{TAIL[name]}"
        seen = set(OWN[name])
        for module, base in bases:
            here = set()
            for node in class_of(module, base).body:
                if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and node.name not in seen:
                    here.add(node.name)
                    overloaded = any(ast.unparse(one) == "overload" for one in node.decorator_list)
                    repeated = sum(isinstance(one, ast.FunctionDef) and one.name == node.name for one in class_of(module, base).body) > 1
                    if overloaded or not repeated:
                        text += written(node, False)
            seen |= here
    return text


def main():
    if sys.argv[1:] == ["--write"]:
        TARGET.write_text(stub(), encoding="utf-8")
    elif sys.argv[1:] == ["--check"]:
        if not TARGET.exists() or TARGET.read_text(encoding="utf-8") != stub():
            sys.exit("python-aio: python/warpwave/aio.pyi is not what its classes give; scripts/python-aio.py --write")
    else:
        sys.exit(__doc__)


main()
