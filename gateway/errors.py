"""Every error this package raises across a port, and nothing else crosses one.

```
GatewayError            code: stable and documented; hint: what a person should do
├── ContractError       a wire record was refused (codes: docs/contracts.md)
├── VerificationError   evidence does not verify
├── BodyError           a request cannot be read (the code is a reason code; status: what the client gets)
├── DetectorError       a detector failed or ran out of its budget
├── PolicyError         a bundle or a rule is not valid, or a rule failed
├── ConfigError         the configuration is not valid; problems: every one with its path
├── EvidenceError       evidence could not be made durable
├── ReviewError         a person may not decide this, or not so
└── SetupError          the environment is not right: key, store, port (exit status 3)
```

Messages never quote content: no bodies, matched text, credentials, file names of clients or query strings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import override


class GatewayError(Exception):
    """Base of all errors; `code` is stable, `hint` says what to do."""

    def __init__(self, code: str, message: str = "", *, hint: str = "") -> None:
        super().__init__(message or code)
        self.code = code
        self.hint = hint


class ContractError(GatewayError):
    """A record does not conform to the contract; `pointer` is the RFC 6901 place where that is known."""

    def __init__(self, code: str, message: str = "", *, pointer: str = "") -> None:
        super().__init__(code, message)
        self.pointer = pointer


class VerificationError(GatewayError):
    """A signature, digest, proof or chain does not hold."""


class BodyError(GatewayError):
    """A request cannot be read as it must be; `code` is the reason code, `status` the refusal's status."""

    def __init__(self, code: str, message: str = "", *, status: int = 400) -> None:
        super().__init__(code, message)
        self.status = status


class DetectorError(GatewayError):
    """A detector failed or exceeded its budget: the request is refused."""


class PolicyError(GatewayError):
    """A policy bundle or rule is not valid (`problems`: every one, each with its place), or a rule failed."""

    def __init__(self, code: str, message: str = "", *, hint: str = "", problems: Sequence[str] = ()) -> None:
        super().__init__(code, message, hint=hint)
        self.problems = tuple(problems)


class ConfigError(GatewayError):
    """The configuration is not valid; all problems at once, each with its path."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("config.invalid", "; ".join(problems))
        self.problems = tuple(problems)

    @override
    def __str__(self) -> str:
        return "\n".join(self.problems)


class EvidenceError(GatewayError):
    """Evidence cannot be made durable: nothing may leave."""


class ReviewError(GatewayError):
    """A decision of a person is not accepted: unknown, not theirs to make, or made already."""


class SetupError(GatewayError):
    """A key, a store, a port or a tool is not usable."""


def words_of(error: BaseException) -> str:
    """What went wrong, in words for a person.

    Never an exception's own text, which may hold content, and not its class, which says nothing to who does not read
    Python. Texts of this package's errors and of the operating system are safe.
    """
    inner = getattr(error, "reason", None)
    if isinstance(inner, BaseException):  # urllib puts the cause there
        return words_of(inner)
    if isinstance(error, GatewayError):
        return str(error)
    status = getattr(error, "status", None)
    if isinstance(status, int):
        return f"it answered {status}"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, OSError):
        return "the connection ended"
    if isinstance(error, UnicodeError):
        return "it is not text"
    return "it is not in its form" if isinstance(error, ValueError | TypeError | KeyError) else "it failed"
