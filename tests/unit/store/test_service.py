"""The evidence writer and its clients: whose requests are whose, and every way in which the two can lose each other."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import struct
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.errors import EvidenceError
from gateway.ipc import LostError
from gateway.ports import SealedValue
from gateway.store.audit import verify_store
from gateway.store.remote import RemoteEvidence
from gateway.store.service import SOCKET
from tests.support.evidence import record, sample, signer
from tests.support.waiting import eventually
from tests.support.writer import Worker, Writer, writing


async def admit(worker: Worker, number: int) -> str:
    made = sample(number)
    await worker.evidence.append(made.records, made.row)
    return made.row.request_id


async def states(writer: Writer) -> dict[str, tuple[str, bool]]:
    """Receipt state of each request, and whether it has a lineage."""
    rows, _ = await writer.store.rows({})
    return {row["request_id"]: (row["receipt_state"], row["lineage"] is not None) for row in rows}


async def becomes(writer: Writer, wanted: dict[str, tuple[str, bool]]) -> None:
    """Closing happens beside what asks for it."""
    await eventually(lambda: states(writer), lambda found: found == wanted)


async def stays(writer: Writer, wanted: dict[str, tuple[str, bool]]) -> None:
    """Long enough for what would happen beside it."""
    await asyncio.sleep(0.1)
    assert await states(writer) == wanted


async def test_appends_of_several_workers_share_transactions(tmp_path: Path) -> None:
    async with writing(tmp_path) as writer:
        workers = [await writer.worker(f"w{n}") for n in range(3)]
        made = [sample(number, refused=True) for number in range(90)]
        before = writer.store._writer.progress[0]
        await asyncio.gather(
            *(workers[at % 3].evidence.append(m.records, m.row) for at, m in enumerate(made))
        )
        transactions = writer.store._writer.progress[0] - before
        rows, _ = await workers[0].evidence.rows({"limit": 1000})
    assert len(rows) == 90
    assert transactions < 45
    assert verify_store(tmp_path / "egress.db", signer().public_key).ok


async def test_the_socket_is_the_owners_alone(tmp_path: Path) -> None:
    async with writing(tmp_path):
        assert stat.S_IMODE((tmp_path / SOCKET).stat().st_mode) == 0o600
    assert not (tmp_path / SOCKET).exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to become another user")
async def test_another_user_is_cut_off(tmp_path: Path) -> None:
    code = (
        "import os, socket, sys; os.chdir(sys.argv[1]); s = socket.socket(socket.AF_UNIX)\n"
        "os.setuid(65534); s.connect('writer.sock'); s.settimeout(10)\n"
        "s.sendall(bytes.fromhex(sys.argv[2])); print(len(s.recv(100)))"
    )
    head = b'[1,"hello",["x","y",[]],[]]'
    frame = struct.pack(">II", len(head), len(head)) + head
    async with writing(tmp_path) as writer:
        (tmp_path / SOCKET).chmod(0o666)
        tmp_path.chmod(0o755)
        done = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-c", code, str(tmp_path), frame.hex()],
            capture_output=True,
            text=True,
        )
        assert writer.service.clients == 0
    cut = ("ConnectionResetError", "BrokenPipeError")
    assert done.stdout.strip() == "0" or any(error in done.stderr for error in cut), done


async def test_a_long_path_is_no_obstacle(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 100)
    folder.mkdir()
    async with writing(folder) as writer:
        await admit(await writer.worker(), 1)


# -- whose requests are whose --------------------------------------------------------------------------------------


async def test_what_a_dead_worker_left_open_is_closed_and_nothing_else(tmp_path: Path) -> None:
    async with writing(tmp_path) as writer:
        one, two = await writer.worker("one"), await writer.worker("two")
        mine, other = await admit(one, 1), await admit(two, 2)
        writer.service.gone("one")
        await becomes(writer, {mine: ("prepared", True), other: ("prepared", False)})


async def test_a_worker_that_comes_back_keeps_its_requests(tmp_path: Path) -> None:
    async with writing(tmp_path) as writer:
        one = await writer.worker("one")
        name = await admit(one, 1)
    assert one.link.open_requests == {name: None}
    async with writing(tmp_path, expected=("one",)) as writer:
        await stays(writer, {name: ("prepared", False)})
        again = Worker(one.link, one.evidence, one.vault, one.conversations, one.held)
        again.link.open()
        assert await again.link.ready(5)
        await stays(writer, {name: ("prepared", False)})
        await again.close()


async def test_what_nobody_claims_is_closed_once_all_have_spoken(tmp_path: Path) -> None:
    async with writing(tmp_path) as writer:
        name = await admit(await writer.worker("one"), 1)
    async with writing(tmp_path, expected=("one", "two")) as writer:
        await writer.worker("two")
        await stays(writer, {name: ("prepared", False)})
        writer.service.gone("one")
        await becomes(writer, {name: ("prepared", True)})
    async with writing(tmp_path) as writer:
        assert writer.store.left_open == frozenset()


async def test_an_append_that_its_worker_gave_up_is_closed(tmp_path: Path) -> None:
    """The writer's disk is slow, the worker loses its line meanwhile: it will not send what the log then admits."""
    async with writing(tmp_path) as writer:
        one = await writer.worker("one")
        held, go = threading.Event(), threading.Event()

        def block() -> None:
            held.set()
            go.wait(10)

        writer.store._writer.submit(None, block)
        await asyncio.to_thread(held.wait)
        appending = asyncio.ensure_future(admit(one, 1))
        await asyncio.sleep(0.05)
        (client,) = writer.service._clients
        client.line.abort()
        with pytest.raises(EvidenceError) as caught:
            await appending
        assert caught.value.code == "evidence.unavailable"
        assert await one.link.ready(5)
        go.set()
        await becomes(writer, {"req-1": ("prepared", True)})


async def test_an_observation_that_was_not_answered_closes_nothing(tmp_path: Path) -> None:
    """The line breaks while an attempt is recorded: the worker lives, and concludes the request itself."""
    async with writing(tmp_path) as writer:
        one = await writer.worker("one")
        name = await admit(one, 1)
        held, go = threading.Event(), threading.Event()

        def block() -> None:
            held.set()
            go.wait(10)

        writer.store._writer.submit(None, block)
        await asyncio.to_thread(held.wait)
        made = sample(1)
        observing = asyncio.ensure_future(one.evidence.append([record("event", b'{"n":1}')], made.row))
        await asyncio.sleep(0.05)
        (client,) = writer.service._clients
        client.line.abort()
        with pytest.raises(EvidenceError):
            await observing
        assert await one.link.ready(5)
        go.set()
        await stays(writer, {name: ("prepared", False)})
        writer.service.gone("one")
        await becomes(writer, {name: ("prepared", True)})


async def test_a_writer_that_takes_nothing_is_not_fed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.ipc.line.MAX_UNSENT", 1 << 20)
    async with writing(tmp_path) as writer:
        one = await writer.worker("one", stall_s=1.0)
        (client,) = writer.service._clients
        client.line.transport.pause_reading()
        value = SealedValue("p", "<T>", "secret", b"m", b"x" * (4 << 20))
        told = []
        for _ in range(3):
            told.append(asyncio.ensure_future(one.vault.keep([value])))
            await asyncio.sleep(0.05)
        for each in told:
            with pytest.raises(EvidenceError):
                await each
        assert "takes nothing" in str(told[-1].exception())


async def test_a_conclusion_that_could_not_be_stored_is_no_claim(tmp_path: Path) -> None:
    async with writing(tmp_path) as writer:
        one = await writer.worker("one")
        name = await admit(one, 1)
    made = sample(1)
    evidence = RemoteEvidence(one.link, tmp_path / "egress.db")
    with pytest.raises(EvidenceError):
        await evidence.append([record("event", b"{}")], replace(made.row, lineage=made.row.receipt))
    assert name not in one.link.open_requests


# -- losing each other ---------------------------------------------------------------------------------------------


async def test_nothing_is_stored_while_the_writer_is_away_and_the_link_heals(tmp_path: Path) -> None:
    async with writing(tmp_path) as writer:
        one = await writer.worker("one")
    one.link.open()
    one.evidence = RemoteEvidence(one.link, tmp_path / "egress.db")
    with pytest.raises(EvidenceError) as caught:
        await admit(one, 1)
    assert caught.value.code == "evidence.unavailable"
    assert "does not answer" in await one.evidence.health()
    for refused in (one.vault.by_mac("p", [b"m"]), one.conversations.load("p", b"a"), one.held.find(["x"])):
        with pytest.raises(EvidenceError):
            await refused
    async with writing(tmp_path) as writer:
        assert await one.link.ready(5)
        await admit(one, 1)
        assert await one.evidence.health() == ""
        await one.close()


async def test_a_writer_that_hangs_is_left(tmp_path: Path) -> None:
    """It takes what it is sent and answers nothing: calls fail after the stall, and the line is made anew."""
    silent = socket.socket(socket.AF_UNIX)
    async with writing(tmp_path) as writer:
        one = await writer.worker("one", stall_s=0.2)
        (client,) = writer.service._clients
        client.line.transport.pause_reading()
        with pytest.raises(EvidenceError, match="cut"):
            await admit(one, 1)
        assert await one.link.ready(5)
        await admit(one, 1)
    silent.close()


@pytest.mark.parametrize(
    "junk",
    [
        b"\xff" * 64,
        b"\0\0\0\x04\0\0\0\x02[]xx",
        b"\0\0\0\x09\0\0\0\x09[1,2,3,4]",
        b'\0\0\0\x0e\0\0\0\x0e[1,"no",[],[]]',
    ],
)
async def test_what_is_no_message_ends_its_connection_and_no_other(tmp_path: Path, junk: bytes) -> None:
    async with writing(tmp_path) as writer:
        one = await writer.worker("one")
        reader, stranger = await asyncio.open_unix_connection(tmp_path / SOCKET)
        stranger.write(junk)
        with suppress(ConnectionResetError):
            assert await asyncio.wait_for(reader.read(), 5) == b""
        stranger.close()
        await admit(one, 1)


async def test_a_torn_frame_is_no_append(tmp_path: Path) -> None:
    async with writing(tmp_path) as writer:
        one = await writer.worker("one")
        reader, stranger = await asyncio.open_unix_connection(tmp_path / SOCKET)
        stranger.write(b'\0\0\0\x20\0\0\0\x10[1,"append",')
        await stranger.drain()
        stranger.close()
        assert await reader.read() == b""
        await admit(one, 1)
        assert set(await states(writer)) == {"req-1"}


async def test_nobody_is_served_before_saying_who_it_is(tmp_path: Path) -> None:
    async with writing(tmp_path):
        reader, stranger = await asyncio.open_unix_connection(tmp_path / SOCKET)
        head = b'[1,"health",[],[]]'
        stranger.write(struct.pack(">II", len(head), len(head)) + head)
        size, _ = struct.unpack(">II", await reader.readexactly(8))
        assert b"evidence.hello" in await reader.readexactly(size)
        stranger.close()


async def test_what_is_over_the_bounds_is_refused_and_the_line_stays(tmp_path: Path) -> None:
    async with writing(tmp_path) as writer:
        one = await writer.worker("one")
        with pytest.raises(EvidenceError, match="bounds"):
            await one.vault.keep([SealedValue("p", "<T>", "secret", b"m", b"x" * (17 << 20))])
        await admit(one, 1)
        assert writer.service.clients == 1


async def test_too_much_at_once_is_refused_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.ipc.line.MAX_CALLS", 20)
    async with writing(tmp_path) as writer:
        one = await writer.worker("one")
        made = [sample(number, refused=True) for number in range(60)]
        told = await asyncio.gather(
            *(one.evidence.append(m.records, m.row) for m in made), return_exceptions=True
        )
        refused = [t for t in told if t is not None]
        rows, _ = await one.evidence.rows({"limit": 100})
    assert len(refused) == 40
    assert all(isinstance(t, EvidenceError) and t.code == "evidence.unavailable" for t in refused)
    assert len(rows) == 20


async def test_the_writer_reads_on_when_work_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.ipc.line.MAX_SERVED", 8)
    async with writing(tmp_path) as writer:
        one = await writer.worker("one")
        made = [sample(number, refused=True) for number in range(100)]
        await asyncio.gather(*(one.evidence.append(m.records, m.row) for m in made))
        rows, _ = await one.evidence.rows({"limit": 1000})
    assert len(rows) == 100


async def test_decisions_are_told_to_every_worker(tmp_path: Path) -> None:
    from gateway.store.held import Vote

    async with writing(tmp_path) as writer:
        one, two = await writer.worker("one"), await writer.worker("two")
        told = asyncio.Event()
        two.link.decided = told.set
        await one.held.vote("x", Vote("ann", b"s", b"g"), "released")
        await asyncio.wait_for(told.wait(), 5)


async def test_a_link_that_is_closed_refuses() -> None:
    from gateway.ipc import Link

    link = Link(Path("/nonexistent/socket"), lambda _: asyncio.sleep(0))
    with pytest.raises(LostError):
        await link.call("x")
