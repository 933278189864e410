"""The corpus of `bench.boundary`: open packages as projects, fetched by pip, npm and apt into a folder of their own."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

LIST = Path(__file__).with_name("boundary.txt")
FOLDER = Path(os.environ.get("EGRESS_BENCH_BOUNDARY") or Path.home() / ".cache/egress-bench/boundary")

_ENDINGS = (
    ".c .cfg .cjs .css .go .h .html .ini .jinja .js .json .less .md .mjs .po .py .pyx .rb .rs .rst .scss .sh .toml"
    " .ts .txt .xml .yaml .yml"
)
_SUFFIXES = frozenset(_ENDINGS.split())
_LEFT_OUT = frozenset({"test", "tests", "_vendor", "contrib", "node_modules", "locale"})
_MOST_BYTES, _LONGEST_LINE = 400_000, 2000
_TIMEOUT_S = 600


@dataclass(frozen=True, slots=True)
class Package:
    """One line of `boundary.txt`."""

    split: str
    role: str
    registry: str
    name: str

    @property
    def folder(self) -> Path:
        """Where its files lie."""
        return FOLDER / self.registry / self.name.replace("/", "_")

    def fetch(self) -> None:
        """Download it, unless it is there; its own files only, nothing of it is run."""
        if self.folder.is_dir():
            return
        self.folder.mkdir(parents=True)
        if self.registry == "pypi":
            target = ["--no-deps", "--only-binary", ":all:", "--quiet", "--target", str(self.folder)]
            command = [sys.executable, "-m", "pip", "install", *target, self.name]
            subprocess.run(command, check=True, timeout=_TIMEOUT_S)
            return
        if self.registry == "debian":
            subprocess.run(
                ["apt-get", "download", "-qq", self.name], check=True, timeout=_TIMEOUT_S, cwd=self.folder
            )
            for archive in self.folder.glob("*.deb"):
                command = ["dpkg-deb", "-x", str(archive), str(self.folder)]
                subprocess.run(command, check=True, timeout=_TIMEOUT_S)
                archive.unlink()
            return
        command = ["npm", "pack", "--silent", "--pack-destination", str(self.folder), self.name]
        subprocess.run(command, check=True, timeout=_TIMEOUT_S, capture_output=True)
        for archive in self.folder.glob("*.tgz"):
            with tarfile.open(archive) as packed:
                packed.extractall(self.folder, filter="data")
            archive.unlink()

    def texts(self, most_bytes: int) -> list[str]:
        """The texts of its files in a random order that is always the same, up to so many bytes in all."""
        paths = sorted(p for p in self.folder.rglob("*") if p.suffix in _SUFFIXES and p.is_file())
        random.Random(1).shuffle(paths)
        found, size = [], 0
        for path in paths:
            inside = path.relative_to(self.folder)
            if _LEFT_OUT & set(inside.parts) or ".min." in path.name or ".dist-info" in str(inside.parent):
                continue
            text = path.read_text(encoding="utf-8", errors="replace")
            if 200 < len(text) < _MOST_BYTES and max(map(len, text.split("\n"))) < _LONGEST_LINE:
                found.append(text)
                size += len(text)
                if size > most_bytes:
                    break
        return found


def packages(split: str, role: str) -> list[Package]:
    """The packages of a split in a role."""
    lines = [line.split() for line in LIST.read_text().splitlines() if line and not line.startswith("#")]
    return [p for p in (Package(*line) for line in lines) if (p.split, p.role) == (split, role)]


SPLITS = ("development", "held-out", "languages")
"""The first is for setting thresholds; the third has the languages that the other two have little of."""


def fetch() -> None:
    """Fetch every package of the list; those of Debian only where there is apt."""
    for split in SPLITS:
        for role in ("project", "neutral"):
            for package in packages(split, role):
                if package.registry != "debian" or shutil.which("apt-get"):
                    package.fetch()


if __name__ == "__main__":
    fetch()
