"""Models from GGUF files that embed or continue texts."""
from __future__ import annotations

import json
import os
import queue
import subprocess
from ctypes import POINTER, addressof, byref, c_char_p, c_float, c_int, c_int32, c_int64, c_size_t, c_void_p, cast, create_string_buffer, sizeof, string_at
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Iterator, Literal, Optional, Sequence, Union, overload

import numpy as np

from . import _native as c
from ._calls import Handle, NotPicklable, Progress, Worker, cancellable, interruptible
from ._checked import integer, integers, text
from ._errors import CutText, MissingPrompt, NotFound, Unsupported, check, warn
from ._library import command_path
from ._numpy import address
from ._tools import FORCED, OPEN, Reply, ToolCall, conversation, reply_of, schema_of, tools_of
from .device import Device, DeviceLike, from_struct, made, resolve

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["Model", "ModelInfo", "Reply", "Session", "ToolCall"]

Prompt = Union[str, Sequence[dict[str, Any]]]
Tools = Sequence[dict[str, Any]]
Stop = Union[None, str, Sequence[str]]
Schema = Union[None, str, bool, dict[str, Any]]

_CACHES = {"f16": c.WW_QUANT_F16, "f32": c.WW_QUANT_F32, "q8_0": c.WW_QUANT_Q8_0}
_POOLINGS = {c.WW_POOLING_NONE: "none", c.WW_POOLING_MEAN: "mean", c.WW_POOLING_CLS: "cls", c.WW_POOLING_LAST: "last", c.WW_POOLING_RANK: "rank"}
_GIVEN_POOLINGS = {None: c.WW_POOLING_NONE, "mean": c.WW_POOLING_MEAN, "cls": c.WW_POOLING_CLS, "last": c.WW_POOLING_LAST,
                   "rank": c.WW_POOLING_RANK}


@dataclass(frozen=True)
class ModelInfo:
    """Description of a model; the fields are those of the C struct ww_model_info."""

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
    prompts: str
    default_prompt: str
    pooling_assumed: int
    mapped_bytes: int


def warn_of_cut(cut: int, count: int, context: int) -> None:
    """Warn if texts were cut."""
    if cut:
        warn(f"{cut} of {count} texts have more than {context} tokens; what follows is ignored", CutText)


def described(model: Any) -> Any:
    """Return the C struct that describes an open model."""
    info = made(c.ww_model_info)
    check(c.ww_model_describe(model, byref(info)))
    return info


def _initialised(kind: Any, init: Callable[..., int]) -> Any:
    value = kind()
    check(init(byref(value), sizeof(value)))
    return value


def _sampling(options: dict[str, Any]) -> Any:
    value = _initialised(c.ww_sampling, c.ww_sampling_init)
    names = {field[0] for field in c.ww_sampling._fields_} - {"struct_size", "grammar", "bias_tokens", "biases", "bias_count"} | {"logit_bias"}
    for name, number in options.items():
        if name == "logit_bias":
            biases = dict(number or {})
            value.kept = (c_int32 * len(biases))(*biases), (c_float * len(biases))(*biases.values())  # as long as the options live
            value.bias_tokens, value.biases = map(addressof, value.kept)
            value.bias_count = len(biases)
            continue
        if name not in names:
            raise TypeError(f"there is no option {name!r}; those of sampling are {', '.join(sorted(names))}")
        setattr(value, name, number)
    return value


def _said(messages: Sequence[dict[str, str]]) -> Any:
    """Convert messages for C."""
    if isinstance(messages, (str, dict)):
        raise TypeError(f"messages is {messages!r}; it must be a list of {{'role': ..., 'content': ...}}")
    for m in messages:
        if not (isinstance(m, dict) and isinstance(m.get("role"), str) and isinstance(m.get("content"), str)):
            raise TypeError(f"a message is {m!r}; it must be {{'role': ..., 'content': ...}} with texts")
    said = [c.ww_chat_message(text(m["role"].encode(), "role"), text(m["content"].encode(), "content")) for m in messages]
    return (c.ww_chat_message * max(len(said), 1))(*said)


class _Grammar:
    """A grammar for one text; None if neither GBNF nor a schema is given."""

    def __init__(self, model: Model, grammar: Optional[str], schema: Schema) -> None:
        self.pointer = c_void_p()
        if grammar is None and schema is None:
            return
        if grammar is not None and schema is not None:
            raise ValueError("grammar and schema cannot both be given")
        kind = c.WW_GRAMMAR_JSON_SCHEMA if grammar is None else c.WW_GRAMMAR_GBNF
        written = grammar if grammar is not None else schema if isinstance(schema, str) else json.dumps(schema)
        if not isinstance(written, str):
            raise TypeError(f"grammar is {type(written).__name__}; it must be a str")
        encoded = written.encode()
        with model._handle as pointer:
            check(c.ww_grammar_create(pointer, kind, encoded, len(encoded), byref(self.pointer)))

    def __del__(self) -> None:
        if self.pointer:
            c.ww_grammar_destroy(self.pointer)
            self.pointer = c_void_p()


def _stops(stop: Stop) -> list[str]:
    listed: list[Any] = [] if stop is None else [stop] if isinstance(stop, str) else list(stop) if isinstance(stop, (list, tuple)) else [None]
    if not all(isinstance(one, str) and one for one in listed):
        raise TypeError(f"stop is {stop!r}; it must be a str, or a list of them, none empty")
    return listed


def _cut(text: str, stops: list[str]) -> str:
    """Return the text up to the first stop."""
    return text[:min((place for one in stops if (place := text.find(one)) >= 0), default=len(text))]


def _until(pieces: Iterator[str], stops: list[str]) -> Iterator[str]:
    """Yield the pieces up to the first stop; hold back text that may be the start of a stop."""
    held = ""
    for piece in pieces:
        held += piece
        cut = _cut(held, stops)
        if len(cut) < len(held):
            pieces.close()  # type: ignore[attr-defined]
            if cut:
                yield cut
            return
        keep = max((length for one in stops for length in range(1, min(len(one), len(held) + 1)) if held.endswith(one[:length])), default=0)
        if len(held) > keep:
            yield held[:len(held) - keep]
            held = held[len(held) - keep:]
    if held:
        yield held


def _joined(pieces: Iterator[str], on_text: Optional[Callable[[str], Any]]) -> str:
    text: list[str] = []
    try:
        for piece in pieces:
            text.append(piece)
            if on_text is not None and on_text(piece) is True:
                break
    finally:
        pieces.close()  # type: ignore[attr-defined]
    return "".join(text)


def _encoded(texts: Sequence[str]) -> tuple[list[bytes], Any]:
    """Encode the texts as UTF-8 and return them with their lengths."""
    listed = list(texts)
    for one in listed:
        if not isinstance(one, str):
            raise TypeError(f"a text is {one!r}; it must be a str")
    encoded = [one.encode("utf-8", "surrogatepass") for one in listed]
    return encoded, (c_size_t * max(len(encoded), 1))(*[len(one) for one in encoded])


def embedded(model: Any, texts: Sequence[str], width: int, prompt: Optional[str], progress: Progress = None) -> tuple[npt.NDArray[np.float32], int]:
    """Return the vectors that an open model makes of texts, and how many of these were cut."""
    encoded, lengths = _encoded(texts)
    pointers = (c_char_p * max(len(encoded), 1))(*encoded)
    out, cut, how = np.empty((len(encoded), width), np.float32), c_int64(), _initialised(c.ww_embedding, c.ww_embedding_init)
    how.prompt = None if prompt is None else text(prompt.encode(), "prompt")
    how.cut = addressof(cut)

    def call(told: Any) -> int:
        how.progress = told
        return int(c.ww_model_embed(model, pointers, lengths, len(encoded), byref(how), address(out)))

    interruptible(call, progress, "embedding")
    return out, cut.value


def _ids(tokens: Any) -> npt.NDArray[np.int32]:
    """Convert tokens for C."""
    given = np.asarray(tokens)
    if given.dtype != np.int32:
        given = np.array(integers(given.ravel().tolist(), "tokens", c_int32)[:given.size], np.int32)
    return np.ascontiguousarray(given).reshape(-1)


def placed(path: Union[str, "os.PathLike[str]"], fetch: bool) -> str:
    """Return the file of a model. A name that is no file is asked of the command, which fetches it if it may."""
    given = os.fspath(path)
    command = None if "\0" in given or os.path.exists(given) or given.endswith(".gguf") and not given.startswith("hf:") else command_path()
    if command is None:
        return given
    ran = subprocess.run([command, "model", "path", given, *(["--yes"] if fetch else [])], stdout=subprocess.PIPE,
                         stderr=None if fetch else subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, check=False)
    if ran.returncode:
        said = "the command has said why" if fetch else ran.stderr.strip().replace("--yes", f"warpwave.Model({given!r}, fetch=True)")
        raise NotFound(f"{given}: {said}")
    return ran.stdout.rstrip("\n")


class Model(NotPicklable):
    """A model on a device. Encoders embed texts, decoders continue them; the results are the same on every device.

    `path` is a GGUF file, a folder, or a name that `warpwave model list` or a hub knows; with `fetch` such a model is fetched if it is not here.
    `precise` keeps activations in f32. `cache` is the type of keys and values in sessions ("f16", "f32", "q8_0"). `context` is the maximum
    number of tokens in a session (0: the model's own maximum). `chat_template` is the text of a Jinja template that replaces the file's.
    `pooling` ("mean", "cls", "last") replaces the file's way of combining the tokens' vectors into one; it lets a decoder embed. "rank" is for
    a reranker whose file names another pooling. A CPU uses f32, f16 and bf16 weights where the file has them, so that processes share them;
    replace such a file by renaming another over it, or open it with `copy_weights`.
    """

    def __init__(self, path: Union[str, "os.PathLike[str]"], device: DeviceLike = None, *, precise: bool = False, cache: str = "f16", context: int = 0,
                 chat_template: Optional[str] = None, pooling: Optional[str] = None, copy_weights: bool = False, progress: Progress = None,
                 fetch: bool = False) -> None:
        if cache not in _CACHES:
            raise ValueError(f"cache is {cache!r}; it must be one of {', '.join(_CACHES)}")
        if not (chat_template is None or isinstance(chat_template, str)):
            raise TypeError(f"chat_template is {chat_template!r}; it must be a str")
        if pooling not in _GIVEN_POOLINGS:
            raise ValueError(f"pooling is {pooling!r}; it must be 'mean', 'cls', 'last', 'rank' or None, which is what the file says")
        path = placed(path, fetch)
        self._device = resolve(device)
        opened, pointer = self._device._open(), c_void_p()
        options = _initialised(c.ww_model_options, c.ww_model_options_init)
        options.activations = c.WW_ACTIVATIONS_FLOAT if precise else c.WW_ACTIVATIONS_CODED
        options.cache = _CACHES[cache]
        options.context = context
        options.pooling = _GIVEN_POOLINGS[pooling]
        options.copy_weights = int(copy_weights)
        options.chat_template = None if chat_template is None else text(chat_template.encode(), "chat_template")

        def call(told: Any) -> int:
            options.progress = told
            return int(c.ww_model_open(os.fsencode(path), opened.pointer, byref(options), byref(pointer)))

        interruptible(call, progress, "loading", os.fspath(path))
        self._handle = Handle(pointer.value or 0, c.ww_model_close, "the model")
        info = made(c.ww_model_info)
        check(c.ww_model_describe(pointer, byref(info)))
        self.info: ModelInfo = from_struct(ModelInfo, info)
        self.kind = "encoder" if info.kind == c.WW_MODEL_ENCODER else "decoder"
        self.pooling = _POOLINGS[info.pooling]
        self.has_chat = bool(info.has_chat)
        self.embeds = bool(info.embeds)
        self.reranks = bool(info.reranks)

    @property
    def device(self) -> Device:
        """The model's device."""
        return self._device

    def tokenize(self, text: str, *, plain: bool = False, add_special: bool = True) -> list[int]:
        """Return the tokens of a text.

        With `plain`, names of special tokens count as text. With `add_special`, the tokens that the model expects at the start and end are
        added.
        """
        if not isinstance(text, str):
            raise TypeError(f"the text is {text!r}; it must be a str")
        data, count = text.encode("utf-8", "surrogatepass"), c_size_t()
        flags = (c.WW_TOKENS_PLAIN if plain else 0) | (0 if add_special else c.WW_TOKENS_NO_ADD)
        with self._handle as model:
            check(c.ww_model_tokenize(model, data, len(data), flags, None, 0, byref(count)))
        ids = (c_int32 * max(count.value, 1))()
        with self._handle as model:
            check(c.ww_model_tokenize(model, data, len(data), flags, ids, len(ids), byref(count)))
        return list(ids[:count.value])

    def detokenize(self, tokens: Any) -> str:
        """Return the text of tokens, without the special ones."""
        ids, count = _ids(tokens), c_size_t()
        with self._handle as model:
            check(c.ww_model_detokenize(model, address(ids), len(ids), None, 0, byref(count)))
        text = create_string_buffer(count.value + 1)
        with self._handle as model:
            check(c.ww_model_detokenize(model, address(ids), len(ids), text, count.value, byref(count)))
        return text.raw[:count.value].decode("utf-8", "replace")

    def chat(self, messages: Sequence[dict[str, str]]) -> str:
        """Format messages ({"role": ..., "content": ...}) with the model's chat template, up to where the assistant starts."""
        listed, count = _said(messages), c_size_t()
        with self._handle as model:
            check(c.ww_model_chat(model, listed, len(messages), None, 0, byref(count)))
        out = create_string_buffer(count.value + 1)
        with self._handle as model:
            check(c.ww_model_chat(model, listed, len(messages), out, count.value, byref(count)))
        return out.raw[:count.value].decode()

    def chat_tokens(self, messages: Sequence[dict[str, Any]], *, plain: bool = True, tools: Optional[Tools] = None) -> list[int]:
        """Return the tokens of a conversation; see chat().

        With `plain`, names of special tokens in messages count as text, so that no message can end a turn. `tools` are those of generate();
        messages may then have "tool_calls" and the role "tool".
        """
        if tools is not None or any(isinstance(m, dict) and "tool_calls" in m for m in messages):
            if not plain:
                raise ValueError("plain=False is for conversations without tools")
            return self._chat_json_tokens(conversation(messages, None if tools is None else self._tools(tools)), "")
        listed, count = _said(messages), c_size_t()
        flags = c.WW_TOKENS_PLAIN if plain else 0
        with self._handle as model:
            check(c.ww_model_chat_tokens(model, listed, len(messages), flags, None, 0, byref(count)))
            ids = (c_int32 * max(count.value, 1))()
            check(c.ww_model_chat_tokens(model, listed, len(messages), flags, ids, len(ids), byref(count)))
        return list(ids[:count.value])

    def _chat_json_tokens(self, said: str, behind: str) -> list[int]:
        encoded, count = said.encode("utf-8", "surrogatepass"), c_size_t()
        with self._handle as model:
            check(c.ww_model_chat_json_tokens(model, encoded, behind.encode(), None, 0, byref(count)))
            ids = (c_int32 * max(count.value, 1))()
            check(c.ww_model_chat_json_tokens(model, encoded, behind.encode(), ids, len(ids), byref(count)))
        return list(ids[:count.value])

    def _tools(self, given: Tools) -> list[dict[str, Any]]:
        """Check tools, and that the model's template takes them."""
        tools = tools_of(given)
        with self._handle as model:
            template = c.ww_model_chat_template(model)
        if not template or b"tools" not in template or OPEN.encode() not in template:
            raise Unsupported(f"the chat template of this model does not define tools with {OPEN}; chat_template= gives it another one")
        return tools

    def embed(self, texts: Union[str, Sequence[str]], *, prompt: Optional[str] = None, dimensions: Optional[int] = None,
              progress: Progress = None) -> npt.NDArray[np.float32]:
        """Return a vector of length 1 for each text, shape [texts, width]; for a single text [width].

        `prompt` is the name of the model's prompt that is put before each text: "query", "document", or another one of `info.prompts`. ""
        is none, and None the default of the model's file. Texts that are longer than the context give a warning, `CutText`,
        as do texts without a prompt for a model that has some and no default, `MissingPrompt`. With
        `dimensions`, vectors are cut to that many numbers and scaled to length 1 again, for models trained for this.
        """
        single = isinstance(texts, str)
        with self._handle as model:
            out, cut = embedded(model, [texts] if isinstance(texts, str) else texts, self.info.width, prompt, progress)
        warn_of_cut(cut, len(out), self.info.context)
        if prompt is None and self.info.prompts and not self.info.default_prompt:
            warn(f"the model was trained with prompts, and none was given: prompt= takes one of {self.info.prompts}, or ''", MissingPrompt)
        shortened = out if dimensions is None else self._shortened(out, integer(dimensions, "dimensions"))
        return shortened[0] if single else shortened

    def prompt(self, name: str) -> str:
        """Return the text of a prompt."""
        found = c_char_p()
        with self._handle as model:
            check(c.ww_model_prompt(model, text(name.encode(), "name"), byref(found)))
        return (found.value or b"").decode()

    def _shortened(self, out: npt.NDArray[np.float32], size: int) -> npt.NDArray[np.float32]:
        check(c.ww_embeddings_shorten(address(out), len(out), self.info.width, size))
        return out.reshape(-1)[:len(out) * size].reshape(len(out), size).copy()

    def rerank(self, query: str, texts: Sequence[str], *, progress: Progress = None) -> npt.NDArray[np.float32]:
        """Score how well each text answers a query; larger is better. 1 / (1 + exp(-score)) is a probability."""
        if isinstance(texts, str):
            raise TypeError(f"texts is the str {texts!r}; it must be a list of them")
        encoded, lengths = _encoded(texts)
        pointers = (c_char_p * max(len(encoded), 1))(*encoded)
        out = np.empty(len(encoded), np.float32)
        if not isinstance(query, str):
            raise TypeError(f"the query is {query!r}; it must be a str")
        asked = query.encode("utf-8", "surrogatepass")
        if b"\0" in asked:
            raise ValueError("the query has a NUL in it")
        with self._handle as model:
            before = described(model).texts_cut
            interruptible(lambda told: int(c.ww_model_rerank(model, asked, pointers, lengths, len(encoded), address(out), told, None)), progress,
                          "reranking")
            cut = described(model).texts_cut - before
        warn_of_cut(cut, len(encoded), self.info.context)
        return out

    def session(self) -> Session:
        """Create a session without tokens."""
        pointer = c_void_p()
        with self._handle as model:
            check(c.ww_session_create(model, byref(pointer)))
        return Session._of(pointer, self)

    def load_session(self, path: Union[str, "os.PathLike[str]"]) -> Session:
        """Load a session of this model that was saved on any device."""
        pointer = c_void_p()
        with self._handle as model:
            check(c.ww_session_load(model, os.fsencode(path), byref(pointer)), os.fspath(path))
        return Session._of(pointer, self)

    @overload
    def generate(self, prompt: Prompt, tokens: int = ..., *, tools: Tools, tool_choice: str = ..., chat: bool = ..., system: Optional[str] = ...,
                 stop: Stop = ..., max_tokens: Optional[int] = ..., **sampling: Any) -> Reply:
        ...

    @overload
    def generate(self, prompt: Prompt, tokens: int = ..., *, stream: Literal[False] = ..., chat: bool = ..., system: Optional[str] = ...,
                 stop: Stop = ..., max_tokens: Optional[int] = ..., on_text: Optional[Callable[[str], Any]] = ...,
                 grammar: Optional[str] = ..., schema: Schema = ..., **sampling: Any) -> str:
        ...

    @overload
    def generate(self, prompt: Prompt, tokens: int = ..., *, stream: Literal[True], chat: bool = ..., system: Optional[str] = ..., stop: Stop = ...,
                 max_tokens: Optional[int] = ..., grammar: Optional[str] = ..., schema: Schema = ..., **sampling: Any) -> Iterator[str]:
        ...

    @overload
    def generate(self, prompt: list[str], tokens: int = ..., *, chat: bool = ..., system: Optional[str] = ..., stop: Stop = ...,
                 max_tokens: Optional[int] = ..., grammar: Optional[str] = ..., schema: Schema = ..., **sampling: Any) -> list[str]:
        ...

    def generate(self, prompt: Any, tokens: int = 128, *, stream: bool = False, chat: bool = False, system: Optional[str] = None, stop: Stop = None,
                 max_tokens: Optional[int] = None, on_text: Optional[Callable[[str], Any]] = None, grammar: Optional[str] = None,
                 schema: Schema = None, tools: Optional[Tools] = None, tool_choice: str = "auto", **sampling: Any) -> Any:
        """Return the text with which the model continues a prompt.

        A prompt is a text or a conversation, a list of {"role": ..., "content": ...}. With `chat`, a text is a user's message, and `system`
        is the system message before it. The texts of a list are computed together; each result is the same as for that text alone.
        `max_tokens` (or `tokens`) limits the length, and `stop`, one or several texts, ends the result before any of them. With `stream`
        the result is an iterator over pieces of text as they are generated; leaving the loop or Ctrl-C stops the computation. `on_text` is
        called with each piece and stops it by returning True. `grammar`, a GBNF text, or `schema`, a JSON schema as a dict or a text,
        constrains the result; if the tokens run out, the result is the beginning of a valid text. Sampling options: temperature, top_k,
        top_p, min_p, repetition_penalty, frequency_penalty, presence_penalty, repetition_window, seed, and logit_bias, a dict from tokens to what
        is added to their logits.

        With `tools`, functions in OpenAI's form that the model may call, the prompt is a conversation and the result a `Reply`: its text and
        its calls. `tool_choice` is "auto", "required", or the name of the tool that must be called.
        """
        if tools is not None:
            if stream or on_text is not None or grammar is not None or schema is not None:
                raise ValueError("stream, on_text, grammar and schema are for text; tools give a Reply when all of it is generated")
            return self._generate_reply(prompt, tokens if max_tokens is None else max_tokens, self._tools(tools), tool_choice, system, stop, sampling)
        if tool_choice != "auto":
            raise ValueError("tool_choice is for tools")
        most = tokens if max_tokens is None else max_tokens
        if isinstance(prompt, (list, tuple)) and prompt and not isinstance(prompt[0], dict):
            if stream or on_text is not None:
                raise ValueError("stream and on_text are for one prompt")
            grammars = [_Grammar(self, grammar, schema) for _ in prompt]
            return self._generate_all([self._prompt(one, chat, system) for one in prompt], most, _stops(stop), sampling, grammars)
        if isinstance(prompt, (list, tuple)) and not prompt:
            return []
        session = self.session()
        fed = self._prompt(prompt, chat, system)
        options, until, rule = _sampling(sampling), _stops(stop), _Grammar(self, grammar, schema)  # raises errors now, before the iterator starts

        def pieces() -> Iterator[str]:
            session.feed(fed)
            yield from _until(session._pieces(integer(most, "tokens"), False, options, rule), until)

        return pieces() if stream else _joined(pieces(), on_text)

    def _generate_reply(self, prompt: Any, tokens: int, tools: list[dict[str, Any]], choice: str, system: Optional[str], stop: Stop,
                        sampling: dict[str, Any]) -> Reply:
        schema, messages = schema_of(tools, choice), self._messages(prompt, system)
        if any(isinstance(one, str) for one in messages):
            raise ValueError("tools are for one prompt, and not for a list of them")
        fed = self._chat_json_tokens(conversation(messages, tools), FORCED if schema else "")
        session, options, until, rule = self.session(), _sampling(sampling), _stops(stop), _Grammar(self, None, schema)
        session.feed(fed)
        return reply_of(_joined(_until(session._pieces(integer(tokens, "tokens"), False, options, rule), until), None), schema is not None)

    def _generate_all(self, prompts: list[list[int]], tokens: int, stops: list[str], sampling: dict[str, Any], grammars: list[_Grammar]) -> list[str]:
        options, sessions = _sampling(sampling), [self.session() for _ in prompts]
        feed_all(sessions, prompts)
        going = [i for i in range(len(sessions)) if tokens > 0]
        written: list[list[int]] = [[] for _ in sessions]
        while going:
            chosen = {i: sessions[i]._sample(options, grammars[i]) for i in going}
            with self._handle as pointer:
                going = [i for i in going if not c.ww_model_token_ends(pointer, chosen[i]) and len(sessions[i]) < self.info.context]
            feed_all([sessions[i] for i in going], [[chosen[i]] for i in going])
            for i in going:
                written[i].append(chosen[i])
                if grammars[i].pointer:
                    check(c.ww_grammar_accept(grammars[i].pointer, chosen[i]))
            going = [i for i in going if len(written[i]) < tokens and not (stops and any(one in self.detokenize(written[i]) for one in stops))]
        return [_cut(self.detokenize(ids), stops) for ids in written]

    def _prompt(self, prompt: Any, chat: bool, system: Optional[str]) -> list[int]:
        if isinstance(prompt, str) and not chat and system is None:
            return self.tokenize(prompt)
        return self.chat_tokens(self._messages(prompt, system))

    def _messages(self, prompt: Any, system: Optional[str]) -> list[dict[str, Any]]:
        if isinstance(prompt, str):
            prompt = [{"role": "user", "content": prompt}]
        elif not isinstance(prompt, (list, tuple)):
            raise TypeError(f"the prompt is {type(prompt).__name__}; it must be a str, a list of them, or a list of {{'role': ..., 'content': ...}}")
        return [*([] if system is None else [{"role": "system", "content": system}]), *prompt]

    def close(self) -> None:
        """Free the model's memory once its last session is gone. Closing twice is allowed."""
        self._handle.close()

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<warpwave.Model: {self.info.architecture}, {self.info.parameters / 1e6:.1f} million parameters, on {self._device.id}>"


class Session(NotPicklable):
    """The tokens of a text and the model's state for them. Created by Model.session()."""

    _handle: Handle
    model: Model

    def __init__(self, *_: Any) -> None:
        raise TypeError("make sessions with Model.session()")

    @classmethod
    def _of(cls, pointer: c_void_p, model: Model) -> Session:
        self = cls.__new__(cls)
        self._handle = Handle(pointer.value or 0, c.ww_session_destroy, "the session")
        self.model = model
        return self

    def __len__(self) -> int:
        with self._handle as session:
            return int(c.ww_session_length(session))

    @property
    def tokens(self) -> list[int]:
        """The tokens fed so far."""
        ids = np.empty(len(self), np.int32)
        with self._handle as session:
            check(c.ww_session_tokens(session, 0, address(ids), len(ids)))
        return [int(token) for token in ids]

    def feed(self, tokens: Any) -> None:
        """Feed tokens, in pieces of any size."""
        ids = _ids(tokens)
        with self._handle as session:
            cancellable(lambda: int(c.ww_session_feed(session, address(ids), len(ids))), lambda: c.ww_session_cancel(session))

    def logits(self) -> npt.NDArray[np.float32]:
        """Return the logits of the next token, one per token of the vocabulary."""
        out = np.empty(self.model.info.vocabulary, np.float32)
        with self._handle as session:
            check(c.ww_session_logits(session, address(out)))
        return out

    def sample(self, **sampling: Any) -> int:
        """Choose the next token without feeding it."""
        return self._sample(_sampling(sampling))

    def _sample(self, options: Any, grammar: Optional[_Grammar] = None) -> int:
        token = c_int32()
        options.grammar = grammar.pointer if grammar else None
        with self._handle as session:
            check(c.ww_session_sample(session, byref(options), byref(token)))
        return token.value

    def generate(self, tokens: int = 128, *, on_text: Optional[Callable[[str], Any]] = None, ignore_eos: bool = False, stop: Stop = None,
                 grammar: Optional[str] = None, schema: Schema = None, **sampling: Any) -> str:
        """Choose and feed tokens; return their text. The arguments are those of Model.generate()."""
        return _joined(self.stream(tokens, ignore_eos=ignore_eos, stop=stop, grammar=grammar, schema=schema, **sampling), on_text)

    def stream(self, tokens: int = 128, *, ignore_eos: bool = False, stop: Stop = None, grammar: Optional[str] = None, schema: Schema = None,
               **sampling: Any) -> Iterator[str]:
        """Generate like generate(), but yield pieces of text. Tokens after a `stop` may be in the session."""
        rule = _Grammar(self.model, grammar, schema)
        return _until(self._pieces(integer(tokens, "tokens"), ignore_eos, _sampling(sampling), rule), _stops(stop))

    def _pieces(self, tokens: int, ignore_eos: bool, options: Any, grammar: _Grammar) -> Iterator[str]:
        """Generate on another thread and yield the pieces, so that this thread can handle signals."""
        asked = _initialised(c.ww_generation, c.ww_generation_init)
        pieces: queue.SimpleQueue[Union[str, BaseException, None]] = queue.SimpleQueue()

        def take(text: int, length: int, _user: Any) -> int:
            pieces.put(string_at(text, length).decode())
            return 0

        def run() -> None:
            try:
                with self._handle as session:
                    check(c.ww_session_generate(session, byref(asked), byref(c_int())))
                pieces.put(None)
            except BaseException as error:
                pieces.put(error)

        options.grammar = grammar.pointer
        asked.tokens, asked.sampling = tokens, cast(byref(options), c_void_p)
        asked.text = c.ww_text_callback(take)
        asked.ignore_eos = 1 if ignore_eos else 0
        worker = Worker(run, "generate")
        try:
            worker.check()
            while (piece := pieces.get()) is not None:
                if isinstance(piece, BaseException):
                    raise piece
                yield piece
        finally:
            worker.end(self.cancel)

    def cancel(self) -> None:
        """Stop what another thread is doing with the session; without effect if it is idle."""
        with self._handle as session:
            c.ww_session_cancel(session)

    def close(self) -> None:
        """Free the session's memory. Closing twice is allowed."""
        self._handle.close()

    def fork(self) -> Session:
        """Return an independent session with the same tokens."""
        pointer = c_void_p()
        with self._handle as session:
            check(c.ww_session_fork(session, byref(pointer)))
        return Session._of(pointer, self.model)

    def truncate(self, length: int) -> None:
        """Drop all but the first `length` tokens."""
        with self._handle as session:
            check(c.ww_session_truncate(session, length))

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Write the session to a file for Model.load_session(), on any device."""
        with self._handle as session:
            check(c.ww_session_save(session, os.fsencode(path)))

    def __repr__(self) -> str:
        return f"<warpwave.Session: {len(self)} tokens>"


def _cancel_all(sessions: Sequence[Session]) -> None:
    for session in sessions:
        session.cancel()


def feed_all(sessions: Sequence[Session], tokens: Sequence[Any]) -> None:
    """Feed several sessions of one model in one pass over its weights."""
    if not sessions:
        return
    lists = [_ids(ids) for ids in tokens]
    handles = (c_void_p * len(sessions))(*[session._handle.pointer for session in sessions])
    pointers = (POINTER(c_int32) * len(lists))(*[ids.ctypes.data_as(POINTER(c_int32)) for ids in lists])
    counts = (c_size_t * len(lists))(*[len(ids) for ids in lists])
    cancellable(lambda: int(c.ww_sessions_feed(handles, pointers, counts, len(sessions))), lambda: _cancel_all(sessions))
