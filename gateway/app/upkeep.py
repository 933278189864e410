"""Evidence and sealed values looked after: checked, made small, copied, forgotten; the signing key replaced."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from gateway.app.clock import SystemClock
from gateway.app.handing import carry_over
from gateway.app.signing import keyring, signer_at
from gateway.classify.placeholders import Placeholders
from gateway.config import Config
from gateway.errors import EvidenceError, GatewayError, SetupError
from gateway.evidence.sign import Signer, verifier_key
from gateway.evidence.verify import trusted_keys
from gateway.store import forgotten, upkeep
from gateway.store.reader import SqliteReader
from gateway.store.sqlite import SqliteStore
from gateway.store.vault import SqliteVault

RETAIN_EVERY_S = 3600.0
_DAY_S = 86_400


def store_check(config: Config) -> dict[str, Any]:
    """The report of `egress store check`."""
    keys = keyring(config, create=False)
    return upkeep.check(config.state.database, keys.signing_key().public_key)


def store_compact(config: Config) -> dict[str, int]:
    """Make the database small; needs the state folder for itself."""
    return upkeep.compact(config.state.database)


def store_backup(config: Config, target: Path) -> list[str]:
    """Copy the databases into a new folder."""
    if not config.state.database.exists():
        raise EvidenceError("evidence.none", "there is no evidence database here yet")
    return upkeep.backup(config.state.dir, target)


def rotate_signing_key(config: Config, to: str = "") -> dict[str, str | int | bool]:
    """Hand the log over to a new signing key; needs the state folder for itself.

    `{"old", "new"}` are verifier keys; "decisions" and "lifts_ended" say what became of what people had said
    (gateway.app.handing).

    `to` names that key by URI; without it the key folder makes one. A change that was cut short is finished. SetupError
    where the key that signs now lies elsewhere and `to` is not given, or is the key that signs already.
    """
    keys = keyring(config, create=False)
    old = keys.signing_key()
    if keys.external and not to:
        raise SetupError(
            "keys.to",
            "the signing key is not one of the key folder",
            hint="name the next one: --to scheme:place",
        )
    new = signer_at(to, old.name) if to else keys.next_signing_key()
    if new.public_key == old.public_key:
        raise SetupError("keys.to", "that key signs already", hint="make a new one and name it")
    if not _handed_over(config, old, new):
        asyncio.run(_hand_over(config, old, new))
    carried = carry_over(config, old, new)  # before the old key goes
    if to:
        keys.publish(new)
    else:
        keys.adopt()
    keys_of = {name: verifier_key(key.name, key.public_key) for name, key in (("old", old), ("new", new))}
    return {**keys_of, **carried}


def _handed_over(config: Config, old: Signer, new: Signer) -> bool:
    """Whether the log says so already: the change was cut short after its entry."""
    if not config.state.database.exists():
        return False
    with closing(SqliteReader(config.state.database)) as reader:
        return trusted_keys(old.public_key, reader.handovers())[-1] == new.public_key


async def _hand_over(config: Config, old: Signer, new: Signer) -> None:
    store = SqliteStore(config.state.database, old, SystemClock()).open()
    try:
        await store.hand_over(new)
    finally:
        await store.close()


def vault_file(config: Config) -> Path:
    """Where sealed values lie."""
    return config.state.dir / "vault" / "vault.db"


def forgotten_file(config: Config) -> Path:
    """What changes whenever a value is forgotten."""
    return config.state.dir / "vault" / "forgotten"


async def _with_vault[T](config: Config, work: Callable[[SqliteVault], Any]) -> Any:
    if not vault_file(config).exists():
        raise SetupError("vault.none", "no value has been sealed here yet", hint="start the gateway once")
    vault = SqliteVault(vault_file(config))
    try:
        return await work(vault)
    finally:
        await vault.close()


def vault_stat(config: Config) -> dict[str, Any]:
    """How many values are sealed, by project and label; no value is opened."""
    found: dict[str, Any] = asyncio.run(_with_vault(config, lambda vault: vault.stat()))
    return found


def vault_forget(config: Config, project: str, value: str | None) -> int:
    """Forget one value of a project, or all of them together with their key; how many there were.

    A gateway that runs forgets them before it uses any again. Evidence stays as it is: it never held them.
    """
    keys = keyring(config, create=False)
    if value is None:
        keys.forget(project)  # first: without it nothing that is left can be opened
        count = asyncio.run(_with_vault(config, lambda vault: vault.forget_project(project)))
    else:
        mac = Placeholders(keys.placeholder_key(project), keys.mac_key(project)).mac(value)
        count = asyncio.run(_with_vault(config, lambda vault: vault.forget_value(project, mac)))
    forgotten.mark(forgotten_file(config))
    return int(count)


async def retain(
    config: Config, store: SqliteStore, vault: SqliteVault, fault: Callable[[Exception], None]
) -> None:
    """Let go of old evidence and unused values every hour, for as long as the task runs."""
    while True:
        try:
            await retain_once(config, store, vault)
        except GatewayError as error:
            fault(error)
        await asyncio.sleep(RETAIN_EVERY_S)


async def retain_once(config: Config, store: SqliteStore, vault: SqliteVault) -> None:
    """Prune what is older or more than the configuration keeps; forget values that nobody used for long."""
    state = config.state
    if state.vault_days and await vault.expire(state.vault_days * _DAY_S):
        forgotten.mark(forgotten_file(config))
    if state.keep_days or state.keep_bytes:
        now = datetime.fromisoformat(SystemClock().now())
        oldest = now.astimezone(UTC) - timedelta(days=state.keep_days)
        older_than = oldest.strftime("%Y-%m-%dT%H:%M:%S.%fZ") if state.keep_days else ""
        await store.prune(older_than, state.keep_bytes)
