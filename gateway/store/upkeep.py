"""`egress store check|compact|backup`: the evidence database looked at, made small and copied.

Checking and copying work beside a running gateway; making it small needs the state folder for itself.
"""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw

from gateway.errors import EvidenceError, SetupError
from gateway.files import sync_folder
from gateway.store.audit import verify_store
from gateway.store.disk import reason
from gateway.store.lock import StateLock
from gateway.store.reader import SqliteReader, unreadable
from gateway.store.retention import dead_parts, pruned, used_bytes

_COUNTED = ("entries", "records", "parts", "requests", "checkpoints")


def check(path: Path, key: bytes) -> dict[str, Any]:
    """Whether SQLite finds its file in order and the log holds, and what is in it.

    `{"ok", "integrity", "log": report of verify, "file_bytes", "used_bytes", "pruned", "rows": {table: count}}`.
    EvidenceError where it cannot be read.
    """
    log = verify_store(path, key)
    with closing(SqliteReader(path)) as reader:
        db = reader.connection
        try:
            integrity = str(db.execute("PRAGMA integrity_check(1)").get)
            counts = {
                name: db.execute(f"SELECT count(*) FROM {name}").get  # noqa: S608  # fixed names
                for name in _COUNTED
            }
            used, gone = used_bytes(db), pruned(db)
        except apsw.Error as error:
            raise unreadable(error) from error
    return {
        "ok": log.ok and integrity == "ok",
        "integrity": integrity if integrity == "ok" else "damaged",
        "log": log.document(),
        "file_bytes": path.stat().st_size,
        "used_bytes": used,
        "pruned": gone,
        "rows": counts,
    }


def compact(path: Path) -> dict[str, int]:
    """Delete parts that nothing names and give unused pages back: `{"before", "after", "parts"}`, sizes in bytes.

    SetupError where a gateway runs on the folder, EvidenceError where the database cannot be written.
    """
    if not path.exists():
        raise EvidenceError("evidence.none", "there is no evidence database here yet")
    lock = StateLock(path.with_name("lock"))
    lock.acquire()
    try:
        with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)) as db:
            db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            before = path.stat().st_size
            dead = list(dead_parts(db))
            with db:
                db.executemany("DELETE FROM parts WHERE id = ?", ((number,) for number in dead))
            db.execute("VACUUM")
            db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        return {"before": before, "after": path.stat().st_size, "parts": len(dead)}
    except apsw.Error as error:
        raise EvidenceError(
            "evidence.unavailable", f"the database cannot be rewritten: {reason(error)}"
        ) from error
    finally:
        lock.release()


def backup(state: Path, target: Path) -> list[str]:
    """Copy evidence, sealed values and conversations of a state folder into a new folder; the names of the files.

    Each is one state of its database, also while a gateway writes. Keys are not copied. SetupError where `target`
    exists or cannot be written.
    """
    made = []
    try:
        target.mkdir(mode=0o700, parents=True)
        if (state / "checkpoint").exists():  # first: what is copied after it can only have grown
            shutil.copy(state / "checkpoint", target / "checkpoint")
            made.append("checkpoint")
        for source in [state / "egress.db", *sorted((state / "vault").glob("*.db"))]:
            if source.exists():
                name = source.relative_to(state)
                (target / name).parent.mkdir(mode=0o700, exist_ok=True)
                _copy(source, target / name)
                made.append(str(name))
        sync_folder(target)
    except (apsw.Error, OSError) as error:
        raise SetupError(
            "backup.failed", f"the copy cannot be written: {reason(error)}", hint="name a new folder"
        ) from error
    return made


def _copy(source: Path, target: Path) -> None:
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
    with (
        closing(apsw.Connection(str(source), flags=apsw.SQLITE_OPEN_READONLY)) as old,
        closing(apsw.Connection(str(target), flags=apsw.SQLITE_OPEN_READWRITE)) as new,
    ):
        old.set_busy_timeout(5000)
        with new.backup("main", old, "main") as copying:
            copying.step()
