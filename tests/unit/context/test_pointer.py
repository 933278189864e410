"""RFC 6901, with the examples of its section 5."""

import pytest

from gateway.context import pointer
from gateway.context.objects import Path
from gateway.errors import ContractError

EXAMPLES: list[tuple[Path, str]] = [
    ((), ""),
    (("foo",), "/foo"),
    (("foo", 0), "/foo/0"),
    (("",), "/"),
    (("a/b",), "/a~1b"),
    (("c%d",), "/c%d"),
    (('k"l',), '/k"l'),
    (("m~n",), "/m~0n"),
    (("~1", "01"), "/~01/01"),
]


@pytest.mark.parametrize(("path", "text"), EXAMPLES)
def test_both_ways(path: Path, text: str) -> None:
    assert pointer.to_pointer(path) == text
    assert pointer.parse(text) == path


@pytest.mark.parametrize("text", ["foo", "/~", "/~2", "/a~"])
def test_what_is_no_pointer(text: str) -> None:
    with pytest.raises(ContractError, match=r"tilde|slash"):
        pointer.parse(text)
