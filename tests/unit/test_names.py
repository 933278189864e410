"""What a test is called does not depend on when or where it is collected: the workers of one run compare names."""

from __future__ import annotations

import gzip
import time

import pytest

_MADE_NOW = gzip.compress(str(time.time()).encode())


@pytest.mark.parametrize("made_now", [_MADE_NOW, b"\x00"])
def test_a_case_made_of_bytes_is_named_by_its_argument(
    request: pytest.FixtureRequest, made_now: bytes
) -> None:
    assert request.node.name.startswith("test_a_case_made_of_bytes_is_named_by_its_argument[made_now")


def test_names_are_stable_and_distinct(request: pytest.FixtureRequest) -> None:
    names = [item.nodeid for item in request.session.items]
    assert len(names) == len(set(names))
