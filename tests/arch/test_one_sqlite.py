"""SQLite's locks belong to the process: a second SQLite library that closes the same file drops them unseen."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_gateway_knows_one_sqlite() -> None:
    sources = [*(ROOT / "gateway").rglob("*.py"), *(ROOT / "addons").rglob("*.py")]
    assert sources
    imports = re.compile(r"^\s*(?:import|from)\s+(?:sqlite3|aiosqlite|pysqlite\w*)\b", re.MULTILINE)
    assert [str(path) for path in sources if imports.search(path.read_text())] == []
