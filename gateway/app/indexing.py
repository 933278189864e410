"""`egress project index`: the files of a project read once into keyed fingerprints; later runs read what changed.

The gateway need not run; one that does notices the new index. Nothing of a file is kept but its fingerprints, and keyed
tags of its path and content.
"""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from gateway.app.belongings import fingerprint_files, fingerprint_key
from gateway.app.filelist import project_files
from gateway.app.signing import keyring
from gateway.app.wiring import known_file
from gateway.boundary import FingerprintIndex
from gateway.config import Config
from gateway.errors import SetupError, words_of
from gateway.store.fingerprints import PRINT, IndexedFile
from gateway.store.known import Counts, values_key, write_known
from gateway.store.partial import PartialIndex

MAX_FILE_BYTES = 8 << 20
"""Larger files are dumps and lock files, rarely anybody's own words."""

_SNIFFED = 8192  # bytes in which a NUL makes a file a binary one


@dataclass(slots=True)
class Progress:
    """Counts of one run: files looked at, those that had changed, the bytes that were read of these, and the rest."""

    project: str
    done: int = 0
    read: int = 0
    bytes: int = 0
    skipped: int = 0
    fingerprints: int = 0


@dataclass(slots=True)
class Indexer:
    """One run over one project's roots."""

    project: str
    roots: tuple[Path, ...]
    key: bytes = field(repr=False)
    before: dict[bytes, IndexedFile] = field(repr=False)
    tell: Callable[[Progress], None]

    def files(self, progress: Progress) -> Iterator[IndexedFile]:
        """Every text file of the roots, those that did not change as they were."""
        index = FingerprintIndex(self.key)
        for number, root in enumerate(self.roots):
            for name in project_files(root):
                file = self._file(
                    root / name, self._tag(b"%d\0%b" % (number, name.encode())), index, progress
                )
                progress.done += 1
                if file is None:
                    progress.skipped += 1
                else:
                    progress.fingerprints += len(file.prints) // PRINT
                    yield file
                self.tell(progress)

    def _file(
        self, path: Path, tag: bytes, index: FingerprintIndex, progress: Progress
    ) -> IndexedFile | None:
        try:
            state = path.lstat()
            if not stat.S_ISREG(state.st_mode) or not 0 < state.st_size <= MAX_FILE_BYTES:
                return None
            known = self.before.get(tag)
            if known is not None and (known.mtime_ns, known.size) == (state.st_mtime_ns, state.st_size):
                return known
            data = path.read_bytes()
        except OSError:
            return None  # gone or unreadable meanwhile: counted as skipped
        if b"\0" in data[:_SNIFFED]:
            return None
        progress.read += 1
        progress.bytes += len(data)
        prints = index.prints(data.decode("utf-8", "replace")).tobytes()
        return IndexedFile(tag, state.st_mtime_ns, len(data), self._tag(data), prints)

    def _tag(self, data: bytes) -> bytes:
        return hashlib.blake2b(data, digest_size=16, key=self.key).digest()


def index_values(config: Config, files: Sequence[Path]) -> Counts:
    """Replace the list of known values by the lines of `files`: a value each; empty ones and `# ...` are passed over.

    Raises SetupError where a file cannot be read, is not UTF-8, or the list cannot be written.
    """
    keyring(config)
    key = values_key(config.state.keys_dir, create=True)
    return write_known(known_file(config), key, chain.from_iterable(map(_values, files)))


def _values(path: Path) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                value = line.strip()
                if value and not value.startswith("#"):
                    yield value
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError("values.file", f"{path} cannot be read ({words_of(error)})") from None


def index_project(
    config: Config, name: str, *, full: bool = False, tell: Callable[[Progress], None] = lambda _: None
) -> Progress:
    """Bring a project's index up to date; `full` reads every file again. A run that was cut short is gone on with.

    Raises:
        SetupError: no such project, none of its roots is a folder, or the index that is there is damaged.
    """
    project = config.projects.get(name)
    if project is None:
        raise SetupError(
            "boundary.project", f"there is no project {name}", hint=f"run: egress project add {name}"
        )
    roots = tuple(root for root in project.roots if root.is_dir())
    if not roots:
        raise SetupError("boundary.roots", f"project {name} has no root that is a folder")
    keys = keyring(config)
    files = fingerprint_files(config, keys)
    partial = PartialIndex(files.folder, name, fingerprint_key(keys))
    known = [*([] if full else files.read_index(name)), *partial.read()]
    before = {file.path: file for file in known}
    progress = Progress(name)
    read = Indexer(name, roots, fingerprint_key(keys), before, tell).files(progress)
    try:
        files.write_index(name, partial.noting(read, before))
    finally:
        partial.close()
    partial.remove()
    return progress
