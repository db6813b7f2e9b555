//! The longer texts of the help: examples, and what exit codes mean.

pub(super) const ABOUT: &str = "Asks LLM agents about a project, and keeps them on course";

pub(super) const TOP: &str = "\
Examples:
  oracle ask \"where are sessions restarted?\"
  oracle chat --project ~/src/shop
  oracle chat --last
  oracle ask --json < question.txt
  oracle sessions list
  oracle models
  oracle config check

Exit codes:
  0    answered, or answered in part
  1    failed
  2    wrong usage or configuration
  3    stuck, or escalated to you
  4    forced to an end by a limit, a loop or an operator
  5    the session is busy
  6    the journal could not be written for good
  130  cancelled";

pub(super) const ASK: &str = "\
The answer goes to standard output, everything else to standard error. A question may have 1 MiB.

With --jsonl every line is an object {\"session\": \"…\", \"question\": \"…\", \"idempotency_key\": \"…\"}, of \
which only the question must be there, or a string. Blank lines are left out. Questions of one \
session are asked one after the other, sessions at the same time. Each line gets the object of --json, \
with its number as `line`, when it is answered; one that could not be asked gets `error` instead of an \
outcome. A line that is not in order is told before anything is asked. The exit code is 0 if all are \
answered, else the worst.

--model scripted/FILE plays a script, with the real tools; docs/scripts.md tells what is in it.

Examples:
  oracle ask \"where are sessions restarted?\"
  oracle ask --session review \"and who calls that?\"
  oracle ask --json --max-turns 5 \"which files parse dates?\"
  oracle ask --model scripted/script.json \"where is it?\"
  oracle ask < question.txt
  oracle ask --session review --idempotency-key 7 \"and who calls that?\"
  oracle ask --jsonl --parallel 4 < questions.jsonl";

pub(super) const CHAT: &str = "\
At a terminal, messages are edited as in a shell: Up and Ctrl-R bring back what was typed before, Alt-Enter, a \
backslash at the end and an open ``` fence go on in a new line, and a paste is one message. /help lists the \
commands, among them /why, which tells what became of a question and why. In a pipe every line is a question.

Ctrl-C takes the running question back, a second one before that is done ends the program at once; Ctrl-D leaves \
and says how to come back. What was cut off with its process goes on when its session is taken up again. A \
session that a server owns is talked to through that server.

Examples:
  oracle chat
  oracle chat --last
  oracle chat --session review --project ~/src/shop";

pub(super) const SERVE: &str = "\
Serves until Ctrl-C or SIGTERM. Then it takes nothing new, lets queries come to their ends, and ends within \
`server.drain_deadline`; what is not done by then stays in the journal and goes on with the next start. A \
second signal ends it at once.

What was cut off when the last one ended is brought back at the start. Where it listens, which model \
answers and where data are is told on standard error; -v adds a line for each request.

Examples:
  oracle serve
  oracle serve --listen 127.0.0.1:8080 --model openai/gpt-4.1
  curl http://127.0.0.1:7770/readyz";

pub(super) const KEYS: &str = "\
Keys are kept in the data directory as hashes. As soon as there is one, a server asks everybody for a key; \
without any it listens on this machine only. A server that runs notices changes within seconds.

A key of the role `user` opens the conversations of its tenant; one of the role `admin` opens those of all \
tenants, and the server itself. `create` prints the key to standard output, once.

Examples:
  oracle keys create --name ann
  oracle keys create --name ops --role admin --expires 30d
  oracle keys create --name shop --tenant shop --json | jq -r .key
  oracle keys list
  oracle keys revoke ann";

pub(super) const CTL: &str = "\
Talks to the server over the data directory, which only the owner of that directory can do, or with --url to \
any server, which wants a key of the role `admin`. What is done is recorded with the name of who did it. Of \
several servers over the data directory the owner of a session is asked, lists and `watch` ask all of them, and \
`drain`, `shutdown` and `reload` need --pid.

`watch` goes on until Ctrl-C. With --json an answer is one JSON object, and what is watched one a line.

Examples:
  oracle ctl list --state running
  oracle ctl watch --type control. --type approval.
  oracle ctl pause review
  oracle ctl steer review \"look at the tests first\"
  oracle ctl budget review --turns 60
  oracle ctl approvals
  oracle ctl approve review call_1
  oracle ctl --url https://oracle.example --key-file admin.key inspect acme/review";

pub(super) const SESSIONS: &str = "\
Sessions are kept in the data directory. They can be looked at while other processes use them.

A session that is `running` has a query that has not ended: somebody works on it, or it was cut off and \
goes on when the session is next asked something.

Examples:
  oracle sessions list --limit 10
  oracle sessions show review
  oracle sessions events review --type tool. | jq .payload.name
  oracle sessions export review > review.jsonl
  oracle sessions search retry policy
  oracle sessions delete review --yes";

pub(super) const USAGE: &str = "\
Reads what is kept, also while other processes use it. Turns and summaries count, and failed tries as \
far as their providers said what those took; a sub-agent's calls count once, in its own session. What was \
deleted is not counted. Money is by the prices that held when a call was made.

A row has turns, tokens sent, those of them that the provider had cached, tokens received, and cost.

Examples:
  oracle usage
  oracle usage --by model
  oracle usage --by day --json | jq .usage.output_tokens";

pub(super) const JOURNAL: &str = "\
Both read the file, also while another process uses it. `verify` ends with exit code 1 if anything is \
not as it was written, and names session and record.

Examples:
  oracle journal verify
  oracle journal verify --json | jq '.problems[].session'
  oracle journal stats --data-dir ~/backup/oracle";

pub(super) const CLASSIFY: &str = "\
Without QUERY, every line of standard input is a query, blank ones too. For each there is one line \
of JSON: query_type, needs_code, needs_vault, needs_web, confidence, keywords_matched.

With --jsonl, every line is an object {\"query\": \"…\", \"context\": \"…\"} or a string; `context` may be \
missing, other keys are ignored, a blank line is an empty query.

With --explain, people read what counted instead of JSON. With --evaluate, every line of FILE is a type, \
a tab, perhaps a language and a tab, and a query; what comes out is accuracy, confusion and calibration.

Examples:
  oracle classify \"where is the parser?\"
  oracle classify --context \"The parser is in src/read.rs.\" \"and the second one?\"
  oracle classify < queries.txt
  oracle classify --jsonl < queries.jsonl
  oracle classify --explain \"why did we drop the cache?\"
  oracle classify --evaluate labelled.tsv";

pub(super) const SIGNAL: &str = "\
Prints one line of JSON: `signal` (type, confidence, fields, raw_xml) or null, `rejected` (why a block \
is no signal) or null, and `text`, which is what people see of the reply.

With --jsonl, every line is an object {\"response\": \"…\"} or a string; other keys are ignored, a blank \
line is an empty reply. Each gets a line of its own.

Examples:
  oracle signal reply.txt
  oracle signal < reply.txt
  oracle signal --jsonl replies.jsonl";

pub(super) const PROMPT: &str = "\
Prints the prompt; without --type and --query, that of small talk. What was left out or cut stands \
on standard error. With --json, an object with content, segments_included, token_estimate and \
warnings.

Examples:
  oracle prompt --type code
  oracle prompt --query \"where is the parser?\" --json
  ORACLE_PROMPT__DIR=my-prompts oracle prompt --type research";

pub(super) const REPLAY: &str = "\
The scenario holds the query, settings, and the turns: what the model replies, which tools it calls \
and what they give.

Examples:
  oracle replay scenario.json
  oracle replay --json - < scenario.json";

#[cfg(feature = "mock")]
pub(super) const MOCK_MODEL: &str = "\
Speaks OpenAI's chat completions (POST /v1/chat/completions) and Anthropic's messages (POST \
/v1/messages). Prints its URL when it serves; Ctrl-C ends it. GET /stats tells figures, GET /requests the \
last requests, POST /reset begins anew. A request that breaks a rule of its dialect is told of on standard \
error. docs/mock-model.md tells more.

A request asks for a fault of its own with the header `x-mock-fault: NAME`.

Examples:
  oracle mock-model --port 0 --turns 2 --tools
  oracle mock-model --latency 20ms..80ms --fault 429:0.05 --fault cut=3@7 --seed 1
  oracle mock-model --requests-per-minute 600 --concurrency 8 --key secret --strict
  oracle mock-model --list-faults";

pub(super) const CONFIG: &str = "\
Defaults, the file, the environment (ORACLE_MAX_TURNS, ORACLE_BUDGET__MAX_TOKENS) and options of the \
command line are laid over one another, the later wins.

Examples:
  oracle config show
  oracle config show --json --max-turns 5
  oracle config check --config oracle.toml";

pub(super) const MODELS: &str = "\
Providers are asked at the same time, each for a few seconds at most: those of the configuration, those \
whose key is in the environment, and a server of Ollama on this machine. One that does not answer is \
named with the reason, and the exit code is 0 all the same. Keys are never shown, only where they are from.

Prices are US dollars for a million tokens, from the configuration or as known when this was built.

Examples:
  oracle models
  oracle models --json | jq -r '.providers[] | .name as $p | .models[] | \"\\($p)/\\(.name)\"'";

pub(super) const DOCTOR: &str = "\
Looks at configuration, data directory and journal, and then asks each model of the chain three short \
questions: for a reply, for a call of a tool, and under Oracle's own prompt for a signal. That costs a \
little; how many tokens it took is said at the end.

Every check is a line: ok, warn or fail, what was seen, and how to mend it. The exit code is 1 if one \
failed. With --model offline nobody is asked.

Examples:
  oracle doctor
  oracle doctor --model ollama/qwen3
  oracle doctor --model offline --json";

pub(super) const COMPLETIONS: &str = "\
Examples:
  oracle completions bash > ~/.local/share/bash-completion/completions/oracle
  oracle completions fish > ~/.config/fish/completions/oracle.fish";
