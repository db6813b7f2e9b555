#!/usr/bin/env bash
# Tests the page of `oracle serve` in Chromium, with a mock model behind the server. With `smoke`, runs only a short
# check, and skips it without a browser, unless ORACLE_REQUIRE names `chromium`. ORACLE names a prebuilt binary with the
# feature `full`; otherwise one is built.
#
# Needs Chromium or Chrome (Debian: apt install chromium; CHROMIUM names one elsewhere), Node.js 20 or newer with npm,
# and, the first time, the npm registry. What is installed stays in the target directory; a changed lock file
# reinstalls it.
set -euo pipefail
shopt -s inherit_errexit # Also fail when a command substitution fails.
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

missing() {
    if [[ ${1:-} == smoke && ,${ORACLE_REQUIRE:-}, != *,chromium,* ]]; then
        echo "SKIPPED, the page is not tested in a browser: $2 is missing: $3" >&2
        exit
    fi
    echo "$2 is missing: $3" >&2
    exit 1
}
browser=${CHROMIUM:-$(command -v chromium chromium-browser google-chrome | head -n 1 || true)}
[[ -x $browser ]] || missing "${1:-}" Chromium "install it (Debian: apt install chromium), or set CHROMIUM to its path"
node=$(node --version 2>/dev/null) || node=v0
node=${node#v}
((${node%%.*} >= 20)) || missing "${1:-}" "Node.js 20" "install version 20 or newer"
command -v npm >/dev/null || missing "${1:-}" npm "it comes with Node.js, or as Debian's package npm"

target=${CARGO_TARGET_DIR:-target}
if [[ ! ${ORACLE:-} ]]; then
    # The program as the other tests have it: where they have run, nothing is left to build.
    cargo test --no-run --test it
    ORACLE=$target/debug/oracle
fi
ORACLE=$(realpath -e "$ORACLE")
CHROMIUM=$(realpath -e "$browser")
export ORACLE CHROMIUM

wanted=tests/browser folder=$target/browser
if ! cmp --silent "$wanted/package-lock.json" "$folder/installed.json"; then
    rm -rf "$folder"
    mkdir -p "$folder"
    cp "$wanted/package.json" "$wanted/package-lock.json" "$folder"
    npm ci --prefix "$folder" --no-audit --no-fund --ignore-scripts --loglevel=error >&2
    cp "$wanted/package-lock.json" "$folder/installed.json" # Last, so that an interrupted install is repeated.
fi
# Node resolves packages from the script's directory.
rm -f "$folder"/*.mjs
cp "$wanted"/*.mjs "$folder"
cd "$folder"
[[ ${1:-} ]] && set -- "$1.test.mjs"
exec node --test --test-concurrency=2 --test-reporter=spec "$@"
