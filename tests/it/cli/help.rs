//! Help, version, completions, and command lines that are refused.

use super::{Workspace, assert_transcript};

#[test]
fn every_command_has_help_with_examples() {
    let place = Workspace::new(&[]);
    let commands = [
        "--help",
        "-h",
        "ask -h",
        "ask --help",
        "chat --help",
        "serve --help",
        "keys --help",
        "keys create --help",
        "keys list --help",
        "keys revoke --help",
        "ctl --help",
        "top --help",
        "ctl budget --help",
        "ctl watch --help",
        "sessions --help",
        "sessions list --help",
        "sessions show --help",
        "sessions events --help",
        "sessions export --help",
        "sessions delete --help",
        "sessions search --help",
        "sessions release --help",
        "usage --help",
        "bench --help",
        "models --help",
        "doctor --help",
        "config --help",
        "config init --help",
        "config show --help",
        "config check --help",
        "completions --help",
        "dev --help",
        "dev classify --help",
        "dev signal --help",
        "dev prompt --help",
        "dev replay --help",
        "dev mock-model --help",
        "journal --help",
        "journal verify --help",
        "journal copy --help",
        "journal stats --help",
        "dev man --help",
        "signal --help",
    ];
    assert_transcript!("help", commands.map(|line| place.oracle(line)));
}

#[test]
fn the_version_is_that_of_the_package() {
    let place = Workspace::new(&[]);
    for line in ["--version", "-V"] {
        let output = place.oracle(line).output();
        let version = format!("oracle {}\n", env!("CARGO_PKG_VERSION"));
        assert_eq!(String::from_utf8(output.stdout).unwrap(), version);
        assert_eq!((output.stderr, output.status.code()), (vec![], Some(0)));
    }
}

#[test]
fn usage_errors_suggest_a_remedy() {
    let place = Workspace::new(&[]);
    let lines = [
        "",
        "clasify",
        "classify --nope",
        "classify --jsonl query",
        "classify one two",
        "aks",
        "sessions lst",
        "keys list --model offline",
        "--max-turns 3 --project . models",
        "serve --listen 7770x",
        "ask --max-turns",
        "replay",
        "config",
        "config chek",
        "completions tcsh",
        "chat --session a/b",
        "ask --session",
        "ask --jsonl",
        "ask --idempotency-key k why",
        "ask --busy never why",
    ];
    assert_transcript!("usage", lines.map(|line| place.oracle(line)));
}

#[cfg(unix)]
#[test]
fn an_argument_that_is_not_utf_8_is_refused() {
    use std::os::unix::ffi::OsStrExt;

    let place = Workspace::new(&[]);
    let query = std::ffi::OsStr::from_bytes(b"why \xff?");
    let output = place.oracle("classify").arg(query).output();
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(err.starts_with("oracle: invalid UTF-8"), "{err}");
    assert_eq!((output.stdout, output.status.code()), (vec![], Some(2)));
}

#[test]
fn completions_name_the_commands_for_every_shell() {
    let place = Workspace::new(&[]);
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = place.oracle("completions").arg(shell).output();
        let script = String::from_utf8(output.stdout).unwrap();
        for word in ["classify", "replay", "max-turns"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
        assert_eq!((output.stderr, output.status.code()), (vec![], Some(0)));
    }
}

#[test]
fn manual_pages_are_written_for_every_command() {
    let place = Workspace::new(&[]);
    let output = place.oracle("dev man pages").output();
    assert_eq!((output.stdout, output.status.code()), (vec![], Some(0)));
    let page = |name: &str| std::fs::read_to_string(place.path("pages").join(name)).unwrap();
    let (ask, list) = (page("oracle-ask.1"), page("oracle-keys-list.1"));
    assert!(
        ask.contains("\\-\\-max\\-turns") && ask.contains("Examples:"),
        "{ask}"
    );
    assert!(
        list.contains("\\-\\-json") && !list.contains("max\\-turns"),
        "{list}"
    );
    assert!(page("oracle.1").contains("oracle\\-ask(1)"));
}
