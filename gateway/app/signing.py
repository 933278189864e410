"""The keys of an installation, and the one that signs evidence by its URI.

`[state] signer` names the signing key as `scheme:place`. The scheme is an entry point of the group `gateway.signers`,
a callable of (place, name) that gives a `gateway.evidence.sign.Signer` with that name, an Ed25519 key; `file` is built
in. A key that cannot be copied out of a key service signs through such a plug-in. What it answers is never taken on
trust: a signature that the key's own public half does not verify fails the append, as a service that does not answer
does, and nothing leaves.
"""

from __future__ import annotations

from functools import partial

from gateway.config import Config
from gateway.errors import EvidenceError, GatewayError, SetupError
from gateway.evidence.sign import Signer, check_name, verifies
from gateway.plugins import SIGNERS, activate
from gateway.store.keys import Keyring

BUILT_IN = "file"


def keyring(config: Config, *, create: bool = True) -> Keyring:
    """The keys that a configuration names; SetupError where one is missing or cannot be used."""
    uri = config.state.signer
    if not create and not config.state.database.exists() and not config.state.keys_dir.exists():
        raise SetupError(
            "keys.none",
            f"there is no gateway in {config.state.dir} yet",
            hint="it begins with the first `egress up`",
        )
    return Keyring(config.state.keys_dir, create=create, signer=partial(signer_at, uri) if uri else None)


def signer_at(uri: str, name: str) -> Signer:
    """The signing key at `scheme:place`, under the name of the log.

    SetupError where no plug-in has that scheme, or the plug-in has no Ed25519 key there.
    """
    scheme, _, place = uri.partition(":")
    try:
        (plugin,) = activate(SIGNERS, [scheme])
    except SetupError as error:
        message = f"there is no signer for {scheme}: keys" if "no plug-in" in str(error) else str(error)
        raise SetupError("keys.scheme", message, hint=f"[state] signer; {error.hint}") from None
    try:
        signer: Signer = plugin.load()(place, name)
        usable = (signer.name, len(signer.public_key)) == (name, 32)
    except GatewayError:
        raise
    except Exception as error:  # noqa: BLE001 - a plug-in may raise anything, also with credentials in the text
        raise _unusable(scheme, f"{type(error).__name__}") from None
    if not usable:
        raise _unusable(scheme, "it gave no Ed25519 key under the name that it was asked for")
    return signer if scheme == BUILT_IN else CheckedSigner(signer, scheme)


def _unusable(scheme: str, why: str) -> SetupError:
    return SetupError(
        "keys.unusable",
        f"the signing key cannot be had from the signer {scheme}: {why}",
        hint="look at [state] signer, and whether the gateway's user may use that key",
    )


class CheckedSigner:
    """A key of a plug-in: it raises nothing but EvidenceError, and gives no signature that does not hold."""

    def __init__(self, signer: Signer, scheme: str) -> None:
        """`signer` has an Ed25519 key; its public half is read once."""
        check_name(signer.name)
        self.name = signer.name
        self._signer = signer
        self._scheme = scheme
        self._public = bytes(signer.public_key)

    @property
    def public_key(self) -> bytes:
        """See Signer."""
        return self._public

    def sign(self, message: bytes) -> bytes:
        """See Signer; EvidenceError `evidence.signer` where there is no signature, or not one by this key."""
        try:
            signature = bytes(self._signer.sign(message))
        except Exception as error:  # noqa: BLE001 - whatever it is, without a signature nothing is appended
            raise EvidenceError(
                "evidence.signer", f"the signer {self._scheme} does not sign ({type(error).__name__})"
            ) from None
        if not verifies(self._public, signature, message):
            raise EvidenceError(
                "evidence.signer", f"the signer {self._scheme} gave a signature that does not hold"
            )
        return signature
