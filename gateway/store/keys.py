"""The key folder: one key of the installation, one that signs evidence, one for each project's vault.

```
keys/installation.key   32 random bytes: placeholders, keyed digests and wrapping keys are derived from it
keys/signing.pem        Ed25519, PKCS #8: signs log entries and checkpoints, unless [state] signer names another key
keys/signing.pub        its public half as a C2SP verifier key, for auditors (may be copied freely)
keys/values.key         32 random bytes: fingerprints of known values (`known`); scanning processes read it alone
keys/vault/<tag>.key    a project's 32 random bytes, wrapped (RFC 3394) under a derived key
```

Private files are 0600 in folders 0700. A project's vault key is random and not derived: deleting its file
makes the project's values unreadable for good, also to whoever holds the installation key.
"""

from __future__ import annotations

import fcntl
import hmac
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.keywrap import InvalidUnwrap, aes_key_unwrap, aes_key_wrap
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from gateway.errors import SetupError
from gateway.evidence.sign import Ed25519Signer, Signer, verifier_key
from gateway.files import private_folder, replace_file, sync_folder

_INSTALLATION, _VAULT = "installation.key", "vault"
_SIGNING, _NEXT, _PUBLIC = "signing.pem", "signing.next.pem", "signing.pub"


class Keyring:
    """The keys of one installation. Derived keys are 32 bytes and stay the same as long as the folder does."""

    def __init__(
        self, path: Path, *, create: bool = True, signer: Callable[[str], Signer] | None = None
    ) -> None:
        """Read the folder, or make it when nothing is there and `create` allows it.

        `signer` makes the key that signs evidence from its name, where that key lies elsewhere than in the folder; it
        is asked when that key is first needed. SetupError where a key is missing beside others, cannot be read, or can
        be read by others.
        """
        self._folder = path
        self._elsewhere = signer
        self._derived: dict[tuple[str, str], bytes] = {}  # projects are configured: their number is bounded
        with self._locked():
            if not any((path / name).exists() for name in (_INSTALLATION, _SIGNING, _VAULT)):
                if not create:
                    raise _missing(path / _INSTALLATION)
                self._make()
            self._installation = _read(path / _INSTALLATION)
            if len(self._installation) != 32:
                raise _unusable(path / _INSTALLATION, "it does not hold 32 bytes")
            _check_folder(path / _VAULT)
            self._signer: Signer | None = None
            if signer is None:
                self.signing_key()
        self._vault: dict[str, bytes] = {}

    def _make(self) -> None:
        folder = self._folder / _VAULT
        folder.mkdir(mode=0o700, exist_ok=True)
        if self._elsewhere is None:
            _write(self._folder / _SIGNING, _new_signing_key())
        _write(self._folder / _INSTALLATION, os.urandom(32))  # last: with it the set is complete

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Let one process at a time make keys."""
        try:
            private_folder(self._folder)
            _check_folder(self._folder)
            descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise _unusable(self._folder, os.strerror(error.errno or 0)) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def publish(self, signer: Signer) -> None:
        """Keep the public half of a signing key beside, for those who copy it to an auditor; SetupError."""
        public = self._folder / _PUBLIC
        text = verifier_key(signer.name, signer.public_key) + "\n"
        if not public.exists() or public.read_text() != text:
            _write(public, text.encode())

    def next_signing_key(self) -> Signer:
        """The key of the folder that is to sign next; made when first asked for, in use from `adopt` on. SetupError."""
        path = self._folder / _NEXT
        with self._locked():
            if not path.exists():
                _write(path, _new_signing_key())
        return read_signer(path, self._name)

    def adopt(self) -> None:
        """Make the next signing key the present one, after the log was handed over to it; SetupError."""
        path = self._folder / _NEXT
        with self._locked():
            self._signer = read_signer(path, self._name)
            try:
                path.replace(self._folder / _SIGNING)
                sync_folder(self._folder)
            except OSError as error:
                raise _unusable(path, os.strerror(error.errno or 0)) from error
            self.publish(self._signer)

    @property
    def external(self) -> bool:
        """Whether the signing key lies elsewhere than in the folder."""
        return self._elsewhere is not None

    @property
    def _name(self) -> str:
        return "egress/" + self._derive("log").hex()[:16]

    def signing_key(self) -> Signer:
        """The key that signs evidence; its name belongs to the installation and outlives the key.

        SetupError where it lies elsewhere and cannot be had.
        """
        if self._signer is None:
            make = self._elsewhere
            signer = read_signer(self._folder / _SIGNING, self._name) if make is None else make(self._name)
            self.publish(signer)
            self._signer = signer
        return self._signer

    def _derive(self, purpose: str, project: str = "") -> bytes:
        key = self._derived.get((purpose, project))
        if key is None:
            info = f"egress:1\0{purpose}\0{project}".encode()
            key = HKDF(SHA256(), 32, salt=None, info=info).derive(self._installation)
            self._derived[purpose, project] = key
        return key

    def placeholder_key(self, project: str) -> bytes:
        """The key from which a project's placeholders are made."""
        return self._derive("placeholder", project)

    def mac_key(self, project: str) -> bytes:
        """The key under which a project's values are found again without being stored."""
        return self._derive("mac", project)

    def digest_key(self, project: str) -> bytes:
        """The key of a project's keyed object digests; it can be disclosed without opening anything else."""
        return self._derive("digest", project)

    def salt_key(self, project: str) -> bytes:
        """The key that hides a project's decisions in the log; who has it can test guesses, and open nothing."""
        return self._derive("salt", project)

    def account_key(self) -> bytes:
        """The key under which credentials of provider accounts are known again without being written down."""
        return self._derive("account")

    def vault_key(self, project: str) -> bytes:
        """The key that seals a project's values; made when first asked for. SetupError where it cannot be read."""
        found = self._vault.get(project)
        if found is None:
            found = self._vault[project] = self._load_vault_key(project)
        return found

    def _load_vault_key(self, project: str) -> bytes:
        path, wrapping = self._vault_path(project), self._derive("wrap", project)
        with self._locked():
            if not path.exists():
                _write(path, aes_key_wrap(wrapping, os.urandom(32)))
        try:
            return aes_key_unwrap(wrapping, _read(path))
        except (InvalidUnwrap, ValueError) as error:
            raise _unusable(path, "it was not made under this installation's key") from error

    def reread(self) -> None:
        """Read vault keys again when they are asked for: another process may have deleted one."""
        self._vault.clear()

    def _vault_path(self, project: str) -> Path:
        tag = hmac.digest(self._derive("name"), project.encode(), "sha256").hex()[:32]
        return self._folder / _VAULT / f"{tag}.key"

    def forget(self, project: str) -> bool:
        """Delete a project's vault key, and with it all its values; False where there was none. SetupError."""
        path = self._vault_path(project)
        self._vault.pop(project, None)
        try:
            path.unlink()
            sync_folder(path.parent)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise _unusable(path, os.strerror(error.errno or 0)) from error
        return True


def file_signer(place: str, name: str) -> Signer:
    """The signing key of `file:PLACE`, an Ed25519 key in PEM that its owner alone can read; SetupError.

    Entry point `file` of the group `gateway.signers`.
    """
    path = Path(place).expanduser()
    if not path.exists():
        raise SetupError(
            "keys.missing",
            f"there is no signing key {path}",
            hint=f"make one: (umask 077; openssl genpkey -algorithm ed25519 -out {path})",
        )
    return read_signer(path, name)


def read_signer(path: Path, name: str) -> Ed25519Signer:
    """The Ed25519 key of a private PEM file under the name of its log; SetupError where it is none."""
    try:
        private = load_pem_private_key(_read(path), None)
    except (ValueError, TypeError) as error:
        raise _unusable(path, "it is not a private key in PEM") from error
    if not isinstance(private, Ed25519PrivateKey):
        raise _unusable(path, "it is not an Ed25519 key")
    return Ed25519Signer(private, name)


def _new_signing_key() -> bytes:
    return Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _write(path: Path, data: bytes) -> None:
    """Put a private file in its place whole and durable; SetupError."""
    try:
        replace_file(path, (data,))
    except OSError as error:
        raise _unusable(path, os.strerror(error.errno or 0)) from error


def _read(path: Path) -> bytes:
    """A private file's bytes; SetupError where it is not there, not readable or not private."""
    try:
        with path.open("rb") as file:
            _check_private(path, os.fstat(file.fileno()).st_mode)
            return file.read()
    except FileNotFoundError as error:
        raise _missing(path) from error
    except OSError as error:
        raise _unusable(path, os.strerror(error.errno or 0)) from error


def _check_folder(folder: Path) -> None:
    try:
        _check_private(folder, folder.stat().st_mode)
    except FileNotFoundError as error:
        raise _missing(folder) from error


def _check_private(path: Path, mode: int) -> None:
    if stat.S_IMODE(mode) & 0o077:
        wanted = "700" if stat.S_ISDIR(mode) else "600"
        raise SetupError(
            "keys.open",
            f"other users can reach {path}",
            hint=f"chmod {wanted} {path}, and think of its keys as known to them",
        )


def _missing(path: Path) -> SetupError:
    return SetupError(
        "keys.missing",
        f"{path} is missing",
        hint="restore the key folder from a backup; without it placeholders and sealed values cannot be read",
    )


def _unusable(path: Path, why: str) -> SetupError:
    return SetupError(
        "keys.unusable",
        f"{path} cannot be used: {why}",
        hint="make it readable for the gateway's user alone, or restore the key folder from a backup",
    )
