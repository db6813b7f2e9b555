//! Tests of addresses, keys and the errors about missing ones.

use secrecy::ExposeSecret;

use super::*;
use crate::config::{ConfigFile, Sources, load};

fn config(file: &str) -> Config {
    let file = ConfigFile {
        path: "oracle.toml".into(),
        text: file.into(),
    };
    let sources = Sources {
        file: Some(file),
        ..Sources::default()
    };
    load(&sources).unwrap().config
}

fn called(file: &str, variables: &[(&str, &str)], name: &str) -> Result<(String, String), String> {
    let config = config(file);
    let pair = |&(name, value): &(&str, &str)| (name.into(), value.into());
    let environment = Environment::new(variables.iter().map(pair));
    let facts = Prices::builtin();
    let providers = Providers::new(&config, &environment, &facts);
    let provider = providers.find(name).map_err(|error| error.to_string())?;
    let settings = providers.settings(&provider.unwrap(), &[]);
    let settings = settings.map_err(|error| error.to_string())?;
    let key = settings
        .key
        .as_ref()
        .map(|key| key.expose_secret().to_owned());
    Ok((settings.base_url, key.unwrap_or_default()))
}

#[test]
fn presets_read_addresses_and_keys_from_the_environment() {
    let no_key = "provider `openai` has no key: set the environment variable OPENAI_API_KEY to \
                  a key from https://platform.openai.com/api-keys, or choose another model with `model.chain` or `--model`";
    let no_url = "the environment variable OPENAI_BASE_URL is not a valid address; use an http:// \
                  or https:// URL without user, password, `?` and `#`";
    let no_text = "the key or header value of provider `openai` in the environment variable \
                   OPENAI_API_KEY is invalid: use one non-empty line of visible ASCII characters";
    let (url, key) = ("OPENAI_BASE_URL", "OPENAI_API_KEY");
    for (name, variables, provider, want) in [
        (
            "a key",
            &[(key, " k\n")][..],
            "openai",
            Ok(("https://api.openai.com/v1", "k")),
        ),
        ("no key", &[], "openai", Err(no_key)),
        ("an empty key", &[(key, " ")], "openai", Err(no_key)),
        (
            "a key of two lines",
            &[(key, "canary\ncanary")],
            "openai",
            Err(no_text),
        ),
        (
            "an address",
            &[(url, "http://h/v1/"), (key, "k")],
            "openai",
            Ok(("http://h/v1", "k")),
        ),
        (
            "an address without key",
            &[(url, "http://h/v1")],
            "openai",
            Ok(("http://h/v1", "")),
        ),
        (
            "an empty address",
            &[(url, ""), (key, "k")],
            "openai",
            Ok(("https://api.openai.com/v1", "k")),
        ),
        (
            "a bad address",
            &[(url, "http://me:canary@h"), (key, "k")],
            "openai",
            Err(no_url),
        ),
        (
            "anthropic",
            &[
                ("ANTHROPIC_BASE_URL", "https://h"),
                ("ANTHROPIC_API_KEY", "k"),
            ],
            "anthropic",
            Ok(("https://h", "k")),
        ),
        (
            "gemini",
            &[("GEMINI_API_KEY", "k")],
            "gemini",
            Ok((
                "https://generativelanguage.googleapis.com/v1beta/openai",
                "k",
            )),
        ),
        (
            "openrouter",
            &[("OPENROUTER_API_KEY", "k")],
            "openrouter",
            Ok(("https://openrouter.ai/api/v1", "k")),
        ),
        (
            "ollama",
            &[],
            "ollama",
            Ok(("http://127.0.0.1:11434/v1", "")),
        ),
        (
            "ollama elsewhere",
            &[("OLLAMA_HOST", "box:99")],
            "ollama",
            Ok(("http://box:99/v1", "")),
        ),
    ] {
        let want = want.map(|(url, key)| (url.to_owned(), key.to_owned()));
        let want = want.map_err(str::to_owned);
        assert_eq!(called("", variables, provider), want, "{name}");
    }
}

/// `oracle models` omits an unreachable Ollama unless its address is set.
#[test]
fn provider_is_addressed_by_file_or_variable() {
    let own = "[[providers]]\nname = 'ollama'\ndialect = 'openai'\nbase_url = 'http://h'\n";
    for (what, file, variables, told) in [
        ("nothing", "", &[][..], false),
        ("an empty variable", "", &[("OLLAMA_HOST", " ")], false),
        ("another variable", "", &[("OPENAI_BASE_URL", "h")], false),
        ("the variable", "", &[("OLLAMA_HOST", "gpu")], true),
        ("the file", own, &[], true),
    ] {
        let config = config(file);
        let pair = |&(name, value): &(&str, &str)| (name.into(), value.into());
        let environment = Environment::new(variables.iter().map(pair));
        let facts = Prices::builtin();
        let providers = Providers::new(&config, &environment, &facts);
        assert_eq!(providers.is_addressed("ollama"), told, "{what}");
    }
}

#[test]
fn ollama_host_is_turned_into_a_client_url() {
    for (host, url) in [
        ("box", "http://box:11434/v1"),
        ("box:80", "http://box:80/v1"),
        ("http://box", "http://box:80/v1"),
        (" 'box' ", "http://box:11434/v1"),
        ("ollama.com", "https://ollama.com:443/v1"),
        ("http://gw/ollama", "http://gw:80/ollama/v1"),
        ("https://gw:1/a/b/", "https://gw:1/a/b/v1"),
        ("https://box", "https://box:443/v1"),
        ("http://box:80/", "http://box:80/v1"),
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        (":1", "http://127.0.0.1:1/v1"),
        ("[::]:1", "http://127.0.0.1:1/v1"),
        ("[::1]", "http://[::1]:11434/v1"),
        ("::1", "http://[::1]:11434/v1"),
        ("http://[::1]:9/", "http://[::1]:9/v1"),
    ] {
        assert_eq!(ollama(host), url, "{host}");
    }
}

#[test]
fn configured_provider_reads_its_key_from_the_named_source() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("good"), "from-file\n").unwrap();
    std::fs::write(path("empty"), "\n").unwrap();
    let own = "[[providers]]\nname = 'openai'\ndialect = 'openai'\nbase_url = 'http://h'\n";
    let file = |name: &str| format!("{own}key_file = '{}'", path(name));
    let variables = &[
        ("MINE", "from-variable"),
        ("OPENAI_API_KEY", "not this"),
        ("OPENAI_BASE_URL", "http://not-this"),
    ];
    let missing = format!(
        "cannot read the key of provider `openai` from `{}`: No such file or directory (os error \
         2); check `key_file`",
        path("none")
    );
    let empty = format!(
        "the key or header value of provider `openai` in the file `{}` is invalid: use one \
         non-empty line of visible ASCII characters",
        path("empty")
    );
    for (name, text, want) in [
        ("none", own.to_owned(), Ok("")),
        (
            "variable",
            format!("{own}key_env = 'MINE'"),
            Ok("from-variable"),
        ),
        ("file", file("good"), Ok("from-file")),
        ("no file", file("none"), Err(missing.as_str())),
        ("an empty file", file("empty"), Err(empty.as_str())),
        (
            "no variable",
            format!("{own}key_env = 'OTHER'"),
            Err(
                "provider `openai` has no key: set the environment variable OTHER, or choose \
                 another model with `model.chain` or `--model`",
            ),
        ),
        (
            "no variable of a header",
            format!("{own}header_env = {{ X-A = 'OTHER' }}"),
            Err(
                "provider `openai` has no value for its header `X-A`: set the environment \
                 variable OTHER, or remove the header from `header_env`",
            ),
        ),
    ] {
        let want = want.map(|key| ("http://h".to_owned(), key.to_owned()));
        assert_eq!(
            called(&text, variables, "openai"),
            want.map_err(str::to_owned),
            "{name}"
        );
    }
}

#[test]
fn model_sizes_and_prices_come_from_configuration_or_built_in_list() {
    let config = config(
        "[[providers]]\nname = 'openai'\ndialect = 'openai'\nbase_url = 'http://h'\n\
         [[providers.models]]\nname = 'gpt-6.1-terra'\ncontext_window = 1000\ninput = 1\noutput = 2\n\
         [[providers.models]]\nname = 'mine'\nmax_output_tokens = 10\nimages = true\n",
    );
    let (environment, facts) = (Environment::default(), Prices::builtin());
    let providers = Providers::new(&config, &environment, &facts);
    let provider = providers.find("openai").unwrap().unwrap();
    let settings = providers
        .settings(&provider, &["gpt-6-luna", "gpt-6.1-terra"])
        .unwrap();
    let got: Vec<_> = settings
        .models
        .iter()
        .map(|model| {
            let sizes = (model.context_window, model.max_output);
            (model.name.as_str(), sizes, model.images)
        })
        .collect();
    let want = [
        ("gpt-6-luna", (Some(1_050_000), Some(128_000)), Some(true)),
        // A reply must fit into the configured window.
        ("gpt-6.1-terra", (Some(1_000), Some(1_000)), Some(true)),
        ("mine", (None, Some(10)), Some(true)),
    ];
    assert_eq!(got, want);
    for (model, window, input) in [
        ("gpt-6.1-terra", Some(1_000), Some(1_000_000_000)),
        ("gpt-6-luna", Some(1_050_000), Some(100_000_000)),
        ("mine", None, None),
    ] {
        let choice = providers.choice("openai", model);
        let price = choice.price.map(|price| price.input.0);
        assert_eq!((choice.context_window, price), (window, input), "{model}");
    }
}

#[test]
fn reports_status_is_a_fact_about_a_model() {
    let config = config(
        "[[providers]]\nname = 'mine'\ndialect = 'openai'\nbase_url = 'http://h'\n\
         [[providers.models]]\nname = 'quiet'\nreports_status = true\n",
    );
    let (environment, facts) = (Environment::from([("A", "b")]), Prices::builtin());
    let providers = Providers::new(&config, &environment, &facts);
    for (model, reports) in [("quiet", true), ("other", false)] {
        assert_eq!(
            providers.choice("mine", model).reports_status,
            reports,
            "{model}"
        );
    }
}

#[test]
fn debug_output_of_a_provider_hides_secrets() {
    let config = config(
        "[[providers]]\nname = 'mine'\ndialect = 'openai'\nbase_url = 'http://h'\n\
         key_env = 'KEY'\nheader_env = { X-Token = 'KEY' }\nheaders = { X-Title = 'open' }\n",
    );
    let environment = Environment::from([("KEY", "sk-canary")]);
    let facts = Prices::builtin();
    let providers = Providers::new(&config, &environment, &facts);
    let provider = providers.find("mine").unwrap().unwrap();
    let settings = providers.settings(&provider, &[]).unwrap();
    assert_eq!(settings.headers.len(), 2);
    let shown = format!(
        "{settings:?} {provider:?} {:?}",
        crate::llm::Remote::new(settings.clone()).unwrap()
    );
    assert!(!shown.contains("canary"), "{shown}");
}
