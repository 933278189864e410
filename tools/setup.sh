#!/bin/sh
# Make the virtual environment of a checkout: locked packages with hashes, then the checkout itself, editable.
# usage: tools/setup.sh DIR
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
venv=$1
cd "$here"

if ! "$venv/bin/python" -I -c 'import sys, pip; sys.exit(sys.version_info < (3, 12))' >/dev/null 2>&1; then
    python=$(sh tools/find-python.sh)
    echo "environment: $venv, from $python"
    rm -rf "$venv"
    "$python" -I -m venv "$venv"
fi
# --require-hashes: what is installed is what was locked, whoever serves it.
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: \
    -r requirements.lock
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
