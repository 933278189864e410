"""The ValueVault port: values sealed under their project's key before they are written anywhere."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from gateway.classify.masked import forget_forms, memorable
from gateway.classify.placeholders import Placeholders
from gateway.errors import GatewayError
from gateway.ports import Kept, SealedValue, VaultStore
from gateway.store.keys import Keyring
from gateway.store.sealing import open_value, seal_value

MAX_MASKED = 1000  # values of one project that new text is compared with
MAX_SEALED = 50_000  # sealed entries kept in memory


@dataclass(slots=True)
class _Project:
    tokens: list[str] = field(default_factory=list)
    known: set[str] = field(default_factory=set)
    mark: str = ""  # up to where the store told of entries
    version: int = 0
    opened: tuple[tuple[str, str, str], ...] | None = field(
        default=None, repr=False
    )  # as `masked` gives them


@dataclass(slots=True)
class SealedVault:
    """ports.ValueVault. Sealed entries are remembered; a value is opened when it is needed.

    Those that every new text is compared with stay open in memory, beside the key that opens them, until one is added
    or something is forgotten.
    """

    store: VaultStore
    keys: Keyring
    stamp: Callable[[], object] = lambda: None  # another one after another process has forgotten something
    follow: bool = False  # other processes issue placeholders too: what is new is asked for in every request
    _seen: object = None
    _projects: dict[str, _Project] = field(default_factory=dict)
    _sealed: OrderedDict[tuple[str, str], SealedValue] = field(default_factory=OrderedDict)

    def placeholders(self, project: str) -> Placeholders:
        """The placeholder keys of a project."""
        return Placeholders(self.keys.placeholder_key(project), self.keys.mac_key(project))

    def __post_init__(self) -> None:
        self._seen = self.stamp()

    def _refresh(self) -> None:
        """Forget what is remembered when something was forgotten elsewhere."""
        now = self.stamp()
        if now != self._seen:
            self._seen = now
            self._projects.clear()
            forget_forms()
            self._sealed.clear()
            self.keys.reread()

    async def keep(self, project: str, values: Sequence[Kept]) -> None:
        """See ports.ValueVault."""
        self._refresh()
        key = self.keys.vault_key(project)
        entries = [
            SealedValue(project, v.token, v.category, v.mac, seal_value(v.value, project, v.token, key))
            for v in values
            if (project, v.token) not in self._sealed
        ]
        if entries:
            await self.store.keep(entries)
        state = await self._project(project)
        if self.follow:
            return  # what was told of a moment ago is what was kept; another process may have been first
        for entry in entries:
            self._remember(entry)
            self._follow(state, entry)

    async def issued(self, project: str, macs: Sequence[bytes]) -> Mapping[bytes, str]:
        """See ports.ValueVault."""
        return {mac: entry.token for mac, entry in (await self.store.by_mac(project, macs)).items()}

    def kept(self, project: str) -> Callable[[str], bool]:
        """See ports.ValueVault."""
        self._refresh()
        return lambda token: (project, token) in self._sealed

    async def masked(self, project: str) -> tuple[int, Sequence[tuple[str, str, str]]]:
        """See ports.ValueVault."""
        state = await self._project(project)
        if state.opened is None:
            found = []
            for token in state.tokens:
                value = self._open(project, token)
                if value is not None and memorable(value):
                    found.append((token, value, self._sealed[project, token].label))
            state.opened = tuple(found)
        return state.version, state.opened

    async def openers(self, project: str, tokens: Sequence[str]) -> Mapping[str, Callable[[], str | None]]:
        """See ports.ValueVault."""
        self._refresh()
        missing = [token for token in tokens if (project, token) not in self._sealed]
        if missing:
            for entry in (await self.store.by_token(project, missing)).values():
                self._remember(entry)
        return {t: self._opener(project, t) for t in tokens if (project, t) in self._sealed}

    def _opener(self, project: str, token: str) -> Callable[[], str | None]:
        return lambda: self._open(project, token)

    def _open(self, project: str, token: str) -> str | None:
        self._refresh()
        entry = self._sealed.get((project, token))
        if entry is None:
            return None
        try:
            return open_value(entry, self.keys.vault_key(project))
        except GatewayError:
            return None  # its key is gone: the value is forgotten, the placeholder stays as it is

    async def _project(self, project: str) -> _Project:
        self._refresh()
        state = self._projects.get(project)
        if state is None or self.follow:
            mark, new = await self.store.since(project, "" if state is None else state.mark, MAX_MASKED)
            state = self._projects.setdefault(project, state or _Project())
            for entry in new:
                self._remember(entry)
                self._follow(state, entry)
            state.mark = mark
        return state

    def _follow(self, state: _Project, entry: SealedValue) -> None:
        if entry.token not in state.known:
            state.known.add(entry.token)
            state.tokens.append(entry.token)
            state.version += 1
            state.opened = None
            if len(state.tokens) > MAX_MASKED:
                state.known.discard(state.tokens.pop(0))

    def _remember(self, entry: SealedValue) -> None:
        self._sealed[entry.project, entry.token] = entry
        self._sealed.move_to_end((entry.project, entry.token))
        while len(self._sealed) > MAX_SEALED:
            self._sealed.popitem(last=False)
