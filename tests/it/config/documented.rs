//! The defaults, the file that documents them, and what is shown of a configuration.

use oracle_agent::config::{Budget, Config, OnMissingSignal, Sources, load};

use super::{from_file, sources};

const DOCUMENTED: &str = include_str!("../../../config/oracle.toml");

#[test]
fn the_documented_file_is_the_default() {
    assert_eq!(from_file(DOCUMENTED).config, Config::default());
    assert_eq!(load(&Sources::default()).unwrap().config, Config::default());
}

#[test]
fn the_documented_file_names_every_key_with_a_word_about_it() {
    // Unlike TOML, JSON shows optional keys that are not set.
    let all = serde_json::to_value(Config::default()).unwrap();
    let mut keys = 0;
    for (section, values) in all.as_object().unwrap() {
        let head = format!("\n[{section}]\n");
        let (_, body) = DOCUMENTED
            .split_once(&head)
            .unwrap_or_else(|| panic!("no {head}"));
        let body = body.split("\n[").next().unwrap();
        for (key, value) in values.as_object().unwrap() {
            let mark = if value.is_null() { "#" } else { "" };
            let line = format!("{mark}{key} = ");
            let lines: Vec<&str> = body.lines().collect();
            let at = lines.iter().position(|found| found.starts_with(&line));
            let at = at.unwrap_or_else(|| panic!("[{section}] has no `{line}`"));
            assert!(
                at > 0 && lines[at - 1].starts_with("# "),
                "[{section}] {key}: not explained"
            );
            keys += 1;
        }
    }
    let set = |line: &&str| {
        line.trim_start_matches('#')
            .split_once(" = ")
            .is_some_and(|(key, _)| !key.contains(' '))
    };
    assert_eq!(
        DOCUMENTED.lines().filter(set).count(),
        keys,
        "a key too many"
    );
}

#[test]
fn the_examples_of_optional_keys_are_good() {
    let example = |line: &str| match line.strip_prefix('#') {
        Some(setting) if !setting.starts_with(' ') => format!("{setting}\n"),
        _ => format!("{line}\n"),
    };
    let text: String = DOCUMENTED.lines().map(example).collect();
    let shown = serde_json::to_string(&from_file(&text).config).unwrap();
    assert!(
        !shown.contains("null"),
        "an optional key has no example: {shown}"
    );
}

#[test]
fn the_defaults_are_those_of_the_specification() {
    let config = Config::default();
    // T031, spec 6
    assert_eq!(config.oracle.max_turns.get(), 30);
    assert_eq!(config.oracle.iteration_warning_threshold.get(), 7_000);
    assert_eq!(config.oracle.token_warning_threshold.get(), 8_000);
    assert_eq!(config.oracle.context_warning_threshold.get(), 7_000);
    assert_eq!(
        config.budget,
        Budget {
            max_tokens: None,
            max_cost_usd: None,
            session_max_tokens: None,
            session_max_cost_usd: None,
            prices: None,
        }
    );
    // Spec 7
    assert_eq!(config.fallback.silence_turns.get(), 3);
    assert_eq!(config.fallback.low_confidence.get(), 3_000);
    // Spec 8, 5, 11, 12, 10
    assert_eq!(config.turn.on_missing_signal, OnMissingSignal::Remind);
    assert_eq!(config.prompt.token_budget.get(), 8_000);
    assert_eq!(config.delegation.max_depth.get(), 1);
    assert_eq!(config.model.chain.models(), ["offline/offline"]);
    assert_eq!(config.supervisor.max_crashes.get(), 3);
    assert_eq!(config.supervisor.max_process_deaths.get(), 10);
    assert_eq!(config.validate(), Ok(()));
}

#[test]
fn what_is_shown_can_be_used_as_a_file_and_says_where_values_come_from() {
    let odd = "/tmp/\"quoted\" \\ # é";
    let loaded = load(&sources(
        "[oracle]\nmax_turns = 12",
        &[
            ("ORACLE_MODEL__CHAIN", "a/b,c/d"),
            ("ORACLE_BUDGET__MAX_COST_USD", "2.50"),
        ],
        &[("--data-dir", "data.dir", odd)],
    ))
    .unwrap();
    let shown = loaded.show().unwrap();
    assert_eq!(from_file(&shown).config, loaded.config);
    for line in [
        "[oracle]\nmax_turns = 12 # oracle.toml:2\niteration_warning_threshold = 0.7 # default\n",
        "[budget]\n# max_tokens is not set\nmax_cost_usd = 2.5 # environment variable ORACLE_BUDGET__MAX_COST_USD\n",
        "chain = [\"a/b\", \"c/d\"] # environment variable ORACLE_MODEL__CHAIN\n",
        "stall_limit = \"15m\" # default\n",
        "# option --data-dir\n",
    ] {
        assert!(shown.contains(line), "no {line:?} in\n{shown}");
    }
}

#[test]
fn a_configuration_round_trips_through_serde() {
    let config = from_file("[model]\nchain = 'a/b'\n[data]\ndir = 'x'").config;
    let text = toml::to_string(&config).unwrap();
    assert_eq!(toml::from_str::<Config>(&text).unwrap(), config);
    let unknown = toml::from_str::<Config>("[oracle]\nmax_turn = 1").unwrap_err();
    assert!(
        unknown.message().contains("unknown field `max_turn`"),
        "{unknown}"
    );
}
