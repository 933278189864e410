"""The agent of the demonstration: the providers' own SDKs, which know of the gateway only what the environment says.

One JSON object on standard input ({"client", "messages", "system"?}), one on standard output: what the SDK sent, the
text it was streamed, or the exception it raised.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable
from typing import Any, Final

MODELS: Final = {"anthropic": "claude-demo", "openai": "gpt-demo"}
_KEY: Final = "demo-credential"


def _anthropic(
    messages: list[dict[str, Any]], tools: list[dict[str, Any]], hook: Callable[[Any], None]
) -> str:
    import anthropic  # noqa: PLC0415 - one SDK a process

    http = anthropic.DefaultHttpxClient(event_hooks={"request": [hook]})
    client = anthropic.Anthropic(api_key=_KEY, http_client=http, max_retries=0)
    made: Any = {"model": MODELS["anthropic"], "max_tokens": 256, "messages": messages, "tools": tools}
    with client.messages.stream(**made) as stream:
        return "".join(stream.text_stream)


def _openai(messages: list[dict[str, Any]], tools: list[dict[str, Any]], hook: Callable[[Any], None]) -> str:
    import openai  # noqa: PLC0415 - one SDK a process

    http = openai.DefaultHttpxClient(event_hooks={"request": [hook]})
    client = openai.OpenAI(api_key=_KEY, http_client=http, max_retries=0)
    made: Any = {"model": MODELS["openai"], "messages": messages, "tools": tools, "stream": True}
    return "".join(chunk.choices[0].delta.content or "" for chunk in client.chat.completions.create(**made))


_CLIENTS: Final = {"anthropic": _anthropic, "openai": _openai}


def main() -> None:
    """Make one request."""
    task = json.load(sys.stdin)
    sent: list[bytes] = []

    def hook(request: Any) -> None:
        sent.append(request.content)

    result: dict[str, Any] = {}
    try:
        result["text"] = _CLIENTS[task["client"]](task["messages"], task["tools"], hook)
    except Exception as error:  # noqa: BLE001 - the SDK's own exception is what is to be shown
        result["exception"] = f"{type(error).__module__.partition('.')[0]}.{type(error).__name__}"
        result["message"] = str(error)
        result["code"] = getattr(error, "code", None)
    result["sent"] = [base64.b64encode(body).decode() for body in sent]
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main()
