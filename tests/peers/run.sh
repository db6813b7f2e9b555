#!/usr/bin/env bash
# Checks Oracle by programs that others wrote: the mock model by the SDKs that its dialects come from, Oracle's own
# dialects by the LiteLLM proxy, and `oracle serve` by those who are to use it: curl, OpenAI's SDKs for Python and
# JavaScript, its Agents SDK, Open WebUI's requests, and requests that Schemathesis makes out of the description of all
# routes; and `oracle mcp` and `/mcp` by the Python SDK of MCP, its Inspector and its conformance tests. Uses the tools
# of MCP servers from npm and PyPI. An argument names a group to run alone: clients, mcp or mcp_servers. With
# ORACLE_ALL_CLIENTS=1 also by LiteLLM, LangChain, Pydantic AI, `llm` and Vercel's AI SDK. With ORACLE_LLAMA=1 also by
# llama.cpp's server, which the first time takes a C++ compiler and many minutes to build.
#
# Needs curl, python3 with venv (Debian and Ubuntu: apt install curl python3-venv), Node.js 20 or newer with npm,
# and, the first time, PyPI and the npm registry. What is installed stays in the target directory; a changed list
# of requirements makes it new.
set -euo pipefail
shopt -s inherit_errexit # What cannot be installed ends it.
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

export PYTHONDONTWRITEBYTECODE=1 # The tree stays clean.
export LITELLM_LOCAL_MODEL_COST_MAP=True # It would wait for one from the network.
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

# Packages of npm, such as the JavaScript SDKs, with the clients that use them: modules are looked for where a program
# stands.
javascript() {
    local wanted=tests/peers/$1 folder=$target/peers-$1
    if ! cmp --silent "$wanted/package-lock.json" "$folder/installed.json"; then
        rm -rf "$folder"
        mkdir -p "$folder"
        cp "$wanted/package.json" "$wanted/package-lock.json" "$folder"
        npm ci --prefix "$folder" --no-audit --no-fund --ignore-scripts --loglevel=error >&2
        cp "$wanted/package-lock.json" "$folder/installed.json"
    fi
    find "$wanted" -name '*.mjs' -exec cp {} "$folder" \;
    realpath "$folder"
}

[[ ${1:-} != mcp_servers ]] || exec tests/peers/mcp_servers.sh
missing() {
    echo "$1 is missing: $2" >&2
    exit 1
}
command -v python3 >/dev/null || missing python3 "install Python 3.9 or newer"
command -v curl >/dev/null || missing curl "install curl"
node=$(node --version 2>/dev/null) || missing Node.js "install version 20 or newer"
node=${node#v}
((${node%%.*} >= 20)) || missing "Node.js 20" "$node is too old for OpenAI's SDK"
command -v npm >/dev/null || missing npm "it comes with Node.js, or as Debian's package npm"

# The program as the other tests have it: where they have run, nothing is left to build.
cargo test --no-run --test it
oracle=$(realpath "$target")/debug/oracle
sdk=$(environment sdk)/bin/python
js=$(javascript js)
served() { "$sdk" tests/peers/served.py "$oracle" "$@"; }
lines() { served "$sdk" tests/peers/documents.py docs/clients.md "$@"; }
clients() {
    for client in openai_client agents_client; do served "$sdk" "tests/peers/$client.py"; done
    served env -C "$js" node openai.mjs
}
if [[ ${1:-} == clients ]]; then
    clients
    exit
fi
mcp() {
    "$(environment mcp_server)/bin/python" tests/peers/mcp_server.py "$oracle" "$(javascript mcp)"
    tests/peers/mcp_servers.sh
}
if [[ ${1:-} == mcp ]]; then
    mcp
    exit
fi
litellm=$(environment litellm)/bin/python
fuzz=$(environment fuzz)/bin/python

"$sdk" tests/peers/sdk.py "$oracle"
"$litellm" tests/peers/litellm_proxy.py "$oracle"

lines sh curl bash -euo pipefail -s
lines python "from openai import OpenAI" "$sdk" -
lines python "import litellm" "$litellm" -
lines python "import Agent, OpenAI" "$sdk" -
lines js '"openai"' env -C "$js" node --input-type=module -
"$sdk" tests/peers/clients.py "$oracle"
clients
mcp
served "$sdk" tests/peers/webui.py
served env -C "$js" node clients.mjs
served "$sdk" examples/http_client.py "where is parse_invoice?" "and who reads one?"
"$fuzz" tests/peers/fuzz.py "$oracle"

if [[ ${ORACLE_ALL_CLIENTS:-} ]]; then
    frameworks=$(environment frameworks)/bin/python
    lines python langchain_openai "$frameworks" -
    lines python pydantic_ai "$frameworks" -
    lines js ai-sdk env -C "$js" node --input-type=module -
    rm -rf "$target/peers-llm" && mkdir "$target/peers-llm"
    LLM_USER_PATH=$(realpath "$target")/peers-llm PATH=$(dirname "$frameworks"):$PATH lines sh "llm -m" bash -euo pipefail -s
    for client in langchain_client pydantic_client llm_client; do served "$frameworks" "tests/peers/$client.py"; done
    served "$litellm" tests/peers/litellm_client.py
    served env -C "$js" node vercel.mjs
fi
if [[ ${ORACLE_LLAMA:-} ]]; then
    llama=$(environment llama)/bin/python
    "$llama" tests/peers/llama.py "$oracle"
fi
