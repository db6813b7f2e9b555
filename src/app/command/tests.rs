//! Tests of the default configuration file and of composed prompts.

use super::*;

#[test]
fn default_config_path_follows_xdg() {
    for (name, environment, want) in [
        (
            "xdg",
            [("XDG_CONFIG_HOME", "/x"), ("HOME", "/h")],
            Some("/x/oracle/oracle.toml"),
        ),
        (
            "empty xdg",
            [("XDG_CONFIG_HOME", ""), ("HOME", "/h")],
            Some("/h/.config/oracle/oracle.toml"),
        ),
        (
            "relative xdg",
            [("XDG_CONFIG_HOME", "x"), ("HOME", "/h")],
            Some("/h/.config/oracle/oracle.toml"),
        ),
        ("nothing", [("XDG_CONFIG_HOME", ""), ("HOME", "")], None),
    ] {
        let got = usual_file(&environment.into());
        assert_eq!(got, want.map(PathBuf::from), "{name}");
    }
}

#[test]
fn prompt_without_a_subject_is_conversational() {
    let nothing = Subject {
        query_type: None,
        query: None,
    };
    let talk = Subject {
        query_type: Some(QueryType::Conversational),
        query: None,
    };
    let composed = |subject| {
        let environment = Environment::default();
        compose(&Config::default(), &environment, Path::new("."), &subject).unwrap()
    };
    assert_eq!(composed(nothing), composed(talk));
}

#[test]
fn prompts_mention_the_web_only_if_it_is_configured() {
    let config = |text: &str| toml::from_str::<Config>(text).unwrap();
    let keys = Environment::from([("TAVILY_API_KEY", "k"), ("MY_KEY", "k")]);
    for (text, tools) in [
        ("", &[][..]),
        ("[web]\nfetch = true", &["web_fetch"]),
        ("[web]\nsearch = 'tavily'", &["web_search"]),
        (
            "[web]\nfetch = true\nsearch = 'brave'\nkey_env = 'MY_KEY'",
            &["web_search", "web_fetch"],
        ),
        (
            "[web]\nsearch = 'searxng'\nsearch_url = 'http://10.0.0.1:8888/x'",
            &["web_search"],
        ),
    ] {
        for query_type in QueryType::ALL {
            let subject = Subject {
                query_type: Some(query_type),
                query: None,
            };
            let prompt = compose(&config(text), &keys, Path::new("."), &subject).unwrap();
            let prompt = prompt.content.to_lowercase();
            let mut words = prompt.split(|c: char| !c.is_alphanumeric() && c != '_');
            assert_eq!(
                words.any(|word| word == "web"),
                !tools.is_empty(),
                "{prompt}"
            );
            for tool in ["web_search", "web_fetch"] {
                let line = format!("- `{tool}`: ");
                assert_eq!(
                    prompt.contains(&line),
                    tools.contains(&tool),
                    "{text} {tool}"
                );
            }
        }
    }
}

#[test]
fn a_search_service_without_its_key_is_a_problem_that_names_the_variable() {
    for (text, environment, variable) in [
        (
            "search = 'tavily'",
            [("BRAVE_API_KEY", "k")],
            "TAVILY_API_KEY",
        ),
        (
            "search = 'brave'",
            [("BRAVE_API_KEY", " ")],
            "BRAVE_API_KEY",
        ),
        (
            "search = 'brave'\nkey_env = 'K'",
            [("BRAVE_API_KEY", "k")],
            "K",
        ),
        ("search = 'brave'\nkey_env = 'K'", [("K", "a\nb")], "K"),
    ] {
        let config: Config = toml::from_str(&format!("[web]\n{text}")).unwrap();
        let pairs = Environment::from(environment).pairs().to_vec();
        let builder = Oracle::builder().config(config).environment(pairs);
        let expected = format!(
            "`web.search` has no valid key: set the environment variable {variable} to it, or name \
             another one with `web.key_env`"
        );
        assert_eq!(builder.problems(), [expected]);
    }
}
