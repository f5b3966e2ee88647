#!/usr/bin/env bash
# Makes or completes the project's virtual environment.
#
#   tools/venv.sh FOLDER REQUIREMENTS...
#
# Installs exactly what the files pin and nothing that they do not name
# (`--no-deps`), so no NVIDIA package ever comes along. Safe to run again: what is
# already there in the right version is not downloaded.
set -euo pipefail

folder=$1
shift

say() { printf 'venv: %s\n' "$*"; }
die() {
    printf 'venv: %s\n' "$*" >&2
    exit 1
}

# The first Python that is new enough; $PYTHON wins.
find_python() {
    local candidate
    for candidate in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11; do
        if command -v "$candidate" >/dev/null 2>&1 &&
            "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    die "no Python 3.11 or newer found; install one and name it: make PYTHON=/path/to/python3.11"
}

# Debian and Ubuntu ship Python without `venv`; it is added only where that needs
# no password.
create() {
    local python=$1
    if "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        "$python" -m venv "$folder"
        return
    fi
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        say "this Python has no venv module; installing python3-venv"
        apt-get update -qq
        apt-get install -y -qq python3-venv
        "$python" -m venv "$folder"
        return
    fi
    if "$python" -m virtualenv --version >/dev/null 2>&1; then
        "$python" -m virtualenv -q "$folder"
        return
    fi
    die "this Python has no venv module; run: sudo apt-get install python3-venv"
}

if [ ! -x "$folder/bin/python" ]; then
    python=$(find_python)
    say "creating $folder with $python"
    rm -rf "$folder"
    create "$python"
fi

say "installing what $* names"
requirements=()
for file in "$@"; do
    requirements+=(-r "$file")
done
"$folder/bin/python" -m pip install --disable-pip-version-check --no-deps "${requirements[@]}"

if "$folder/bin/python" -m pip list --disable-pip-version-check 2>/dev/null | grep -i '^nvidia-' | grep -qvi '^nvidia-ml-py '; then
    say "note: NVIDIA packages are installed in $folder; they are not needed and not used"
fi
say "ready: $folder"
