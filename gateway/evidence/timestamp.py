"""Time stamps of RFC 3161: what is asked of a time-stamping authority, and whether its answer is one.

An answer is checked here for status, imprint, nonce, and the signature of the certificate that it carries (RFC 5652
§5.4). Whether that certificate is to be trusted is the auditor's decision, for instance with `openssl ts -verify`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa

from gateway.errors import VerificationError

CONTENT_TYPE: Final = "application/timestamp-query"
ANSWER_TYPE: Final = "application/timestamp-reply"

_SHA256 = bytes.fromhex("0609608648016503040201")
_TST_INFO = bytes.fromhex("060b2a864886f70d0109100104")
_SIGNED_DATA = bytes.fromhex("06092a864886f70d010702")
_MESSAGE_DIGEST = bytes.fromhex("06092a864886f70d010904")
_HASHES: Final[dict[bytes, hashes.HashAlgorithm]] = {
    _SHA256: hashes.SHA256(),
    bytes.fromhex("0609608648016503040202"): hashes.SHA384(),
    bytes.fromhex("0609608648016503040203"): hashes.SHA512(),
}


@dataclass(frozen=True, slots=True)
class Item:
    """One value of DER: its tag, its content, and all its bytes."""

    tag: int
    content: bytes
    whole: bytes

    def items(self) -> list[Item]:
        """What a constructed value consists of."""
        return list(_items(self.content))


def _items(data: bytes) -> Iterator[Item]:
    at = 0
    while at < len(data):
        start, tag, length, at = at, data[at], data[at + 1], at + 2
        if length & 0x80:
            count = length & 0x7F
            length, at = int.from_bytes(data[at : at + count]), at + count
        if at + length > len(data):
            raise IndexError
        yield Item(tag, data[at : at + length], data[start : at + length])
        at += length


def _der(tag: int, *contents: bytes) -> bytes:
    content = b"".join(contents)
    size = len(content)
    if size < 0x80:
        return bytes([tag, size]) + content
    length = size.to_bytes((size.bit_length() + 7) // 8)
    return bytes([tag, 0x80 | len(length)]) + length + content


def _integer(value: int) -> bytes:
    return _der(0x02, value.to_bytes(value.bit_length() // 8 + 1))


def _imprint(data: bytes) -> bytes:
    return _der(0x30, _der(0x30, _SHA256, _der(0x05)), _der(0x04, hashlib.sha256(data).digest()))


def request(data: bytes, nonce: int) -> bytes:
    """A TimeStampReq for the SHA-256 of `data`, with the certificate asked for; `nonce` is 64 random bits."""
    return _der(0x30, _integer(1), _imprint(data), _integer(nonce), _der(0x01, b"\xff"))


def read_answer(answer: bytes, data: bytes, nonce: int) -> datetime:
    """The time that a TimeStampResp vouches for; VerificationError where it is not an answer to that request."""
    try:
        return _read(answer, data, nonce)
    except (
        IndexError,
        ValueError,
        KeyError,
        StopIteration,
        UnsupportedAlgorithm,
        x509.InvalidVersion,
    ) as error:
        raise VerificationError(
            "timestamp.malformed", "not an answer of a time-stamping authority"
        ) from error


def _read(answer: bytes, data: bytes, nonce: int) -> datetime:
    (whole,) = _items(answer)
    status, *token = whole.items()
    if int.from_bytes(status.items()[0].content) > 1 or not token:  # 0 granted, 1 granted with modifications
        raise VerificationError("timestamp.refused", "the time-stamping authority did not grant a time stamp")
    kind, wrapped = token[0].items()
    signed = wrapped.items()[0].items()
    content_kind, content = signed[2].items()
    if kind.whole != _SIGNED_DATA or content_kind.whole != _TST_INFO:
        raise VerificationError("timestamp.malformed", "the answer holds no time stamp")
    info = content.items()[0].content
    _check_signature(signed, info)
    _, _, imprint, _, time, *rest = next(_items(info)).items()
    if imprint.whole != _imprint(data):
        raise VerificationError("timestamp.imprint", "the time stamp is about something else")
    if not any(item.tag == 0x02 and int.from_bytes(item.content) == nonce for item in rest):
        raise VerificationError("timestamp.nonce", "the time stamp answers another request")
    moment = time.content.decode("ascii").partition(".")[0].rstrip("Z")
    return datetime.strptime(moment, "%Y%m%d%H%M%S").replace(tzinfo=UTC)


def _check_signature(signed: list[Item], info: bytes) -> None:
    """Whether one of the certificates that came along signed the time stamp."""
    certificates = [item.whole for part in signed if part.tag == 0xA0 for item in part.items()]
    signer = signed[-1].items()[0].items()
    algorithm = _HASHES[signer[2].items()[0].whole]
    attributes = next(item for item in signer if item.tag == 0xA0 and item is not signer[1])
    hashed = hashes.Hash(algorithm)
    hashed.update(info)
    digests = [
        attribute.items()[1].items()[0].content
        for attribute in attributes.items()
        if attribute.items()[0].whole == _MESSAGE_DIGEST
    ]
    signature = next(item.content for item in signer[4:] if item.tag == 0x04)
    message = b"\x31" + attributes.whole[1:]  # signed as a SET (RFC 5652 §5.4)
    if digests != [hashed.finalize()] or not any(
        _signed_by(x509.load_der_x509_certificate(der).public_key(), signature, message, algorithm)
        for der in certificates
    ):
        raise VerificationError(
            "timestamp.signature", "the time stamp is not signed by the certificate it carries"
        )


def _signed_by(key: Any, signature: bytes, message: bytes, algorithm: hashes.HashAlgorithm) -> bool:
    try:
        if isinstance(key, rsa.RSAPublicKey):
            key.verify(signature, message, padding.PKCS1v15(), algorithm)
        elif isinstance(key, ec.EllipticCurvePublicKey):
            key.verify(signature, message, ec.ECDSA(algorithm))
        else:
            return False
    except InvalidSignature:
        return False
    return True
