#!/usr/bin/env bash
# Uses MCP servers that others wrote, by a scripted model: the protocol's own "everything", files and memory from npm,
# and one with the Python SDK, over standard input and output and over HTTP. Counts that no process is left.
#
# Needs python3 with venv, Node.js 20 or newer with npm, and, the first time, PyPI and the npm registry; where the
# servers cannot be installed, nothing is checked. What is installed stays in the target directory.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

skip() {
    echo "skipped, no MCP server of others is used: $1" >&2
    exit
}
command -v npm >/dev/null || skip "npm is missing"
export PYTHONDONTWRITEBYTECODE=1 # The tree stays clean.
target=${CARGO_TARGET_DIR:-target}
modules=$target/peers-mcp-servers-js
if ! cmp --silent tests/peers/mcp_servers/package-lock.json "$modules/installed.json"; then
    rm -rf "$modules"
    mkdir -p "$modules"
    cp tests/peers/mcp_servers/package*.json "$modules"
    npm ci --prefix "$modules" --no-audit --no-fund --ignore-scripts --loglevel=error >&2 || skip "npm cannot install them"
    cp tests/peers/mcp_servers/package-lock.json "$modules/installed.json"
fi
venv=$target/peers-mcp-servers
if ! cmp --silent tests/peers/mcp_servers/requirements.txt "$venv/installed.txt"; then
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check --requirement tests/peers/mcp_servers/requirements.txt >&2 ||
        skip "pip cannot install the Python SDK"
    cp tests/peers/mcp_servers/requirements.txt "$venv/installed.txt" # Last, so that a broken-off installation is made again.
fi
# The program as the other tests have it.
cargo test --no-run --features full,testkit --test it
"$venv/bin/python" tests/peers/mcp_servers/servers.py "$(realpath "$target")/debug/oracle" "$(realpath "$modules")"
