# An MCP server with one tool, which then writes without end: log messages, changes of its list, and lines of errors.
while read -r line; do
    id=${line#*'"id":'}
    id=${id%%[,\}]*}
    case $line in
    *'"initialize"'*)
        printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"logging":{}},"serverInfo":{"name":"flood","version":"1"}}}\n' "$id"
        ;;
    *'"tools/list"'*)
        printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}}\n' "$id"
        if [ -z "$flood" ]; then
            flood=1
            (
                text=$(printf '%01000d' 0)
                while :; do
                    printf '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"%s"}}\n' "$text"
                    printf '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n'
                    printf '%s\n' "$text" >&2
                done
            ) &
        fi
        ;;
    esac
done
