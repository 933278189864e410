"""Tables of the evidence database, and how older ones become the present ones.

A migration and its row in `migrations` are one transaction: a crash leaves the old schema or the new one.
Digests are stored as their 32 raw bytes.
"""

from __future__ import annotations

import apsw

from gateway.errors import SetupError

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
    CREATE TABLE parts (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, body BLOB NOT NULL);
    CREATE TABLE records (
        id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, kind TEXT NOT NULL, entry INTEGER NOT NULL,
        request INTEGER, layout BLOB NOT NULL);
    CREATE INDEX records_of_request ON records (request, id) WHERE request IS NOT NULL;
    CREATE INDEX records_of_kind ON records (kind, id)
        WHERE kind NOT IN ('receipt', 'evaluation', 'admission', 'observation', 'lineage');
    CREATE TABLE entries (
        seq INTEGER PRIMARY KEY, leaf BLOB NOT NULL, time TEXT NOT NULL, body BLOB NOT NULL, signature
        BLOB);
    CREATE TABLE nodes (level INTEGER, idx INTEGER, hash BLOB NOT NULL, PRIMARY KEY (level, idx)) WITHOUT
    ROWID; CREATE TABLE checkpoints (size INTEGER PRIMARY KEY, note BLOB NOT NULL);
    CREATE TABLE requests (
        id INTEGER PRIMARY KEY, request_id TEXT NOT NULL UNIQUE, receipt BLOB NOT NULL, time TEXT NOT NULL,
        project TEXT NOT NULL, effect TEXT NOT NULL, receipt_state TEXT NOT NULL, evaluation BLOB NOT NULL,
        admission BLOB, lineage BLOB, provider TEXT NOT NULL,
        entry INTEGER NOT NULL,  -- the entry that opened it
        latest INTEGER NOT NULL);  -- the entry that set the row last
    CREATE INDEX requests_by_receipt ON requests (receipt);
    CREATE INDEX requests_open ON requests (id) WHERE admission IS NOT NULL AND lineage IS NULL;
    """,
    """
    -- From here on texts may be packed (gateway.store.compression). What was written before stays as it is.
    ALTER TABLE parts ADD COLUMN codec INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE records ADD COLUMN codec INTEGER NOT NULL DEFAULT 0;
    """,
    """
    ALTER TABLE records ADD COLUMN last INTEGER;  -- the last entry that covers it, where it is not the first
    """,
)


def migrate(connection: apsw.Connection, time: str, migrations: tuple[str, ...] = MIGRATIONS) -> None:
    """Bring the schema up to date; SetupError where the database is of a newer version than this program."""
    connection.execute(
        "CREATE TABLE IF NOT EXISTS migrations (version INTEGER PRIMARY KEY, time TEXT NOT NULL)"
    )
    have = connection.execute("SELECT coalesce(max(version), 0) FROM migrations").get
    if have > len(migrations):
        raise SetupError(
            "store.newer",
            "the evidence database was written by a newer version",
            hint="run that version, or give this one its own [state] dir",
        )
    for version in range(have + 1, len(migrations) + 1):
        with connection:
            connection.execute(migrations[version - 1])
            connection.execute("INSERT INTO migrations VALUES (?, ?)", (version, time))
