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
    let composed = |subject| compose(&Config::default(), Path::new("."), &subject).unwrap();
    assert_eq!(composed(nothing), composed(talk));
}
