"""The variables that put a program behind the gateway.

Every runtime has its own name for the roots that it trusts, and most of them replace the store: the file therefore
holds the public roots, the roots this machine's user already names, and the interception CA.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import quote

import click

from gateway.cli.ca import ensure
from gateway.config import DEFAULT_PROJECT, Config
from gateway.errors import SetupError
from gateway.proxy.certs import combined_bundle

PROXY: Final = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy")
NO_PROXY: Final = ("NO_PROXY", "no_proxy")
ROOTS: Final = (
    "SSL_CERT_FILE",  # OpenSSL, Python (httpx), Rust, Go
    "NODE_EXTRA_CA_CERTS",  # Node, Bun
    "AWS_CA_BUNDLE",  # boto3, which reads no other
    "REQUESTS_CA_BUNDLE",  # Python requests
    "CURL_CA_BUNDLE",
    "CODEX_CA_CERTIFICATE",  # Codex, also for its WebSocket
    "GIT_SSL_CAINFO",
    "CARGO_HTTP_CAINFO",
    "PIP_CERT",
    "DENO_CERT",
)
FIXED: Final = {
    "NODE_USE_ENV_PROXY": "1",  # without it Node's fetch connects past every proxy
    "CLAUDE_CODE_ATTRIBUTION_HEADER": "0",  # a line that differs in every body, and so defeats caching
}
# Names and addresses as every client understands them: httpx fails on brackets, few know address ranges.
LOCAL: Final = ("localhost", "127.0.0.1", "::1")
_USERS_ROOTS: Final = ("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS")
_PEM: Final = b"-----BEGIN CERTIFICATE-----"
_ANY: Final = "-"  # Node sends credentials only where the password is not empty; without a token any passes


def proxy_url(config: Config, project: str | None, principal: str | None) -> str:
    """The proxy's address with the credentials of a project, or a project's own where no token is asked for.

    Raises:
        SetupError: the project's or principal's token cannot be read.
        click.UsageError: there is no such project or principal.
    """
    scheme = "https" if config.listen.tls_cert else "http"
    if project is None and principal is None:
        return f"{scheme}://{config.listen.proxy}"
    name = project or DEFAULT_PROJECT
    if principal and principal not in config.principals:
        raise click.UsageError(
            f"no principal {principal!r} in the configuration; it takes a [principals.{principal}]"
        )
    if name != DEFAULT_PROJECT and name not in config.projects:
        raise click.UsageError(
            f"no project {name!r} in the configuration; `egress project add {name}` makes it"
        )
    holders = (config.principals.get(principal or ""), config.projects.get(name))
    files = [holder.token_file for holder in holders if holder and holder.token_file]
    own = config.projects[name].listen if name in config.projects else None
    if own is not None and not files and principal is None:
        return f"{scheme}://{own}"
    token = _token(files[0]) if files else _ANY
    user = f"{name}+{principal}" if principal else name
    return f"{scheme}://{quote(user, safe='')}:{quote(token, safe='')}@{own or config.listen.proxy}"


def _token(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise SetupError("setup.token_file", f"{path} cannot be read", hint="check token_file") from None


def no_proxy(environ: Mapping[str, str]) -> str:
    """What the user has, without `*` (it would switch the gateway off), and this machine."""
    given = [entry.strip() for name in NO_PROXY for entry in environ.get(name, "").split(",")]
    return ",".join(dict.fromkeys(entry for entry in (*given, *LOCAL) if entry not in {"", "*"}))


def roots_file(config: Config, environ: Mapping[str, str]) -> Path:
    """A file of public roots, the user's own and the interception CA; SetupError where it cannot be made."""
    try:
        extra = _users_roots(config, environ)
        mark = "-" + hashlib.sha256(b"".join(extra)).hexdigest()[:12] if extra else ""
        return combined_bundle(config.state.dir / f"ca-bundle{mark}.pem", *extra, ensure(config).read_bytes())
    except OSError as error:
        raise SetupError("setup.roots", f"{config.state.dir} cannot be used ({error.strerror})") from None


def _users_roots(config: Config, environ: Mapping[str, str]) -> list[bytes]:
    """Roots that the program would have trusted without us, for hosts that are passed through."""
    files = [Path(environ[name]) for name in _USERS_ROOTS if environ.get(name)]
    if config.upstream.ca_file:
        files.append(config.upstream.ca_file)
    own = config.state.dir.absolute()
    found = [
        path.read_bytes()
        for path in dict.fromkeys(files)
        if path.is_file() and own not in path.absolute().parents
    ]
    return [content for content in found if _PEM in content]


def variables(
    config: Config, environ: Mapping[str, str], *, project: str | None = None, principal: str | None = None
) -> dict[str, str]:
    """Every variable by name; makes the roots file."""
    proxy, roots = proxy_url(config, project, principal), str(roots_file(config, environ))
    return {
        **dict.fromkeys(PROXY, proxy),
        **dict.fromkeys(NO_PROXY, no_proxy(environ)),
        **dict.fromkeys(ROOTS, roots),
        **FIXED,
    }


def export_lines(values: Mapping[str, str], shell: str) -> str:
    """Lines that set the variables in `sh`, `fish` or `powershell`."""
    formats = {"sh": "export {}='{}'", "fish": "set -gx {} '{}'", "powershell": "$env:{} = '{}'"}
    # A quote inside single quotes: closed and escaped in sh, escaped in fish, doubled in PowerShell.
    quotes = {"sh": {"'": "'\\''"}, "fish": {"\\": "\\\\", "'": "\\'"}, "powershell": {"'": "''"}}
    table = str.maketrans(quotes[shell])
    return "\n".join(formats[shell].format(name, value.translate(table)) for name, value in values.items())
