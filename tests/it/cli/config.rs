//! `oracle config`: the origin of each value, and the reports of mistakes.

use super::{Workspace, assert_transcript, serve::Served};

#[test]
fn config_show_names_the_source_of_every_value() {
    let place = Workspace::new(&[
        (
            "mine.toml",
            "[oracle]\nmax_turns = 20\n\n[budget]\nmax_cost_usd = 0.5\n",
        ),
        (
            "home/.config/oracle/oracle.toml",
            "[turn]\non_missing_signal = \"finish\"\n",
        ),
    ]);
    let home = place.path("home").canonicalize().unwrap();
    assert_transcript!(
        "config_show",
        [
            place
                .oracle("config show --config mine.toml --model offline --data-dir kept")
                .env("ORACLE_MAX_TURNS", "25")
                .env("ORACLE_MODEL__ATTEMPTS", "2")
                .env("ORACLE_HOME", "not ours"),
            place.oracle("config show"),
            place.oracle("config show --all"),
            place
                .oracle("config show --json --max-turns 5")
                .env("HOME", home),
        ]
    );
}

#[test]
fn check_reports_the_file_and_all_its_problems() {
    let place = Workspace::new(&[
        ("good.toml", "[oracle]\nmax_turns = 20\n"),
        (
            "unknown.toml",
            "[oracle]\nmax_turn = 20\n\n[bugdet]\nmax_tokens = 5\n",
        ),
        (
            "bad.toml",
            "[oracle]\nmax_turns = 0\n\n[model]\napi_key = \"sk-1\"\n",
        ),
        ("broken.toml", "[oracle\n"),
        (
            "home/.config/oracle/oracle.toml",
            "[turn]\non_missing_signal = \"never\"\n",
        ),
        ("xdg/oracle/oracle.toml", "[oracle]\nmax_turns = 3\n"),
        ("odd/.config", "a file where a folder should be"),
    ]);
    let folder = |name: &str| place.path(name).canonicalize().unwrap();
    assert_transcript!(
        "config_check",
        [
            place.oracle("config check"),
            place.oracle("config check --config good.toml"),
            place.oracle("config check --config good.toml --json"),
            place.oracle("config check --config unknown.toml"),
            place
                .oracle("config check --config bad.toml --max-turns 101 --model gpt")
                .env("ORACLE_TURN__ON_MISSING_SIGNAL", "maybe"),
            place.oracle("config check --config bad.toml --json"),
            place.oracle("config check --config broken.toml"),
            place.oracle("config check --config missing.toml --max-turns x"),
            place.oracle("config check --config xdg"),
            place.oracle("config check").env("HOME", folder("home")),
            place
                .oracle("config check")
                .env("HOME", folder("home"))
                .env("XDG_CONFIG_HOME", folder("xdg")),
            place.oracle("config check").env("HOME", folder("odd")),
        ]
    );
}

#[test]
fn check_validates_what_a_start_would_build() {
    let place = Workspace::new(&[
        ("prompts/readme.md", "x"),
        ("lexicon.toml", "x = 1\n"),
        (
            "prices.toml",
            "[[price]]\nmodel = \"gpt\"\ninput = 1\noutput = 2\n",
        ),
    ]);
    assert_transcript!(
        "config_check_parts",
        [place
            .oracle("config check --project nowhere --model offline,openai/gpt-x")
            .env("ORACLE_PROMPT__DIR", "prompts")
            .env("ORACLE_QUERY__LEXICON", "lexicon.toml")
            .env("ORACLE_BUDGET__PRICES", "prices.toml"),]
    );
}

/// A model without a price could spend any amount.
#[test]
fn budget_of_money_needs_prices() {
    let server =
        "[[providers]]\nname = 'own'\ndialect = 'openai'\nbase_url = 'http://127.0.0.1:1'\n";
    let priced = "[[providers.models]]\nname = 'm'\ninput = 0\noutput = 0\n";
    let of_query = "budget.max_cost_usd = 1\n";
    let profile = |more: &str| format!("[[profiles]]\nname = 'p'\nchain = ['own/m']\n{more}");
    let sub_agent = profile("sub_agent_of = ['a']\n");
    for (what, file, models, refused) in [
        ("query", format!("{of_query}{server}"), "own/m", true),
        (
            "session",
            format!("budget.session_max_cost_usd = 1\n{server}"),
            "own/m",
            true,
        ),
        (
            "tenant",
            format!("tenants.cost_usd_per_month = 1\n{server}"),
            "own/m",
            true,
        ),
        (
            "key",
            format!("[tenants.keys.ci]\ncost_usd_per_day = 1\n{server}"),
            "own/m",
            true,
        ),
        (
            "second choice",
            format!("{of_query}{server}"),
            "offline,own/m",
            true,
        ),
        (
            "profile",
            format!("{server}{}", profile("max_cost_usd = 1\n")),
            "offline",
            true,
        ),
        (
            "inherited",
            format!("{of_query}{server}{}", profile("")),
            "offline",
            true,
        ),
        (
            "sub-agent",
            format!("{server}[[profiles]]\nname = 'a'\nmax_cost_usd = 1\n{sub_agent}"),
            "offline",
            true,
        ),
        (
            "tokens",
            format!("budget.max_tokens = 1000\n{server}"),
            "own/m",
            false,
        ),
        ("no budget", server.to_owned(), "own/m", false),
        (
            "priced at 0",
            format!("{of_query}{server}{priced}"),
            "own/m",
            false,
        ),
        ("local", of_query.to_owned(), "ollama/qwen3,offline", false),
    ] {
        let chain: Vec<&str> = models.split(',').collect();
        let file = format!("model.chain = {chain:?}\n{file}");
        let place = Workspace::new(&[("o.toml", &file)]);
        let output = place.oracle("config check --config o.toml").output();
        let said = format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        assert_eq!(!output.status.success(), refused, "{what}: {said}");
        let names = said.contains("the price of the model `own/m` is unknown");
        assert_eq!(names, refused, "{what}: {said}");
    }
}

#[test]
fn command_stops_at_configuration_problems() {
    let place = Workspace::new(&[]);
    let lines = [
        "config show --max-turns 0 --model x",
        "ask hi --max-turns 0 --model x",
        "chat --max-turns 0 --model x",
    ];
    for line in lines {
        let output = place.oracle(line).output();
        let problems = "oracle: option --max-turns: `oracle.max_turns` is `0`, expected a whole number from 1 to 100
oracle: option --model: `model.chain` is `x`, expected 1 to 8 different models, each written provider/model, such as ollama/qwen3
";
        assert_eq!(
            String::from_utf8(output.stderr).unwrap(),
            problems,
            "{line}"
        );
        assert_eq!(
            (output.stdout, output.status.code()),
            (vec![], Some(2)),
            "{line}"
        );
    }
}

#[test]
fn init_creates_a_file_that_loads_and_never_overwrites_one() {
    let place = Workspace::new(&[]);
    let home = place.path("home");
    assert_transcript!(
        "config_init",
        [
            place.oracle("config init --config here/oracle.toml"),
            place.oracle("config check --config here/oracle.toml"),
            place.oracle("config init --config here/oracle.toml"),
            place.oracle("config init --json").env("HOME", &home),
            place.oracle("config init").env("HOME", ""),
        ]
    );
}

#[test]
fn variable_that_resembles_a_setting_is_named_in_a_warning() {
    let place = Workspace::new(&[]);
    let warning = "`ORACLE_MAXTOKENS` is not a setting and is ignored: did you mean \
                   `ORACLE_BUDGET__MAX_TOKENS`?";
    for line in ["config check", "ask what", "sessions list", "doctor"] {
        let run = place.oracle(line).env("ORACLE_MAXTOKENS", "25").output();
        let first = String::from_utf8(run.stderr).unwrap();
        let first = first.lines().next();
        assert_eq!(
            first,
            Some(&*format!("oracle: warning: {warning}")),
            "{line}"
        );
    }
    let serve = place.oracle("serve --listen 127.0.0.1:0");
    let (_server, before) = Served::of(serve.env("ORACLE_MAXTOKENS", "25").command());
    let [logged] = before.try_into().unwrap();
    assert!(
        logged.contains("WARN") && logged.ends_with(warning),
        "{logged}"
    );
}
