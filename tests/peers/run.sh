#!/usr/bin/env bash
# Checks the mock model by the SDKs that its dialects come from.
#
# Needs python3 with venv (Debian and Ubuntu: apt install python3-venv) and, the first time, PyPI. The
# environment stays in the target directory; a changed requirements.txt makes a new one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

target=${CARGO_TARGET_DIR:-target}
wanted=tests/peers/requirements.txt
venv=$target/peers-venv

if ! command -v python3 >/dev/null; then
    echo "python3 is missing: install Python 3.9 or newer" >&2
    exit 1
fi
if ! cmp --silent "$wanted" "$venv/installed.txt"; then
    rm -rf "$venv"
    mkdir -p "$target"
    if ! python3 -m venv "$venv"; then
        rm -rf "$venv"
        echo "python3 cannot make an environment: install its venv (apt install python3-venv)" >&2
        exit 1
    fi
    "$venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$wanted"
    cp "$wanted" "$venv/installed.txt" # Last, so that a broken-off installation is made again.
fi

# The program as the other tests have it: where they have run, nothing is left to build.
cargo test --no-run --test it
exec "$venv/bin/python" tests/peers/sdk.py "$target/debug/oracle"
