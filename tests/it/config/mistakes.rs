//! Reports of mistakes: the exact lines.

use std::{ffi::OsString, time::Duration};

use oracle_agent::config::{Config, Sources};

use super::{problems, sources};

#[test]
fn each_problem_is_one_line() {
    let table = [
        (
            "wrong kind",
            "[oracle]\nmax_turns = \"30\"",
            "oracle.toml:2: `oracle.max_turns` is `\"30\"`, expected a whole number from 1 to 100",
        ),
        (
            "beyond all integers",
            "[oracle]\nmax_turns = 99999999999999999999",
            "oracle.toml:2: `oracle.max_turns` is `99999999999999999999`, expected a whole number \
             from 1 to 100",
        ),
        (
            "a table for a value",
            "[oracle.max_turns]\nx = 1",
            "oracle.toml:1: `oracle.max_turns` is `[oracle.max_turns]`, expected a whole number \
             from 1 to 100",
        ),
        (
            "a share as text with a comma",
            "[fallback]\n\nlow_confidence = '0,3'",
            "oracle.toml:3: `fallback.low_confidence` is `'0,3'`, expected a number from 0.0 to \
             1.0 with at most 4 decimals",
        ),
        (
            "a time without unit",
            "[tools]\ncall_deadline = 30",
            "oracle.toml:2: `tools.call_deadline` is `30`, expected a duration from 1s to 1h, \
             such as 250ms, 30s, 10m or 1h",
        ),
        (
            "a time out of range",
            "[tools]\ncall_deadline = \"0s\"",
            "oracle.toml:2: `tools.call_deadline` is `\"0s\"`, expected a duration from 1s to 1h, \
             such as 250ms, 30s, 10m or 1h",
        ),
        (
            "a choice",
            "turn.on_missing_signal = \"stop\"",
            "oracle.toml:1: `turn.on_missing_signal` is `\"stop\"`, expected \"auto\", \"remind\" \
             or \"finish\"",
        ),
        (
            "no money",
            "budget.max_cost_usd = 0",
            "oracle.toml:1: `budget.max_cost_usd` is `0`, expected a positive amount of US \
             dollars, up to 1000000, with at most 6 decimals",
        ),
        (
            "no tokens for a session",
            "budget.session_max_tokens = 0",
            "oracle.toml:1: `budget.session_max_tokens` is `0`, expected a whole number from 1 to \
             4000000000",
        ),
        (
            "too exact an amount for a session",
            "budget.session_max_cost_usd = 0.0000001",
            "oracle.toml:1: `budget.session_max_cost_usd` is `0.0000001`, expected a positive \
             amount of US dollars, up to 1000000, with at most 6 decimals",
        ),
        (
            "a session's key almost right",
            "[budget]\nsession_max_cost = 5",
            "oracle.toml:2: unknown key `budget.session_max_cost` (set to `5`); did you mean \
             `budget.session_max_cost_usd`?",
        ),
        (
            "an empty path",
            "[data]\ndir = ''",
            "oracle.toml:2: `data.dir` is `''`, expected a non-empty path",
        ),
        (
            "a path of another kind",
            "[data]\ndir = 5",
            "oracle.toml:2: `data.dir` is `5`, expected a non-empty path",
        ),
        (
            "no models",
            "[model]\nchain = []",
            "oracle.toml:2: `model.chain` is `[]`, expected 1 to 8 different models, each written \
             provider/model, such as ollama/qwen3",
        ),
        (
            "a model without provider",
            "[model]\nchain = [\"gpt\"]",
            "oracle.toml:2: `model.chain` is `[\"gpt\"]`, expected 1 to 8 different models, each \
             written provider/model, such as ollama/qwen3",
        ),
        (
            "models of another kind",
            "[model]\nchain = [1]",
            "oracle.toml:2: `model.chain` is `[1]`, expected 1 to 8 different models, each \
             written provider/model, such as ollama/qwen3",
        ),
        (
            "a server's name with the separator of tools",
            "[[mcp]]\nname = 'a__b'\ncommand = 'x'",
            "oracle.toml:2: `mcp.name` is `'a__b'`, expected 1 to 32 letters, digits, `-` and `_`, \
             but no `__`, which separates it from the names of tools",
        ),
        (
            "too many shards",
            "[supervisor]\nshards = 65",
            "oracle.toml:2: `supervisor.shards` is `65`, expected a whole number from 1 to 64",
        ),
        (
            "files larger than any tool reads",
            "[tools]\nmax_file_bytes = 1073741824",
            "oracle.toml:2: `tools.max_file_bytes` is `1073741824`, expected a whole number from \
             1024 to 67108864",
        ),
        (
            "too deep",
            "[delegation]\nmax_depth = 4",
            "oracle.toml:2: `delegation.max_depth` is `4`, expected a whole number from 0 to 3",
        ),
        (
            "a key almost right",
            "[oracle]\n# words\nmax_turn = 5",
            "oracle.toml:3: unknown key `oracle.max_turn` (set to `5`); did you mean \
             `oracle.max_turns`?",
        ),
        (
            "a key of another section",
            "[budget]\nmax_turns = 5",
            "oracle.toml:2: unknown key `budget.max_turns` (set to `5`); did you mean \
             `oracle.max_turns`?",
        ),
        (
            "a key outside of all sections",
            "max_turns = 5",
            "oracle.toml:1: unknown key `max_turns` (set to `5`); did you mean \
             `oracle.max_turns`?",
        ),
        (
            "a key like no other",
            "[data]\ncolour = 'red'",
            "oracle.toml:2: unknown key `data.colour` (set to `'red'`); `[data]` has dir",
        ),
        (
            "a password in the URL of the database",
            "[journal]\nurl = 'postgresql://u:hunter2@h/d'",
            "oracle.toml:2: `journal.url` is `…`, expected a postgresql:// URL without password",
        ),
        (
            "a secret in the wrong place",
            "[model]\napi_key = 'sk-123'",
            "oracle.toml:2: unknown key `model.api_key` (set to `…`); `[model]` has chain, \
             attempts, patience, connect_deadline, headers_deadline, first_token_deadline, \
             idle_deadline, total_deadline",
        ),
        (
            "a section almost right",
            "[bugdet]\nmax_tokens = 5",
            "oracle.toml:1: unknown section `[bugdet]`; did you mean `[budget]`?",
        ),
        (
            "a section like no other",
            "[colours]",
            "oracle.toml:1: unknown section `[colours]`; the sections are oracle, budget, fallback, turn, delegation, prompt, query, tools, notes, web, model, session, supervisor, actors, server, tenants, data, journal, cluster, [[profiles]], [[providers]] and [[mcp]]",
        ),
        (
            "a value for a section",
            "budget = 5",
            "oracle.toml:1: `budget` is `5`, expected a section: write the line `[budget]` \
             with its keys below",
        ),
        (
            "a long value of many lines",
            "[data]\ndir = []\n[model]\nchain = '''\nline\n\tx 0123456789012345678901234567890123456789012345678901234567890123456789'''",
            "oracle.toml:2: `data.dir` is `[]`, expected a non-empty path\noracle.toml:4: \
             `model.chain` is `'''\\nline\\n\\tx \
             012345678901234567890123456789012345678901234567…`, expected 1 to 8 different \
             models, each written provider/model, such as ollama/qwen3",
        ),
        (
            "a stall limit below a deadline",
            "[supervisor]\nstall_limit = '10m'",
            "oracle.toml:2: `supervisor.stall_limit` is `10m`, expected more than \
             `model.total_deadline`, which is 10m",
        ),
        (
            "a deadline above the stall limit",
            "[tools]\ncall_deadline = '20m'",
            "oracle.toml:2: `tools.call_deadline` is `20m`, expected less than \
             `supervisor.stall_limit`, which is 15m",
        ),
        (
            "writing without a folder of notes",
            "[notes]\nwrite = true",
            "oracle.toml:2: `notes.write` is `true`, expected false unless `notes.dir` is set",
        ),
        (
            "not TOML",
            "[oracle]\nmax_turns = 5\nmax turns",
            "oracle.toml:3: not TOML: key with no value, expected `=`",
        ),
        (
            "the same key twice",
            "[oracle]\nmax_turns = 5\nmax_turns = 6",
            "oracle.toml:3: not TOML: duplicate key",
        ),
    ];
    for (name, file, says) in table {
        assert_eq!(
            problems(&sources(file, &[], &[])).join("\n"),
            says,
            "{name}"
        );
    }
}

#[test]
fn problems_name_their_variable_or_option() {
    for (name, environment, options, says) in [
        (
            "an unknown key",
            &[("ORACLE_BUDGET__MAX_TOKEN", "5")][..],
            &[][..],
            "environment variable ORACLE_BUDGET__MAX_TOKEN: unknown key `budget.max_token` (set \
             to `5`); did you mean `budget.max_tokens`?",
        ),
        (
            "a secret",
            &[("ORACLE_MODEL__API_KEY", "sk-123")],
            &[],
            "environment variable ORACLE_MODEL__API_KEY: unknown key `model.api_key` (set to \
             `…`); `[model]` has chain, attempts, patience, connect_deadline, headers_deadline, \
             first_token_deadline, idle_deadline, total_deadline",
        ),
        (
            "a long name for a short one",
            &[("ORACLE_ORACLE__MAX_TURNS", "5")],
            &[],
            "environment variable ORACLE_ORACLE__MAX_TURNS: `oracle.max_turns` is `5`, but \
             the variable must be spelled ORACLE_MAX_TURNS",
        ),
        (
            "a bad value",
            &[("ORACLE_SUPERVISOR__STALL_LIMIT", "900")],
            &[],
            "environment variable ORACLE_SUPERVISOR__STALL_LIMIT: `supervisor.stall_limit` is \
             `900`, expected a duration from 1s to 24h, such as 250ms, 30s, 10m or 1h",
        ),
        (
            "an empty value",
            &[("ORACLE_DATA__DIR", "")],
            &[],
            "environment variable ORACLE_DATA__DIR: `data.dir` is ``, expected a non-empty path",
        ),
        (
            "an option out of range",
            &[],
            &[("--max-turns", "oracle.max_turns", "0")],
            "option --max-turns: `oracle.max_turns` is `0`, expected a whole number from 1 to 100",
        ),
        (
            "an option for no key",
            &[],
            &[("--set", "max_turns", "9")],
            "option --set: unknown key `max_turns` (set to `9`); did you mean `oracle.max_turns`?",
        ),
        (
            "a deadline by option over a stall limit by variable",
            &[("ORACLE_SUPERVISOR__STALL_LIMIT", "20m")],
            &[("--set", "model.total_deadline", "1h")],
            "option --set: `model.total_deadline` is `1h`, expected less than \
             `supervisor.stall_limit`, which is 20m",
        ),
    ] {
        assert_eq!(
            problems(&sources("", environment, options)),
            [says],
            "{name}"
        );
    }
}

#[cfg(unix)]
#[test]
fn non_utf_8_variable_is_refused_only_for_known_keys() {
    use std::os::unix::ffi::OsStringExt;
    let broken = OsString::from_vec(vec![b'3', 0xff]);
    let environment = ["ORACLE_MAX_TURNS", "ORACLE_HOME"].map(|name| (name.into(), broken.clone()));
    let sources = Sources {
        environment: environment.to_vec(),
        ..Sources::default()
    };
    assert_eq!(
        problems(&sources),
        [
            "environment variable ORACLE_MAX_TURNS: `oracle.max_turns` is `3\u{fffd}`, expected \
             UTF-8 text"
        ]
    );
}

#[test]
fn invalid_value_stops_the_start_even_if_overridden() {
    let sources = sources(
        "[oracle]\nmax_turns = 0",
        &[("ORACLE_MAX_TURNS", "20")],
        &[],
    );
    assert_eq!(
        problems(&sources),
        ["oracle.toml:2: `oracle.max_turns` is `0`, expected a whole number from 1 to 100"]
    );
}

#[test]
fn all_problems_are_reported_at_once_in_order() {
    let file = "[tools]\nmax_parallel = 0\n[budget]\nmax_tokens = -1\n[oracle]\nmax_turnz = 1\n";
    let environment = [
        ("ORACLE_TURN__ON_MISSING_SIGNAL", "x"),
        ("ORACLE_MAX_TURNS", "x"),
    ];
    let options = [("--model", "model.chain", "gpt")];
    let lines = problems(&sources(file, &environment, &options));
    let places: Vec<&str> = lines
        .iter()
        .map(|line| line.split(": ").next().unwrap())
        .collect();
    assert_eq!(
        places,
        [
            "oracle.toml:2",
            "oracle.toml:4",
            "oracle.toml:6",
            "environment variable ORACLE_MAX_TURNS",
            "environment variable ORACLE_TURN__ON_MISSING_SIGNAL",
            "option --model",
        ]
    );
}

#[test]
fn every_line_of_invalid_toml_is_named() {
    let lines = problems(&sources("a = \"\nb = \nc d\n[x\ny = 5\n", &[], &[]));
    let places: Vec<&str> = lines
        .iter()
        .map(|line| line.split(": ").next().unwrap())
        .collect();
    assert_eq!(
        places,
        [
            "oracle.toml:1",
            "oracle.toml:2",
            "oracle.toml:3",
            "oracle.toml:4"
        ]
    );
}

/// A rejected stall limit is not compared with other values.
#[test]
fn invalid_value_causes_no_second_problem() {
    let file = "[supervisor]\nstall_limit = 'soon'\n[model]\ntotal_deadline = '1h'";
    let lines = problems(&sources(file, &[], &[]));
    assert_eq!(lines.len(), 1, "{lines:?}");
}

#[test]
fn validate_checks_a_configuration_built_in_code() {
    let mut config = Config::default();
    config.supervisor.stall_limit = Duration::from_secs(45);
    let problems = config.validate().unwrap_err();
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "set in code: `model.idle_deadline` is `1m`, expected less than \
             `supervisor.stall_limit`, which is 45s",
            "set in code: `model.total_deadline` is `10m`, expected less than \
             `supervisor.stall_limit`, which is 45s",
        ]
    );
}
