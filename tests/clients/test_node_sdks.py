"""SDKs for agents in Node: the AI SDK of Vercel with three providers, and OpenAI's Agents SDK."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients.stage import PROMPT, Stage

pytestmark = pytest.mark.timeout(900)

KEYS = {
    "OPENAI_API_KEY": "sk-dummy",
    "ANTHROPIC_API_KEY": "sk-ant-dummy",
    "GOOGLE_GENERATIVE_AI_API_KEY": "AIza-dummy",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
}
TOOLS = """
import fs from "node:fs";
import { z } from "zod";
const prompt = process.argv[2];
const path = z.object({ file_path: z.string() }), file = z.object({ file_path: z.string(), content: z.string() });
const read = ({ file_path }) => fs.readFileSync(file_path, "utf8");
const write = ({ file_path, content }) => (fs.writeFileSync(file_path, content), "written");
"""
AI = (
    TOOLS
    + """
import { generateText, streamText, tool, stepCountIs } from "ai";
const tools = {
  read_file: tool({ description: "reads", inputSchema: path, execute: read }),
  write_file: tool({ description: "writes", inputSchema: file, execute: write }),
};
const turn = { model, tools, prompt, stopWhen: stepCountIs(8) };
"""
)
WHOLE = "console.log((await generateText(turn)).text);"
STREAMED = (
    'for await (const text of streamText(turn).textStream) process.stdout.write(text);\nconsole.log("");'
)
MODELS = {
    "responses": 'import { openai } from "@ai-sdk/openai";\nconst model = openai("gpt-5");',
    "chat": 'import { openai } from "@ai-sdk/openai";\nconst model = openai.chat("gpt-5");',
    "anthropic": 'import { anthropic } from "@ai-sdk/anthropic";\nconst model = anthropic("claude-sonnet-4-6");',
    "google": 'import { google } from "@ai-sdk/google";\nconst model = google("gemini-3-pro-preview");',
}
AGENT = (
    TOOLS
    + """
import { Agent, run, tool } from "@openai/agents";
const tools = [
  tool({ name: "read_file", description: "reads", parameters: path, execute: read }),
  tool({ name: "write_file", description: "writes", parameters: file, execute: write }),
];
const agent = new Agent({ name: "copyist", instructions: "Do as told.", model: "gpt-5", tools });
console.log((await run(agent, prompt)).finalOutput);
"""
)
WAYS = [
    *((f"{model} {name}", "vercel-ai", f"{choice}{AI}{end}") for model, choice in MODELS.items()
      for name, end in (("whole", WHOLE), ("streamed", STREAMED))),
    ("agents", "openai-agents", AGENT),
]  # fmt: skip


@pytest.mark.parametrize(("package", "program"), [way[1:] for way in WAYS], ids=[way[0] for way in WAYS])
async def test_a_key_in_a_file_goes_out_masked_and_is_written_back_whole(
    turn: Stage, installed: Callable[[str], Path], package: str, program: str
) -> None:
    modules = next(each for each in installed(package).parents if each.name == "node_modules")
    (turn.home / "node_modules").symlink_to(modules)
    script = turn.home / "turn.mjs"
    script.write_text(program)
    ended = await turn.run([str(installed("node")), str(script), PROMPT], KEYS)

    turn.check_round_trip(ended)
    turn.check_traces(await turn.rows())
