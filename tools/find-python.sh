#!/bin/sh
# Print the path of a Python >= 3.12 that runs, or fail. Order: $PYTHON, names on PATH, versions kept by pyenv, one
# that uv finds or fetches. Each candidate is run: a name on PATH may be a shim of a version that is not there.
set -u

usable() {
    "$1" -I -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 12))' >/dev/null 2>&1
}

# The interpreter behind a shim, so that the environment does not depend on the shim's settings.
real() {
    "$1" -I -c 'import sys; print(sys.executable)'
}

try() {
    [ -n "$1" ] && usable "$1" && real "$1" && exit 0
}

if [ -n "${PYTHON:-}" ]; then
    try "$PYTHON"
    echo "PYTHON=$PYTHON is not a Python >= 3.12 that runs; looking further" >&2
fi
for name in python3.13 python3.12 python3; do
    try "$(command -v "$name" 2>/dev/null)"
done
# The folder that a shim on PATH belongs to is pyenv's root also where neither PYENV_ROOT nor HOME says so.
shim=$(command -v pyenv 2>/dev/null)
for root in "${PYENV_ROOT:-}" "${HOME:-}/.pyenv" "${shim:+${shim%/*/*}}" "$(pyenv root 2>/dev/null)"; do
    [ -n "$root" ] || continue
    for version in 3.13 3.12 3; do
        for python in "$root"/versions/"$version"*/bin/python3; do
            try "$python"
        done
    done
done
if command -v uv >/dev/null 2>&1; then
    try "$(uv python find '>=3.12' 2>/dev/null)"
    uv python install 3.13 >&2 && try "$(uv python find 3.13 2>/dev/null)"
fi
echo "no Python >= 3.12 that runs was found: install one, or name it: make PYTHON=/path/to/python3 install" >&2
exit 1
