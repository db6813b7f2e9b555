//! Long help texts: examples, then details.

pub(super) const ABOUT: &str = "Durable conversations with LLM agents about your project";

pub(super) const TOP: &str = "\
Examples:
  oracle \"where are sessions restarted?\"       # ask about the project in this folder
  oracle chat                                  # hold a conversation
  oracle chat --last                           # continue the latest one
  oracle ask --json < question.txt             # for scripts
  oracle models                                # list providers and models
  oracle doctor                                # check the setup

Exit codes:
  0    answered, fully or partly
  1    failed
  2    wrong usage or configuration
  3    stuck, or escalated to you
  4    stopped by a limit, a loop or an operator
  5    busy, or owned by another process
  6    the journal cannot be written
  130  cancelled";

pub(super) const TOP_SHORT: &str = "\
Ask a question:       oracle \"where are sessions restarted?\"
Hold a conversation:  oracle chat
Check the setup:      oracle doctor";

pub(super) const ASK: &str = "\
Examples:
  oracle ask \"where are sessions restarted?\"
  oracle ask --session review \"and who calls that?\"      # one session, several questions
  oracle ask --model openai/gpt-6.1-terra \"why two caches?\"
  oracle ask --json --max-turns 5 < question.txt
  oracle ask --session review --idempotency-key 7 \"and?\"  # safe to repeat

The answer goes to standard output, everything else to standard error. A question may be up to 1 \
MiB long.

--model scripted/FILE plays a script, with the real tools; see docs/scripts.md.";

pub(super) const CHAT: &str = "\
Examples:
  oracle chat
  oracle chat --last                    # continue the latest conversation
  oracle chat --project ~/src/shop --session review

At a terminal, messages are edited as in a shell. Up and Ctrl-R recall earlier messages. \
Alt-Enter, a backslash at the end, or an open ``` fence continues the message on a new line; a \
paste is one message. /help lists the commands, such as /model, /budget and /why, which explains \
how a question was answered. If standard input is a pipe, every line is a question.

Ctrl-C cancels the running question; pressed again before the question has ended, it exits at \
once. Ctrl-D exits and prints the command that continues the session. A question that was \
interrupted by the end of its process continues when its session is resumed. If a server owns the \
session, the chat is a client of that server.";

#[cfg(feature = "mcp")]
pub(super) const MCP: &str = "\
Examples:
  claude mcp add oracle -- oracle mcp --project ~/src/shop
  npx @modelcontextprotocol/inspector oracle mcp

Speaks the Model Context Protocol on standard input and output, until the input ends. Other \
agents get the tools that search and read the project, and `ask`, which holds a conversation as \
`oracle ask` does. The log goes to standard error. `oracle serve` has the same tools at `/mcp`.";

pub(super) const SERVE: &str = "\
Examples:
  oracle serve
  curl http://127.0.0.1:7770/readyz
  oracle serve --listen 8080 --model openai/gpt-6.1-terra

The server runs until Ctrl-C or SIGTERM, and then drains: it accepts no new messages, lets \
running queries finish, and exits within `server.drain_deadline`. Queries that do not finish in \
time stay in the journal and continue after the next start. A second signal exits at once.

At its start, the server recovers interrupted queries. It prints its address, its models and the \
data directory to standard error; -v also logs each request.";

pub(super) const KEYS: &str = "\
Examples:
  oracle keys create --name ann
  oracle keys create --name ops --role admin --expires 30d
  oracle keys create --name shop --tenant shop --json | jq -r .key
  oracle keys list
  oracle keys revoke ann

Keys are stored in the data directory, as hashes. Once a key exists, every client of the server \
needs one; without keys, the server accepts local connections only. A running server notices \
changes within seconds.

A key with the role `user` gives access to the sessions of its tenant; one with the role `admin`, \
to the sessions of all tenants and to the server itself. `create` prints the key to standard \
output, once.";

pub(super) const CTL: &str = "\
Examples:
  oracle ctl list --state running
  oracle ctl watch --type control. --type approval.
  oracle ctl pause review
  oracle ctl steer review \"look at the tests first\"
  oracle ctl budget review --turns 60
  oracle ctl approvals
  oracle ctl approve review call_1 5f0c41d2a97e83b6
  oracle ctl --url https://oracle.example --key-file admin.key inspect acme/review

Connects to the server that uses the data directory, as only the owner of that directory can; or \
with --url to any server, which requires a key with the role `admin`. Actions are recorded with \
the name of the caller. If several servers use the data directory, commands about a session go to \
the server that owns it, and all others require --pid.

`watch` runs until Ctrl-C. With --json, an answer is one JSON object, and `watch` prints one \
object per line.";

pub(super) const SESSIONS: &str = "\
Examples:
  oracle sessions list --limit 10
  oracle sessions show review
  oracle sessions events review --type tool. | jq .payload.name
  oracle sessions export review > review.jsonl
  oracle sessions search retry policy
  oracle sessions delete review --yes

Sessions are stored in the data directory. They can be inspected while other processes use them.

ID is a name, or 6 or more characters from the beginning or end of a UUID, such as the short id in \
the list.

A session in the state `running` has a query that has not ended: it is in progress, or it was \
interrupted and continues when the session is next used.";

pub(super) const USAGE: &str = "\
Examples:
  oracle usage
  oracle usage --by model
  oracle usage --by day --json | jq .usage.output_tokens

Reads the journal, even while other processes use it. Turns and summaries are counted, and failed \
attempts as far as their usage is known or estimated. The calls of a sub-agent are counted once, \
in its own session. Deleted sessions are not counted. Cost is based on the prices at the time of \
each call.

The columns are turns, tokens sent, how many of those the provider had cached, tokens received, \
cost, and model calls.";

pub(super) const JOURNAL: &str = "\
Examples:
  oracle journal verify
  oracle journal verify --json | jq '.problems[].session'
  oracle journal stats --data-dir ~/backup/oracle
  oracle journal copy ~/.local/share/oracle postgresql://oracle@db.example/oracle

`verify` and `stats` read the journal, even while other processes use it. `verify` exits with code \
1 if it finds corruption, and names the session and the record.

`copy` copies all sessions and the usage to another journal, reads them back and compares them. If \
it is interrupted, run it again: it continues where it ended. No server may use the journals \
meanwhile. Passwords and certificates of a database are those of `[journal]` in the configuration.

`migrate` brings the tables of a journal in PostgreSQL up to this version. Run it before the first \
node of a new version starts.";

pub(super) const CLASSIFY: &str = "\
Examples:
  oracle dev classify \"where is the parser?\"
  oracle dev classify --context \"The parser is in src/read.rs.\" \"and the second one?\"
  oracle dev classify < queries.txt
  oracle dev classify --jsonl < queries.jsonl
  oracle dev classify --evaluate labeled.tsv

Without QUERY, every line of standard input is a query, including blank lines. Each query yields \
one line of JSON: query_type, needs_code, needs_vault, needs_web, confidence, keywords_matched.

With --jsonl, a line may also be a JSON object {\"query\": \"…\", \"context\": \"…\"} or a JSON \
string. `context` is optional, other keys are ignored, and a blank line is an empty query.

With --evaluate, every line of FILE is a type, a tab, optionally a language and a tab, and a query; \
the output is accuracy, confusion and calibration.";

pub(super) const SIGNAL: &str = "\
Examples:
  oracle dev signal reply.txt
  oracle dev signal < reply.txt
  oracle dev signal --jsonl replies.jsonl

Prints one line of JSON: `signal` (type, confidence, fields, raw_xml) or null, `rejected` (why a \
block is not a valid signal) or null, and `text` (the reply as users see it).

With --jsonl, every line is a JSON object {\"response\": \"…\"} or a JSON string, and yields one \
line. Other keys are ignored, and a blank line is an empty reply.";

pub(super) const PROMPT: &str = "\
Examples:
  oracle dev prompt --type code
  oracle dev prompt --query \"where is the parser?\" --json
  ORACLE_PROMPT__DIR=my-prompts oracle dev prompt --type research

Without --type and --query, prints the prompt for the type `conversational`. Warnings about \
omitted or shortened segments go to standard error. With --json, prints an object with content, \
segments_included, token_estimate and warnings.";

pub(super) const REPLAY: &str = "\
Examples:
  oracle dev replay scenario.json
  oracle dev replay --json - < scenario.json

A scenario contains the query, settings and turns, with the model's replies, its tool calls and \
the results of the tools; see docs/scripts.md.";

#[cfg(feature = "mock")]
pub(super) const MOCK_MODEL: &str = "\
Examples:
  oracle dev mock-model --port 0 --turns 2 --tools
  oracle dev mock-model --latency 20ms..80ms --fault 429:0.05 --fault cut=3@7 --seed 1
  oracle dev mock-model --requests-per-minute 600 --concurrency 8 --key secret --strict
  oracle dev mock-model --list-faults

Serves OpenAI's chat completions (POST /v1/chat/completions) and responses (POST \
/v1/responses), and Anthropic's messages (POST /v1/messages). Prints its URL when it is ready; \
Ctrl-C stops it. GET /stats returns statistics, GET /requests the last requests, and POST /reset \
clears both. Requests that break a rule of their dialect are reported on standard error. See docs/mock-model.md.

The header `x-mock-fault: NAME` injects a fault into a single request.";

pub(super) const CONFIG: &str = "\
Examples:
  oracle config init
  oracle config show
  oracle config show --all
  oracle config show --json --max-turns 5
  oracle config check --config oracle.toml

Settings come from the defaults, the configuration file, environment variables (such as \
ORACLE_MAX_TURNS or ORACLE_BUDGET__MAX_TOKENS) and command-line options. Later sources take \
precedence.

`show` prints the settings that differ from their defaults, and --all all of them. `init` writes a \
short file with the usual settings, commented out.";

#[cfg(feature = "bench")]
pub(super) const BENCH: &str = "\
Examples:
  oracle bench
  oracle bench --journal memory --sessions 1000 --latency 50ms
  oracle bench --rate 500 --turns 1 --duration 60s --json
  oracle bench --model openai/gpt-6-luna --sessions 4
  oracle bench --url http://127.0.0.1:7770 --rate 100

Without --url, starts a system with the configuration of this project and a simulated model, whose \
replies cost nothing and take --latency each; with --model, that one answers, and is paid. Sessions \
are kept in a temporary folder in the data directory. With --url, loads a running server; its \
sessions stay there, under names that begin with `bench-`.

With --rate, queries are sent on schedule, and their latencies count from it, so that a system \
which falls behind shows it. Without, each session asks again when it has its answer: the most \
that this number of sessions can get.

The report has the outcomes, percentiles of the latency, and the same without the model's time; \
processor time per turn, which includes the load's own unless --url is given; resident memory; the \
disk's fsync, measured ten times a second beside the journal; and the share of the queries that \
ended within their budget.";

pub(super) const MODELS: &str = "\
Examples:
  oracle models
  oracle models update --from models.toml
  oracle models --json | jq -r '.providers[] | .name as $p | .models[] | \"\\($p)/\\(.name)\"'

Queries all providers in parallel, for a few seconds at most: those in the configuration, those \
with a key in the environment, and a local Ollama server. A provider that does not respond is \
listed with the reason, and the exit code is still 0. Keys are never shown, only their sources.

Prices are in US dollars per million tokens, from the configuration or from a table of models, whose \
source and date are printed. `oracle models update` stores a newer table.";

pub(super) const DOCTOR: &str = "\
Examples:
  oracle doctor
  oracle doctor --model ollama/qwen3
  oracle doctor --model offline --json

Checks the configuration, the data directory and the journal, and then tests each model of the \
chain: a reply, a tool call, and a signal with Oracle's own prompt. This costs a little; the \
tokens used are printed at the end.

Each check prints a line: ok, warn or fail, the observation, and how to fix a problem. The exit \
code is 1 if a check failed. With --model offline, no provider is contacted.";

pub(super) const COMPLETIONS: &str = "\
Examples:
  oracle completions bash > ~/.local/share/bash-completion/completions/oracle
  oracle completions fish > ~/.config/fish/completions/oracle.fish";

pub(super) const MAN: &str = "\
Examples:
  oracle dev man ~/.local/share/man/man1
  man oracle-ask";

#[cfg(feature = "tui")]
pub(super) const TOP_TABLE: &str = "\
Shows the sessions that a server has, those that need a person first, with their state, profile, \
turn, last signal, tokens, cost, and the age of their query or last record. Keys pause, resume, \
interrupt and steer the selected session, and approve or deny its call that waits.

Examples:
  oracle top
  oracle top --url https://oracle.example --key-file admin.key
  oracle ctl list --json";
