"""Passwords in URLs: `scheme://user:password@host`, to the last `@` before the host.

Only the password is the datum: user, host and database stay readable. A password may hold `@`, `:`, `/` and percent
escapes; what follows the host (`?application_name=me@box`) is not part of it.
"""

from __future__ import annotations

import re

from gateway.context.findings import Category, Severity
from gateway.detect.data import words
from gateway.detect.matcher import Trigger
from gateway.detect.samples import is_filler, is_reference
from gateway.detect.scope import Scope
from gateway.detect.typelist import TypeRow

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,40}):(?:\\{0,4}/){2}\Z")
_SEGMENT = re.compile(r"[^\s\"'`<>\\|]{1,512}")
_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9_$%{*][A-Za-z0-9._%${}*-]{0,252}|\*{1,8})")
_HOST_PORT = re.compile(r"[A-Za-z0-9._-]{1,252}(?::[0-9]{1,5})?")
_DATABASES = re.compile(
    r"(?i)(?:jdbc:)?(?:postgres(?:ql)?|pgsql|mysql|mariadb|mongodb|redis|rediss|valkey|amqps?|mssql|sqlserver|oracle|clickhouse"
    r"|cockroachdb|cassandra|couchdb|neo4j|bolt|nats|kafka|influxdb|memcached|snowflake|db2|firebird|elasticsearch|sqlalchemy)"
)
_FILLERS = words("uri_fillers")
_SAMPLE_USERS = words("uri_sample_users")
_DOC_HOST = re.compile(
    r"(?i)(?:localhost|127\.0\.0\.1|host(?:name)?|[a-z0-9.-]{0,60}(?:example\.(?:com|org|net)|your[a-z.-]{0,40}))"
)
_FILL = frozenset("*xX.•#_-")
_ALWAYS_SAMPLE = frozenset(("password", "secret", "xxx", "xxxx"))
_NAMED_SAMPLE = re.compile(
    r"(?i)(?:your|my|the|db|some|an?)(?:[-_+]|%20)?(?:password|pass|secret|pw|token)|(?:api[-_]?)?key[-_]1234?5?6?"
)
_COST = 6  # units of the budget
_SOURCE = "RFC 3986 3.2.1, RFC 1738; database drivers"


class UriPasswords:
    """Finds the password of a URL's user information."""

    contextual = True
    triggers = (
        Trigger("://[^\\s\"'`<>@/]{1,64}[:@]", 0),
        Trigger("://:[^\\s]", 5),
        Trigger(":\\\\/\\\\/[^\\s\"'`<>@/]{1,64}:", 0),
    )
    described = (
        TypeRow(
            "uri-password",
            "database_uri_password",
            Category.SECRET,
            Severity.CRITICAL,
            "postgres://app:kI7tG5IXr1sV@db-1/app",
            _SOURCE,
        ),
        TypeRow(
            "uri-password",
            "basic_auth_url",
            Category.SECRET,
            Severity.HIGH,
            "https://svc:Ah8g0jvD0USe2R@git.corp.io/x",
            _SOURCE,
        ),
    )

    def find(self, scope: Scope, end: int) -> None:
        """See Family."""
        text = scope.text
        slashes = max(text.rfind("//", max(0, end - 72), end), text.rfind("/\\/", max(0, end - 72), end) + 1)
        if slashes < 0:
            return
        begin = slashes + 2
        if begin <= scope.consumed.get("uri", -1):
            return
        scope.consumed["uri"] = begin
        scope.budget.hits -= _COST
        head = _SCHEME.search(text[max(0, begin - 52) : begin])
        segment = _SEGMENT.match(text, begin)
        if head is None or segment is None:
            return
        split = _split(segment[0])
        if split is None:
            return
        low, high = split
        password = segment[0][low:high]
        user = segment[0][: low - 1]
        host = segment[0][high + 1 :]
        if _is_sample(user, password, host):
            return
        database = _DATABASES.match(head[1].split(":")[-1]) is not None
        kind = "database_uri_password" if database else "basic_auth_url"
        severity = Severity.CRITICAL if database else Severity.HIGH
        scope.add((begin + low, begin + high), (kind, Category.SECRET, severity), 930, "uri-password")


def _split(segment: str) -> tuple[int, int] | None:
    """Where the password lies in `user:password@host...`; None when there is no user information."""
    colon = segment.find(":")
    at = segment.find("@")
    if colon < 0 or at < 0:
        return None
    slash = segment.find("/")
    if 0 <= slash < at and _HOST_PORT.fullmatch(segment[:slash]):
        return None  # host:port/path@...
    if at < colon:
        return None
    while True:
        following = segment.find("@", at + 1)
        stops = [p for p in (segment.find(c, at + 1) for c in "/?#,") if p >= 0]
        if following < 0 or (stops and min(stops) < following):
            break
        at = following
    if not _HOST.match(segment, at + 1) or at - colon < 2:
        return None
    return colon + 1, at


def _is_sample(user: str, password: str, host: str) -> bool:
    if (
        len(password) < 4
        or is_reference(password)
        or set(password) <= _FILL
        or len(set(password)) == 1
        or "{" in password
    ):
        return True
    if password.isalpha() and password.islower() and len(password) <= 8 and _DOC_HOST.fullmatch(host):
        return True  # `http://evil:thing@example.com`
    lowered = password.lower()
    if lowered in _FILLERS or lowered == user.lower():
        return user.lower() in _SAMPLE_USERS or lowered in _ALWAYS_SAMPLE or bool(_DOC_HOST.match(host))
    return (len(password) > 4 and is_filler(password)) or _NAMED_SAMPLE.fullmatch(password) is not None
