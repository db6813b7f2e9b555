#!/bin/sh
# A scripted MCP server over standard input and output. Its argument is a folder: `tools.json` there
# has its list of tools, and it notes there what it was told. The name of a tool says what a call does.
dir=$1
started=$$
# A child that ignores the end of its input, and keeps the output open.
tail -f "$dir/tools.json" 3>&1 >/dev/null &
echo "$started" >>"$dir/starts"
echo "ready in $dir" >&2
env >"$dir/environment"
result() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
text() { result "$1" "{\"content\":[{\"type\":\"text\",\"text\":\"$2\"}]}"; }
while IFS= read -r line; do
    id=${line#*\"id\":}
    id=${id%%[,\}]*}
    case $line in
    *'"method":"initialize"'*)
        result "$id" '{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"scripted","version":"1"}}'
        ;;
    *'"method":"tools/list"'*) result "$id" "$(cat "$dir/tools.json")" ;;
    *'"method":"ping"'*) result "$id" '{}' ;;
    *'"method":"notifications/cancelled"'*) echo "$line" >>"$dir/cancelled" ;;
    *'"method":"tools/call"'*)
        echo "$line" >>"$dir/calls"
        case $line in
        *'"name":"answer"'*) text "$id" "fine" ;;
        *'"name":"write"'*) text "$id" "written" ;;
        *'"name":"fail"'*) result "$id" '{"content":[{"type":"text","text":"no such thing"}],"isError":true}' ;;
        *'"name":"refuse"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"bad arguments"}}\n' "$id" ;;
        *'"name":"die"'*) kill -9 "$started" ;;
        *'"name":"garbage"'*)
            echo 'this is no JSON'
            echo '{"foo":1}'
            text "$id" "after garbage"
            ;;
        *'"name":"odd"'*)
            printf '\357\273\277{"result":{"content":[{"type":"text","type":null,"text":"cut \\ud83d"}],"structuredContent":{"mean":NaN}},"jsonrpc":"2.0","id":%s,"id":null}\n' "$id"
            ;;
        *'"name":"many"'*)
            objects=$(yes '{"":0},' | head -n 500000 | tr -d '\n')
            result "$id" "{\"content\":[],\"structuredContent\":{\"x\":[${objects}0]}}"
            ;;
        *'"name":"broken"'*) result "$id" '{"content":[{"type":"text","text":"cut' ;;
        *'"name":"nonsense"'*) result "$id" '5' ;;
        *'"name":"huge"'*)
            printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"' "$id"
            head -c 100000000 /dev/zero | tr '\0' x
            echo '"}]}}'
            ;;
        *'"name":"hang"'*) : ;;
        *'"name":"freeze"'*) sleep 1000 ;;
        *'"name":"progress"'*)
            token=${line#*\"progressToken\":}
            token=${token%%[,\}]*}
            for step in 1 2; do
                sleep 0.1
                printf '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%s,"total":2,"message":"step %s"}}\n' "$token" $step $step
            done
            sleep 0.1
            text "$id" "done in steps"
            ;;
        *'"name":"change"'*)
            cp "$dir/later.json" "$dir/tools.json"
            echo '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
            text "$id" "changed"
            ;;
        esac
        ;;
    esac
done
