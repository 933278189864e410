"""A bundle: a folder of TOML files, parsed from their bytes; reading the folder is the caller's work.

```
bundle.toml       name, version, description, modes, layer, for, [unread], [boundary], [answers]
rules/*.toml      [[rule]] and, in the first layer only, [[exception]]; one concern a file
roles/*.toml      [io] allow_cross_project_search; the file name is the role
texts.toml        [texts] "reason.code" = "sentence for people"
tests/*.toml      [[test]], run by `egress policy test`
detectors/*.toml  [[rule]] and [[named]] of detection (docs/detection.md), kept as they are: whoever detects reads them
```
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from gateway.context.decisions import ANSWER_LEVELS
from gateway.context.findings import Category
from gateway.policy.conditions import MODES
from gateway.policy.modes import UNREAD
from gateway.policy.reading import Problems, Table, plain
from gateway.policy.rule import REASON_CODE, PolicyException, Rule, Scope, read_exception, read_rule
from gateway.policy.trial import Trial, read_trial

BUNDLE_NAME = re.compile(r"[a-z][a-z0-9\-]{0,62}")
SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(-(0|[1-9]\d*|\d*[a-zA-Z\-][0-9a-zA-Z\-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z\-][0-9a-zA-Z\-]*))*)?"
    r"(\+[0-9a-zA-Z\-]+(\.[0-9a-zA-Z\-]+)*)?",
    re.ASCII,
)
BOUNDARY_SWITCHES = (
    "cross_project_search",
    "cross_project_import",
    "audit_cross_access",
    "universal_gotchas_enabled",
)
"""Members of the memory boundary contract's BoundaryPolicy (contract.md §9.1)."""

LAYERS = ("organisation", "team", "project", "run")
"""The order of layers; a later one can only tighten an earlier one."""

MAX_FILE_BYTES = 4 << 20
_FILE = re.compile(r"(bundle|texts|(rules|roles|tests|detectors)/[a-zA-Z0-9][a-zA-Z0-9_.\-]*)\.toml")


@dataclass(frozen=True, slots=True)
class Role:
    """What a role may do beyond its project; None where the file does not say (default: nothing)."""

    name: str
    allow_cross_project_search: bool | None
    source: str


@dataclass(frozen=True, slots=True)
class Bundle:
    """A parsed bundle. `digest` is over the parsed content, so comments and layout do not change it."""

    name: str
    version: str
    description: str
    digest: str
    modes: tuple[str, ...] = MODES
    layer: str = ""  # empty: that of the bundle before
    scope: Scope | None = None
    rules: tuple[Rule, ...] = ()
    exceptions: tuple[PolicyException, ...] = ()
    roles: tuple[Role, ...] = ()
    boundary: Mapping[str, bool] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)
    answers: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    trials: tuple[Trial, ...] = ()
    detectors: tuple[Mapping[str, Any], ...] = ()


def parse_bundle(files: Mapping[str, bytes]) -> Bundle:
    """Parse the files of one bundle, named relative to its folder with forward slashes.

    Raises:
        PolicyError: `policy.invalid`; `problems` holds every one with file and place.
    """
    problems = Problems()
    documents = _documents(files, problems)
    if "bundle.toml" not in documents:
        problems.add("bundle.toml", "missing")
    manifest = Table(documents.pop("bundle.toml", {}), "bundle.toml: ", problems)
    name = manifest.text("name", required=True)
    rules: list[Rule] = []
    exceptions: list[PolicyException] = []
    roles: list[Role] = []
    texts: dict[str, str] = {}
    trials: list[Trial] = []
    detectors: list[Mapping[str, Any]] = []
    for file, document in sorted(documents.items()):
        if file.startswith("detectors/"):
            detectors.append(document)
            continue
        table = Table(document, f"{file}: ", problems)
        source = f"{name or '?'}: {file}"
        if file.startswith("rules/"):
            rules += [read_rule(t, source) for t in table.tables("rule")]
            exceptions += [read_exception(t, source) for t in table.tables("exception")]
        elif file.startswith("roles/"):
            roles.append(_read_role(table, file.removeprefix("roles/").removesuffix(".toml"), source))
        elif file.startswith("tests/"):
            trials += [read_trial(t) for t in table.tables("test")]
        else:
            texts = _read_texts(table)
        table.end()
    bundle = _read_manifest(manifest, name, _digest(files, problems))
    if bundle.scope is not None and roles:
        problems.add(roles[0].source, "roles hold for everybody, and this layer does not")
    _check_unique(rules, exceptions, problems)
    problems.raise_any()
    return replace(
        bundle,
        rules=tuple(replace(rule, scope=bundle.scope) for rule in rules),
        exceptions=tuple(exceptions),
        roles=tuple(roles),
        texts=texts,
        trials=tuple(trials),
        detectors=tuple(detectors),
    )


def _documents(files: Mapping[str, bytes], problems: Problems) -> dict[str, dict[str, Any]]:
    documents: dict[str, dict[str, Any]] = {}
    for file, content in sorted(files.items()):
        if not _FILE.fullmatch(file):
            problems.add(
                file, "is none of bundle.toml, texts.toml, and *.toml in rules/, roles/, tests/, detectors/"
            )
        elif len(content) > MAX_FILE_BYTES:
            problems.add(file, f"more than {MAX_FILE_BYTES} bytes")
        else:
            try:
                documents[file] = tomllib.loads(content.decode("utf-8"))
            except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
                documents[file] = {}
                problems.add(file, f"not TOML: {error}")
    return documents


def _read_manifest(table: Table, name: str, digest: str) -> Bundle:
    if name and not BUNDLE_NAME.fullmatch(name):
        table.wrong("name", "must be 1 to 63 of a-z 0-9 - and begin with a letter")
    version = table.text("version", required=True)
    if version and not SEMVER.fullmatch(version):
        table.wrong("version", "must be a semantic version such as 1.2.3")
    description = table.text("description", required=True)
    modes = table.choices("modes", MODES) or MODES
    layer = table.choice("layer", LAYERS)
    scope = _read_scope(table, layer)
    switches: dict[str, bool] = {}
    if (boundary := table.table("boundary")) is not None:
        switches = {k: v for k in BOUNDARY_SWITCHES if (v := boundary.flag(k)) is not None}
        boundary.end()
    actions: dict[str, str] = {}
    if (unread := table.table("unread")) is not None:
        actions = {k: action for k in UNREAD if (action := unread.choice(k, ("flag", "deny")))}
        unread.end()
    levels: dict[str, str] = {}
    if (answers := table.table("answers")) is not None:
        levels = {str(k): level for k in Category if (level := answers.choice(str(k), ANSWER_LEVELS))}
        answers.end()
    table.end()
    return Bundle(
        name,
        version,
        description,
        digest,
        modes,
        layer,
        scope,
        boundary=switches,
        unread=actions,
        answers=levels,
    )


def _read_scope(table: Table, layer: str) -> Scope | None:
    """Who a layer is for; a team's or a project's cannot set the switches that hold for everybody."""
    names = table.texts("for")
    if layer not in {"team", "project"}:
        if names:
            table.wrong("for", "names teams or projects, and needs layer = 'team' or 'project'")
        return None
    if not names:
        table.wrong("for", f"required: the names of the {layer}s that this layer is for")
    for switch in ("unread", "boundary", "answers"):
        if switch in table:
            table.wrong(switch, f"holds for everybody, and this layer is for {layer}s; write a rule")
    return Scope(layer, names)


def _read_role(table: Table, name: str, source: str) -> Role:
    flag = None
    if (io := table.table("io")) is not None:
        flag = io.flag("allow_cross_project_search")
        io.end()
    return Role(name, flag, source)


def _read_texts(table: Table) -> dict[str, str]:
    inner = table.table("texts")
    if inner is None:
        return {}
    found = {}
    for code in inner.left():
        if not REASON_CODE.fullmatch(code):
            inner.wrong(code, "not a reason code")
        found[code] = inner.text(code)
    return found


def _check_unique(rules: list[Rule], exceptions: list[PolicyException], problems: Problems) -> None:
    seen: dict[str, str] = {}
    items: list[Rule | PolicyException] = [*rules, *exceptions]
    for item in items:
        if item.id in seen:
            problems.add(item.source, f"id {item.id!r} is taken by one in {seen[item.id]}")
        seen[item.id] = item.source


def _digest(files: Mapping[str, bytes], problems: Problems) -> str:
    if problems.found:
        return ""
    content = {name: plain(tomllib.loads(data.decode("utf-8"))) for name, data in files.items()}
    canonical = orjson.dumps(content, option=orjson.OPT_SORT_KEYS)
    return f"sha256:{hashlib.sha256(canonical).hexdigest()}"
