"""What the stores take and give, as arguments and blobs of messages (gateway.ipc)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from gateway.ports import Record, RequestRow, SealedValue
from gateway.store.held import HeldRow, Vote

type Packed = tuple[list[Any], list[bytes]]


def records_to(records: Sequence[Record], row: RequestRow | None) -> Packed:
    """An append: [[kind, digest, number of parts] of each record, the row], and all parts."""
    return [[[r.kind, r.digest, len(r.parts)] for r in records], row_to(row)], [
        part for record in records for part in record.parts
    ]


def records_from(args: Sequence[Any], blobs: Sequence[bytes]) -> tuple[list[Record], RequestRow | None]:
    """The append of a message; ValueError where it is none."""
    heads, row = args
    records, at = [], 0
    for kind, digest, count in heads:
        records.append(Record(str(kind), str(digest), tuple(blobs[at : at + count])))
        at += count
    if at != len(blobs):
        raise ValueError("parts that do not add up")
    return records, None if row is None else RequestRow(*row)


def row_to(row: RequestRow | None) -> list[Any] | None:
    """An index row as a list."""
    if row is None:
        return None
    return [
        row.request_id, row.receipt, row.time, row.project, row.effect, row.receipt_state, row.evaluation,
        row.admission, row.lineage, row.provider,
    ]  # fmt: skip


def values_to(values: Sequence[SealedValue]) -> Packed:
    """Vault entries: [project, placeholder, label] of each; keyed digest and sealed value of each in turn."""
    return [[v.project, v.token, v.label] for v in values], [b for v in values for b in (v.mac, v.sealed)]


def values_from(args: Sequence[Any], blobs: Sequence[bytes]) -> list[SealedValue]:
    """The vault entries of a message; ValueError where it holds none."""
    pairs = zip(blobs[::2], blobs[1::2], strict=True)
    return [
        SealedValue(project, token, label, mac, sealed)
        for (project, token, label), (mac, sealed) in zip(args, pairs, strict=True)
    ]


def held_to(rows: Sequence[HeldRow]) -> Packed:
    """Held objects with what was said about them."""
    args: list[Any] = []
    blobs: list[bytes] = []
    for row in rows:
        votes = [vote.reviewer for vote in row.votes]
        args.append(
            [
                row.seq,
                row.id,
                row.kind,
                row.project,
                row.state,
                sorted(row.askers),
                votes,
                row.sealed is not None,
            ]
        )
        blobs += [orjson.dumps(row.facts), row.sealed or b""]
        blobs += [part for vote in row.votes for part in (vote.statement, vote.signature)]
    return args, blobs


def held_from(args: Sequence[Any], blobs: Sequence[bytes]) -> list[HeldRow]:
    """The held objects of a message; ValueError where it holds none."""
    rest, rows = iter(blobs), []
    try:
        for seq, name, kind, project, state, askers, reviewers, has_content in args:
            facts, sealed = orjson.loads(next(rest)), next(rest)
            votes = tuple(Vote(reviewer, next(rest), next(rest)) for reviewer in reviewers)
            content = sealed if has_content else None
            rows.append(HeldRow(seq, name, kind, project, state, facts, frozenset(askers), votes, content))
    except (StopIteration, RuntimeError) as error:
        raise ValueError("blobs that do not add up") from error
    return rows
