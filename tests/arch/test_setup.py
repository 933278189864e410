"""Set-up finds a Python that runs, whatever stands on PATH."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BROKEN = "#!/bin/sh\necho 'pyenv: python3.13: command not found' >&2\nexit 127\n"
OLD = "#!/bin/sh\nexit 1\n"  # what an older Python answers to the question


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A folder for PATH with the shell's tools and no Python."""
    for tool in ("sh", "sed"):
        (tmp_path / tool).symlink_to(f"/bin/{tool}")
    return tmp_path


def program(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_text(text)
    file.chmod(0o755)
    return file


def good(folder: Path, name: str) -> None:
    program(folder, name, f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')


def find(path: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    clean = {"PATH": str(path), "HOME": str(path / "nobody")} | environ
    command = ["/bin/sh", str(ROOT / "tools" / "find-python.sh")]
    return subprocess.run(command, env=clean, capture_output=True, text=True, timeout=60, check=False)


def test_a_shim_that_does_not_run_is_passed_over(path: Path) -> None:
    program(path, "python3.13", BROKEN)
    good(path, "python3.12")

    assert find(path).stdout.strip() == sys.executable


def test_an_older_python_is_passed_over(path: Path) -> None:
    program(path, "python3", OLD)
    kept = path / "versions" / "3.12.9" / "bin"
    kept.mkdir(parents=True)
    good(kept, "python3")

    assert find(path).returncode == 1
    assert find(path, PYENV_ROOT=str(path)).stdout.strip() == sys.executable


def test_the_named_one_comes_first_and_a_bad_one_does_not_stop_it(path: Path) -> None:
    good(path, "python3")
    broken = program(path, "mine", BROKEN)
    done = find(path, PYTHON=str(broken))

    assert done.stdout.strip() == sys.executable
    assert "PYTHON=" in done.stderr
    assert find(path, PYTHON=sys.executable).stdout.strip() == sys.executable


def test_one_that_uv_finds_comes_last(path: Path) -> None:
    program(path, "uv", f'#!/bin/sh\n[ "$2" = find ] && echo "{sys.executable}"\n')

    assert find(path).stdout.strip() == sys.executable


def test_none_at_all_says_what_to_do(path: Path) -> None:
    program(path, "python3.13", BROKEN)
    done = find(path)

    assert done.returncode == 1
    assert done.stdout == ""
    assert "PYTHON=" in done.stderr


@pytest.mark.parametrize("name", ["tools/find-python.sh", "tools/setup.sh", ".ci/run"])
def test_scripts_parse(name: str) -> None:
    shell = "/bin/bash" if name == ".ci/run" else "/bin/sh"

    assert subprocess.run([shell, "-n", str(ROOT / name)], check=False, timeout=30).returncode == 0
    assert os.access(ROOT / name, os.X_OK)
