//! The defaults, the file that documents them, and the displayed configuration.

use oracle_agent::{
    config::{Budget, Config, Sources, load},
    kernel::{BasisPoints, OnMissingSignal},
};

use super::{from_file, sources};

const DOCUMENTED: &str = include_str!("../../../config/oracle.toml");

#[test]
fn documented_file_equals_the_defaults() {
    assert_eq!(from_file(DOCUMENTED).config, Config::default());
    assert_eq!(load(&Sources::default()).unwrap().config, Config::default());
}

/// Uncomments the example settings of the documented file.
fn with_examples() -> String {
    let example = |line: &str| match line.strip_prefix('#') {
        Some(setting) if !setting.starts_with(' ') => format!("{setting}\n"),
        _ => format!("{line}\n"),
    };
    DOCUMENTED.lines().map(example).collect()
}

/// Checks that this part of the documented file has the key, with an explanation before it.
fn explains(place: &str, body: &str, key: &str, mark: &str) {
    let line = format!("{mark}{key} = ");
    let lines: Vec<&str> = body.lines().collect();
    let at = lines.iter().position(|found| found.starts_with(&line));
    let at = at.unwrap_or_else(|| panic!("{place} has no `{line}`"));
    assert!(
        at > 0 && lines[at - 1].starts_with("# "),
        "{place} {key}: not explained"
    );
}

#[test]
fn documented_file_explains_every_key() {
    // JSON also shows optional keys that are not set; TOML does not.
    let mut all = serde_json::to_value(Config::default()).unwrap();
    for list in ["profiles", "providers", "mcp"] {
        all.as_object_mut().unwrap().remove(list);
    }
    let mut keys = 0;
    for (section, values) in all.as_object().unwrap() {
        let head = format!("\n[{section}]\n");
        let (_, body) = DOCUMENTED
            .split_once(&head)
            .unwrap_or_else(|| panic!("no {head}"));
        let body = body.split("\n[").next().unwrap();
        for (key, value) in values.as_object().unwrap() {
            let mark = if value.is_null() { "#" } else { "" };
            explains(section, body, key, mark);
            keys += 1;
        }
    }
    let set = |line: &&str| {
        line.trim_start_matches('#')
            .split_once(" = ")
            .is_some_and(|(key, _)| !key.contains(' '))
    };
    let (sections, _) = DOCUMENTED.split_once("#[[profiles]]").unwrap();
    assert_eq!(sections.lines().filter(set).count(), keys, "a key too many");
}

#[test]
fn documented_profile_explains_every_key() {
    let (_, body) = DOCUMENTED.split_once("#[[profiles]]").unwrap();
    let (body, _) = body.split_once("#[[providers]]").unwrap();
    let file = "[[profiles]]\nname = 'x'\nxyzzy = 1\n";
    let said = super::problems(&sources(file, &[], &[])).join("\n");
    let (_, known) = said.split_once("`[[profiles]]` has ").unwrap();
    let known: Vec<&str> = known.split(", ").collect();
    for key in &known {
        explains("[[profiles]]", body, key, "#");
    }
    assert_eq!(known.len(), 21, "{known:?}");
    let set = |line: &&str| line.starts_with('#') && !line.starts_with("# ");
    assert_eq!(
        body.lines().filter(set).count(),
        known.len(),
        "a key too many"
    );
}

#[test]
fn documented_providers_explain_every_key() {
    let (_, body) = DOCUMENTED.split_once("#[[providers]]").unwrap();
    let (body, of_mcp) = body.split_once("#[[mcp]]").unwrap();
    let (own, of_models) = body.split_once("#[[providers.models]]").unwrap();
    // The error for an unknown key lists all known ones.
    for (head, text, keys) in [
        ("[[providers]]\nname = 'x'", own, 15),
        (
            "[[providers]]\nname = 'x'\n[[providers.models]]",
            of_models,
            16,
        ),
        ("[[mcp]]\nname = 'x'", of_mcp, 16),
    ] {
        let file = format!("{head}\nxyzzy = 1\n");
        let said = super::problems(&sources(&file, &[], &[])).join("\n");
        let (_, known) = said.split_once("]]` has ").unwrap();
        let known = known.lines().next().unwrap().split(", ");
        let known: Vec<&str> = known.filter(|key| *key != "models").collect();
        for key in &known {
            let place = if text.contains(&format!("\n#{key} = ")) {
                text
            } else {
                body
            };
            explains(head, place, key, "#");
        }
        assert_eq!(
            known.len(),
            keys - usize::from(head == "[[providers]]\nname = 'x'"),
            "{known:?}"
        );
    }
}

#[test]
fn examples_of_optional_keys_are_valid() {
    let config = from_file(&with_examples()).config;
    let mut shown = serde_json::to_value(&config).unwrap();
    for list in ["profiles", "providers", "mcp"] {
        // In a list, an example may leave a key to another one.
        shown.as_object_mut().unwrap().remove(list);
    }
    let shown = shown.to_string();
    assert!(
        !shown.contains("null"),
        "an optional key has no example: {shown}"
    );
    let lists = (
        config.profiles.len(),
        config.providers.len(),
        config.mcp.len(),
    );
    assert_eq!(lists, (1, 2, 2));
}

#[test]
fn defaults_have_the_required_values() {
    let config = Config::default();
    // Bounds of the reference design.
    assert_eq!(config.oracle.max_turns, 30);
    assert_eq!(
        config.oracle.iteration_warning_threshold,
        BasisPoints::new(7_000)
    );
    assert_eq!(
        config.oracle.token_warning_threshold,
        BasisPoints::new(8_000)
    );
    assert_eq!(
        config.oracle.context_warning_threshold,
        BasisPoints::new(7_000)
    );
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
    assert_eq!(config.fallback.silence_turns, 3);
    assert_eq!(config.fallback.low_confidence, BasisPoints::new(3_000));
    assert_eq!(config.turn.on_missing_signal, OnMissingSignal::Auto);
    assert_eq!(config.prompt.token_budget, 8_000);
    assert_eq!(config.delegation.max_depth, 1);
    assert_eq!(config.model.chain, None);
    assert_eq!(config.choice(&[]).chain.models(), ["offline/offline"]);
    assert_eq!(config.supervisor.max_crashes, 3);
    assert_eq!(config.supervisor.max_process_deaths, 10);
    assert_eq!(config.validate(), Ok(()));
}

#[test]
fn show_output_loads_as_a_file_and_names_sources() {
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
    let shown = loaded.show(true).unwrap();
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
fn providers_are_shown_like_sections() {
    let loaded = from_file(&with_examples());
    let shown = loaded.show(true).unwrap();
    assert_eq!(from_file(&shown).config, loaded.config);
    let at = |text: &str| {
        let (before, _) = DOCUMENTED
            .split_once(text)
            .unwrap_or_else(|| panic!("{text}"));
        before.lines().count() + 1
    };
    for line in [
        format!(
            "\n[[providers]]\nname = \"vllm\" # oracle.toml:{}\n",
            at("#name = \"vllm\"")
        ),
        "# key_file is not set\n".into(),
        format!(
            "headers = {{ X-Title = \"Oracle\" }} # oracle.toml:{}\n",
            at("#headers = ")
        ),
        format!(
            "\n[[providers.models]]\nname = \"qwen3-32b\" # oracle.toml:{}\n",
            at("#name = \"qwen3")
        ),
        format!("cached = 0.02 # oracle.toml:{}\n", at("#cached = ")),
        format!(
            "\n[[providers]]\nname = \"claude-gateway\" # oracle.toml:{}\n",
            at("#name = \"claude-g")
        ),
        "# key_env is not set\n".into(),
        "stream = \"always\" # default\n".into(),
    ] {
        assert!(shown.contains(&line), "no {line:?} in\n{shown}");
    }
}

#[test]
fn detected_chain_is_shown_with_its_reason() {
    let loaded = load(&sources("", &[("OPENAI_API_KEY", "sk-canary")], &[])).unwrap();
    let shown = loaded.show(true).unwrap();
    let line = "[model]\n# chain is not set: openai/gpt-6.1-terra, because OPENAI_API_KEY is set\n";
    assert!(shown.contains(line), "{shown}");
    assert_eq!(from_file(&shown).config, loaded.config);
    assert!(!shown.contains("canary"));
}

#[test]
fn a_configuration_round_trips_through_serde() {
    let config = from_file(&with_examples()).config;
    let text = toml::to_string(&config).unwrap();
    assert_eq!(toml::from_str::<Config>(&text).unwrap(), config);
    let unknown = toml::from_str::<Config>("[oracle]\nmax_turn = 1").unwrap_err();
    assert!(
        unknown.message().contains("unknown field `max_turn`"),
        "{unknown}"
    );
}

#[test]
fn the_starter_file_has_twenty_lines_and_loads_with_every_setting_uncommented() {
    const STARTER: &str = include_str!("../../../config/starter.toml");
    assert_eq!(STARTER.lines().count(), 20);
    assert_eq!(from_file(STARTER).config, Config::default());
    let uncommented = STARTER.lines().map(|line| match line.strip_prefix('#') {
        Some(setting) if !setting.starts_with(' ') => setting,
        _ => line,
    });
    let config = from_file(&uncommented.collect::<Vec<_>>().join("\n")).config;
    assert_eq!(config.oracle.max_turns, 30);
    assert!(config.model.chain.is_some() && config.budget.max_cost_usd.is_some());
    assert!(config.budget.max_tokens.is_some() && config.prompt.instructions.is_some());
    assert_eq!(config.prompt.context.unwrap().as_path(), "AGENTS.md");
}
