"""Models: a small decoder and a small encoder with random weights, written by small_models.py."""
from __future__ import annotations

import json
import pathlib
import warnings

import numpy as np
import pytest
from conftest import run_python
from small_models import CHATML, WIDTH, write_decoder, write_encoder

import warpwave
from warpwave import _library
from warpwave._tools import reply_of

try:
    warpwave._native.ww_model_token_ends(None, 0)
except ImportError as error:
    pytest.skip(f"SKIP: no models in this build: {error}", allow_module_level=True)


@pytest.fixture(scope="module")
def decoder_path(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("model") / "decoder.gguf"
    write_decoder(path)
    return path


@pytest.fixture(scope="module")
def decoder(decoder_path: pathlib.Path) -> warpwave.Model:
    return warpwave.Model(decoder_path, device="cpu")


def test_a_model_says_what_it_is(decoder: warpwave.Model) -> None:
    assert (decoder.kind, decoder.info.architecture, decoder.info.licence, decoder.info.vocabulary) == ("decoder", "llama", "mit", 258)
    assert decoder.info.eos == 256 and not decoder.has_chat and "llama" in repr(decoder)


def test_text_becomes_tokens_and_text_again(decoder: warpwave.Model) -> None:
    assert decoder.tokenize("xab<end>") == [120, 257, 256]
    assert decoder.tokenize("<end>", plain=True) == [ord(letter) for letter in "<end>"]
    assert decoder.detokenize(decoder.tokenize("ünïcode ab")) == "ünïcode ab"


def test_prompts_together_give_the_texts_that_each_gives_alone(decoder: warpwave.Model) -> None:
    options = {"temperature": 1.2, "top_k": 40, "seed": 5}
    prompts = ["a fox", "the dog sleeps", "x"]
    pieces: list[str] = []
    alone = [decoder.generate(prompt, 10, **options) for prompt in prompts]
    assert decoder.generate("a fox", 10, on_text=pieces.append, **options) == "".join(pieces) == alone[0]
    assert [text.encode() for text in decoder.generate(prompts, 10, **options)] == [text.encode() for text in alone]
    assert decoder.generate("a fox", 10, **{**options, "seed": 6}) != alone[0]


def test_a_bias_makes_a_token_likelier(decoder: warpwave.Model) -> None:
    assert decoder.generate("a fox", 3, logit_bias={120: 1e4}) == "xxx"
    with pytest.raises(Exception, match="bias_tokens"):
        decoder.generate("a fox", 1, logit_bias={10**6: 1.0})


def test_a_callback_ends_generating_and_what_it_raises_is_raised(decoder: warpwave.Model) -> None:
    seen: list[str] = []

    def stop(text: str) -> bool:
        seen.append(text)
        return len(seen) == 2

    assert decoder.generate("ab", 20, on_text=stop) == "".join(seen) and len(seen) == 2
    with pytest.raises(ZeroDivisionError):
        decoder.generate("ab", 20, on_text=lambda text: 1 / 0)


def test_sessions_are_forked_saved_and_truncated(decoder: warpwave.Model, decoder_path: pathlib.Path, tmp_path: pathlib.Path) -> None:
    session = decoder.session()
    session.feed(decoder.tokenize("a text"))
    fork = session.fork()
    fork.feed([7])
    session.save(tmp_path / "session")
    loaded = warpwave.Model(decoder_path, device="cpu").load_session(tmp_path / "session")
    assert loaded.tokens == session.tokens and len(fork) == len(session) + 1
    assert np.array_equal(loaded.logits(), session.logits())
    fork.truncate(0)
    fork.feed(session.tokens)
    assert np.array_equal(fork.logits(), session.logits())
    with pytest.raises(warpwave.OutOfRange, match="context is full"):
        session.feed([1] * 64)
    with pytest.raises(warpwave.InvalidArgument):
        decoder.session().logits()


def test_what_a_model_cannot_do_is_said(decoder: warpwave.Model, tmp_path: pathlib.Path) -> None:
    with pytest.raises(warpwave.Unsupported, match="does not embed"):
        decoder.embed(["a"])
    with pytest.raises(warpwave.Unsupported, match="chat template"):
        decoder.generate("a", 2, chat=True)
    with pytest.raises(TypeError, match="temprature"):
        decoder.generate("a", 2, temprature=1.0)
    with pytest.raises(ValueError, match="q4_0"):
        warpwave.Model(tmp_path / "none", device="cpu", cache="q4_0")
    with pytest.raises(ValueError, match="pooling is 'max'"):
        warpwave.Model(tmp_path / "none", device="cpu", pooling="max")
    with pytest.raises(TypeError, match="must be a list"):
        decoder.chat("hello")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="must be a list"):
        decoder.rerank("a", "b")
    with pytest.raises(warpwave.Error):
        warpwave.Model(tmp_path / "none", device="cpu")


def test_a_pooling_can_be_given(decoder_path: pathlib.Path) -> None:
    with warpwave.Model(decoder_path, device="cpu", pooling="last") as last, warpwave.Model(decoder_path, device="cpu", pooling="mean") as mean:
        assert last.embeds and last.pooling == "last" and mean.pooling == "mean"
        assert not np.array_equal(last.embed("abc"), mean.embed("abc"))
        assert last.info.fingerprint != mean.info.fingerprint
    with pytest.raises(warpwave.Unsupported, match="has no head"):
        warpwave.Model(decoder_path, device="cpu", pooling="rank")


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> warpwave.Model:
    path = tmp_path_factory.mktemp("model") / "encoder.gguf"
    write_encoder(path)
    return warpwave.Model(path, device="cpu")


def test_texts_have_the_same_vectors_alone_and_together(encoder: warpwave.Model) -> None:
    texts = ["a fox", "dogs", "a fox a dog a fox", "?"]
    together = encoder.embed(texts)
    assert together.shape == (4, WIDTH) and np.allclose(np.linalg.norm(together, axis=1), 1.0)
    assert all(np.array_equal(encoder.embed(text), vector) for text, vector in zip(texts, together))
    assert encoder.embed([]).shape == (0, WIDTH) and encoder.pooling == "mean"
    short = encoder.embed(texts, dimensions=8)
    assert short.shape == (len(texts), 8) and np.allclose(short, together[:, :8] / np.linalg.norm(together[:, :8], axis=1)[:, None], atol=1e-6)
    with pytest.raises(ValueError, match="dimensions is 65"):
        encoder.embed(texts, dimensions=65)


@pytest.mark.check
def test_langchain_takes_the_model(encoder: warpwave.Model) -> None:
    pytest.importorskip("langchain_core")
    from warpwave.langchain import WarpwaveEmbeddings, WarpwaveVectorStore
    store = WarpwaveVectorStore(WarpwaveEmbeddings(encoder), device="cpu")
    store.add_texts(["a fox", "a dog"])
    assert store.similarity_search("a dog", k=1)[0].page_content == "a dog"


def test_a_stream_gives_the_pieces_of_the_text(decoder: warpwave.Model) -> None:
    options = {"temperature": 1.2, "top_k": 40, "seed": 5}
    whole = decoder.generate("a fox", max_tokens=20, **options)
    stream = decoder.generate("a fox", max_tokens=20, stream=True, **options)
    assert not isinstance(stream, str) and "".join(stream) == whole and len(whole) > 4
    taken = decoder.generate("a fox", max_tokens=20, stream=True, **options)
    first = next(taken)
    taken.close()
    assert whole.startswith(first)
    session = decoder.session()
    session.feed(decoder.tokenize("a fox"))
    assert "".join(session.stream(20, **options)) == whole and len(session) == len(decoder.tokenize("a fox")) + 20
    with pytest.raises(TypeError, match="no option 'heat'"):
        decoder.generate("a fox", stream=True, heat=1)


@pytest.mark.parametrize("length", [1, 2, 3])
def test_a_stop_ends_the_text_where_it_would_come(decoder: warpwave.Model, length: int) -> None:
    options = {"temperature": 1.2, "top_k": 40, "seed": 5}
    whole = decoder.generate("a fox", 20, **options)
    stop = whole[5:5 + length]
    before = whole[:whole.index(stop)]
    assert decoder.generate("a fox", 20, stop=stop, **options) == before
    assert "".join(decoder.generate("a fox", 20, stop=["never there", stop], stream=True, **options)) == before
    assert decoder.generate(["a fox", "x"], 20, stop=stop, **options)[0] == before
    assert decoder.generate("a fox", 20, stop=whole[-1] + "and more", **options) == whole
    with pytest.raises(TypeError, match="stop is 5"):
        decoder.generate("a fox", stop=5)  # type: ignore[call-overload]


def test_conversations_are_prompts(tmp_path: pathlib.Path) -> None:
    write_decoder(tmp_path / "chat.gguf", 256, CHATML)
    with warpwave.Model(tmp_path / "chat.gguf", device="cpu") as model:
        said = [{"role": "system", "content": "be short"}, {"role": "user", "content": "hello"}]
        expected = model.generate(model.chat(said), 8)
        assert model.generate(said, 8) == model.generate("hello", 8, chat=True, system="be short") == expected
        assert model.generate("hello", 8, chat=True) != expected
        ended = [{"role": "user", "content": "<end>"}]
        assert 256 not in model.chat_tokens(ended) and 256 in model.chat_tokens(ended, plain=False)
        assert model.chat_tokens(said) == model.tokenize(model.chat(said), add_special=False)
        with pytest.raises(TypeError, match="a message is .*; it must be"):
            model.generate([{"role": "user"}])
        with pytest.raises(TypeError, match="the prompt is int; it must be a str"):
            model.generate(5)  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="the model is closed"):
        model.tokenize("x")
    model.close()


def test_a_model_is_found_by_its_name(decoder_path: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPWAVE_MODELS", str(tmp_path))
    if _library.command_path() is None:
        pytest.skip("SKIP: the command is not here")
    with pytest.raises(warpwave.NotFound, match=r"minilm \(English.*warpwave.Model\('minilm', fetch=True\) fetches it into"):
        warpwave.Model("minilm", device="cpu")
    (tmp_path / "all-MiniLM-L6-v2.gguf").write_bytes(decoder_path.read_bytes())
    assert warpwave.Model("minilm", device="cpu").info.vocabulary == 258


def test_wrong_types_and_missing_files_are_named(decoder: warpwave.Model) -> None:
    with pytest.raises(TypeError, match="the text is 5; it must be a str"):
        decoder.tokenize(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a text is None; it must be a str"):
        decoder.embed([None])  # type: ignore[list-item]
    with pytest.raises(warpwave.MissingFile, match="nothing.gguf"):
        warpwave.Model("/nowhere/nothing.gguf", device="cpu")
    with pytest.raises(warpwave.MissingFile, match="nothing.session"):
        decoder.load_session("/nowhere/nothing.session")


_INTERRUPTED = """
import os, signal, sys, threading, time, warpwave
model = warpwave.Model(sys.argv[1] if len(sys.argv) > 1 else os.environ["MODEL"], device="cpu")
what, at = os.environ["WHAT"], [0.0]
def interrupt():
    time.sleep(0.3)
    at[0] = time.process_time()  # of all threads: what other programs take does not count
    os.kill(os.getpid(), signal.SIGINT)
session = model.session()
tokens = list(range(250)) * 120
if what != "feed":
    session.feed(tokens[:4000])
thread = threading.Thread(target=interrupt)
thread.start()
try:
    if what == "feed":
        while True:
            session.feed(tokens)
            session.truncate(0)
    elif what == "generate":
        text = session.generate(25000, ignore_eos=True)
    else:
        for piece in session.stream(25000, ignore_eos=True):
            pass
    print("ended by itself")
except KeyboardInterrupt:
    print("interrupted", time.process_time() - at[0])
thread.join()
print(len(session) < 29000 and len(model.tokenize("still there")) > 0)
before = time.process_time()
time.sleep(0.3)
print(time.process_time() - before < 0.1)  # nothing computes any more
"""


@pytest.mark.parametrize("what", ["feed", "generate", "stream"])
@pytest.mark.check
def test_ctrl_c_ends_feeding_and_generating_at_once(tmp_path: pathlib.Path, what: str) -> None:
    write_decoder(tmp_path / "long.gguf", 32768)
    said, whole, idle = run_python(_INTERRUPTED, MODEL=str(tmp_path / "long.gguf"), WHAT=what).split("\n")[:3]
    assert said.startswith("interrupted") and whole == idle == "True"
    assert float(said.split()[1]) < 0.2


TOOLED = ("{% if tools %}{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}Write <tool_call>...</tool_call>\n{% endif %}"
          "{% for m in messages %}{{ m.role }}: {{ m.content }}{% for call in m.tool_calls %}<tool_call>{{ call.function | tojson }}</tool_call>{% endfor %}\n{% endfor %}")
WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {"days": {"enum": [1, 3]}}, "required": ["days"]}}}
CLOCK = {"name": "clock", "parameters": {"type": "object", "properties": {}}}


def test_tools_are_in_the_prompt_and_calls_are_read(tmp_path: pathlib.Path) -> None:
    write_decoder(tmp_path / "tools.gguf", 4096, TOOLED)
    with warpwave.Model(tmp_path / "tools.gguf", device="cpu") as model:
        said = [{"role": "user", "content": "rain?"}]
        shown = model.detokenize(model.chat_tokens(said, tools=[WEATHER, CLOCK]))
        assert shown.startswith('{"type": "function", "function": {"name": "weather"') and '"name": "clock"' in shown and shown.endswith("user: rain?")
        replies = [model.generate("rain?", 400, tools=[WEATHER, CLOCK], tool_choice="required", temperature=1.5, seed=seed) for seed in range(6)]
        assert {call.name for reply in replies for call in reply.calls} == {"weather", "clock"} and all(reply.text == "" for reply in replies)
        named = model.generate(said, 400, tools=[WEATHER, CLOCK], tool_choice="weather", temperature=1.5)
        assert [type(call) for call in named.calls] == [warpwave.ToolCall] and named.calls[0].arguments["days"] in (1, 3)
        free = model.generate("rain?", 8, tools=[WEATHER])
        assert isinstance(free, warpwave.Reply) and free.calls == [] and free.text
        later = [*said, named.message, {"role": "tool", "content": "none"}]
        assert model.detokenize(model.chat_tokens(later)).endswith('assistant: <tool_call>{"name": "weather", "arguments": ' + json.dumps(named.calls[0].arguments)
                                                                   + "}</tool_call>tool: none")
        written = {"function": {"name": "weather", "arguments": json.dumps(named.calls[0].arguments)}}  # as OpenAI's API has it
        assert model.chat_tokens([*said, {"role": "assistant", "content": None, "tool_calls": [written]}, later[-1]]) == model.chat_tokens(later)


def test_wrong_tools_are_refused(tmp_path: pathlib.Path) -> None:
    write_decoder(tmp_path / "tools.gguf", 256, TOOLED)
    write_decoder(tmp_path / "chat.gguf", 256, CHATML)
    with warpwave.Model(tmp_path / "chat.gguf", device="cpu") as model, pytest.raises(warpwave.Unsupported, match="does not define tools"):
        model.generate("a", 2, tools=[WEATHER])
    with warpwave.Model(tmp_path / "tools.gguf", device="cpu") as model:
        for wrong, what in (([], "at least one"), (WEATHER, "must be a list"), ([{"type": "function"}], r"tools\[0\]"), ([WEATHER, 3], r"tools\[1\]")):
            with pytest.raises(TypeError, match=what):
                model.generate("a", 2, tools=wrong)  # type: ignore[call-overload]
        for options, what in (({"tool_choice": "rain"}, "'weather'"), ({"stream": True}, "Reply"), ({"schema": True}, "Reply")):
            with pytest.raises(ValueError, match=what):
                model.generate("a", 2, tools=[WEATHER], **options)  # type: ignore[call-overload]
        with pytest.raises(ValueError, match="for tools"):
            model.generate("a", 2, tool_choice="required")
        with pytest.raises(ValueError, match="one prompt"):
            model.generate(["a", "b"], 2, tools=[WEATHER])  # type: ignore[call-overload]
        with pytest.raises(ValueError, match="without tools"):
            model.chat_tokens([{"role": "user", "content": "a"}], tools=[WEATHER], plain=False)
        with pytest.raises(TypeError, match="a call is 3"):
            model.chat_tokens([{"role": "assistant", "content": "", "tool_calls": [3]}])


def test_calls_are_found_in_a_text_and_what_is_none_stays() -> None:
    call = '<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call>'
    reply = reply_of(f"Let me see. {call}\n{call}", False)
    assert reply.text == "Let me see." and reply.calls == [warpwave.ToolCall("f", {"x": 1})] * 2
    for broken in ('<tool_call>{"name": "f", "argu', '<tool_call>{"name": 3, "arguments": {}}</tool_call>', "plain text ", "<tool_call>[]</tool_call>"):
        assert reply_of(broken, False) == warpwave.Reply(broken)
    assert reply_of('{"name": "f", "arguments": {}}', True).calls == [warpwave.ToolCall("f", {})] and reply_of('{"name', True) == warpwave.Reply('{"name')
    assert warpwave.Reply("x").message == {"role": "assistant", "content": "x"}


def test_a_schema_or_a_grammar_says_what_the_text_is(tmp_path: pathlib.Path) -> None:
    write_decoder(tmp_path / "decoder.gguf", context=512)
    decoder = warpwave.Model(tmp_path / "decoder.gguf", device="cpu")
    schema = {"type": "object", "properties": {"a": {"enum": [1, "x"]}, "b": {"type": "string", "maxLength": 3}}, "required": ["a", "b"]}
    texts = [decoder.generate("the", 400, schema=schema, temperature=1.5, seed=seed) for seed in range(5)]
    for written in texts:
        value = json.loads(written)
        assert list(value) == ["a", "b"] and value["a"] in (1, "x") and len(value["b"]) <= 3
    assert decoder.generate(["the", "a"], 400, schema=json.dumps(schema), temperature=1.5, seed=3)[0] == texts[3]
    assert "".join(decoder.generate("the", 50, stream=True, grammar='root ::= "ab" "c"{3}')) == "abccc"
    session = decoder.session()
    session.feed(decoder.tokenize("the"))
    assert session.generate(50, grammar='root ::= "yes"') == "yes"
    with pytest.raises(ValueError, match="both"):
        decoder.generate("the", grammar="root ::= [a]", schema=True)
    with pytest.raises(warpwave.Error, match="'multipleOf'"):
        decoder.generate("the", stream=True, schema={"multipleOf": 3})
    with pytest.raises(warpwave.Error, match="left recursion"):
        decoder.generate("the", grammar='root ::= root "a" | "b"')
    with pytest.raises(TypeError, match="grammar is int"):
        decoder.generate("the", grammar=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="no option"):
        decoder.session().sample(grammar=3)


@pytest.mark.check
def test_langchain_puts_prompts_before_queries_and_documents(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("langchain_core")
    from warpwave.langchain import WarpwaveEmbeddings
    write_encoder(tmp_path / "words.gguf", prompts={"query": "fox ", "document": "dog "})
    model = warpwave.Model(tmp_path / "words.gguf", device="cpu")
    both = WarpwaveEmbeddings(model)
    assert both.embed_query("a") == model.embed("fox a", prompt="").tolist()
    assert both.embed_documents(["a", "x"]) == model.embed(["dog a", "dog x"], prompt="").tolist()


def test_prompts_are_put_before_texts(tmp_path: pathlib.Path) -> None:
    write_encoder(tmp_path / "words.gguf", prompts={"query": "fox ", "clustering": "dog dog "})
    model = warpwave.Model(tmp_path / "words.gguf", device="cpu")
    assert model.info.prompts == "query, clustering" and model.prompt("query") == "fox "
    assert (model.embed("a dog", prompt="query") == model.embed("fox a dog", prompt="")).all()
    assert (model.embed(["a"], prompt="clustering") == model.embed(["dog dog a"], prompt="")).all()
    with pytest.warns(warpwave.MissingPrompt, match="one of query, clustering, or ''"):
        assert (model.embed("a", prompt="document") == model.embed("a")).all()
    with pytest.raises(warpwave.NotFound, match="query, clustering"):
        model.embed("a", prompt="nothing")


def test_a_text_that_is_cut_gives_a_warning(tmp_path: pathlib.Path) -> None:
    write_encoder(tmp_path / "words.gguf", context=6)
    write_encoder(tmp_path / "ranker.gguf", context=8, ranks=True)
    model, ranker = warpwave.Model(tmp_path / "words.gguf", device="cpu"), warpwave.Model(tmp_path / "ranker.gguf", device="cpu")
    with pytest.warns(warpwave.CutText, match="2 of 3 texts have more than 6 tokens") as seen:
        model.embed(["a", "a fox a fox a", "dogs dogs dogs"])
    assert seen[0].filename == __file__
    with pytest.warns(warpwave.CutText, match="1 of 2 texts"):
        ranker.rerank("a fox", ["a", "a fox a fox a fox"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.embed(["a fox", "dogs"])
