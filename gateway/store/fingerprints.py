"""What is known of projects' content, on disk: keyed fingerprints and keyed digests only, never text or paths.

```
<folder>/<project>.index     the files of a project, written whole by `egress project index` and renamed into place
<folder>/<project>.part      what a run of it has read so far, gone once the index is whole (see `partial`)
<folder>/table               all indexes merged into what is looked up, made from them by the first that needs it
<folder>/seen-<YYYYMMDD>-<process>   fingerprints of what projects sent on one day, appended by one process
```

No file is written by two processes, so none needs a lock: a running gateway notices a new index by its stamp
(`FingerprintFiles.stamp`), and several processes of one gateway follow what the others append (`SeenTail`). A torn end
of a day's file is passed over, as nobody appends to it again; an index that is damaged is refused, as content of that
project would go unnoticed.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import re
import struct
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gateway.errors import SetupError
from gateway.files import private_folder, replace_file

_MAGIC: Final = b"EGFI\x02"
_FILE: Final = struct.Struct("<16sqq16sI")
_SEEN: Final = struct.Struct("<HII")
_DAY: Final = re.compile(r"seen-(\d{8})(?:-[0-9a-f]{8})?")
_JUST_NOW_NS: Final = 1_000_000_000  # folders tell the time of a change no finer than some milliseconds
_CHECK: Final = 16
_TAG: Final = 16
PRINT: Final = 12
"""Bytes of one fingerprint: keyed hash and place (`gateway.boundary.shingles.PRINT`)."""
_TABLE_MAGIC: Final = b"EGFT\x02\0\0\0"


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """One file of a project: keyed tag of its path, state when it was read, keyed digest, joined fingerprints."""

    path: bytes
    mtime_ns: int
    size: int
    digest: bytes
    prints: bytes


def record_of(file: IndexedFile) -> bytes:
    """One file as it is kept."""
    head = _FILE.pack(file.path, file.mtime_ns, file.size, file.digest, len(file.prints) // PRINT)
    return head + file.prints


def records_in(data: bytes, after: int = 0) -> Iterator[tuple[IndexedFile, int]]:
    """The files in bytes of records, `after` other bytes behind each, and where each of them ends; no torn one."""
    at = 0
    while at + _FILE.size <= len(data):
        path, mtime_ns, size, digest, count = _FILE.unpack_from(data, at)
        end = at + _FILE.size + count * PRINT
        if end + after > len(data):
            return
        yield IndexedFile(path, mtime_ns, size, digest, data[at + _FILE.size : end]), end + after
        at = end + after


class FingerprintFiles:
    """The folder; `key` protects an index against changes."""

    def __init__(self, folder: Path, key: bytes) -> None:
        """Use a folder, which is made when something is written."""
        self.folder = folder
        self._key = key
        self._seen: tuple[str, int] | None = None
        self._process = os.urandom(4).hex()

    def _make(self) -> None:
        private_folder(self.folder)

    # -- indexes -----------------------------------------------------------------------------------------------

    def write_index(self, project: str, files: Iterable[IndexedFile]) -> None:
        """Replace a project's index; durable and whole when it returns."""
        self._make()
        check = hashlib.blake2b(_MAGIC, digest_size=_CHECK, key=self._key)

        def parts() -> Iterator[bytes]:
            yield _MAGIC
            for file in files:
                record = record_of(file)
                check.update(record)
                yield record
            yield check.digest()

        replace_file(self._index(project), parts())

    def read_index(self, project: str) -> list[IndexedFile]:
        """The files of a project's index, none where it was never indexed; SetupError where it is damaged."""
        path = self._index(project)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _damaged(project, os.strerror(error.errno or 0)) from error
        body, check = data[len(_MAGIC) : -_CHECK], data[-_CHECK:]
        good = hashlib.blake2b(_MAGIC + body, digest_size=_CHECK, key=self._key).digest() == check
        if not data.startswith(_MAGIC) or not good:
            other = data[:4] == _MAGIC[:4] and not data.startswith(_MAGIC)
            raise _damaged(project, "another version wrote it" if other else "it is not as it was written")
        return [file for file, _ in records_in(body)]

    def stamp(self) -> Mapping[str, tuple[int, int, int]]:
        """What tells a new index from an old one: inode, time and size of each."""
        found = {}
        for path in self.folder.glob("*.index"):
            try:
                state = path.stat()
            except FileNotFoundError:
                continue
            found[path.stem] = (state.st_ino, state.st_mtime_ns, state.st_size)
        return found

    def _index(self, project: str) -> Path:
        return self.folder / f"{project}.index"

    # -- the merged table --------------------------------------------------------------------------------------

    def table(self, tag: bytes) -> memoryview | None:
        """The content of the table of that tag, mapped and shared with every process that maps it; None without one.

        A table that is not as it was written counts as none: it can be made again from the indexes.
        """
        try:
            with self._table_file().open("rb") as file:
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (FileNotFoundError, ValueError):
            return None
        view = memoryview(mapped)
        head, body, check = (
            view[: len(_TABLE_MAGIC) + _TAG],
            view[len(_TABLE_MAGIC) + _TAG : -_CHECK],
            view[-_CHECK:],
        )
        digest = hashlib.blake2b(digest_size=_CHECK, key=self._key)
        if head == _TABLE_MAGIC + tag:
            digest.update(head)
            digest.update(body)
            if digest.digest() == check:
                return body
        return None

    def write_table(self, tag: bytes, parts: Iterable[bytes | memoryview]) -> None:
        """Replace the table; whole when it returns. `tag` has 16 bytes, each part a multiple of 8."""
        self._make()
        digest = hashlib.blake2b(digest_size=_CHECK, key=self._key)

        def checked() -> Iterator[bytes | memoryview]:
            for part in (_TABLE_MAGIC + tag, *parts):
                digest.update(part)
                yield part
            yield digest.digest()

        replace_file(self._table_file(), checked())

    def _table_file(self) -> Path:
        return self.folder / "table"

    # -- what was seen -----------------------------------------------------------------------------------------

    def append_seen(self, day: str, project: str, prints: bytes) -> None:
        """Note fingerprints of a project on a day (YYYYMMDD): with the system at once, on disk after `sync`."""
        name = project.encode()
        if prints:
            head = _SEEN.pack(len(name), len(prints) // PRINT, zlib.crc32(name + prints))
            os.write(self._open_seen(day), head + name + prints)

    def _open_seen(self, day: str) -> int:
        if self._seen is None or self._seen[0] != day:
            self.close()
            self._make()
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            self._seen = (day, os.open(self.folder / f"seen-{day}-{self._process}", flags, 0o600))
        return self._seen[1]

    def read_seen(self, since: str) -> Iterator[tuple[str, bytes]]:
        """What was seen from a day on, oldest first: (project, fingerprints)."""
        for path in sorted(self.folder.glob("seen-*")):
            found = _DAY.fullmatch(path.name)
            if found is not None and found.group(1) >= since:
                yield from _records(path.read_bytes())[0]

    def tail(self) -> SeenTail:
        """What other processes have noted of late, and will."""
        return SeenTail(self.folder, f"-{self._process}")

    def expire(self, before: str) -> int:
        """Delete what was seen before a day; how many files went."""
        old = [
            path
            for path in self.folder.glob("seen-*")
            if (found := _DAY.fullmatch(path.name)) is not None and found.group(1) < before
        ]
        for path in old:
            path.unlink(missing_ok=True)
        return len(old)

    def sync(self) -> None:
        """Make what was seen durable."""
        if self._seen is not None:
            os.fsync(self._seen[1])

    def close(self) -> None:
        """Close the day's file."""
        if self._seen is not None:
            self.sync()
            os.close(self._seen[1])
            self._seen = None


class SeenTail:
    """Follows what other processes append to the files of the last two days; a look costs a few system calls."""

    def __init__(self, folder: Path, own: str) -> None:
        """`own` ends the names of the files that this process writes."""
        self._folder = folder
        self._own = own
        self._changed = -1
        self._files: dict[str, tuple[int, int]] = {}  # how far each was read, and its size then

    def read(self) -> list[tuple[str, bytes]]:
        """What was appended since the last time: (project, fingerprints)."""
        found: list[tuple[str, bytes]] = []
        try:
            self._look()
            for name, (at, seen) in self._files.items():
                path = self._folder / name
                size = path.stat().st_size
                if size != seen:
                    with path.open("rb") as file:
                        file.seek(at)
                        records, read = _records(file.read())
                    found += records
                    self._files[name] = (at + read, size)
        except FileNotFoundError:
            self._changed = -1  # a day was let go of: look again the next time
        return found

    def _look(self) -> None:
        changed = self._folder.stat().st_mtime_ns
        if changed == self._changed:
            return
        names = [name for name in os.listdir(self._folder) if _DAY.fullmatch(name)]  # noqa: PTH208  # names only
        days = sorted({name[5:13] for name in names})[-2:]
        live = [name for name in names if name[5:13] in days and not name.endswith(self._own)]
        self._files = {name: self._files.get(name, (0, 0)) for name in live}
        self._changed = changed if time.time_ns() - changed > _JUST_NOW_NS else -1


def _records(data: bytes) -> tuple[list[tuple[str, bytes]], int]:
    """The records at the beginning of some bytes, and how many bytes they are."""
    found, at = [], 0
    while at + _SEEN.size <= len(data):
        name_size, count, check = _SEEN.unpack_from(data, at)
        end = at + _SEEN.size + name_size + count * PRINT
        record = data[at + _SEEN.size : end]
        if len(record) != name_size + count * PRINT or zlib.crc32(record) != check:
            break  # torn, or not all there yet: what was seen can be seen again
        found.append((record[:name_size].decode("utf-8", "replace"), record[name_size:]))
        at = end
    return found, at


def _damaged(project: str, why: str) -> SetupError:
    return SetupError(
        "boundary.index",
        f"the index of project {project} cannot be read: {why}",
        hint=f"run: egress project index {project} --full",
    )
