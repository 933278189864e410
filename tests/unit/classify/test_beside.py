"""Short values of a record whose text is another project's: too short to be known, and told by their neighbours."""

from __future__ import annotations

from gateway.classify.belonging import _beside
from gateway.classify.objects import Claim
from gateway.context.objects import Leaf, LeafRole


def leaf(text: str, role: LeafRole = LeafRole.TEXT) -> Leaf:
    return Leaf((), text, role)


def claim(index: int, evidence: str = "fingerprint") -> Claim:
    return Claim(index, LeafRole.TEXT, "kestrel", evidence, 900, ((0, 60),), ("aa",))


def test_a_name_goes_with_the_record_that_it_names() -> None:
    leaves = [leaf("cut-over"), leaf("name", LeafRole.NAME), leaf("milestone"), leaf("x" * 60), leaf("done")]
    found = _beside([claim(3)], leaves)
    assert [(c.leaf, c.spans) for c in found] == [(0, ((0, 8),)), (2, ((0, 9),)), (4, ((0, 4),))]


def test_what_stands_further_off_or_is_long_enough_to_be_known_stays() -> None:
    leaves = [leaf("far"), leaf("y" * 60), leaf("z" * 60), leaf("x" * 60), leaf("")]
    assert _beside([claim(3)], leaves) == []


def test_what_is_only_named_takes_nothing_along() -> None:
    assert _beside([claim(0, "path")], [leaf("/srv/kestrel/x"), leaf("done")]) == []
