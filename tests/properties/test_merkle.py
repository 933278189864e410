"""The tree against a naive one written straight from the definitions of RFC 6962."""

from __future__ import annotations

from hashlib import sha256
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import VerificationError
from gateway.evidence import merkle

SIZES = [*range(1, 40), 63, 64, 65, 100, 127, 128, 129, 200, 255, 256, 257, 299, 300]
LEAVES = [merkle.leaf_hash(str(i).encode()) for i in range(300)]


def naive_root(leaves: list[bytes]) -> bytes:
    if not leaves:
        return sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    return sha256(b"\x01" + naive_root(leaves[:k]) + naive_root(leaves[k:])).digest()


def naive_path(m: int, leaves: list[bytes]) -> list[bytes]:
    if len(leaves) == 1:
        return []
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    if m < k:
        return [*naive_path(m, leaves[:k]), naive_root(leaves[k:])]
    return [*naive_path(m - k, leaves[k:]), naive_root(leaves[:k])]


def naive_consistency(m: int, leaves: list[bytes], whole: bool = True) -> list[bytes]:
    n = len(leaves)
    if m == n:
        return [] if whole else [naive_root(leaves)]
    k = 1
    while k * 2 < n:
        k *= 2
    if m <= k:
        return [*naive_consistency(m, leaves[:k], whole), naive_root(leaves[k:])]
    return [*naive_consistency(m - k, leaves[k:], False), naive_root(leaves[:k])]


def subtree(level: int, index: int) -> bytes:
    return naive_root(LEAVES[index << level : (index + 1) << level])


ROOTS = [naive_root(LEAVES[:n]) for n in range(301)]


def test_published_roots() -> None:
    """Certificate Transparency's own test leaves and their roots at every size."""
    inputs = [
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    ]
    roots = [
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ]
    tree = merkle.CompactRange()
    for data, root in zip(inputs, roots, strict=True):
        tree.append(merkle.leaf_hash(bytes.fromhex(data)))
        assert tree.root().hex() == root


def test_compact_range_agrees_at_every_size_and_resumes_anywhere() -> None:
    tree = merkle.CompactRange()
    for size, leaf in enumerate(LEAVES):
        assert tree.root() == ROOTS[size]
        tree = merkle.CompactRange(size, [subtree(level, index) for level, index in merkle.edge(size)])
        for level, index, value in tree.append(leaf):
            assert value == subtree(level, index)
    assert tree.root() == ROOTS[300] == merkle.root_of(LEAVES)


def test_a_copy_is_not_touched_by_the_original() -> None:
    tree = merkle.CompactRange()
    tree.append(LEAVES[0])
    kept = tree.copy()
    tree.append(LEAVES[1])
    assert (kept.size, kept.root()) == (1, ROOTS[1])


@pytest.mark.parametrize("size", SIZES)
def test_inclusion_proofs(size: int) -> None:
    for index in {0, 1, size // 3, size // 2, size - 2, size - 1} & set(range(size)):
        proof = merkle.inclusion_proof(index, size, subtree)
        assert proof == naive_path(index, LEAVES[:size])
        assert merkle.verify_inclusion(LEAVES[index], index, size, proof, ROOTS[size])


@pytest.mark.parametrize("size", SIZES)
def test_consistency_proofs(size: int) -> None:
    for old in {1, 2, size // 3, size // 2, size - 1, size} & set(range(1, size + 1)):
        proof = merkle.consistency_proof(old, size, subtree)
        assert proof == ([] if old == size else naive_consistency(old, LEAVES[:size]))
        assert merkle.verify_consistency(old, size, ROOTS[old], ROOTS[size], proof)


def test_every_inclusion_and_consistency_proof_up_to_300_verifies() -> None:
    nodes: dict[tuple[int, int], bytes] = {}
    tree = merkle.CompactRange()
    for leaf in LEAVES:
        nodes |= {(level, index): value for level, index, value in tree.append(leaf)}
    for size in range(1, 301):
        for index in range(0, size, 7):
            proof = merkle.inclusion_proof(index, size, lambda level, i: nodes[level, i])
            assert merkle.verify_inclusion(LEAVES[index], index, size, proof, ROOTS[size])
        for old in range(0, size + 1, 5):
            proof = merkle.consistency_proof(old, size, lambda level, i: nodes[level, i])
            assert merkle.verify_consistency(old, size, ROOTS[old], ROOTS[size], proof)


@given(st.integers(1, 300).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n - 1))), st.data())
def test_a_changed_inclusion_proof_is_refused(where: tuple[int, int], data: st.DataObject) -> None:
    size, index = where
    proof = naive_path(index, LEAVES[:size])
    other = data.draw(st.integers(0, 299).filter(lambda i: i != index))
    assert not merkle.verify_inclusion(LEAVES[other], index, size, proof, ROOTS[size])
    assert not merkle.verify_inclusion(LEAVES[index], other, size, proof, ROOTS[size])
    assert not merkle.verify_inclusion(LEAVES[index], index, size, [*proof, LEAVES[0]], ROOTS[size])
    if proof:
        cut = data.draw(st.integers(0, len(proof) - 1))
        assert not merkle.verify_inclusion(LEAVES[index], index, size, proof[:cut], ROOTS[size])
        bad = [*proof[:cut], b"\x00" * 32, *proof[cut + 1 :]]
        assert not merkle.verify_inclusion(LEAVES[index], index, size, bad, ROOTS[size])
        assert not merkle.verify_inclusion(LEAVES[index], index, size, [b"", *proof[1:]], ROOTS[size])


@given(st.integers(2, 300).flatmap(lambda n: st.tuples(st.integers(1, n - 1), st.just(n))), st.data())
def test_a_changed_consistency_proof_is_refused(sizes: tuple[int, int], data: st.DataObject) -> None:
    old, new = sizes
    proof = naive_consistency(old, LEAVES[:new])
    cut = data.draw(st.integers(0, len(proof) - 1))
    bad = [*proof[:cut], b"\x00" * 32, *proof[cut + 1 :]]
    assert not merkle.verify_consistency(old, new, ROOTS[old], ROOTS[new], bad)
    assert not merkle.verify_consistency(old, new, ROOTS[old], ROOTS[new], proof[:cut])
    assert not merkle.verify_consistency(old, new, ROOTS[old], ROOTS[new - 1], proof)
    assert not merkle.verify_consistency(new, old, ROOTS[new], ROOTS[old], proof)


def test_edges_of_the_definitions() -> None:
    assert merkle.verify_consistency(0, 5, merkle.EMPTY_ROOT, ROOTS[5], [])
    assert not merkle.verify_consistency(0, 5, ROOTS[1], ROOTS[5], [])
    assert not merkle.verify_consistency(5, 5, ROOTS[5], ROOTS[4], [])
    assert not merkle.verify_consistency(3, 5, ROOTS[3], ROOTS[5], [])
    assert all(a > b for a, b in pairwise(level for level, _ in merkle.edge(299)))
    for bad in ((5, 5), (-1, 5), (0, 0)):
        with pytest.raises(VerificationError):
            merkle.inclusion_proof(*bad, subtree)
    with pytest.raises(VerificationError):
        merkle.consistency_proof(6, 5, subtree)
    with pytest.raises(VerificationError):
        merkle.CompactRange(3, [LEAVES[0]])
