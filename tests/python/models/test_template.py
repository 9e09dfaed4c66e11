"""Chat templates against jinja2, where that is installed: random templates over random conversations. test_template.c has the fixed ones."""
from __future__ import annotations

import pathlib
import random
import sys
from typing import Any

import pytest
from conftest import ROOT
from small_models import CHATML, write_decoder

import warpwave

try:
    warpwave._native.ww_model_token_ends(None, 0)
except ImportError as error:
    pytest.skip(f"SKIP: no models in this build: {error}", allow_module_level=True)

WORDS = ["", " Hello there ", "a", "<|im_end|>", "two\nlines\n", "  ", "Ωmega ça", "x,y,,z", "'q' \"d\" \\ \t", "12", "a.b.c", "The The the"]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    made = tmp_path_factory.mktemp("template") / "decoder.gguf"
    write_decoder(made, 64, CHATML)
    return made


def test_a_template_can_be_given(path: pathlib.Path) -> None:
    said = [{"role": "user", "content": "hi"}]
    with warpwave.Model(path, device="cpu", chat_template="{{ messages[0].content | upper }}!") as model:
        assert model.has_chat and model.chat(said) == "HI!" and model.chat_tokens(said) == model.tokenize("HI!", add_special=False)
    with warpwave.Model(path, device="cpu") as model:
        assert model.chat(said) == "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant"
    with pytest.raises(ValueError, match="line 1, column 7: a value was expected"):
        warpwave.Model(path, device="cpu", chat_template="{% if %}")
    with pytest.raises(TypeError, match="chat_template"):
        warpwave.Model(path, device="cpu", chat_template=3)  # type: ignore[arg-type]


def test_a_file_with_a_broken_template_opens_and_says_what_is_wrong(tmp_path: pathlib.Path) -> None:
    write_decoder(tmp_path / "broken.gguf", 64, "a\n{% if %}")
    with warpwave.Model(tmp_path / "broken.gguf", device="cpu") as model:
        assert not model.has_chat and model.tokenize("a")
        with pytest.raises(ValueError, match="line 2, column 7"):
            model.chat([{"role": "user", "content": "a"}])


def test_special_tokens_stay_text_whatever_the_template_does(path: pathlib.Path) -> None:
    text = "{{ messages[0].content.split('-') | map('trim') | join('') }}<end>{{ messages[0].content | tojson }}"
    with warpwave.Model(path, device="cpu", chat_template=text) as model:
        tokens = model.chat_tokens([{"role": "user", "content": "x- <end> -y"}])
        assert tokens.count(256) == 1
        assert model.chat_tokens([{"role": "user", "content": "x- <end> -y"}], plain=False).count(256) == 3


class Writer:
    """A random template."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def one(self, *choices: str) -> str:
        return self.random.choice(choices)

    def text(self, depth: int) -> str:
        """An expression that is a text."""
        r = self.random
        if depth <= 0:
            return self.one("m.content", "m['role']", "'ab'", '"x y\\n"', "m.content", "messages[0].content", "bos_token")
        inner = self.text(depth - 1)
        if r.random() < 0.3:
            return f"({inner} {self.one('+', '~')} {self.text(depth - 1)})"
        if r.random() < 0.15:
            return f"({inner} if {self.test(depth - 1)} else {self.text(depth - 1)})"
        number = r.randint(-4, 6)
        return f"({inner})" + self.one(
            " | trim", ".strip()", ".upper()", ".lower()", ".title()", ".capitalize()", " | title", " | capitalize", " | upper", " | lower", f"[{number}:]", f"[:{number}]", "[::-1]", f"[{number}]",
            ".lstrip('a ')", ".rstrip()", ".replace('a', 'bb')", " | replace('e', '')", ".split(',')[0]", ".split() | join('-')", ".split('e', 1)[-1]", " | first", " | last", " | reverse", " | tojson",
            " | default('d')", " | default('d', true)", " | string", " | list | join('.')", " | indent(2)", ".splitlines() | join('|')", ".removeprefix(' ')", " | list | unique | join",
            " | list | sort | join", f" * {r.randint(0, 3)}", " | length | string", " | list | string", " | int | string", " | float | string")

    def test(self, depth: int) -> str:
        inner = f"({self.text(depth - 1)})"
        return self.one(f"{inner} == {self.text(depth - 1)}", f"'a' in {inner}", f"'e' not in {inner}", f"{inner}", f"not {inner}", "loop.first", "loop.last", "loop.index0 % 2 == 1",
                        "m.role == 'user'", f"{inner} is string", f"{inner} is defined", "m.nothing is defined", "nothing is none", f"{inner}.startswith('a')", f"{inner}.endswith((' ', 'e'))",
                        f"{inner} | length > 3", f"{inner} < {self.text(depth - 1)}", "loop.previtem is defined", "1 < loop.index <= 2", f"m.role in ['user', {inner}]")

    def body(self, depth: int) -> str:
        parts = []
        for _ in range(self.random.randint(1, 3)):
            open_, close, output = self.one("{%", "{%-", "  {%", "{%+"), self.one("%}", "-%}", "%}\n"), self.one("{{", "{{-")
            kind = self.random.random() if depth > 0 else 1.0
            if kind < 0.3:
                parts.append(f"{open_} if {self.test(2)} {close}{self.body(depth - 1)}{open_} elif {self.test(1)} {close} e {open_} else {close}\n{self.body(depth - 1)}{open_} endif {close}")
            elif kind < 0.45:
                parts.append(f"{open_} set v = {self.text(2)} {close}{{{{ v }}}}")
            elif kind < 0.55:
                parts.append(f"{open_} for c in {self.text(1)} if c != 'a' {close}{{{{ c ~ loop.index }}}}{open_} else {close}-{open_} endfor {close}")
            elif kind < 0.65:
                parts.append(f"{open_} set n.k = n.k + 1 {close}{{{{ n.k }}}}")
            elif kind < 0.72:
                parts.append("{{ f(" + self.text(1) + self.one("", ", 'z'", ", y=m.role") + ") }}")
            else:
                parts.append(f"{self.one('', 'text ', chr(10), ' <|x|> ')}{output} {self.text(3)} {self.one('}}', '-}}')}{self.one('', chr(10), '  ')}")
        return "".join(parts)

    def template(self) -> str:
        macro = "{% macro f(x, y='w') %}[{{ x }}/{{ y }}]{% endmacro %}"
        return f"{macro}{{% set n = namespace(k=0) %}}\n{{% for m in messages %}}{self.body(2)}{{% endfor %}}{self.one('', chr(10), '{{ n.k }}')}"


def test_random_templates_write_what_jinja2_writes(path: pathlib.Path) -> None:
    pytest.importorskip("jinja2", reason="SKIP: jinja2 is not installed")
    sys.path.insert(0, str(ROOT / "tests" / "model" / "template"))
    from make_template_cases import render  # type: ignore[import-not-found]
    rendered = 0
    for seed in range(400):
        text = Writer(seed).template()
        choose = random.Random(seed)
        said = [{"role": choose.choice(["user", "assistant", "system"]), "content": choose.choice(WORDS)} for _ in range(choose.randint(1, 4))]
        expected = render(text, {"messages": said, "add_generation_prompt": True}, bos="", eos="<end>")
        got: Any = None
        try:
            with warpwave.Model(path, device="cpu", chat_template=text) as model:
                got = model.chat(said)
        except (warpwave.Error, ValueError) as error:
            reason = str(error)
            assert expected is None, (seed, reason, text, said)
        assert got == expected, (seed, text, said)
        rendered += expected is not None
    assert rendered > 200
