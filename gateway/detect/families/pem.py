"""Private keys in PEM, OpenPGP armour, SSH2 and PuTTY form: with real line ends, escaped ones, or none.

A key is found from BEGIN to END; where END is missing (a cut tool result), to the end of what looks like the body.
Line numbers that an agent's Read tool puts before each line, and string concatenation, may stand in between.
"""

from __future__ import annotations

import re

from gateway.context.findings import Category, Severity
from gateway.detect.matcher import Trigger
from gateway.detect.scope import Scope
from gateway.detect.typelist import TypeRow

_SOURCE = "RFC 7468, RFC 5958, PROTOCOL.key of OpenSSH, RFC 9580, RFC 4716, PuTTY documentation"
_BEGIN = re.compile(r"-{2,5} ?BEGIN ([A-Z0-9 ]{0,24}?)PRIVATE KEY( BLOCK)? ?-{2,5}")
_PUTTY = re.compile(r"PuTTY-User-Key-File-[23]: ")
_BODY = re.compile(r"(?:[A-Za-z0-9+/=]{1,200}|[\s\\\"'+,|→>#*;rnt:.-]{1,12}){1,8}")
_NOT_BODY = re.compile(r"[^A-Za-z0-9+/=]")
_MAX = 20_000
_COST = 3  # units of the budget for a key; its body costs by its length
_MIN_BODY = 56  # base64 characters; the shortest real key (Ed25519, PKCS#8) has 64
_TYPES = {
    "RSA ": "private_key_rsa",
    "EC ": "private_key_ec",
    "DSA ": "private_key_dsa",
    "OPENSSH ": "private_key_openssh",
    "ENCRYPTED ": "private_key_encrypted",
    "PGP ": "private_key_pgp",
    "SSH2 ENCRYPTED ": "private_key_ssh2",
}
_EXAMPLE = (
    "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIPtEsH7pmjZccau2Q9ifMppZX5ogQIHoAoGCCqGSM49AwEHoUQDQgAE\n"
    "-----END EC PRIVATE KEY-----"
)


class PrivateKeys:
    """Finds whole private keys; the span covers BEGIN to END."""

    contextual = False
    triggers = (Trigger("PRIVATE KEY", 11), Trigger("PuTTY-User-Key-File-[23]: ", 23))
    described = tuple(
        TypeRow("pem-private-key", kind, Category.SECRET, Severity.CRITICAL, _EXAMPLE, _SOURCE)
        for kind in (*_TYPES.values(), "private_key_pkcs8", "private_key_putty", "gcp_service_account_json")
    )

    def find(self, scope: Scope, end: int) -> None:
        """See Family."""
        text = scope.text
        begin = _BEGIN.search(text, max(0, end - 48), end + 16)
        if begin is None:
            self._putty(scope, end)
            return
        if begin.start() < scope.consumed.get("pem", 0):
            return
        limit = min(len(text), begin.end() + _MAX)
        close = scope.ahead("-END ", begin.end(), limit)
        again = scope.ahead("-BEGIN ", begin.end(), limit)
        if close >= 0 and (again < 0 or close < again):
            line = re.compile(r"-END [A-Z0-9 ]{0,40}-{0,5}").match(text, close)
            stop = line.end() if line else close
            body = text[begin.end() : close]
        else:
            stop = self._open_end(text, begin.end(), again if again >= 0 else limit)
            body = text[begin.end() : stop]
        scope.budget.hits -= _COST + len(body) // 64
        letters = _NOT_BODY.sub("", body.replace("\\n", "").replace("\\r", ""))
        if len(letters) < _MIN_BODY or len(set(letters)) < 12:
            return
        scope.consumed["pem"] = stop
        kind = "private_key_pgp" if begin[2] else _TYPES.get(begin[1], "private_key_pkcs8")
        if (
            kind == "private_key_pkcs8"
            and "service_account" in text[max(0, begin.start() - 600) : begin.start()]
        ):
            kind = "gcp_service_account_json"
        scope.add((begin.start(), stop), (kind, Category.SECRET, Severity.CRITICAL), 990, "pem-private-key")

    @staticmethod
    def _open_end(text: str, at: int, limit: int) -> int:
        while at < limit:
            piece = _BODY.match(text, at, limit)
            if piece is None or not _looks_encoded(piece[0]):
                return at
            at = piece.end()
        return at

    @staticmethod
    def _putty(scope: Scope, end: int) -> None:
        head = _PUTTY.search(scope.text, max(0, end - 32), end + 2)
        if head is None or head.start() < scope.consumed.get("putty", 0):
            return
        stop = scope.ahead("Private-MAC:", head.end(), head.end() + _MAX)
        stop = min(len(scope.text), stop + 80 if stop >= 0 else head.end() + 1200)
        line = scope.text.find("\n", max(head.end(), stop - 70), stop)
        stop = line if line >= 0 else stop
        if stop - head.end() < 120:
            return
        scope.consumed["putty"] = stop
        what = ("private_key_putty", Category.SECRET, Severity.CRITICAL)
        scope.add((head.start(), stop), what, 980, "pem-private-key")


def _looks_encoded(piece: str) -> bool:
    words = [w for w in re.findall(r"[A-Za-z0-9+/=]+", piece) if len(w) > 12]
    return bool(words) or len(piece) < 16
