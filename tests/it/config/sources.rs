//! Sources of values and their precedence.

use std::{path::PathBuf, time::Duration};

use oracle_agent::{
    config::{Config, ConfigFile, ModelChain, Origin, Sources, load, near_misses},
    kernel::{BasisPoints, OnMissingSignal},
    model::NanoUsd,
};

use super::{from_file, problems, sources};

/// Environment variables, among them a custom limit of 5 turns.
#[test]
fn max_turns_and_thresholds_hold_to_their_bounds() {
    for (name, key, allowed, good, bad) in [
        (
            "ORACLE_MAX_TURNS",
            "oracle.max_turns",
            "a whole number from 1 to 100",
            &["1", "5", "30", "100", " 7 "][..],
            &[
                "0",
                "101",
                "-1",
                "3.5",
                "30.0",
                "many",
                "",
                "true",
                "99999999999999999999",
            ][..],
        ),
        (
            "ORACLE_ITERATION_WARNING_THRESHOLD",
            "oracle.iteration_warning_threshold",
            "a number from 0.0 to 1.0 with at most 4 decimals",
            &["0", "0.0", "0.7", "0.70", "1", "1.0", "0.3333", " 0.5 "],
            &[
                "-0.1",
                "1.1",
                "0.33333",
                "70%",
                "0,7",
                "",
                "nan",
                "inf",
                "0.70000000000000000001",
            ],
        ),
        (
            "ORACLE_TOKEN_WARNING_THRESHOLD",
            "oracle.token_warning_threshold",
            "a number from 0.0 to 1.0 with at most 4 decimals",
            &["0.8"],
            &["80"],
        ),
        (
            "ORACLE_CONTEXT_WARNING_THRESHOLD",
            "oracle.context_warning_threshold",
            "a number from 0.0 to 1.0 with at most 4 decimals",
            &["0.9"],
            &["x"],
        ),
    ] {
        for value in good {
            let loaded = load(&sources("", &[(name, value)], &[])).unwrap();
            assert_eq!(
                loaded.origin(key),
                Origin::Environment(name.into()),
                "{name}={value}"
            );
        }
        // Where the reference design falls back to the default, the start fails.
        for value in bad {
            let line =
                format!("environment variable {name}: `{key}` is `{value}`, expected {allowed}");
            assert_eq!(problems(&sources("", &[(name, value)], &[])), [line]);
        }
    }
}

#[test]
fn thresholds_are_exact() {
    for (written, points) in [
        ("0.7", 7_000),
        ("0.29", 2_900),
        ("1", 10_000),
        ("0.5700", 5_700),
    ] {
        let file = format!("[oracle]\niteration_warning_threshold = {written}");
        let config = from_file(&file).config;
        assert_eq!(
            config.oracle.iteration_warning_threshold,
            BasisPoints::new(points),
            "{written}"
        );
    }
    // The nearest float to this is that of 0.7.
    let file = "[oracle]\niteration_warning_threshold = 0.70000000000000000001";
    assert_eq!(
        problems(&sources(file, &[], &[])),
        [
            "oracle.toml:2: `oracle.iteration_warning_threshold` is `0.70000000000000000001`, \
             expected a number from 0.0 to 1.0 with at most 4 decimals"
        ]
    );
}

#[test]
fn later_sources_win() {
    let file = "[oracle]\nmax_turns = 10\n";
    let (short, options) = (
        ("ORACLE_MAX_TURNS", "20"),
        [("--max-turns", "oracle.max_turns", "40")],
    );
    let at_2 = Origin::ConfigFile {
        path: PathBuf::from("oracle.toml"),
        line: 2,
    };
    let variable = Origin::Environment("ORACLE_MAX_TURNS".into());
    let option = Origin::Option("--max-turns".into());
    for (name, sources, turns, origin) in [
        ("default", sources("", &[], &[]), 30, Origin::Default),
        ("file", sources(file, &[], &[]), 10, at_2),
        (
            "environment over default",
            sources("", &[short], &[]),
            20,
            variable.clone(),
        ),
        (
            "environment over file",
            sources(file, &[short], &[]),
            20,
            variable,
        ),
        (
            "option over file",
            sources(file, &[], &options),
            40,
            option.clone(),
        ),
        (
            "option over all",
            sources(file, &[short], &options),
            40,
            option,
        ),
    ] {
        let loaded = load(&sources).unwrap();
        assert_eq!(loaded.config.oracle.max_turns, turns, "{name}");
        assert_eq!(loaded.origin("oracle.max_turns"), origin, "{name}");
    }
    let twice = [
        ("--max-turns", "oracle.max_turns", "2"),
        ("--set", "oracle.max_turns", "3"),
    ];
    assert_eq!(
        load(&sources("", &[], &twice))
            .unwrap()
            .config
            .oracle
            .max_turns,
        3
    );
}

#[test]
fn every_kind_of_value_is_read_from_the_environment() {
    let loaded = load(&sources(
        "",
        &[
            ("ORACLE_BUDGET__MAX_TOKENS", "200000"),
            ("ORACLE_BUDGET__MAX_COST_USD", "0.000001"),
            ("ORACLE_BUDGET__SESSION_MAX_TOKENS", "3000000"),
            ("ORACLE_BUDGET__SESSION_MAX_COST_USD", "12.5"),
            ("ORACLE_FALLBACK__LOW_CONFIDENCE", "0.25"),
            ("ORACLE_TURN__ON_MISSING_SIGNAL", "finish"),
            ("ORACLE_PROMPT__DIR", "5"),
            ("ORACLE_MODEL__CHAIN", "openai/gpt-x, offline"),
            ("ORACLE_MODEL__IDLE_DEADLINE", "1500ms"),
        ],
        &[],
    ));
    let config = loaded.unwrap().config;
    assert_eq!(config.budget.max_tokens, Some(200_000));
    assert_eq!(config.budget.max_cost_usd, Some(NanoUsd(1_000)));
    assert_eq!(config.budget.session_max_tokens, Some(3_000_000));
    assert_eq!(
        config.budget.session_max_cost_usd,
        Some(NanoUsd(12_500_000_000))
    );
    assert_eq!(config.fallback.low_confidence, BasisPoints::new(2_500));
    assert_eq!(config.turn.on_missing_signal, OnMissingSignal::Finish);
    assert_eq!(config.prompt.dir.unwrap().as_path(), "5");
    assert_eq!(
        config.model.chain,
        Some(ModelChain::new(["openai/gpt-x", "offline/offline"]).unwrap())
    );
    assert_eq!(config.model.idle_deadline, Duration::from_millis(1_500));
}

#[test]
fn unrelated_variables_are_ignored() {
    let others = [
        ("ORACLE_HOME", "/opt/oracle"),
        ("ORACLE_SID", "XE"),
        ("ORACLE_MAX_TURN", "x"),
        ("ORACLE_MAXTOKENS", "9"),
        ("ORACLE_MODELS__CHAIN", "x"),
        ("ORACLE_FOO__BAR", "x"),
        ("ORACLE_", ""),
        ("ORACLE___", ""),
        ("ORACLE_oracle__max_turns", "x"),
        ("oracle_max_turns", "x"),
        ("MAX_TURNS", "x"),
        ("PATH", "/bin"),
    ];
    let sources = sources("", &others, &[]);
    assert_eq!(load(&sources).unwrap().config, Config::default());
    let near = [
        ("ORACLE_MAX_TURN", "ORACLE_MAX_TURNS"),
        ("ORACLE_MAXTOKENS", "ORACLE_BUDGET__MAX_TOKENS"),
        ("ORACLE_MODELS__CHAIN", "ORACLE_MODEL__CHAIN"),
        ("ORACLE_oracle__max_turns", "ORACLE_MAX_TURNS"),
    ];
    let near = near.map(|(name, ours)| (name, ours.to_owned()));
    assert!(near_misses(&sources.environment).eq(near));
}

#[test]
fn unreadable_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none.toml");
    let problem = ConfigFile::read(&path).unwrap_err().to_string();
    let start = format!("{}: cannot read the file: ", path.display());
    assert!(problem.starts_with(&start), "{problem}");
    std::fs::write(&path, "[oracle]\nmax_turns = 9\n").unwrap();
    let sources = Sources {
        file: Some(ConfigFile::read(&path).unwrap()),
        ..Sources::default()
    };
    assert_eq!(load(&sources).unwrap().config.oracle.max_turns, 9);
}
