"""The Merkle tree of RFC 6962: an append costs O(log n) hashes and no more than O(log n) memory.

Hashes are 32 raw bytes. Leaves and inner nodes are hashed under different prefixes (RFC 6962 §2.1), so that
no leaf can pose as a node. A *subtree* is named (level, index): the perfect tree over the leaves from
index·2^level to (index+1)·2^level - 1; level 0 is the leaf itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256

from gateway.errors import VerificationError

type Subtree = Callable[[int, int], bytes]
"""Hash of the perfect subtree (level, index)."""

EMPTY_ROOT = sha256(b"").digest()
"""Root of the tree without leaves (RFC 6962 §2.1)."""


def leaf_hash(data: bytes) -> bytes:
    """Hash of one leaf."""
    return sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Hash of an inner node."""
    return sha256(b"\x01" + left + right).digest()


class CompactRange:
    """The right edge of a tree: the roots of its perfect subtrees, largest first.

    Enough to append and to tell the root. A writer appends to a `copy` and keeps it after its commit only.
    """

    __slots__ = ("_hashes", "size")

    def __init__(self, size: int = 0, hashes: Iterable[bytes] = ()) -> None:
        """Resume at `size` with one hash a set bit of `size`, largest subtree first (see `edge`)."""
        self.size = size
        self._hashes = list(hashes)
        if len(self._hashes) != size.bit_count():
            raise VerificationError("merkle.range", "one hash is needed for each set bit of the size")

    def copy(self) -> CompactRange:
        """An independent range of the same state."""
        return CompactRange(self.size, self._hashes)

    def append(self, leaf: bytes) -> Iterator[tuple[int, int, bytes]]:
        """Add a leaf hash; returns each subtree that it completes as (level, index, hash)."""
        completed = [(0, self.size, leaf)]
        level, index, carry = 0, self.size, leaf
        while index & 1:
            carry = node_hash(self._hashes.pop(), carry)
            level, index = level + 1, index >> 1
            completed.append((level, index, carry))
        self._hashes.append(carry)
        self.size += 1
        return iter(completed)

    def root(self) -> bytes:
        """Root of the whole tree."""
        if not self._hashes:
            return EMPTY_ROOT
        root = self._hashes[-1]
        for left in reversed(self._hashes[:-1]):
            root = node_hash(left, root)
        return root


def edge(size: int) -> list[tuple[int, int]]:
    """The perfect subtrees that make up a tree of `size` leaves, largest first, as (level, index)."""
    found, start = [], 0
    for level in range(size.bit_length() - 1, -1, -1):
        if size >> level & 1:
            found.append((level, start >> level))
            start += 1 << level
    return found


def root_of(leaves: Iterable[bytes]) -> bytes:
    """Root over leaf hashes."""
    tree = CompactRange()
    for leaf in leaves:
        tree.append(leaf)
    return tree.root()


def _split(count: int) -> int:
    """The largest power of two below `count` (RFC 6962 §2.1)."""
    return 1 << (count - 1).bit_length() - 1


def _range_root(start: int, end: int, subtree: Subtree) -> bytes:
    """Root over leaves start..end of a larger tree, aligned as the recursion of RFC 6962 leaves them."""
    count = end - start
    if count & (count - 1) == 0:
        level = count.bit_length() - 1
        return subtree(level, start >> level)
    middle = start + _split(count)
    return node_hash(_range_root(start, middle, subtree), _range_root(middle, end, subtree))


def tree_root(size: int, subtree: Subtree) -> bytes:
    """Root of the tree of `size` leaves, from its perfect subtrees."""
    return _range_root(0, size, subtree) if size else EMPTY_ROOT


def inclusion_proof(index: int, size: int, subtree: Subtree) -> list[bytes]:
    """The audit path of leaf `index` in the tree of `size` leaves, lowest sibling first (RFC 6962 §2.1.1).

    Raises VerificationError where the tree has no such leaf.
    """
    if not 0 <= index < size:
        raise VerificationError("merkle.index", "the tree has no such leaf")
    path: list[bytes] = []
    start, end = 0, size
    while end - start > 1:
        middle = start + _split(end - start)
        if index < middle:
            path.append(_range_root(middle, end, subtree))
            end = middle
        else:
            path.append(_range_root(start, middle, subtree))
            start = middle
    path.reverse()
    return path


def consistency_proof(old: int, new: int, subtree: Subtree) -> list[bytes]:
    """Proof that the tree of `old` leaves is a prefix of the tree of `new` leaves (RFC 6962 §2.1.2).

    Empty where nothing needs proof (old is 0 or equal to new). Raises VerificationError where old > new.
    """
    if not 0 <= old <= new:
        raise VerificationError("merkle.index", "the older tree must not be the larger one")
    if old in {0, new}:
        return []
    path: list[bytes] = []
    start, end, whole = 0, new, True  # `whole`: the old tree is still the full subtree that both sides know
    while end - start > 1 and old - start != end - start:
        middle = start + _split(end - start)
        if old <= middle:
            path.append(_range_root(middle, end, subtree))
            end = middle
        else:
            path.append(_range_root(start, middle, subtree))
            start, whole = middle, False
    if not whole:
        path.append(_range_root(start, end, subtree))
    path.reverse()
    return path


def verify_inclusion(leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes) -> bool:
    """Whether `proof` shows `leaf` at `index` of the tree of `size` leaves (RFC 9162 §2.1.3.2)."""
    if not 0 <= index < size or any(len(item) != 32 for item in proof):
        return False
    position, last, value = index, size - 1, leaf
    for sibling in proof:
        if last == 0:
            return False
        if position & 1 or position == last:
            value = node_hash(sibling, value)
            while position and not position & 1:
                position, last = position >> 1, last >> 1
        else:
            value = node_hash(value, sibling)
        position, last = position >> 1, last >> 1
    return last == 0 and value == root


def verify_consistency(old: int, new: int, old_root: bytes, new_root: bytes, proof: Sequence[bytes]) -> bool:
    """Whether `proof` shows that the new tree only appended to the old one (RFC 9162 §2.1.4.2)."""
    if not 0 <= old <= new or any(len(item) != 32 for item in proof):
        return False
    if old == new:
        return not proof and old_root == new_root
    if old == 0:
        return not proof and old_root == EMPTY_ROOT
    # A perfect old tree is its own first node, and the prover leaves it out.
    path = [old_root, *proof] if old & (old - 1) == 0 else list(proof)
    return bool(path) and _both_roots(old, new, path) == (old_root, new_root)


def _both_roots(old: int, new: int, path: list[bytes]) -> tuple[bytes, bytes] | None:
    """The roots of both trees as a consistency path gives them; None where its length does not fit."""
    position, last = old - 1, new - 1
    while position & 1:
        position, last = position >> 1, last >> 1
    seen_old = seen_new = path[0]
    for sibling in path[1:]:
        if last == 0:
            return None
        if position & 1 or position == last:
            seen_old, seen_new = node_hash(sibling, seen_old), node_hash(sibling, seen_new)
            while position and not position & 1:
                position, last = position >> 1, last >> 1
        else:
            seen_new = node_hash(seen_new, sibling)
        position, last = position >> 1, last >> 1
    return (seen_old, seen_new) if last == 0 else None
