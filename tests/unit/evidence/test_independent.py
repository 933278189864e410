"""Checkpoints and proofs as somebody else's implementation of the C2SP forms reads them (`aics-tlog` from PyPI)."""

from __future__ import annotations

from functools import cache

import pytest

from gateway.evidence import merkle
from gateway.evidence.checkpoint import Checkpoint
from gateway.evidence.sign import verifier_key
from tests.support.evidence import signer

pytest.importorskip("aics_tlog", reason="the independent implementation is not installed")

from aics_tlog import checkpoint as theirs
from aics_tlog import note, tree

SIZE = 300
LEAVES = [merkle.leaf_hash(b"%d" % i) for i in range(SIZE)]
ROOTS = [merkle.root_of(LEAVES[:n]) for n in range(SIZE + 1)]


@cache
def subtree(level: int, index: int) -> bytes:
    return merkle.root_of(LEAVES[index << level : (index + 1) << level])


@pytest.mark.parametrize("size", [0, 1, 255, 256, 300])
def test_our_checkpoints_open_there_and_theirs_here(size: int) -> None:
    ours = Checkpoint("egress/test", size, ROOTS[size]).sign(signer())
    key = note.parse_vkey(verifier_key("egress/test", signer().public_key))
    result = theirs.verify_checkpoint(note.parse_note(ours), key, expected_origin="egress/test")
    assert (result.ok, result.size, result.root) == (True, size, ROOTS[size])
    other = note.parse_vkey(verifier_key("egress/test", signer(2).public_key))
    assert not theirs.verify_checkpoint(note.parse_note(ours), other).ok


def test_our_proofs_verify_there() -> None:
    for size in range(1, SIZE + 1, 7):
        for index in range(0, size, 5):
            proof = merkle.inclusion_proof(index, size, subtree)
            assert tree.verify_inclusion(LEAVES[index], index, size, proof, ROOTS[size])
        for old in range(0, size + 1, 5):
            proof = merkle.consistency_proof(old, size, subtree)
            assert tree.verify_consistency(old, size, ROOTS[old], ROOTS[size], proof)
