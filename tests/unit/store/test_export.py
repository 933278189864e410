"""Exported pieces: what they hold, and that the public key alone tells a good one from every damaged one."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.errors import EvidenceError, VerificationError
from gateway.evidence.bundle import entry_line, header_line
from gateway.evidence.checkpoint import Checkpoint
from gateway.evidence.entry import canonical
from gateway.evidence.merkle import EMPTY_ROOT, inclusion_proof, leaf_hash, node_hash, root_of
from gateway.evidence.sign import verifier_key
from gateway.store.audit import verify_store
from gateway.store.export import Selection, export_bundle, verify_bundle
from gateway.store.sqlite import SqliteStore
from tests.support.evidence import TestClock, sample, signer

KEY = signer().public_key
TEXT_KEY = verifier_key(signer().name, KEY)
LOGGED = 300  # more than one stored level of the tree
EVERYTHING = Selection()


async def fill(folder: Path) -> None:
    store = SqliteStore(folder / "egress.db", signer(), TestClock()).open()
    requests = [
        sample(n, 2, project="acme" if n % 3 == 0 else "default", refused=True) for n in range(LOGGED)
    ]
    for made in requests:
        await store.append(made.records, made.row)
    await store.close()


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("state")
    asyncio.run(fill(folder))
    return folder


def export(state: Path, what: Selection = EVERYTHING, older: bytes | None = None) -> list[bytes]:
    return list(export_bundle(state / "egress.db", TEXT_KEY, what, older))


spec = importlib.util.spec_from_file_location("second", Path(__file__).parents[3] / "tools/verify/verify.py")
assert spec is not None
assert spec.loader is not None
second = importlib.util.module_from_spec(spec)
spec.loader.exec_module(second)


def verdict(lines: list[bytes], key: bytes = KEY, older: bytes | None = None) -> dict[str, object]:
    """The report, on which both verifiers must agree."""
    data = b"".join(lines)
    report = verify_bundle(data, key, older).document()
    kept = None if older is None else second.last_note(older.decode())
    assert second.verify(data, key, kept) == report
    return report


def entries(lines: list[bytes]) -> list[int]:
    return [line["index"] for line in map(json.loads, lines) if line["type"] == "entry"]


def test_everything(state: Path) -> None:
    lines = export(state)
    assert entries(lines) == list(range(LOGGED))
    assert verdict(lines) == {
        "ok": True,
        "entries": LOGGED,
        "not_yet_logged": 0,
        "torn": 0,
        "first_bad": None,
        "logged": LOGGED,
    }


def test_a_project_a_receipt_and_a_time(state: Path) -> None:
    project = export(state, Selection(project="acme"))
    assert entries(project) == list(range(0, LOGGED, 3))
    assert verdict(project)["ok"]
    receipt = sample(4, 2, refused=True).row.receipt
    one = export(state, Selection(receipt=receipt))
    assert entries(one) == [4]
    assert verdict(one)["ok"]
    times = [
        json.loads(json.loads(line)["data"])["time"] for line in export(state) if b'"type":"entry"' in line
    ]
    part = export(state, Selection(since=times[10], until=times[19]))
    assert entries(part) == list(range(10, 20))
    assert verdict(part)["ok"]
    nothing = export(state, Selection(project="nobody"))
    assert verdict(nothing) == {**verdict(one), "entries": 0}


def test_another_key(state: Path) -> None:
    assert verdict(export(state), signer(2).public_key)["first_bad"] == {"index": 0, "kind": "signature"}


def test_entries_without_a_checkpoint_are_counted_and_left_out(tmp_path: Path) -> None:
    async def run() -> list[bytes]:
        store = SqliteStore(tmp_path / "egress.db", signer(), TestClock()).open()
        for number in range(3):
            made = sample(number, refused=True)
            await store.append(made.records, made.row)
        lines = export(tmp_path)
        await store.close()
        return lines

    assert verdict(asyncio.run(run())) == {
        "ok": True,
        "entries": 0,
        "not_yet_logged": 3,
        "torn": 0,
        "first_bad": None,
        "logged": 0,
    }


def test_growth_since_an_older_checkpoint_is_proven(state: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(state, copy)
    older = (copy / "checkpoint").read_bytes()

    async def grow() -> None:
        store = SqliteStore(copy / "egress.db", signer(), TestClock()).open()
        made = sample(LOGGED, refused=True)
        await store.append(made.records, made.row)
        await store.close()

    asyncio.run(grow())
    lines = export(copy, Selection(receipt=sample(LOGGED, refused=True).row.receipt), older)
    assert verdict(lines)["ok"]
    assert verdict(lines, older=older)["ok"]
    assert verdict(lines, older=(copy / "checkpoint").read_bytes())["ok"]  # nothing has grown since
    unproven = export(copy, Selection(receipt=sample(LOGGED, refused=True).row.receipt))
    assert verdict(unproven)["ok"]
    assert verdict(unproven, older=older)["first_bad"] == {"index": 0, "kind": "truncated"}
    another = Checkpoint(signer().name, 300, b"r" * 32).sign(signer())
    assert verdict(lines, older=another)["first_bad"] == {"index": 0, "kind": "truncated"}
    header = json.loads(lines[0])
    header["consistency"]["proof"][0] = header["consistency"]["proof"][1]
    assert not verdict([canonical(header) + b"\n", *lines[1:]])["ok"]
    with pytest.raises(VerificationError):
        export(copy, EVERYTHING, older.replace(b"300", b"200"))


def change(
    kind: str, number: int, edit: Callable[[dict[str, object]], object]
) -> Callable[[list[bytes]], list[bytes]]:
    """Edit the n-th line of a kind."""

    def damage(lines: list[bytes]) -> list[bytes]:
        at = [i for i, line in enumerate(lines) if json.loads(line)["type"] == kind][number]
        document = json.loads(lines[at])
        edit(document)
        return [*lines[:at], canonical(document) + b"\n", *lines[at + 1 :]]

    return damage


def put(name: str, value: object) -> Callable[[dict[str, object]], object]:
    return lambda document: document.update({name: value})


DAMAGE: dict[str, tuple[Callable[[list[bytes]], list[bytes]], int, str]] = {
    "no line": (lambda lines: [], 0, "truncated"),
    "no end": (lambda lines: lines[:-1], 6, "truncated"),
    "cut in a line": (lambda lines: [*lines[:-2], lines[-2][:50]], 5, "torn"),
    "an entry left out": (lambda lines: [line for line in lines if b'"index":4' not in line], 6, "truncated"),
    "the last entry left out": (
        lambda lines: [line for line in lines if b'"index":5' not in line],
        5,
        "truncated",
    ),
    "entries exchanged": (
        lambda lines: [*lines[:3], lines[6], *lines[4:6], lines[3], *lines[7:]],
        1,
        "modified",
    ),
    "no header": (lambda lines: lines[1:], 0, "modified"),
    "two headers": (lambda lines: [lines[0], *lines], 0, "modified"),
    "a line behind the end": (lambda lines: [*lines, lines[1]], 6, "modified"),
    "a line that is no JSON": (lambda lines: [*lines[:4], b"{\n", *lines[4:]], 1, "modified"),
    "a line of another type": (lambda lines: [*lines[:4], b'{"type":"x"}\n', *lines[4:]], 1, "modified"),
    "entry text": (change("entry", 2, put("data", "{}")), 2, "modified"),
    "entry place": (change("entry", 2, put("index", 3)), 3, "modified"),
    "entry place of another type": (change("entry", 2, put("index", "2")), 2, "modified"),
    "proof": (change("entry", 3, put("proof", [])), 3, "modified"),
    "proof that is no Base64": (change("entry", 3, put("proof", ["*"])), 3, "modified"),
    "row": (change("entry", 1, lambda d: d["row"].update(effect="forwarded")), 1, "modified"),
    "record text": (change("record", 0, put("data", "{}")), 0, "modified"),
    "record left out": (lambda lines: [lines[0], *lines[2:]], 0, "modified"),
    "record nobody covers": (
        lambda lines: [*lines[:-1], b'{"data":"","digest":"sha256:%s","type":"record"}\n' % EMPTY, lines[-1]],
        6,
        "truncated",
    ),
    "checkpoint": (
        change("header", 0, lambda d: d.update(checkpoint=d["checkpoint"].replace("6\n", "5\n"))),
        0,
        "signature",
    ),
    "version": (change("header", 0, put("v", 2)), 0, "modified"),
}
EMPTY = b"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    folder = tmp_path_factory.mktemp("short")

    async def run() -> None:
        store = SqliteStore(folder / "egress.db", signer(), TestClock()).open()
        for number in range(6):
            made = sample(number, refused=True)
            await store.append(made.records, made.row)
        await store.close()

    asyncio.run(run())
    assert verify_store(folder / "egress.db", KEY).ok
    return export(folder)


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_found(short: list[bytes], name: str) -> None:
    damage, index, kind = DAMAGE[name]
    assert verdict(damage(short))["first_bad"] == {"index": index, "kind": kind}


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_changed_byte_is_found_by_both_alike(short: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(short)
    at = data.draw(st.integers(0, len(whole) - 1))
    changed = whole[:at] + bytes([whole[at] ^ data.draw(st.integers(1, 255))]) + whole[at + 1 :]
    report = verdict([changed])
    if report["ok"]:  # what is left to change is for information only
        assert b'"key":"' in short[0]
        before, after = json.loads(whole.splitlines()[0]), json.loads(changed.splitlines()[0])
        assert {name for name in before if before[name] != after.get(name)} <= {"key"}
        assert changed.splitlines()[1:] == whole.splitlines()[1:]


VALUES = [None, True, False, 0, 1, -1, 7, 2**63, 2**64, 1.0, 1e300, "", "1", "x", [], {}, [[]], {"a": 1}]


def ways(document: object, here: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    """The place of every member and item of a JSON value, and of what JSON texts hold inside."""
    found = []
    items = (
        document.items()
        if isinstance(document, dict)
        else enumerate(document)
        if isinstance(document, list)
        else ()
    )
    for name, value in items:
        found += [(*here, name), *ways(value, (*here, name))]
    return found


def reshaped(line: bytes, data: st.DataObject) -> bytes:
    """One member or item replaced or taken out."""
    document = json.loads(line)
    *where, name = data.draw(st.sampled_from(ways(document)))
    place = document
    for step in where:
        place = place[step]
    value = data.draw(st.sampled_from([*VALUES, ...]))
    if value is ...:
        del place[name]
    else:
        place[name] = value
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode() + b"\n"


def doubled(line: bytes, data: st.DataObject) -> bytes:
    """One member put twice."""
    name = data.draw(st.sampled_from(sorted(json.loads(line))))
    again = json.dumps({name: data.draw(st.sampled_from(VALUES))}).encode()
    return b"{" + again[1:-1] + b"," + line[1:]


def moved(lines: list[bytes], data: st.DataObject) -> None:
    """A line left out, repeated or exchanged with another."""
    one, other = (data.draw(st.integers(0, len(lines) - 1)) for _ in range(2))
    how = data.draw(st.sampled_from(["drop", "repeat", "exchange"]))
    if how == "drop":
        del lines[one]
    elif how == "repeat":
        lines.insert(other, lines[one])
    else:
        lines[one], lines[other] = lines[other], lines[one]


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_other_shape_is_found_by_both_alike(grown: list[bytes], data: st.DataObject) -> None:
    """Nothing is accepted that says something else, and both say the same of everything else."""
    lines = list(grown)
    for _ in range(data.draw(st.integers(1, 2))):
        how = data.draw(st.sampled_from([reshaped, reshaped, doubled, moved]))
        if how is moved:
            moved(lines, data)
        else:
            at = data.draw(st.integers(0, len(lines) - 1))
            try:
                lines[at] = how(lines[at], data)  # type: ignore[operator]  # one of the two above
            except json.JSONDecodeError:
                continue  # a line that was changed before
    report = verdict(lines)
    if report["ok"]:
        assert informing(lines) == informing(grown)


def resigned(lines: list[bytes], at: int, text: str) -> list[bytes]:
    """The bundle of a log in which one entry has another text from the start: what a faulty writer would sign."""
    documents = [json.loads(line) for line in lines]
    bodies = [d["data"].encode() for d in documents if d["type"] == "entry"]
    bodies[at] = text.encode()
    leaves = [leaf_hash(body) for body in bodies]

    def subtree(level: int, index: int) -> bytes:
        return (
            node_hash(subtree(level - 1, 2 * index), subtree(level - 1, 2 * index + 1))
            if level
            else leaves[index]
        )

    note = Checkpoint(signer().name, len(bodies), root_of(leaves)).sign(signer())
    numbers = iter(range(len(bodies)))
    made = [header_line(TEXT_KEY, note)]
    for line, document in zip(lines[1:], documents[1:], strict=True):
        if document["type"] == "entry":
            index = next(numbers)
            proof = inclusion_proof(index, len(bodies), subtree)
            made.append(entry_line(index, bodies[index], proof, document.get("row")))
        else:
            made.append(line)
    return made


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_an_entry_of_another_form_is_refused_by_both_alike_though_it_was_signed(
    grown: list[bytes], data: st.DataObject
) -> None:
    texts = [d["data"] for d in map(json.loads, grown) if d["type"] == "entry"]
    at = data.draw(st.integers(0, len(texts) - 1))
    text = reshaped(texts[at].encode(), data).decode().rstrip("\n")
    if data.draw(st.booleans()):
        text = text.replace(":", ": ", 1)
    document, before = json.loads(text), json.loads(texts[at])
    report = verdict(resigned(grown, at, text))
    if report["ok"]:  # texts may say anything, but they are texts
        assert canonical(document).decode() == text
        assert {k: type(v) for k, v in document.items()} == {k: type(v) for k, v in before.items()}


def informing(lines: list[bytes]) -> list[str]:
    """What a reader of a bundle is told, in any order, but for what is for information only and may be left out."""
    documents = [json.loads(line) for line in lines]
    left_out = {"key", "row", "consistency", "not_yet_logged"}
    return sorted(str({k: v for k, v in d.items() if k not in left_out}) for d in documents)


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """A bundle with everything that one can hold: a change of keys, an older checkpoint, rows."""
    folder = tmp_path_factory.mktemp("grown")

    async def run() -> bytes:
        clock = TestClock()
        store = SqliteStore(folder / "egress.db", signer(), clock).open()
        for number in range(3):
            made = sample(number, refused=True)
            clock.seconds += 2  # a checkpoint each
            await store.append(made.records, made.row)
        await store.hand_over(signer(2))
        older = (folder / "checkpoint").read_bytes()
        for number in range(3, 6):
            made = sample(number, refused=True)
            await store.append(made.records, made.row)
        await store.close()
        return older

    lines = export(folder, EVERYTHING, asyncio.run(run()))
    assert verdict(lines)["ok"]
    return lines


def test_a_log_with_a_change_of_keys(tmp_path: Path) -> None:
    async def run() -> None:
        store = SqliteStore(tmp_path / "egress.db", signer(1), TestClock()).open()
        made = sample(1, refused=True)
        await store.append(made.records, made.row)
        await store.hand_over(signer(2))
        made = sample(2, refused=True)
        await store.append(made.records, made.row)
        await store.close()

    asyncio.run(run())
    older = Checkpoint(signer().name, 0, EMPTY_ROOT).sign(signer(1))
    lines = export(tmp_path, EVERYTHING, older)
    assert entries(lines) == [0, 1, 2]
    for seed, holds in ((1, True), (2, True), (3, False)):
        assert verdict(lines, signer(seed).public_key)["ok"] is holds
    header = json.loads(lines[0])
    header["handovers"] = []
    assert not verdict([canonical(header) + b"\n", *lines[1:]], signer(1).public_key)["ok"]


def test_the_second_verifier_as_a_program(
    short: list[bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bundle").write_bytes(b"".join(short))
    (tmp_path / "key").write_text(TEXT_KEY + "\n")
    arguments = [str(tmp_path / "bundle"), "--key", str(tmp_path / "key")]
    assert second.main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == verdict(short)
    (tmp_path / "bundle").write_bytes(b"".join(short[:-1]))
    assert second.main(arguments) == 1
    (tmp_path / "key").write_text("junk")
    with pytest.raises(SystemExit) as caught:
        second.main(arguments)
    assert caught.value.code == 2


def test_a_log_without_entries_or_with_a_record_gone(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError):
        export(tmp_path)
