"""The detector starts from what an earlier start compiled, and compiles where that cannot be used."""

import os
from pathlib import Path

import pytest

from gateway.context.findings import ScanItem
from gateway.detect.compiled import pack, unpack
from gateway.detect.engine import Engine, build
from gateway.store import detector
from gateway.store.compiled import CompiledFiles, machine

RULES = [
    {
        "rule": [
            {
                "id": "acme-key",
                "type": "acme_key",
                "category": "secret",
                "severity": "critical",
                "trigger": ["acme_[a-z0-9]{4}"],
                "pattern": "acme_[a-z0-9]{32}",
                "positive": ["acme_4f1c0a9d2b7e6f3855aa01c9de47b28e"],
                "negative": ["acme_example"],
                "source": "a made-up format",
            }
        ]
    }
]
EXAMPLE = "acme_4f1c0a9d2b7e6f3855aa01c9de47b28e"


def small(files: CompiledFiles) -> Engine:
    return build(rules=RULES, compiled=files.read, views=False)


def kept(folder: Path) -> CompiledFiles:
    files = CompiledFiles(folder)
    engine = small(files)
    assert not engine.from_compiled
    assert files.keep(engine.revision, engine.dump())
    return files


def test_a_second_start_compiles_nothing_and_finds_the_same(tmp_path: Path) -> None:
    files = kept(tmp_path / "cache")
    again = small(files)
    assert again.from_compiled
    assert again.engine_name == "hyperscan"
    [result] = again.scan([ScanItem(f"key {EXAMPLE}")])
    assert [f.type for f in result.findings] == ["acme_key"]


def test_only_the_owner_can_read_the_cache(tmp_path: Path) -> None:
    kept(tmp_path / "cache")
    [path] = (tmp_path / "cache").iterdir()
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


@pytest.mark.parametrize(
    "damage", [lambda d: b"", lambda d: d[:-9], lambda d: d[:80] + b"?" + d[81:], lambda d: b"x" * 99]
)
def test_a_damaged_file_is_compiled_anew(tmp_path: Path, damage) -> None:  # type: ignore[no-untyped-def]
    files = kept(tmp_path / "cache")
    [path] = (tmp_path / "cache").iterdir()
    path.write_bytes(damage(path.read_bytes()))
    engine = small(files)
    assert not engine.from_compiled
    assert engine.self_test() == []


def test_bytes_that_are_whole_but_no_database_are_compiled_anew() -> None:
    first = build(rules=RULES, views=False)
    forged = pack(first.revision, [b"no database"] * len(first.databases))
    engine = build(rules=RULES, compiled=lambda _: forged, views=False)
    assert (engine.from_compiled, engine.engine_name) == (False, "hyperscan")


def test_a_database_of_other_expressions_fails_the_test_of_every_rule() -> None:
    """A whole file under the right revision with the wrong patterns is found out at the start."""
    first = build(rules=RULES, views=False)
    other = build(rules=[{"rule": [{**RULES[0]["rule"][0], "trigger": ["acme_4f1c[a-z0-9]{4}"]}]}])
    lists = unpack(other.dump(), other.revision, len(other.databases))
    swapped = pack(first.revision, lists[::-1])
    engine = build(rules=RULES, compiled=lambda _: swapped, views=False)
    assert not engine.from_compiled
    assert engine.self_test() == []


def test_what_others_could_have_written_is_not_read(tmp_path: Path) -> None:
    files = kept(tmp_path / "cache")
    [path] = (tmp_path / "cache").iterdir()
    path.chmod(0o622)
    assert not small(files).from_compiled


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    files = kept(tmp_path / "cache")
    [path] = (tmp_path / "cache").iterdir()
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert not small(files).from_compiled


def test_another_processor_or_version_has_a_file_of_its_own(tmp_path: Path) -> None:
    kept(tmp_path / "cache")
    assert not small(CompiledFiles(tmp_path / "cache", "another machine")).from_compiled


def test_the_processor_is_known_by_its_flags(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("model name\t: A\nflags\t\t: avx2 avx512f\ncpu MHz\t\t: 2000\n")
    two.write_text("model name\t: A\nflags\t\t: avx2\ncpu MHz\t\t: 2000\n")
    faster = tmp_path / "three"
    faster.write_text(one.read_text().replace("2000", "3000"))
    assert machine(one) != machine(two)
    assert machine(one) == machine(faster)
    assert machine(tmp_path / "none") != machine(one)


def test_old_files_are_removed(tmp_path: Path) -> None:
    files = CompiledFiles(tmp_path / "cache")
    for number in range(9):
        assert files.keep(f"revision {number}", b"data")
        os.utime(files._path(f"revision {number}"), ns=(number, number))
    assert len(list((tmp_path / "cache").iterdir())) <= 5
    assert files.read("revision 8") == b"data"


def test_without_a_state_folder_nothing_is_made(tmp_path: Path) -> None:
    assert not CompiledFiles(tmp_path / "missing" / "cache").keep("revision", b"data")
    assert not (tmp_path / "missing").exists()


def test_the_factory_of_scanning_processes_takes_the_folder(tmp_path: Path) -> None:
    first = detector.build(str(tmp_path / "cache"))
    second = detector.build(str(tmp_path / "cache"))
    assert (first.from_compiled, second.from_compiled) == (False, True)
    assert second.revision == first.revision
