"""An agent on google-genai, run by an interpreter of its own: it prints what came of one conversation as JSON.

    python genai_agent.py PROMPT COPY (whole|streamed) (sync|async)

COPY is the file that the model's second call writes.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from google import genai  # type: ignore[import-not-found, unused-ignore]  # in an environment of its own
from google.genai import errors, types  # type: ignore[import-not-found, unused-ignore]

MODEL = "gemini-3.8-flash"


def _declared() -> types.Tool:
    path = {"type": "string"}
    schemas = {
        "read_file": {"type": "object", "properties": {"file_path": path}},
        "write_file": {"type": "object", "properties": {"file_path": path, "content": path}},
    }
    functions = [
        types.FunctionDeclaration(name=name, parameters_json_schema=schema)
        for name, schema in schemas.items()
    ]
    return types.Tool(function_declarations=functions)


def _use(name: str, arguments: dict[str, str]) -> str:
    path = Path(arguments["file_path"])
    if name == "read_file":
        return path.read_text()
    path.write_text(arguments["content"])
    return "The file was written."


async def _ask(client: genai.Client, contents: list[Any], *, streamed: bool, is_async: bool) -> list[Any]:
    """The parts of one answer."""
    asked: Any = {
        "model": MODEL,
        "contents": contents,
        "config": types.GenerateContentConfig(tools=[_declared()]),
    }
    if is_async and streamed:
        chunks = [chunk async for chunk in await client.aio.models.generate_content_stream(**asked)]
    elif is_async:
        chunks = [await client.aio.models.generate_content(**asked)]
    elif streamed:
        chunks = list(client.models.generate_content_stream(**asked))
    else:
        chunks = [client.models.generate_content(**asked)]
    return [part for chunk in chunks for part in chunk.candidates[0].content.parts]


async def _converse(prompt: str, *, streamed: bool, is_async: bool) -> str:
    client = genai.Client(api_key="AIza-dummy")
    contents = [types.Content(role="user", parts=[types.Part(text=prompt)])]
    while True:
        parts = await _ask(client, contents, streamed=streamed, is_async=is_async)
        calls = [part.function_call for part in parts if part.function_call]
        if not calls:
            return "".join(part.text or "" for part in parts)
        results = [
            types.Part.from_function_response(name=call.name, response={"output": _use(call.name, call.args)})
            for call in calls
        ]
        contents += [types.Content(role="model", parts=parts), types.Content(role="user", parts=results)]


def main() -> None:
    """One conversation."""
    prompt, copy, streamed, is_async = sys.argv[1:]
    result = {"said": "", "exception": "", "message": ""}
    try:
        result["said"] = asyncio.run(
            _converse(prompt, streamed=streamed == "streamed", is_async=is_async == "async")
        )
    except errors.APIError as error:
        result["exception"], result["message"] = type(error).__name__, str(error)
    written = Path(copy)
    result["copy"] = written.read_text() if written.exists() else ""
    print(json.dumps(result))


if __name__ == "__main__":
    main()
