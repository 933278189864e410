"""Tests wait by the clock: what is asked a number of times takes as long as the machine likes."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
TURNS = "asyncio.sleep(0)"
"""A turn of the event loop takes no time of the clock, so that a number of them is as good on any machine."""


def _own(loop: ast.For | ast.While) -> Iterator[ast.AST]:
    """What a loop holds, without the functions and the other loops in it."""
    left: list[ast.AST] = [*loop.body]
    while left:
        node = left.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.For | ast.While):
            left.extend(ast.iter_child_nodes(node))


def _waits(loop: ast.For | ast.While) -> bool:
    held = list(_own(loop))
    if isinstance(loop, ast.For):
        awaits = any(isinstance(node, ast.Await) for node in held) or ".sleep(" in ast.unparse(loop)
        return (
            ast.unparse(loop.iter).startswith("range(")
            and awaits
            and any(isinstance(n, ast.Break) for n in held)
        )
    (first, *more) = loop.body
    pauses = ".sleep(" in ast.unparse(first) and TURNS not in ast.unparse(first)
    return isinstance(first, ast.Expr) and pauses and not more and "monotonic" not in ast.unparse(loop.test)


def polls(source: str) -> list[int]:
    """Lines where a condition is asked a number of times, or again and again without an end."""
    loops = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.For | ast.While)]
    return [loop.lineno for loop in loops if _waits(loop)]


@pytest.mark.parametrize("path", sorted(TESTS.rglob("*.py")), ids=lambda path: str(path.relative_to(TESTS)))
def test_nothing_is_asked_a_number_of_times(path: Path) -> None:
    assert polls(path.read_text()) == []


@pytest.mark.parametrize(
    ("source", "is_found"),
    [
        ("async def f():\n for _ in range(9):\n  if await g(): break", True),
        ("def f():\n for _ in range(9):\n  if g(): break\n  time.sleep(1)", True),
        ("async def f():\n while not g():\n  await asyncio.sleep(0.1)", True),
        ("async def f():\n while not g():\n  await asyncio.sleep(0)", False),
        ("async def f():\n while time.monotonic() < end:\n  await asyncio.sleep(0.1)", False),
        ("async def f():\n for _ in range(9):\n  await g()", False),
        ("def f():\n for n in range(9):\n  if n > g: break", False),
    ],
)
def test_such_a_loop_is_found(source: str, is_found: bool) -> None:
    assert bool(polls(source)) is is_found
