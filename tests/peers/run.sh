#!/usr/bin/env bash
# Checks Oracle by programs that others wrote: the mock model by the SDKs that its dialects come from, and
# Oracle's own dialects by the LiteLLM proxy; with ORACLE_LLAMA=1 also by llama.cpp's server, which the first
# time takes a C++ compiler and many minutes to build.
#
# Needs python3 with venv (Debian and Ubuntu: apt install python3-venv) and, the first time, PyPI. The
# environments stay in the target directory; a changed list of requirements makes a new one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

export PYTHONDONTWRITEBYTECODE=1 # The tree stays clean.
target=${CARGO_TARGET_DIR:-target}

# Makes the environment of a peer where it is missing, and says where it is.
environment() {
    local wanted=tests/peers/$1.txt venv=$target/peers-$1
    if ! cmp --silent "$wanted" "$venv/installed.txt"; then
        rm -rf "$venv"
        mkdir -p "$target"
        if ! python3 -m venv "$venv" >&2; then
            rm -rf "$venv"
            echo "python3 cannot make an environment: install its venv (apt install python3-venv)" >&2
            return 1
        fi
        "$venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$wanted" >&2
        cp "$wanted" "$venv/installed.txt" # Last, so that a broken-off installation is made again.
    fi
    echo "$venv"
}

if ! command -v python3 >/dev/null; then
    echo "python3 is missing: install Python 3.9 or newer" >&2
    exit 1
fi

# The program as the other tests have it: where they have run, nothing is left to build.
cargo test --no-run --test it
for peer in sdk litellm ${ORACLE_LLAMA:+llama}; do
    venv=$(environment "$peer")
    "$venv/bin/python" "tests/peers/$peer.py" "$target/debug/oracle"
done
