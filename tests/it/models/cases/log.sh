#!/bin/sh
# An MCP server whose tools are named after the way in which their results are spoiled.
result() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
tool() { printf '{"name":"%s","description":"Reads the log.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}' "$1"; }
while IFS= read -r line; do
    id=${line#*\"id\":}
    id=${id%%[,\}]*}
    case $line in
    *'"method":"initialize"'*)
        result "$id" '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"log","version":"1"}}'
        ;;
    *'"method":"tools/list"'*) result "$id" "{\"tools\":[$(tool good),$(tool half),$(tool nan),$(tool twice)]}" ;;
    *'"method":"ping"'*) result "$id" '{}' ;;
    *'"name":"good"'*) result "$id" '{"content":[{"type":"text","text":"a log with everything"}]}' ;;
    *'"name":"half"'*) result "$id" '{"content":[{"type":"text","text":"a log with \ud83d"}]}' ;;
    *'"name":"nan"'*) result "$id" '{"content":[{"type":"text","text":"a log with numbers"}],"structuredContent":{"load":NaN}}' ;;
    *'"name":"twice"'*) result "$id" '{"content":[],"content":[{"type":"text","text":"a log with a key twice"}]}' ;;
    esac
done
