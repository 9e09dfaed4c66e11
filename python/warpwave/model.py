"""Models from GGUF files: texts embedded, and continued."""
from __future__ import annotations

import os
from ctypes import POINTER, byref, c_char_p, c_int, c_int32, c_size_t, c_void_p, cast, create_string_buffer, sizeof, string_at
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Optional, Sequence, Union, overload

import numpy as np

from . import _native as c
from ._arrays import address
from ._calls import Handle, NotPicklable, Progress, interruptible
from ._checked import integers, text
from ._errors import check
from .device import Device, DeviceLike, from_struct, made, resolve

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["Model", "ModelInfo", "Session"]

_CACHES = {"f16": c.WW_QUANT_F16, "f32": c.WW_QUANT_F32, "q8_0": c.WW_QUANT_Q8_0}
_POOLINGS = {c.WW_POOLING_NONE: "none", c.WW_POOLING_MEAN: "mean", c.WW_POOLING_CLS: "cls"}


@dataclass(frozen=True)
class ModelInfo:
    """What a model is; the fields are those of the C struct ww_model_info."""

    architecture: str
    name: str
    licence: str
    tokenizer: str
    device: str
    fingerprint: str
    parameters: int
    weight_bytes: int
    cache_bytes: int
    vocabulary: int
    context: int
    layers: int
    width: int
    hidden: int
    heads: int
    key_heads: int
    head_size: int
    window: int
    bos: int
    eos: int


def _initialised(kind: Any, init: Callable[..., int]) -> Any:
    value = kind()
    check(init(byref(value), sizeof(value)))
    return value


def _sampling(options: dict[str, Any]) -> Any:
    value = _initialised(c.ww_sampling, c.ww_sampling_init)
    names = {field[0] for field in c.ww_sampling._fields_} - {"struct_size"}
    for name, number in options.items():
        if name not in names:
            raise TypeError(f"there is no option {name!r}; those of sampling are {', '.join(sorted(names))}")
        setattr(value, name, number)
    return value


def _ids(tokens: Any) -> npt.NDArray[np.int32]:
    """Tokens as C takes them."""
    given = np.asarray(tokens)
    if given.dtype != np.int32:
        given = np.array(integers(given.ravel().tolist(), "tokens", c_int32)[:given.size], np.int32)
    return np.ascontiguousarray(given).reshape(-1)


class Model(NotPicklable):
    """A model on a device. An encoder embeds texts, a decoder continues them; what either gives is the same on every device.

    `precise` keeps activations f32, `cache` is what sessions keep keys and values as ("f16", "f32", "q8_0"), `context` how many tokens a
    session may hold (0: as many as the model was made for).
    """

    def __init__(self, path: Union[str, "os.PathLike[str]"], device: DeviceLike = None, *, precise: bool = False, cache: str = "f16", context: int = 0,
                 progress: Progress = None) -> None:
        if cache not in _CACHES:
            raise ValueError(f"cache is {cache!r}; it must be one of {', '.join(_CACHES)}")
        self._device = resolve(device)
        opened, pointer = self._device._open(), c_void_p()
        options = _initialised(c.ww_model_options, c.ww_model_options_init)
        options.activations = c.WW_ACTIVATIONS_FLOAT if precise else c.WW_ACTIVATIONS_CODED
        options.cache = _CACHES[cache]
        options.context = context

        def call(told: Any) -> int:
            options.progress = told
            return int(c.ww_model_open(os.fsencode(path), opened.pointer, byref(options), byref(pointer)))

        interruptible(call, progress, "loading")
        self._handle = Handle(pointer.value or 0, c.ww_model_close)
        info = made(c.ww_model_info)
        check(c.ww_model_describe(pointer, byref(info)))
        self.info: ModelInfo = from_struct(ModelInfo, info)
        self.kind = "encoder" if info.kind == c.WW_MODEL_ENCODER else "decoder"
        self.pooling = _POOLINGS[info.pooling]
        self.has_chat = bool(info.has_chat)

    @property
    def device(self) -> Device:
        return self._device

    def tokenize(self, text: str, *, plain: bool = False, add_special: bool = True) -> list[int]:
        """The tokens of a text. `plain`: names of special tokens in it are text. `add_special`: with what the model wants at the ends."""
        data, count = text.encode("utf-8", "surrogatepass"), c_size_t()
        flags = (c.WW_TOKENS_PLAIN if plain else 0) | (0 if add_special else c.WW_TOKENS_NO_ADD)
        check(c.ww_model_tokenize(self._handle.pointer, data, len(data), flags, None, 0, byref(count)))
        ids = (c_int32 * max(count.value, 1))()
        check(c.ww_model_tokenize(self._handle.pointer, data, len(data), flags, ids, len(ids), byref(count)))
        return list(ids[:count.value])

    def detokenize(self, tokens: Any) -> str:
        """The text of tokens, without the special ones."""
        ids, count = _ids(tokens), c_size_t()
        check(c.ww_model_detokenize(self._handle.pointer, address(ids), len(ids), None, 0, byref(count)))
        text = create_string_buffer(count.value + 1)
        check(c.ww_model_detokenize(self._handle.pointer, address(ids), len(ids), text, count.value, byref(count)))
        return text.raw[:count.value].decode("utf-8", "replace")

    def chat(self, messages: Sequence[dict[str, str]]) -> str:
        """A conversation ({"role": ..., "content": ...} each) in the model's chat template, up to where the assistant begins to speak."""
        said = [c.ww_chat_message(text(m["role"].encode(), "role"), text(m["content"].encode(), "content")) for m in messages]
        listed = (c.ww_chat_message * max(len(said), 1))(*said)
        count = c_size_t()
        check(c.ww_model_chat(self._handle.pointer, listed, len(messages), None, 0, byref(count)))
        out = create_string_buffer(count.value + 1)
        check(c.ww_model_chat(self._handle.pointer, listed, len(messages), out, count.value, byref(count)))
        return out.raw[:count.value].decode()

    def embed(self, texts: Union[str, Sequence[str]], *, progress: Progress = None) -> npt.NDArray[np.float32]:
        """A vector of length 1 for each text, [texts, width]; of one text [width]."""
        if isinstance(texts, str):
            one: npt.NDArray[np.float32] = self.embed([texts], progress=progress)[0]
            return one
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        pointers = (c_char_p * max(len(encoded), 1))(*encoded)
        lengths = (c_size_t * max(len(encoded), 1))(*[len(text) for text in encoded])
        out = np.empty((len(encoded), self.info.width), np.float32)
        interruptible(lambda told: int(c.ww_model_embed(self._handle.pointer, pointers, lengths, len(encoded), address(out), told, None)), progress, "embedding")
        return out

    def session(self) -> Session:
        """A session without tokens."""
        pointer = c_void_p()
        check(c.ww_session_create(self._handle.pointer, byref(pointer)))
        return Session._of(pointer, self)

    def load_session(self, path: Union[str, "os.PathLike[str]"]) -> Session:
        """A session that was saved, of this model, on whatever device."""
        pointer = c_void_p()
        check(c.ww_session_load(self._handle.pointer, os.fsencode(path), byref(pointer)))
        return Session._of(pointer, self)

    @overload
    def generate(self, prompts: str, tokens: int = ..., *, chat: bool = ..., on_text: Optional[Callable[[str], Any]] = ..., **sampling: Any) -> str:
        ...

    @overload
    def generate(self, prompts: Sequence[str], tokens: int = ..., *, chat: bool = ..., on_text: None = ..., **sampling: Any) -> list[str]:
        ...

    def generate(self, prompts: Any, tokens: int = 128, *, chat: bool = False, on_text: Optional[Callable[[str], Any]] = None, **sampling: Any) -> Any:
        """The text that the model puts behind a prompt; of a list of prompts all of them, computed together, each as it would be alone.

        `chat`: the prompt is what a user says. `on_text` is called with pieces of the text as they come, and ends it by returning True.
        Sampling: temperature, top_k, top_p, min_p, repetition_penalty, repetition_window, seed.
        """
        options = _sampling(sampling)
        if isinstance(prompts, str):
            session = self.session()
            session.feed(self._prompt(prompts, chat))
            return session.generate(tokens, on_text=on_text, **sampling)
        if on_text is not None:
            raise ValueError("on_text is for one prompt")
        sessions = [self.session() for _ in prompts]
        fed = [self._prompt(prompt, chat) for prompt in prompts]
        feed_all(sessions, fed)
        going = [i for i in range(len(sessions)) if tokens > 0]
        written: list[list[int]] = [[] for _ in sessions]
        while going:
            chosen = {i: sessions[i]._sample(options) for i in going}
            going = [i for i in going if not c.ww_model_token_ends(self._handle.pointer, chosen[i]) and len(sessions[i]) < self.info.context]
            feed_all([sessions[i] for i in going], [[chosen[i]] for i in going])
            for i in going:
                written[i].append(chosen[i])
            going = [i for i in going if len(written[i]) < tokens]
        return [self.detokenize(ids) for ids in written]

    def _prompt(self, prompt: str, chat: bool) -> list[int]:
        if chat:
            return self.tokenize(self.chat([{"role": "user", "content": prompt}]), add_special=False)
        return self.tokenize(prompt)

    def __repr__(self) -> str:
        return f"<warpwave.Model: {self.info.architecture}, {self.info.parameters / 1e6:.1f} million parameters, on {self._device.id}>"


class Session(NotPicklable):
    """The tokens of a text and what the model knows of them. Made by Model.session()."""

    _handle: Handle
    model: Model

    def __init__(self, *_: Any) -> None:
        raise TypeError("make sessions with Model.session()")

    @classmethod
    def _of(cls, pointer: c_void_p, model: Model) -> Session:
        self = cls.__new__(cls)
        self._handle = Handle(pointer.value or 0, c.ww_session_destroy)
        self.model = model
        return self

    def __len__(self) -> int:
        return int(c.ww_session_length(self._handle.pointer))

    @property
    def tokens(self) -> list[int]:
        """The tokens that were fed."""
        ids = np.empty(len(self), np.int32)
        check(c.ww_session_tokens(self._handle.pointer, 0, address(ids), len(ids)))
        return [int(token) for token in ids]

    def feed(self, tokens: Any) -> None:
        """Feeds tokens, in pieces of any size."""
        ids = _ids(tokens)
        check(c.ww_session_feed(self._handle.pointer, address(ids), len(ids)))

    def logits(self) -> npt.NDArray[np.float32]:
        """What the model says about the next token: a number for each."""
        out = np.empty(self.model.info.vocabulary, np.float32)
        check(c.ww_session_logits(self._handle.pointer, address(out)))
        return out

    def sample(self, **sampling: Any) -> int:
        """Chooses the next token, without feeding it."""
        return self._sample(_sampling(sampling))

    def _sample(self, options: Any) -> int:
        token = c_int32()
        check(c.ww_session_sample(self._handle.pointer, byref(options), byref(token)))
        return token.value

    def generate(self, tokens: int = 128, *, on_text: Optional[Callable[[str], Any]] = None, ignore_eos: bool = False, **sampling: Any) -> str:
        """Chooses tokens and feeds them; returns their text."""
        options, asked = _sampling(sampling), _initialised(c.ww_generation, c.ww_generation_init)
        pieces: list[str] = []
        raised: list[BaseException] = []

        def take(text: int, length: int, _user: Any) -> int:
            pieces.append(string_at(text, length).decode())
            try:
                return 1 if on_text is not None and on_text(pieces[-1]) is True else 0
            except BaseException as error:
                raised.append(error)
                return 1

        asked.tokens = tokens
        asked.sampling = cast(byref(options), c_void_p)
        asked.text = c.ww_text_callback(take)
        asked.ignore_eos = 1 if ignore_eos else 0
        check(c.ww_session_generate(self._handle.pointer, byref(asked), byref(c_int())))
        if raised:
            raise raised[0]
        return "".join(pieces)

    def fork(self) -> Session:
        """A session with the same tokens, which goes its own way."""
        pointer = c_void_p()
        check(c.ww_session_fork(self._handle.pointer, byref(pointer)))
        return Session._of(pointer, self.model)

    def truncate(self, length: int) -> None:
        """Forgets all but the first tokens."""
        check(c.ww_session_truncate(self._handle.pointer, length))

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes it to a file, from which Model.load_session() goes on, on any device."""
        check(c.ww_session_save(self._handle.pointer, os.fsencode(path)))

    def __repr__(self) -> str:
        return f"<warpwave.Session: {len(self)} tokens>"


def feed_all(sessions: Sequence[Session], tokens: Sequence[Any]) -> None:
    """Feeds several sessions of one model in one pass over its weights."""
    if not sessions:
        return
    lists = [_ids(ids) for ids in tokens]
    handles = (c_void_p * len(sessions))(*[session._handle.pointer for session in sessions])
    pointers = (POINTER(c_int32) * len(lists))(*[ids.ctypes.data_as(POINTER(c_int32)) for ids in lists])
    counts = (c_size_t * len(lists))(*[len(ids) for ids in lists])
    check(c.ww_sessions_feed(handles, pointers, counts, len(sessions)))
