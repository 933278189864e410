"""Token figures of answers: each provider's own count, in words that mean the same for all of them.

    input_tokens         everything that the model was given, what came out of a cache included
    cached_tokens        of these, read from a cache
    cache_write_tokens   of these, written to a cache
    output_tokens        everything that the model wrote, its thinking included
    reasoning_tokens     of these, thinking

A figure that a provider does not report is not there. Providers count differently: Anthropic and Bedrock leave cached
tokens out of the input, Gemini leaves thinking out of the output, and xAI does so in one of its APIs; here they are in.
Sources: the usage models of the SDKs of 2026-11 (openai, anthropic, google-genai, mistralai, cohere, ollama, botocore).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from gateway.context.objects import Json

_MARKS: Final = re.compile(r'"usage(?:Metadata)?"\s*:\s*\{|eval_count|okenCount|oken_count|put_tokens')

_HOLDERS: Final = ("message", "response", "delta", "interaction", "metadata", "x_groq")
_NAMES: Final = ("usage", "usageMetadata", "tokens", "billed_units", "amazon-bedrock-invocationMetrics")
_DETAILS: Final = frozenset(
    {
        *("prompt_tokens_details", "input_tokens_details", "input_token_details"),
        *("completion_tokens_details", "output_tokens_details", "output_token_details"),
        *("tokens", "billed_units"),
    }
)
_OWN: Final = frozenset(
    {  # Ollama; Llama and Titan on Bedrock: the figures stand beside the text
        *("prompt_eval_count", "eval_count"),
        *("prompt_token_count", "generation_token_count"),
        *("inputTextTokenCount", "totalOutputTextTokenCount"),
    }
)

# In order of preference. The first name that is there counts, with those that are not part of it added.
_INPUT: Final[tuple[tuple[str, ...], ...]] = (
    ("prompt_tokens",),
    ("tokens.input_tokens",),
    ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"),
    ("inputTokens", "cacheReadInputTokens", "cacheWriteInputTokens"),
    ("promptTokenCount", "toolUsePromptTokenCount"),
    ("total_input_tokens", "total_tool_use_tokens"),
    ("prompt_eval_count",),
    ("prompt_token_count",),
    ("inputTextTokenCount",),
    ("inputTokenCount", "cacheReadInputTokenCount", "cacheWriteInputTokenCount"),
    ("billed_units.input_tokens",),
)
_OUTPUT: Final[tuple[tuple[str, ...], ...]] = (
    ("completion_tokens",),
    ("tokens.output_tokens",),
    ("output_tokens",),
    ("outputTokens",),
    ("candidatesTokenCount", "thoughtsTokenCount"),
    ("thoughtsTokenCount",),
    ("total_output_tokens", "total_thought_tokens"),
    ("eval_count",),
    ("generation_token_count",),
    ("totalOutputTextTokenCount",),
    ("tokenCount",),
    ("outputTokenCount",),
    ("billed_units.output_tokens",),
)
_CACHED: Final = (
    *("prompt_tokens_details.cached_tokens", "input_tokens_details.cached_tokens"),
    *("input_token_details.cached_tokens", "cache_read_input_tokens", "cacheReadInputTokens"),
    *("cachedContentTokenCount", "prompt_cache_hit_tokens", "cached_tokens", "total_cached_tokens"),
    "cacheReadInputTokenCount",
)
_WRITTEN: Final = (
    *("cache_creation_input_tokens", "cacheWriteInputTokens", "cacheWriteInputTokenCount"),
    *("prompt_tokens_details.cache_write_tokens", "input_tokens_details.cache_write_tokens"),
)
_THINKING: Final = (
    *("completion_tokens_details.reasoning_tokens", "output_tokens_details.reasoning_tokens"),
    *("thoughtsTokenCount", "total_thought_tokens", "reasoning_tokens"),
)
_KEPT: Final = frozenset(
    {name for names in (*_INPUT, *_OUTPUT) for name in names}
    | {*_CACHED, *_WRITTEN, *_THINKING, "total_tokens"}
)
_HEADERS: Final = {
    b"x-amzn-bedrock-input-token-count": "inputTokenCount",
    b"x-amzn-bedrock-output-token-count": "outputTokenCount",
    b"x-amzn-bedrock-cache-read-input-token-count": "cacheReadInputTokenCount",
    b"x-amzn-bedrock-cache-write-input-token-count": "cacheWriteInputTokenCount",
}


def reports(text: str) -> bool:
    """Whether a JSON text can report figures; a quick look, as most events of a stream report none."""
    return _MARKS.search(text) is not None


@dataclass(slots=True)
class Usage:
    """What one answer reported so far; of figures that come more than once the last ones stand."""

    _found: dict[str, int] = field(default_factory=dict)

    def head(self, headers: tuple[tuple[bytes, bytes], ...]) -> None:
        """The figures that Bedrock's Invoke gives in the answer's head."""
        for name, value in headers:
            figure = _HEADERS.get(name.lower())
            if figure is not None and value.isdigit() and len(value) < 16:
                self._found[figure] = int(value)

    def note(self, data: Json) -> None:
        """A whole answer, or an event of one."""
        if isinstance(data, dict):
            self._found.update(_figures(data))

    @property
    def tokens(self) -> Mapping[str, int] | None:
        """The figures under the names above, those of zero included; None where none was reported."""
        found = self._found
        total = found.get("total_tokens")
        result = {
            "input_tokens": _sum(_INPUT, found),
            "cached_tokens": _first(_CACHED, found),
            "cache_write_tokens": _first(_WRITTEN, found),
            "output_tokens": _sum(_OUTPUT, found),
            "reasoning_tokens": _first(_THINKING, found),
        }
        given, written = result["input_tokens"], result["output_tokens"]
        thinking = result["reasoning_tokens"]
        if "completion_tokens" in found and given is not None and written is not None and thinking:
            # Some count thinking beside the completion, and only their total tells.
            result["output_tokens"] = written + thinking * (total == given + written + thinking)
        if given is None and written is None and total is not None:
            result["input_tokens"] = total  # embeddings and rerankings
        return {name: count for name, count in result.items() if count is not None} or None


def _sum(choices: tuple[tuple[str, ...], ...], found: Mapping[str, int]) -> int | None:
    for names in choices:
        if names[0] in found:
            return sum(found.get(name, 0) for name in names)
    return None


def _first(names: tuple[str, ...], found: Mapping[str, int]) -> int | None:
    return next((found[name] for name in names if name in found), None)


def _figures(data: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """The figures of an answer or event, those in details under the name of these as well."""
    holders = [data, *(data.get(name) for name in _HOLDERS)]
    holders += [holder.get("meta") for holder in holders if isinstance(holder, dict)]  # Cohere: v1
    for holder in holders:
        if not isinstance(holder, dict):
            continue
        for name in _NAMES:
            if isinstance(holder.get(name), dict):
                prefix = f"{name}." if name in _DETAILS else ""
                yield from _counts(holder[name], prefix)
    yield from ((name, count) for name, count in _counts(data, "") if name in _OWN)
    results = data.get("results")  # Titan's whole answers
    if isinstance(results, list) and results and isinstance(results[0], dict):
        yield from _counts({"tokenCount": results[0].get("tokenCount")}, "")


def _counts(holder: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, int]]:
    for name, value in holder.items():
        if name in _DETAILS and isinstance(value, dict):
            yield from _counts(value, f"{name}.")
        elif prefix + name in _KEPT and _is_count(value):
            yield prefix + name, int(value)


def _is_count(value: object) -> bool:
    # Cohere and JavaScript write whole numbers as 12.0
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return whole and not isinstance(value, bool) and 0 <= value < 1 << 53  # type: ignore[operator]
