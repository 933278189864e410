"""64 conversations of 8 projects side by side: no placeholder, value, verdict or text of one reaches another."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.client import Reply
from tests.support.gateway import Bench, gateway
from tests.support.words import prose

PROJECTS = [f"p{number}" for number in range(8)]
CONVERSATIONS = 8  # of each project


def mail(project: str, number: int) -> str:
    return f"anna.{project}.{number}@northwind-traders.org"


def said(*texts: str) -> dict[str, Any]:
    return {
        "model": "claude-x",
        "max_tokens": 5,
        "messages": [{"role": "user", "content": text} for text in texts],
    }


async def converse(bench: Bench, project: str, number: int, texts: dict[str, str]) -> list[Reply]:
    """Three turns: the project's own text, its history again, and what a neighbour owns."""
    neighbour = PROJECTS[(PROJECTS.index(project) + 1 + number % 7) % len(PROJECTS)]
    first = f"{project}/{number}: write to {mail(project, number)}\n{texts[project]}"
    turns = [said(first), said(first, "go on"), said(first, f"and this?\n{texts[neighbour]}")]
    return [await bench.send(turn, user=project) for turn in turns]


async def test_nothing_crosses_under_load(tmp_path: Path) -> None:
    texts = {project: prose(number, lines=12) for number, project in enumerate(PROJECTS)}
    document = {"projects": {project: {} for project in PROJECTS}}
    async with gateway(tmp_path, document) as bench:
        for project in PROJECTS:  # each owns its text before the others meet it
            await bench.send(said(texts[project]), user=project)
        before = len(bench.arrived)
        jobs = [(p, n) for n in range(CONVERSATIONS) for p in PROJECTS]
        answers = await asyncio.gather(*(converse(bench, p, n, texts) for p, n in jobs))
        sent = [bytes(a.body).decode() for a in bench.arrived[before:]]
        rows = await bench.rows(limit=1000)
        events, _ = await bench.running.core.egress.store.rows({"kind": "boundary_event", "limit": 1000})
        vault = await bench.running.core.stores.vault.stat()

    assert len(sent) == 3 * len(jobs)
    tokens: dict[str, set[str]] = {project: set() for project in PROJECTS}
    for body in sent:
        project = owner_of(body)
        assert "@northwind" not in body
        tokens[project].add(placeholder_of(body))
        strange = [p for p in PROJECTS if p != project and lines_of(texts[p], body)]
        assert strange == [], project
    assert all(len(found) == CONVERSATIONS for found in tokens.values())
    assert len(set().union(*tokens.values())) == len(jobs)

    for (project, number), replies in zip(jobs, answers, strict=True):
        for reply in replies:
            assert reply.status == 200
            named = set(re.findall(r"anna\.p\d\.\d+@", reply.body.decode()))
            assert named <= {f"anna.{project}.{number}@"}, "a value of another conversation"
    assert {row["project"] for row in rows} == set(PROJECTS)
    assert len(events) == len(jobs)
    assert all(e["source_project_hash"] != e["target_project_hash"] and not e["allowed"] for e in events)
    assert {p["project"]: p["values"] for p in vault["projects"]} == dict.fromkeys(PROJECTS, CONVERSATIONS)


def owner_of(body: str) -> str:
    return json.loads(body)["messages"][0]["content"].partition("/")[0]


def placeholder_of(body: str) -> str:
    """What stands where the address stood."""
    first = json.loads(body)["messages"][0]["content"]
    return first.split("write to ")[1].split("\n")[0]


def lines_of(text: str, body: str) -> Sequence[str]:
    return [line for line in text.splitlines() if line in body]
