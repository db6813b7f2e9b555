//! `[[providers]]`: parsing, and reports of mistakes that never show a secret.

use oracle_agent::{
    config::Origin,
    llm::{Dialect, Streaming},
    model::NanoUsd,
};

use super::{from_file, problems, sources};

/// The shortest valid provider, in lines 1 to 4.
const SHORT: &str =
    "[[providers]]\nname = 'local'\ndialect = 'openai'\nbase_url = 'http://h:1/v1'\n";

#[test]
fn a_short_provider_has_defaults_and_no_key() {
    let loaded = from_file(SHORT);
    let [provider] = &loaded.config.providers[..] else {
        panic!("one provider: {:?}", loaded.config.providers);
    };
    assert_eq!(
        (provider.dialect(), provider.stream),
        (Dialect::OpenAi, Streaming::Always)
    );
    assert_eq!(provider.base_url.as_str(), "http://h:1/v1");
    assert!(provider.key_env.is_none() && provider.key_file.is_none());
    assert!(provider.models.is_empty() && provider.headers.is_empty());
    let line = |line| Origin::ConfigFile {
        path: "oracle.toml".into(),
        line,
    };
    assert_eq!(loaded.origin("providers.0.dialect"), line(3));
    assert_eq!(loaded.origin("providers.0.stream"), Origin::Default);
}

#[test]
fn providers_can_stand_between_sections_and_list_models() {
    let file = "[[providers]]\nname = 'a'\ndialect = 'anthropic'\nbase_url = 'https://h'\n\
                [[providers.models]]\nname = 'x/y:1'\ninput = 0.1\noutput = '2'\n\
                [[providers.models]]\nname = 'z'\ncontext_window = 8_192\n\
                [oracle]\nmax_turns = 3\n\
                [[providers]]\nname = 'b'\ndialect = 'openai'\nbase_url = 'https://h'\nstream = 'never'\n";
    let loaded = from_file(file);
    let names = loaded
        .config
        .providers
        .iter()
        .map(|provider| provider.name.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(loaded.config.oracle.max_turns, 3);
    let a = loaded.config.provider("a").unwrap();
    let price = a.model("x/y:1").unwrap().price().unwrap();
    let tenth = NanoUsd(100_000_000);
    assert_eq!(
        (price.input, price.cached, price.output.0),
        (tenth, tenth, 2_000_000_000)
    );
    assert_eq!(a.model("z").unwrap().context_window, Some(8_192));
    assert_eq!(a.model("z").unwrap().price(), None);
    assert_eq!(
        loaded.origin("providers.1.stream").to_string(),
        "oracle.toml:18"
    );
    assert_eq!(
        loaded.origin("providers.0.models.1.name").to_string(),
        "oracle.toml:10"
    );
}

#[test]
fn configured_provider_replaces_the_preset_of_its_name() {
    let file = SHORT.replace("local", "openai");
    let config = from_file(&file).config;
    assert_eq!(
        config.provider("openai").unwrap().base_url.as_str(),
        "http://h:1/v1"
    );
    assert_eq!(config.provider("openai").unwrap().key_env, None);
    let preset = config.provider("anthropic").unwrap();
    assert_eq!(preset.key_env.unwrap().as_str(), "ANTHROPIC_API_KEY");
    assert_eq!(config.provider("nobody"), None);
}

#[test]
fn problems_name_line_key_value_and_what_is_allowed() {
    let with = |more: &str| format!("{SHORT}{more}\n");
    let model = |more: &str| format!("{SHORT}[[providers.models]]\nname = 'm'\n{more}\n");
    for (name, file, says) in [
        (
            "nothing but the head",
            "[[providers]]\n".to_owned(),
            "oracle.toml:1: [[providers]] lacks the required key `name`\noracle.toml:1: \
             [[providers]] lacks the required key `dialect`\noracle.toml:1: [[providers]] lacks the \
             required key `base_url`",
        ),
        (
            "a dialect",
            SHORT.replace("'openai'", "'grpc'"),
            "oracle.toml:3: `providers.dialect` is `'grpc'`, expected \"openai\", \"responses\" or \"anthropic\"",
        ),
        (
            "a name that is taken by what is built in",
            SHORT.replace("local", "offline"),
            "oracle.toml:2: `providers.name` is `'offline'`, expected lower-case letters, digits, \
             `-` and `_`, but not \"offline\" or \"scripted\", which are built in",
        ),
        (
            "a name of another kind",
            SHORT.replace("'local'", "5"),
            "oracle.toml:2: `providers.name` is `5`, expected lower-case letters, digits, `-` and \
             `_`, but not \"offline\" or \"scripted\", which are built in",
        ),
        (
            "no address",
            SHORT.replace("http://h:1/v1", "h:1"),
            "oracle.toml:4: `providers.base_url` is `'h:1'`, expected an http:// or https:// URL \
             without user, password, `?` and `#`",
        ),
        (
            "a password in the address",
            SHORT.replace("h:1", "me:canary@h:1"),
            "oracle.toml:4: `providers.base_url` is `…`, expected an http:// or https:// URL \
             without user, password, `?` and `#`",
        ),
        (
            "a key in the address",
            SHORT.replace("/v1", "/v1?key=canary"),
            "oracle.toml:4: `providers.base_url` is `…`, expected an http:// or https:// URL \
             without user, password, `?` and `#`",
        ),
        (
            "the key itself for its variable",
            with("key_env = 'sk-canary'"),
            "oracle.toml:5: `providers.key_env` is `…`, expected the name of an environment \
             variable: capital letters, digits and `_`",
        ),
        (
            "the key itself",
            with("key = 'sk-canary'"),
            "oracle.toml:5: unknown key `providers.key` (set to `…`); `[[providers]]` has name, dialect, base_url, key_env, key_file, ca_file, stream, structured_output, requests_per_minute, tokens_per_minute, concurrency, queue, headers, header_env, models",
        ),
        (
            "a key almost right",
            with("key_en = 'canary'"),
            "oracle.toml:5: unknown key `providers.key_en` (set to `…`); did you mean \
             `providers.key_env`?",
        ),
        (
            "a number for no key",
            with("timeout = 5"),
            "oracle.toml:5: unknown key `providers.timeout` (set to `5`); `[[providers]]` has name, dialect, base_url, key_env, key_file, ca_file, stream, structured_output, requests_per_minute, tokens_per_minute, concurrency, queue, headers, header_env, models",
        ),
        (
            "too many places for the key",
            with("key_env = 'KEY'\nkey_file = 'f'"),
            "oracle.toml:5: `providers.key_env` is `KEY`, expected only one of `key_env` and \
             `key_file`",
        ),
        (
            "a switch for a choice",
            with("stream = true"),
            "oracle.toml:5: `providers.stream` is `true`, expected \"always\" or \"never\"",
        ),
        (
            "schemas in the wrong dialect",
            with("structured_output = true").replace("'openai'", "'anthropic'"),
            "oracle.toml:5: `providers.structured_output` is `true`, expected false, or another \
             dialect",
        ),
        (
            "no calls at all",
            with("requests_per_minute = 0"),
            "oracle.toml:5: `providers.requests_per_minute` is `0`, expected a whole number from \
             1 to 10000000",
        ),
        (
            "a secret in an open header",
            with("headers = { Authorization = 'Bearer canary' }"),
            "oracle.toml:5: `providers.headers` is `Authorization`, expected headers without \
             secrets; put secret values into environment variables and name these in `header_env`",
        ),
        (
            "a secret for a variable of a header",
            with("header_env = { X-Token = 'canary' }"),
            "oracle.toml:5: `providers.header_env` is `…`, expected a table of headers with the \
             name of an environment variable: capital letters, digits and `_`",
        ),
        (
            "a header that is none",
            with("[providers.headers]\n'X Title' = 'canary'"),
            "oracle.toml:5: `providers.headers` is `…`, expected a table of headers with header \
             names of letters, digits and `-`",
        ),
        (
            "headers of another kind",
            with("headers = 'X-Title: canary'"),
            "oracle.toml:5: `providers.headers` is `…`, expected a table of headers, each \
             with a value",
        ),
        (
            "a header from two places",
            with("headers = { X-A = 'a' }\nheader_env = { X-A = 'A' }"),
            "oracle.toml:5: `providers.headers` is `X-A`, expected a header that is not also in \
             `header_env`",
        ),
        (
            "no list of models",
            with("models = ['m']"),
            "oracle.toml:5: `providers.models` is `…`, expected a list: write the line \
             `[[providers.models]]` with its keys below",
        ),
        (
            "a model without a name",
            format!("{SHORT}[[providers.models]]\ncontext_window = 100000\n"),
            "oracle.toml:5: [[providers.models]] lacks the required key `name`",
        ),
        (
            "a window too small",
            model("context_window = 100"),
            "oracle.toml:7: `providers.models.context_window` is `100`, expected a whole number \
             from 256 to 100000000",
        ),
        (
            "too exact a price",
            model("output = 1\ninput = 0.0000001"),
            "oracle.toml:8: `providers.models.input` is `0.0000001`, expected US dollars from 0 \
             to 1000000, with at most 6 decimals",
        ),
        (
            "half a price",
            model("input = 1"),
            "oracle.toml:7: `providers.models.input` is `1`, expected no price unless both \
             `input` and `output` are set, here and in each tier",
        ),
        (
            "a key of a model almost right",
            model("context_windows = 9000"),
            "oracle.toml:7: unknown key `providers.models.context_windows` (set to `9000`); did \
             you mean `providers.models.context_window`?",
        ),
        (
            "a model twice",
            model("[[providers.models]]\nname = 'm'"),
            "oracle.toml:8: `providers.models.name` is `m`, expected a name that no other model \
             of the provider has",
        ),
        (
            "a provider twice",
            format!("{SHORT}{SHORT}"),
            "oracle.toml:6: `providers.name` is `local`, expected a name that no other provider \
             has",
        ),
        (
            "a section for a list",
            "[providers]\nname = 'canary'\n".to_owned(),
            "oracle.toml:1: `providers` is `…`, expected a list: write the line \
             `[[providers]]` with its keys below",
        ),
        (
            "a value for a list",
            "providers = 'canary'\n".to_owned(),
            "oracle.toml:1: `providers` is `…`, expected a list: write the line \
             `[[providers]]` with its keys below",
        ),
        (
            "a list almost right",
            SHORT.replace("providers", "provider"),
            "oracle.toml:1: unknown section `[provider]`; did you mean `[[providers]]`?",
        ),
    ] {
        let said = problems(&sources(&file, &[], &[])).join("\n");
        assert_eq!(said, says, "{name}");
    }
}

#[test]
fn provider_and_section_problems_are_reported_together_by_line() {
    let file = format!(
        "{SHORT}stream = 1\n[oracle]\nmax_turns = 0\n[[providers]]\nname = 'b'\nkey_env = 'b'\n\
         [[providers.models]]\nname = ''\n[data]\ndirs = 'x'\n"
    );
    let lines = problems(&sources(&file, &[("ORACLE_MODEL__CHAIN", "")], &[]));
    let places: Vec<&str> = lines
        .iter()
        .map(|line| line.split(": ").next().unwrap())
        .collect();
    assert_eq!(
        places,
        [
            "oracle.toml:5",
            "oracle.toml:7",
            "oracle.toml:8",
            "oracle.toml:8",
            "oracle.toml:10",
            "oracle.toml:12",
            "oracle.toml:14",
            "environment variable ORACLE_MODEL__CHAIN",
        ]
    );
}

#[test]
fn provider_conflicts_are_reported_with_other_problems() {
    let file = format!(
        "{SHORT}stream = 1\nkey_env = 'KEY'\nkey_file = 'f'\n\
         [[providers.models]]\nname = ''\n[[providers.models]]\ncached = 2\n\
         [[providers.models]]\nname = 'x'\ninput = 'free'\noutput = 1\n\
         [[providers]]\ndialect = 'openai'\nbase_url = 'http://x'\n\
         [[providers]]\nname = 'x'\ndialect = 'openai'\nbase_url = 'http://x'\n"
    );
    let lines = problems(&sources(&file, &[], &[]));
    let told: Vec<&str> = lines
        .iter()
        .map(|line| line.split(", ").next().unwrap())
        .collect();
    // Neither missing names nor a price with one rejected half conflict with others.
    assert_eq!(
        told,
        [
            "oracle.toml:5: `providers.stream` is `1`",
            "oracle.toml:9: `providers.models.name` is `''`",
            "oracle.toml:10: [[providers.models]] lacks the required key `name`",
            "oracle.toml:14: `providers.models.input` is `…`",
            "oracle.toml:16: [[providers]] lacks the required key `name`",
            "oracle.toml:6: `providers.key_env` is `KEY`",
            "oracle.toml:11: `providers.models.cached` is `2`",
        ]
    );
}

#[test]
fn the_environment_sets_no_providers() {
    let loaded = super::sources(SHORT, &[("ORACLE_PROVIDERS__NAME", "x")], &[]);
    let loaded = oracle_agent::config::load(&loaded).unwrap();
    assert_eq!(loaded.config.providers.len(), 1);
}
