"""The tree of the second verifier agrees with ours, on good proofs and on bad ones."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.evidence import merkle

spec = importlib.util.spec_from_file_location("second", Path(__file__).parents[2] / "tools/verify/verify.py")
assert spec is not None
assert spec.loader is not None
second = importlib.util.module_from_spec(spec)
spec.loader.exec_module(second)

SIZE = 90
LEAVES = [merkle.leaf_hash(b"%d" % i) for i in range(SIZE)]
ROOTS = [merkle.root_of(LEAVES[:n]) for n in range(SIZE + 1)]


def subtree(level: int, index: int) -> bytes:
    return merkle.root_of(LEAVES[index << level : (index + 1) << level])


def test_every_consistency_proof() -> None:
    for new in range(SIZE + 1):
        for old in range(new + 1):
            proof = merkle.consistency_proof(old, new, subtree)
            assert second.grown(old, new, ROOTS[old], ROOTS[new], proof)


def test_every_inclusion_proof() -> None:
    for size in range(1, SIZE + 1):
        for index in range(0, size, 3):
            proof = merkle.inclusion_proof(index, size, subtree)
            assert second.included(LEAVES[index], index, size, proof, ROOTS[size])


PROOFS = st.lists(
    st.sampled_from([*LEAVES[:3], *ROOTS[:6], merkle.node_hash(LEAVES[0], LEAVES[1])]), max_size=4
)


@settings(max_examples=400)
@given(st.integers(-1, 9), st.integers(-1, 9), st.integers(0, 9), st.integers(0, 9), PROOFS)
def test_both_refuse_alike(a: int, b: int, c: int, d: int, proof: list[bytes]) -> None:
    assert second.grown(a, b, ROOTS[c], ROOTS[d], proof) == merkle.verify_consistency(
        a, b, ROOTS[c], ROOTS[d], proof
    )
    assert second.included(LEAVES[c], a, b, proof, ROOTS[d]) == merkle.verify_inclusion(
        LEAVES[c], a, b, proof, ROOTS[d]
    )
