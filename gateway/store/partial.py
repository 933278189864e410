"""What a run of `egress project index` has read so far, so that one that is cut short goes on where it was.

One file beside the index, appended file by file: `<record><keyed digest of it>`. A torn or changed record ends it, and
what follows is read again. It is gone once the index is whole.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Final

from gateway.files import private_folder
from gateway.store.fingerprints import IndexedFile, record_of, records_in

_CHECK: Final = 16


class PartialIndex:
    """The notes of one project's run; `key` protects them against changes."""

    def __init__(self, folder: Path, project: str, key: bytes) -> None:
        """Use `<folder>/<project>.part`, which is made with the first note."""
        self._path = folder / f"{project}.part"
        self._key = key
        self._file: IO[bytes] | None = None

    def read(self) -> list[IndexedFile]:
        """What earlier runs had read, the last note of each file last; nothing where there is none."""
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return []
        found, at = [], 0
        for file, end in records_in(data, _CHECK):
            if self._check(data[at : end - _CHECK]) != data[end - _CHECK : end]:
                break
            found.append(file)
            at = end
        return found

    def noting(self, files: Iterable[IndexedFile], known: dict[bytes, IndexedFile]) -> Iterator[IndexedFile]:
        """Pass files on, and note those that are not known as they are."""
        for file in files:
            if known.get(file.path) is not file:
                self._note(record_of(file))
            yield file

    def _note(self, record: bytes) -> None:
        if self._file is None:
            private_folder(self._path.parent)
            self._file = self._path.open("ab")
            self._path.chmod(0o600)
        self._file.write(record + self._check(record))

    def _check(self, record: bytes) -> bytes:
        return hashlib.blake2b(b"part" + record, digest_size=_CHECK, key=self._key).digest()

    def close(self) -> None:
        """Keep the notes."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def remove(self) -> None:
        """The index is whole: nothing is to be gone on with."""
        self.close()
        self._path.unlink(missing_ok=True)
