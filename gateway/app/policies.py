"""The policy in force: loaded whole, checked whole, exchanged in one step; what is not valid changes nothing.

Bundles are read again when one of their files changed, on SIGHUP, and when somebody asks. Where a public key is
configured every bundle must carry a signature over its revision; bundles that are shipped with the program are as
trustworthy as the program and need none.
"""

from __future__ import annotations

import asyncio
import os
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from gateway.app.detection import check_rules, slow_rules
from gateway.classify.consequences import WORKERS
from gateway.classify.treatment import Transformers
from gateway.config import Config, read_bundle
from gateway.config.bundles import packaged_bundles
from gateway.detect.rule import load_rules
from gateway.detect.rules import builtin
from gateway.egress.detour import REROUTE
from gateway.errors import ConfigError, GatewayError, PolicyError, SetupError, VerificationError, words_of
from gateway.evidence.sign import Ed25519Signer, Signer, decode_base64, read_public_key, verifies
from gateway.plugins import activate
from gateway.policy import Breakage, CompiledPolicy, load_policy, parse_bundle
from gateway.policy.layers import join_layers

SIGNATURE_FILE: Final = "bundle.sig"
_PURPOSE: Final = b"egress-policy-bundle:1\0"
_MAX_TRIES: Final = 5
_RESTART: Final = "detectors/ of a bundle changed: they are read at the start, so start the gateway again"

type Print = tuple[tuple[str, int, int, int], ...]


def transformers_of(config: Config) -> Transformers:
    """The active minimisers and summarisers; SetupError where one cannot be loaded."""
    minimisers = activate("gateway.minimisers", config.plugins.minimisers)
    summarisers = activate("gateway.summarisers", config.plugins.summarisers)
    return Transformers(
        {plugin.name: plugin.load()() for plugin in minimisers},
        {plugin.name: plugin.load()() for plugin in summarisers},
    )


def signer_of(path: Path) -> Signer:
    """An Ed25519 private key in PEM; SetupError."""
    try:
        private = load_pem_private_key(path.read_bytes(), None)
    except (OSError, ValueError, TypeError) as error:
        raise SetupError("policy.key", f"the key cannot be read ({words_of(error)})") from None
    if not isinstance(private, Ed25519PrivateKey):
        raise SetupError("policy.key", "the key is not an Ed25519 key")
    return Ed25519Signer(private, "policy")


def new_policy_key(path: Path) -> Path:
    """Make a key pair: the private half in PEM for its owner alone, the public one beside it; gives the latter's path.

    SetupError where there is a file already, or none can be written.
    """
    private = Ed25519PrivateKey.generate()
    public = path.with_name(f"{path.name}.pub")
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    try:
        for file, data, mode in (
            (path, pem, 0o600),
            (
                public,
                private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
                0o644,
            ),
        ):
            with os.fdopen(
                os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, mode), "wb"
            ) as out:
                out.write(data)
    except OSError as error:
        raise SetupError(
            "policy.key", f"no key can be written ({error.strerror})", hint="choose a new path"
        ) from None
    return public


def sign_bundle(folder: Path, signer: Signer) -> str:
    """Write the signature of a bundle beside its manifest; gives the revision that was signed. PolicyError."""
    revision = parse_bundle(read_bundle(folder)).digest
    signature = b64encode(signer.sign(_PURPOSE + revision.encode())).decode("ascii")
    (folder / SIGNATURE_FILE).write_text(signature + "\n", encoding="ascii")
    return revision


def _check_signature(folder: Path, revision: str, public_key: bytes) -> None:
    path = folder / SIGNATURE_FILE
    try:
        signature = decode_base64(path.read_text(encoding="ascii").strip())
    except (OSError, UnicodeDecodeError, VerificationError):
        raise PolicyError("policy.signature", f"{folder.name}: no signature that can be read") from None
    if not verifies(public_key, signature, _PURPOSE + revision.encode()):
        raise PolicyError(
            "policy.signature", f"{folder.name}: the signature is not one of the configured key"
        )


def load_bundles(
    config: Config,
    folders: Sequence[Path],
    transformers: Transformers,
    enforcement: str | None = None,
    broken: Sequence[Breakage] = (),
) -> CompiledPolicy:
    """The compiled policy of these folders, with what people have lifted for a while.

    PolicyError with every problem, ConfigError where a file cannot be read.
    """
    if any(not folder.is_dir() for folder in folders):
        raise PolicyError(
            "policy.fetch", "a bundle is not there", hint="where it has a URL, run: egress policy fetch"
        )
    bundles = [read_bundle(folder) for folder in folders]
    settings = config.policy
    policy = load_policy(
        bundles,
        mode=str(settings.mode),
        enforcement=enforcement or str(settings.enforcement),
        broken=broken,
        categories=_categories,
    )
    if settings.public_key is not None:
        key, shipped = public_key_of(settings.public_key), packaged_bundles()
        for folder, bundle in zip(folders, policy.layers.bundles, strict=True):
            if not folder.resolve().is_relative_to(shipped.resolve()):
                _check_signature(folder, bundle.digest, key)
    _check_workers(policy, transformers, frozenset(config.local_models))
    detectors = _detectors(policy)
    if detectors and (problems := check_rules(detectors)):
        raise PolicyError("policy.invalid", "\n".join(problems), problems=problems)
    return policy


@cache
def _categories() -> dict[str, str]:
    """The categories of the finding types that built-in rules give."""
    return {rule.type: str(rule.category) for rule in load_rules(builtin()).rules}


def public_key_of(path: Path) -> bytes:
    """A public key in a file, as PEM or as a verifier key; SetupError."""
    try:
        return read_public_key(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, VerificationError) as error:
        message = f"policy.public_key cannot be read ({words_of(error)})"
        raise SetupError("policy.public_key", message) from None


def _check_workers(policy: CompiledPolicy, transformers: Transformers, models: frozenset[str]) -> None:
    problems = []
    for rule in policy.layers.rules:
        for name, packed in rule.then.parameters:
            if name in WORKERS:
                try:
                    transformers.check(name, packed)
                except PolicyError as error:
                    problems.append(f"{rule.source}: rule {rule.id!r}: {error}")
            if name == REROUTE and packed not in models:
                problems.append(
                    f"{rule.source}: rule {rule.id!r}: no local model {packed!r} is configured ([local_models])"
                )
    if problems:
        raise PolicyError("policy.invalid", "\n".join(problems), problems=problems)


def policy_of(config: Config, transformers: Transformers | None = None) -> CompiledPolicy:
    """The policy of a configuration; ConfigError with every problem of every bundle."""
    try:
        return load_bundles(config, config.policy.folders, transformers or transformers_of(config))
    except PolicyError as error:
        raise ConfigError(error.problems or [str(error)]) from error


def policy_warnings(policy: CompiledPolicy) -> list[str]:
    """What is valid and yet not as it should be: rules for which the pattern engine is left."""
    return slow_rules(_detectors(policy))


def _detectors(policy: CompiledPolicy) -> list[Mapping[str, Any]]:
    return [document for bundle in policy.layers.bundles for document in bundle.detectors]


@dataclass(frozen=True, slots=True)
class Reloaded:
    """How an attempt to load anew ended. `problems` is empty where it succeeded; `digest` is that of what holds now."""

    ok: bool
    changed: bool
    digest: str
    problems: tuple[str, ...] = ()


@dataclass(slots=True)
class LivePolicy:
    """The policy in force. Call it for the present one; a request keeps the one it got.

    `changed` is told of every new one before it is in force, `told` of every attempt.
    """

    config: Config
    transformers: Transformers
    folders: Sequence[Path]
    changed: Callable[[CompiledPolicy], None]
    told: Callable[[Reloaded], None]
    enforcement: str | None = None
    broken: Callable[[], tuple[Breakage, ...]] = tuple
    stale: tuple[str, ...] = ()
    """What was wrong with the bundles when they were last loaded; empty where they are in force."""
    _broken: tuple[Breakage, ...] = ()
    _current: CompiledPolicy = field(init=False)
    _seen: Print = field(init=False)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        self._seen, self._broken = self._print(), self.broken()
        try:
            self._current = self._loaded()
        except PolicyError as error:
            raise ConfigError(error.problems or [str(error)]) from error

    def __call__(self) -> CompiledPolicy:
        """The policy in force."""
        return self._current

    async def reload(self) -> Reloaded:
        """Load the bundles anew; where they are not valid, what was in force stays."""
        await self.rejoin()
        async with self._turn:
            result = await self._reload()
        self.stale = result.problems
        self.told(result)
        return result

    async def _reload(self) -> Reloaded:
        before = self._current.digest
        try:
            found = await asyncio.to_thread(self._load)
        except PolicyError as error:
            return Reloaded(False, False, before, tuple(error.problems) or (str(error),))
        except GatewayError as error:
            return Reloaded(False, False, before, (str(error),))
        if found.digest == before:
            return Reloaded(True, False, before)
        if _detectors(found) != _detectors(self._current):
            return Reloaded(False, False, before, (_RESTART,))
        self.changed(found)
        self._current = found
        return Reloaded(True, True, found.digest)

    def _load(self) -> CompiledPolicy:
        """Load when nobody writes: what the files say before and after must be the same."""
        for _ in range(_MAX_TRIES):
            seen = self._print()
            policy = self._loaded()
            if self._print() == seen:
                self._seen = seen
                return policy
        raise PolicyError("policy.busy", "the bundles change while they are read")

    def _loaded(self) -> CompiledPolicy:
        return load_bundles(
            self.config, self.folders, self.transformers, self.enforcement, broken=self._broken
        )

    async def rejoin(self) -> None:
        """Take up what people lifted since, and what is over, on the bundles in force: those on disk may be broken."""
        async with self._turn:
            broken = self.broken()
            if broken == self._broken:
                return
            layers = self._current.layers
            joined = join_layers(layers.bundles, layers.mode, broken)
            found = CompiledPolicy(joined, self._current.enforcement)
            self._broken = broken
            self.changed(found)
            self._current = found

    def _print(self) -> Print:
        """Which files there are, and when and how large they were written."""
        found = []
        for folder in self.folders:
            for path in sorted([*folder.rglob("*.toml"), folder / SIGNATURE_FILE]):
                try:
                    stat = path.stat()
                except OSError:
                    continue
                found.append((str(path), stat.st_mtime_ns, stat.st_size, stat.st_ino))
        return tuple(found)

    async def watch(self) -> None:
        """Load anew when files changed and have stayed as they are from one look to the next; until cancelled."""
        looked = self._seen
        while True:
            await asyncio.sleep(self.config.policy.poll_s)
            await self.rejoin()
            now = await asyncio.to_thread(self._print)
            if now != self._seen and now == looked:
                self._seen = now
                await self.reload()
            looked = now
