"""One decision is shown and proven without the others; any change is found by both verifiers alike."""

from __future__ import annotations

import asyncio
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.errors import EvidenceError, VerificationError
from gateway.evidence.disclosure import Commitments, pairs_of
from gateway.evidence.entry import canonical
from gateway.evidence.merkle import leaf_hash, root_of
from gateway.evidence.sign import verifier_key
from gateway.ports import Record
from gateway.store.audit import verify_store
from gateway.store.export import export_object, verify_bundle
from gateway.store.sqlite import SqliteStore
from tests.support.evidence import Sample, TestClock, record, sample, signer

KEY, NAME = signer().public_key, verifier_key(signer().name, signer().public_key)
SALT = b"s" * 32
COUNT = 21

spec = importlib.util.spec_from_file_location("second", Path(__file__).parents[3] / "tools/verify/verify.py")
assert spec is not None
assert spec.loader is not None
second = importlib.util.module_from_spec(spec)
spec.loader.exec_module(second)


def committed(number: int) -> Sample:
    """A request whose records commit to its decisions, as the gateway makes them."""
    made = sample(number, COUNT)
    decisions = json.loads(made.receipt.to_json())["decisions"]
    objects = [
        {"bytes": at, "digest": d["object"], "kind": "text", "pointer": f"/messages/{at}"}
        for at, d in enumerate(decisions)
    ]
    evaluation = record("evaluation", canonical({"objects": objects, "request_id": f"req-{number}"}))
    pairs = [(canonical(d), canonical(o)) for d, o in zip(decisions, objects, strict=True)]
    commitment = Commitments().record(SALT, pairs)
    made.records = [made.records[0], evaluation, commitment, made.records[2]]
    made.row = type(made.row)(
        **{name: getattr(made.row, name) for name in made.row.__slots__} | {"evaluation": evaluation.digest}
    )
    return made


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("state")

    async def run() -> None:
        store = SqliteStore(folder / "egress.db", signer(), TestClock()).open()
        for number in range(5):
            made = committed(number)
            await store.append(made.records, made.row)
        await store.close()

    asyncio.run(run())
    assert verify_store(folder / "egress.db", KEY).ok
    return folder / "egress.db"


def disclose(path: Path, number: int = 3, pointer: str = "/messages/4", salt: bytes = SALT) -> bytes:
    return export_object(path, NAME, committed(number).row.receipt, pointer, lambda project: salt)


def verdict(data: bytes, key: bytes = KEY) -> dict[str, Any]:
    report = verify_bundle(data, key).document()
    assert second.verify(data, key) == report
    return report


@pytest.mark.parametrize("at", range(COUNT))
def test_every_decision_can_be_shown(path: Path, at: int) -> None:
    data = disclose(path, 3, f"/messages/{at}")
    assert verdict(data)["ok"]
    shown = json.loads(json.loads(data)["decision"]["data"])
    assert shown["object"]["pointer"] == f"/messages/{at}"
    assert shown["decision"]["disposition"] == "allow"


def test_nothing_of_the_others_is_shown(path: Path) -> None:
    data = disclose(path)
    others = [d["object"] for d in json.loads(committed(3).receipt.to_json())["decisions"]]
    assert [name for name in others if name.removeprefix("sha256:").encode() in data] == [others[4]]
    assert b"/messages/5" not in data


def test_another_key_and_no_such_object_or_receipt(path: Path) -> None:
    assert not verdict(disclose(path), signer(2).public_key)["ok"]
    with pytest.raises(EvidenceError, match="no object"):
        disclose(path, pointer="/messages/99")
    with pytest.raises(EvidenceError, match="no checkpoint"):
        export_object(path, NAME, "sha256:" + "0" * 64, "/messages/4", lambda project: SALT)
    with pytest.raises(VerificationError):
        disclose(path, salt=b"t" * 32)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_changed_byte_is_found_by_both_alike(path: Path, data: st.DataObject) -> None:
    whole = disclose(path)
    at = data.draw(st.integers(0, len(whole) - 1))
    changed = whole[:at] + bytes([whole[at] ^ data.draw(st.integers(1, 255))]) + whole[at + 1 :]
    try:
        same = json.loads(whole) | {"key": ""} == json.loads(changed) | {"key": ""}
    except ValueError:
        same = False
    assert verdict(changed)["ok"] is same  # the key is for information only


VALUES = [None, True, False, 0, 1, -1, 2**63, 2**64, 1.0, "", "1", "x", [], {}, [[]]]
INNER: list[tuple[str, ...]] = [(), (), ("commitment",), ("decision", "data"), ("entry", "data")]


def ways(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The place of every member and item of a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [way for name, item in items for way in ((*here, name), *ways(item, (*here, name)))]


def put(value: Any, way: tuple[Any, ...], new: Any) -> None:
    """Set what is at a place, or take it out."""
    for step in way[:-1]:
        value = value[step]
    if new is ...:
        del value[way[-1]]
    else:
        value[way[-1]] = new


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_other_shape_is_found_by_both_alike(path: Path, data: st.DataObject) -> None:
    """Members replaced, taken out and put twice, in the line itself and in the texts that it holds."""
    whole = disclose(path)
    document, inner = json.loads(whole), data.draw(st.sampled_from(INNER))
    target, text = document, ""
    if inner:
        for step in inner:
            target = target[step]
        target = json.loads(target)
    put(target, data.draw(st.sampled_from(ways(target))), data.draw(st.sampled_from([*VALUES, ...])))
    if inner:
        text = json.dumps(target, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        put(document, inner, text)
    line = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
    line = data.draw(
        st.sampled_from([line, line, line.replace(b"{", b'{"v":1,', 1), line.replace(b":", b": ", 1)])
    )
    if verdict(line)["ok"]:
        assert line.count(b'"v":1') == whole.count(b'"v":1')
        assert json.loads(line) | {"key": ""} == json.loads(whole) | {"key": ""}


@given(st.integers(0, 70))
def test_the_root_is_that_of_a_plain_tree(count: int) -> None:
    pairs = [(b'{"n":%d}' % n, b"{}") for n in range(count)]
    made = Commitments()
    leaves = [made.leaf(SALT, *pair) for pair in pairs]
    (body,) = made.record(SALT, pairs).parts
    assert json.loads(body) == {"count": count, "root": f"sha256:{root_of(leaves).hex()}", "v": 1}
    assert canonical(json.loads(body)) == body
    assert len(set(leaves)) == count
    assert not {leaf_hash(canonical({"decision": {"n": n}, "object": {}})) for n in range(count)} & set(
        leaves
    )


def test_records_that_do_not_belong_together() -> None:
    with pytest.raises(VerificationError):
        pairs_of(b'{"decisions":[{"object":"a"}]}', b'{"objects":[{"digest":"b"}]}')


def test_memory_is_bounded() -> None:
    made = Commitments(limit=32)
    records: list[Record] = [
        made.record(SALT, [(b"%d" % n, b"{}") for n in range(start, start + 40)]) for start in range(9)
    ]
    assert len(made._leaves) <= 32
    assert len(made._groups) <= 2
    assert len({r.digest for r in records}) == 9
