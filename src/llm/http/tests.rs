use super::*;
use crate::llm::{Dialect, Streaming};

fn settings(dialect: Dialect, base_url: &str) -> ProviderSettings {
    ProviderSettings {
        name: "p".to_owned(),
        dialect,
        base_url: base_url.to_owned(),
        key: Some(SecretString::from("sk-canary")),
        headers: vec![("x-team".to_owned(), SecretString::from("team-canary"))],
        authorities: None,
        streaming: Streaming::Always,
        structured_output: None,
        models: Vec::new(),
        connect: Duration::from_secs(1),
        first_byte: Duration::from_secs(1),
    }
}

fn connection(base_url: &str) -> Connection {
    Connection::new(&settings(Dialect::OpenAi, base_url)).unwrap()
}

fn refused(settings: &ProviderSettings) -> SetupError {
    match Connection::new(settings) {
        Err(error) => error,
        Ok(_) => panic!("no error for {settings:?}"),
    }
}

#[test]
fn paths_are_appended_to_the_base_url_before_its_query() {
    for (base, url, versioned) in [
        ("http://h", "http://h/models", "http://h/v1/models"),
        ("http://h/", "http://h/models", "http://h/v1/models"),
        ("http://h/v1", "http://h/v1/models", "http://h/v1/models"),
        (" http://h/v1/ ", "http://h/v1/models", "http://h/v1/models"),
        (
            "http://h/a/v1?k=1",
            "http://h/a/v1/models?k=1",
            "http://h/a/v1/models?k=1",
        ),
        (
            "http://u:p@h/a",
            "http://u:p@h/a/models",
            "http://u:p@h/a/v1/models",
        ),
    ] {
        let connection = connection(base);
        assert_eq!(connection.url(&["models"]).as_str(), url);
        assert_eq!(connection.versioned_url("v1", "models").as_str(), versioned);
    }
}

#[test]
fn displayed_url_hides_secrets() {
    let connection = connection("https://user:pass-canary@example.com:8443/v1/?key=query-canary#x");
    assert_eq!(connection.place, "https://example.com:8443/v1");
    let told = "sk-canary team-canary pass-canary query-canary";
    assert_eq!(
        connection.secrets.clean(told),
        "[hidden] [hidden] [hidden] [hidden]"
    );
}

#[test]
fn secrets_are_redacted_in_every_encoding() {
    let mut settings = settings(
        Dialect::OpenAi,
        "https://token-canary:p%40ss-canary@example.com/v1?key=query%2Fcanary&short=q",
    );
    settings.headers = vec![
        ("authorization".into(), "Bearer bearer-canary".into()),
        ("cookie".into(), "id=cookie-canary; x=1".into()),
    ];
    let shown = format!("{settings:?}");
    assert!(shown.contains("https://example.com/v1"), "{shown}");
    let secrets = Connection::new(&settings).unwrap().secrets;
    for told in [
        "wrong key: bearer-canary",
        "no session cookie-canary",
        "unknown user token-canary",
        "p@ss-canary is no password",
        "p%40ss-canary is no password",
        "query/canary and query%2Fcanary",
        &shown,
    ] {
        let clean = secrets.clean(told);
        assert!(!clean.contains("canary"), "{clean}");
    }
    assert!(!shown.contains("canary"), "{shown}");
    assert_eq!(secrets.clean("Bearer 1 q"), "Bearer 1 q");
    settings.base_url = "token-canary".into();
    assert!(!format!("{settings:?}").contains("token-canary"));
}

#[test]
fn keys_use_the_dialects_header_and_stay_hidden() {
    let openai = connection("https://example.com").headers;
    assert_eq!(openai["authorization"], "Bearer sk-canary");
    assert_eq!(openai["x-team"], "team-canary");
    let settings = settings(Dialect::Anthropic, "https://example.com");
    let anthropic = Connection::new(&settings).unwrap().headers;
    assert_eq!(anthropic["x-api-key"], "sk-canary");
    assert_eq!(anthropic["anthropic-version"], "2023-06-01");
    assert!(!anthropic.contains_key("authorization"));
    for shown in [
        format!("{openai:?}"),
        format!("{anthropic:?}"),
        format!("{settings:?}"),
    ] {
        assert!(!shown.contains("canary"), "{shown}");
    }
}

#[test]
fn key_is_trimmed() {
    let mut settings = settings(Dialect::OpenAi, "https://example.com");
    settings.key = Some(SecretString::from("sk-canary\n"));
    let headers = Connection::new(&settings).unwrap().headers;
    assert_eq!(headers["authorization"], "Bearer sk-canary");
}

#[test]
fn invalid_settings_are_refused_without_leaking_secrets() {
    let good = || settings(Dialect::OpenAi, "https://example.com");
    let with = |change: &dyn Fn(&mut ProviderSettings)| {
        let mut settings = good();
        change(&mut settings);
        refused(&settings).to_string()
    };
    let url = |url: &str| with(&|settings| url.clone_into(&mut settings.base_url));
    let wrong = [
        url("example.com"),
        url("ftp://sk-canary@example.com"),
        url("https://:canary"),
        with(&|settings| settings.key = Some(SecretString::from("sk-\ncanary"))),
        with(&|settings| settings.headers = vec![("x y".into(), SecretString::from("canary"))]),
        with(&|settings| settings.headers = vec![("x".into(), SecretString::from("can\0ary"))]),
    ];
    let begins = [
        "invalid base URL of provider `p` (relative URL without a base)",
        "invalid base URL of provider `p` (it must begin with `https://`",
        "invalid base URL of provider `p` (",
        "invalid key of provider `p`",
        "invalid header `x y` of provider `p`",
        "invalid header `x` of provider `p`",
    ];
    for (shown, begin) in wrong.iter().zip(begins) {
        assert!(shown.starts_with(begin), "{shown}");
        assert!(!shown.contains("canary"), "{shown}");
    }
}

#[test]
fn loopback_servers_are_recognized() {
    for (url, here) in [
        ("http://localhost:11434/v1", true),
        ("http://127.0.0.1:8000", true),
        ("http://127.9.9.9", true),
        ("http://[::1]:8000", true),
        ("http://example.com", false),
        ("http://10.0.0.1", false),
        ("http://localhost.example.com", false),
    ] {
        assert_eq!(is_here(&Url::parse(url).unwrap()), here, "{url}");
    }
}
