"""Tools of a conversation: what the model's template gets, and the calls in the text that it generates.

A call has the form <tool_call>{"name": ..., "arguments": {...}}</tool_call>, which Qwen, Hermes, SmolLM3 and others use; the server reads the
same. If a call is required, its tag ends the prompt, and a grammar made of the tools' schemas constrains the rest.
"""
from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Optional, Sequence

__all__ = ["Reply", "ToolCall"]

OPEN, CLOSE = "<tool_call>", "</tool_call>"
FORCED = OPEN + "\n"  # behind the prompt if a call is required


@dataclass(frozen=True)
class ToolCall:
    """A call that a model asks for."""

    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Reply:
    """What a model says if it has tools: its text without the calls, and these."""

    text: str
    calls: list[ToolCall] = field(default_factory=list)

    @property
    def message(self) -> dict[str, Any]:
        """The reply as a message, to be put into the conversation before the results: {"role": "tool", "content": ...} for each call."""
        calls = [{"type": "function", "function": {"name": call.name, "arguments": call.arguments}} for call in self.calls]
        return {"role": "assistant", "content": self.text, **({"tool_calls": calls} if calls else {})}


def tools_of(given: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return tools in OpenAI's form; a function's description alone is accepted, too."""
    if isinstance(given, (str, dict)) or not given:
        raise TypeError(f"tools is {given!r}; it must be a list with at least one {{'type': 'function', 'function': {{'name': ..., 'parameters': ...}}}}")
    tools = []
    for i, one in enumerate(given):
        function = one.get("function", one if "name" in one else None) if isinstance(one, dict) else None
        if not (isinstance(function, dict) and isinstance(function.get("name"), str) and isinstance(function.get("parameters", {}), dict)):
            raise TypeError(f"tools[{i}] is {one!r}; it must be {{'type': 'function', 'function': {{'name': ..., 'parameters': ...}}}}")
        tools.append({"type": "function", "function": function})
    return tools


def schema_of(tools: list[dict[str, Any]], choice: str) -> Optional[dict[str, Any]]:
    """Return the schema of a call that is required, to any tool or to the named one; None if the model may choose."""
    if choice == "auto":
        return None
    functions = [tool["function"] for tool in tools if choice in ("required", tool["function"]["name"])]
    if not functions:
        names = ", ".join(repr(tool["function"]["name"]) for tool in tools)
        raise ValueError(f"tool_choice is {choice!r}; it must be 'auto', 'required', or the name of a tool: {names}")
    return {"anyOf": [{"type": "object", "properties": {"name": {"const": function["name"]}, "arguments": function.get("parameters", {"type": "object"})},
                       "required": ["name", "arguments"], "additionalProperties": False} for function in functions]}


def _call(written: str) -> Optional[ToolCall]:
    try:
        call = json.loads(written)
    except json.JSONDecodeError:
        return None
    if isinstance(call, dict) and isinstance(call.get("name"), str) and isinstance(call.get("arguments"), dict):
        return ToolCall(call["name"], call["arguments"])
    return None


def reply_of(text: str, forced: bool) -> Reply:
    """Read the calls of a text. What has their tag and is no call, because the tokens ran out, stays in the text."""
    if forced:
        call = _call(text)
        return Reply("", [call]) if call else Reply(text)
    kept, calls = [], []
    for i, piece in enumerate(text.split(OPEN)):
        written, closed, rest = piece.partition(CLOSE)
        call = _call(written) if i > 0 else None
        if call:
            calls.append(call)
            kept.append(rest)
        else:
            kept.append((OPEN if i > 0 else "") + piece)
    return Reply("".join(kept).strip() if calls else "".join(kept), calls)


def _arguments(call: Any) -> Any:
    """Return a call of an earlier answer with its arguments as an object, which templates expect; OpenAI's API has them as a text."""
    function = call.get("function", call) if isinstance(call, dict) else None
    if not (isinstance(function, dict) and isinstance(function.get("name"), str)):
        raise TypeError(f"a call is {call!r}; it must be {{'type': 'function', 'function': {{'name': ..., 'arguments': ...}}}}")
    arguments = function.get("arguments", {})
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except json.JSONDecodeError:
            pass  # the model's own mistake, which it may see
    return {"type": "function", "function": {"name": function["name"], "arguments": arguments}}


def conversation(messages: Sequence[dict[str, Any]], tools: Optional[list[dict[str, Any]]]) -> str:
    """Return the JSON that the template gets."""
    said = []
    for m in messages:
        calls = m.get("tool_calls") if isinstance(m, dict) else None
        if not (isinstance(m, dict) and isinstance(m.get("role"), str) and (isinstance(m.get("content"), str) or calls)):
            raise TypeError(f"a message is {m!r}; it must be {{'role': ..., 'content': ...}} with texts, and may have tool_calls")
        said.append({**m, "content": m.get("content") or "", **({"tool_calls": [_arguments(call) for call in calls]} if calls else {})})
    return json.dumps({"messages": said, **({"tools": tools} if tools else {})}, ensure_ascii=False)
