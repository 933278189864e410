"""The gateway and each of its peers on the same pieces of traffic, in turn."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.peers import DEADLINE_S, PEERS, Answer, Peer, PeerError, Running, running
from bench.table import Suite, timed_ms
from gateway.context.findings import ScanItem
from gateway.detect.engine import Engine

_TURN = 560_000
"""Characters of a long turn of an agent, all of them new: the gateway scans what is new of one at once."""
_PIECES = 8


@dataclass(slots=True)
class _Piece:
    """Texts `low..high`, and the best seconds of either side so far."""

    low: int
    high: int
    ours: float = float("inf")
    theirs: float = float("inf")
    found: int = 0


def peers(items: Sequence[ScanItem], rounds: int, engines: dict[str, Engine]) -> Suite:
    """Each peer that is installed; the others are named."""
    head = (
        "peer",
        "MB/s",
        "of MB",
        "findings a MB",
        "memory, MB",
        "the gateway",
        "MB/s",
        "times as fast",
        "wanted",
    )
    suite = Suite("peers on the same traffic, in turn with the gateway", head)
    for peer in PEERS:
        if not peer.installed:
            suite.add(
                peer.name,
                "not installed: make bench-peers",
                *["-"] * 3,
                peer.against,
                "-",
                "-",
                peer.wanted or "-",
            )
            continue
        chosen = _sample(items, peer.cap)
        try:
            pieces, memory = _measure(peer, chosen, rounds, engines[peer.against])
        except (PeerError, OSError) as error:
            suite.add(
                peer.name, f"not measured: {error}", *["-"] * 3, peer.against, "-", "-", peer.wanted or "-"
            )
            continue
        size = sum(len(item.text) for item in chosen) / 1e6
        theirs = size / sum(piece.theirs for piece in pieces)
        ours = size / sum(piece.ours for piece in pieces)
        found = sum(piece.found for piece in pieces) / size
        suite.add(
            peer.name, theirs, size, found, memory, peer.against, ours, ours / theirs, peer.wanted or "-"
        )
    return suite


def _sample(items: Sequence[ScanItem], cap: int) -> Sequence[ScanItem]:
    """All of the traffic, or texts from everywhere in it of about `cap` characters."""
    total = sum(len(item.text) for item in items)
    return items[:: max(1, total // cap)] if cap else items


def _measure(
    peer: Peer, items: Sequence[ScanItem], rounds: int, engine: Engine
) -> tuple[list[_Piece], float]:
    step = len(items) if peer.whole else -(-len(items) // _PIECES)
    pieces = [_Piece(low, min(low + step, len(items))) for low in range(0, len(items), step)]
    with tempfile.TemporaryDirectory() as folder:
        texts = Path(folder) / "texts.json"
        texts.write_text(json.dumps([item.text for item in items]), encoding="utf-8")
        with running(peer, texts) as started:
            began, memory = time.monotonic(), 0.0
            for _ in range(rounds * 2 if peer.wanted else rounds):
                memory = max(_in_turn(started, piece, items, engine).memory for piece in pieces)
                if (time.monotonic() - began) * 2 > DEADLINE_S:
                    break
    return pieces, memory


def _in_turn(peer: Running, piece: _Piece, items: Sequence[ScanItem], engine: Engine) -> Answer:
    """Either side scans a piece once."""
    part = items[piece.low : piece.high]
    piece.ours = min(piece.ours, timed_ms(lambda: scan_all(engine, part)) / 1000)
    answer = peer.scan(piece.low, piece.high)
    piece.theirs, piece.found = min(piece.theirs, answer.seconds), answer.found
    return answer


def scan_all(engine: Engine, items: Sequence[ScanItem]) -> None:
    """As the gateway does: the texts of a request at once."""
    turn: list[ScanItem] = []
    size = 0
    for item in items:
        turn.append(item)
        size += len(item.text)
        if size >= _TURN:
            engine.scan(turn)
            turn, size = [], 0
    if turn:
        engine.scan(turn)
