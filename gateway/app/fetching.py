"""Bundles from a URL: fetched at start and from time to time, checked whole, kept for starts without a network.

What is served is a gzipped tar of a bundle's folder (`egress policy pack`). It takes the place of the one before only
when it could be read, is signed where a key is configured, is valid together with the other bundles, and is not older:
a lower version, or a revision that was replaced before, is refused. In every other case the last good one stays.
"""

from __future__ import annotations

import asyncio
import io
import os
import shutil
import tarfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, Final

import orjson

from gateway.app.policies import SIGNATURE_FILE, load_bundles
from gateway.app.tokens import token_of
from gateway.app.webclient import WebClient
from gateway.classify.treatment import Transformers
from gateway.config import Config, read_bundle
from gateway.config.remote import cache_of, current_of, is_remote
from gateway.errors import ConfigError, GatewayError, PolicyError, SetupError, words_of
from gateway.files import replace_file, sync_folder
from gateway.policy import parse_bundle
from gateway.telemetry.log import Log
from gateway.telemetry.metrics import Metrics

MAX_PACKED: Final = 4 << 20
MAX_UNPACKED: Final = 16 << 20
MAX_FILES: Final = 1024
_MAX_SEEN: Final = 256
_NOTE: Final = "source.json"
_NAMES: Final = (".toml", SIGNATURE_FILE)


def pack(folder: Path) -> bytes:
    """A bundle's folder as it is served: the same files give the same bytes."""
    files = dict(read_bundle(folder))
    if (folder / SIGNATURE_FILE).is_file():
        files[SIGNATURE_FILE] = (folder / SIGNATURE_FILE).read_bytes()
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o644
            archive.addfile(entry, io.BytesIO(data))
    packer = zlib.compressobj(9, wbits=31)
    return packer.compress(out.getvalue()) + packer.flush()


def unpack(data: bytes) -> dict[str, bytes]:
    """The files of an archive by their names in the bundle; PolicyError where it holds anything else, or too much."""
    inflate = zlib.decompressobj(wbits=31)
    try:
        plain = inflate.decompress(data, MAX_UNPACKED + 1)
        if len(plain) > MAX_UNPACKED or not inflate.eof or inflate.unused_data:
            raise PolicyError("policy.archive", f"not one gzip file of at most {MAX_UNPACKED} bytes")
        with tarfile.open(fileobj=io.BytesIO(plain), mode="r:") as archive:
            return _files(archive)
    except (zlib.error, tarfile.TarError, EOFError, UnicodeError) as error:
        message = f"the archive cannot be read ({words_of(error)})"
        raise PolicyError("policy.archive", message) from None


def _files(archive: tarfile.TarFile) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for entry in archive:
        if entry.isdir():
            continue
        path = PurePosixPath(entry.name)
        plain = entry.isfile() and not path.is_absolute() and ".." not in path.parts and len(path.parts) <= 3
        name = path.as_posix()
        if not plain or not name.endswith(_NAMES) or name in files or len(files) >= MAX_FILES:
            raise PolicyError("policy.archive", "the archive holds something that is no file of a bundle")
        content = archive.extractfile(entry)
        files[name] = content.read() if content is not None else b""
    return files


@dataclass(frozen=True, slots=True)
class Note:
    """What is known of a URL: the answer's ETag, the revision in force, and those before it."""

    etag: str = ""
    version: str = ""
    digest: str = ""
    seen: tuple[str, ...] = ()

    @classmethod
    def read(cls, folder: Path) -> Note:
        """The note beside what was fetched; an empty one where there is none that can be read."""
        try:
            found = orjson.loads((folder / _NOTE).read_bytes())
            return cls(**{**found, "seen": tuple(found["seen"])})
        except (OSError, ValueError, TypeError, KeyError):
            return cls()

    def document(self) -> Mapping[str, Any]:
        """As it is written."""
        return {"etag": self.etag, "version": self.version, "digest": self.digest, "seen": list(self.seen)}


@dataclass(frozen=True, slots=True)
class Fetched:
    """How one attempt ended: `changed`, `unchanged` or `failed` with a code."""

    url: str
    result: str
    code: str = ""
    version: str = ""
    digest: str = ""
    problems: tuple[str, ...] = ()


@dataclass(slots=True)
class Fetcher:
    """All URLs of one configuration. `told` hears of every attempt."""

    config: Config
    transformers: Transformers
    client: WebClient
    told: Callable[[Fetched], None] = field(default=lambda _: None)

    @property
    def urls(self) -> Sequence[str]:
        """What is fetched: bundles in force, and those on trial."""
        policy = self.config.policy
        return [name for name in (*policy.bundles, *policy.run, *policy.trial) if is_remote(name)]

    def is_there(self) -> bool:
        """Whether some revision of every bundle is on disk."""
        return all(current_of(self.config.state.dir, url).is_dir() for url in self.urls)

    async def fetch(self) -> list[Fetched]:
        """One attempt for each URL."""
        results = [await asyncio.to_thread(self._one, url) for url in self.urls]
        for result in results:
            self.told(result)
        return results

    async def prepare(self) -> None:
        """Before a start: fetch, and fail only where there is nothing to begin with (SetupError)."""
        for result in await self.fetch():
            if not current_of(self.config.state.dir, result.url).is_dir():
                raise SetupError(
                    "policy.fetch",
                    f"a bundle cannot be fetched, and none was before ({result.code})",
                    hint="; ".join(result.problems)
                    or "look at the network, policy.bundles and upstream.ca_file",
                )

    async def watch(self, changed: Callable[[], Any]) -> None:
        """Fetch again and again; `changed` is awaited after something new was put in its place. Until cancelled."""
        while True:
            await asyncio.sleep(self.config.policy.fetch_s)
            if any(result.result == "changed" for result in await self.fetch()):
                await changed()

    def _one(self, url: str) -> Fetched:
        try:
            return self._fetch(url)
        except PolicyError as error:
            problems = tuple(error.problems) or (str(error),)
            return Fetched(url, "failed", error.code, problems=problems)
        except GatewayError as error:
            return Fetched(url, "failed", error.code, problems=(str(error),))
        except OSError as error:
            return Fetched(url, "failed", "policy.fetch", problems=(f"not written: {error.strerror}",))
        except ValueError as error:  # a version or a name that Python itself takes for none
            problem = f"the bundle cannot be used ({words_of(error)})"
            return Fetched(url, "failed", "policy.archive", problems=(problem,))

    def _fetch(self, url: str) -> Fetched:
        cache = cache_of(self.config.state.dir, url)
        note = Note.read(cache)
        there = (cache / "current").is_dir()
        headers = {"Accept": "application/gzip", "User-Agent": "egress"}
        if note.etag and there:
            headers["If-None-Match"] = note.etag
        if token := token_of(self.config.policy.fetch_token_file):
            headers["Authorization"] = f"Bearer {token.decode('ascii', 'replace')}"
        answer = self.client.ask("GET", url, headers, limit=MAX_PACKED)
        if answer.status == 304 and there:
            return Fetched(url, "unchanged", version=note.version, digest=note.digest)
        if answer.status != 200:
            raise PolicyError("policy.fetch", f"the server answered {answer.status}")
        files = unpack(answer.body)
        bundle = parse_bundle({name: data for name, data in files.items() if name != SIGNATURE_FILE})
        etag = answer.headers.get("etag", "")[:256]
        if there and bundle.digest == note.digest:
            _keep(cache, replace(note, etag=etag))
            return Fetched(url, "unchanged", version=note.version, digest=note.digest)
        _check_newer(note, bundle.version, bundle.digest)
        self._put(url, cache, files, bundle.digest)
        seen = (*note.seen, bundle.digest)[-_MAX_SEEN:]
        _keep(cache, Note(etag, bundle.version, bundle.digest, seen))
        return Fetched(url, "changed", version=bundle.version, digest=bundle.digest)

    def _put(self, url: str, cache: Path, files: Mapping[str, bytes], digest: str) -> None:
        """Write a revision, load the whole policy with it, and only then let it take the place of the one before."""
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = cache / f"{digest.removeprefix('sha256:')[:24]}.{os.getpid()}"
        shutil.rmtree(folder, ignore_errors=True)
        try:
            for name, data in files.items():
                path = folder / name
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                replace_file(path, (data,))  # durable before it is named: a rule cut short would forbid less
            self._check(current_of(self.config.state.dir, url), folder)
        except (GatewayError, OSError):
            shutil.rmtree(folder, ignore_errors=True)
            raise
        link = cache / f".current.{os.getpid()}"
        link.unlink(missing_ok=True)
        link.symlink_to(folder.name)
        sync_folder(folder)
        link.replace(cache / "current")
        sync_folder(cache)
        for other in cache.iterdir():
            if other.is_dir() and not other.is_symlink() and other != folder:
                shutil.rmtree(other, ignore_errors=True)

    def _check(self, current: Path, folder: Path) -> None:
        for folders in (self.config.policy.folders, self.config.policy.trial_folders):
            if current in folders:
                tried = [folder if each == current else each for each in folders]
                absent = [each for each in tried if not each.is_dir()]  # another URL that was never fetched
                try:
                    load_bundles(
                        self.config, [each for each in tried if each not in absent], self.transformers
                    )
                except ConfigError as error:
                    raise PolicyError("policy.invalid", str(error), problems=error.problems) from None


def _check_newer(note: Note, version: str, digest: str) -> None:
    """PolicyError where a revision is older than the one in force: whoever serves bundles can serve old ones."""
    if note.version and precedence(version) < precedence(note.version):
        raise PolicyError(
            "policy.rollback", f"version {version} is older than {note.version}, which is in force"
        )
    if digest in note.seen:
        raise PolicyError("policy.rollback", "this revision was in force before, and was replaced by another")


def precedence(version: str) -> tuple[Any, ...]:
    """What orders semantic versions (SemVer 2.0.0 §11)."""
    core, _, pre = version.partition("+")[0].partition("-")
    numbers = tuple(int(part) for part in core.split("."))
    parts = tuple((0, int(p), "") if p.isdigit() else (1, 0, p) for p in pre.split(".")) if pre else ()
    return (*numbers, not pre, parts)


def _keep(cache: Path, note: Note) -> None:
    replace_file(cache / _NOTE, (orjson.dumps(note.document()),))


def fetcher_of(
    config: Config, transformers: Transformers, metrics: Metrics | None = None, log: Log | None = None
) -> Fetcher:
    """The fetcher of a configuration; with metrics and a log, both tell of every attempt."""
    failing: set[str] = set()

    def told(result: Fetched) -> None:
        (failing.add if result.result == "failed" else failing.discard)(result.url)
        if metrics is not None:
            metrics.fetched(result.result, len(failing))
        if log is not None and result.result == "failed":
            log.event("policy_fetch_failed", level="error", code=result.code, count=len(result.problems))
        elif log is not None and result.result == "changed":
            log.event("policy_fetched", digest=result.digest, version=f"v{result.version}")

    return Fetcher(config, transformers, WebClient.of(config), told)
