//! What may be typed, and what becomes configuration.

use std::path::PathBuf;

use super::{ask::AskArgs, chat::ChatArgs, *};
use crate::model::{BusyPolicy, SessionName};
use oracle_config::Setting;

fn read(line: &[&str]) -> CliResult<Args> {
    Args::read(
        std::iter::once("oracle")
            .chain(line.iter().copied())
            .map(OsString::from),
    )
}

fn options() -> Options {
    Options {
        project: PathBuf::from("."),
        data_dir: None,
        config: None,
        model: None,
        session: None,
        max_turns: None,
        json: false,
        verbose: 0,
    }
}

#[test]
fn disabled_command_names_its_feature() {
    for (line, says) in [
        (
            &["oracle", "sing"][..],
            "`oracle sing` needs the feature `song`: `cargo install --path . --features song`",
        ),
        (&["oracle", "sign"], "unrecognized subcommand 'sign'"),
        (&["oracle", "aks"], "a similar subcommand exists: 'ask'"),
        (
            &["oracle", "What", "is"],
            "to ask a question: `oracle ask \"What …\"`",
        ),
        (&["oracle", "ask", "--sing"], "unexpected argument '--sing'"),
    ] {
        let error = Args::try_parse_from(line).unwrap_err();
        let told = not_understood(error, &[], &[("sing", "song", false)]).to_string();
        assert!(told.contains(says), "{told}");
    }
}

#[test]
fn command_tree_is_valid() {
    Args::command().debug_assert();
}

#[test]
fn options_may_precede_or_follow_the_command() {
    let want = Args {
        options: Options {
            session: Some(SessionName::new("s").unwrap()),
            json: true,
            verbose: 2,
            ..options()
        },
        command: Command::Ask(AskArgs {
            question: vec!["why".into()],
            events: false,
            last: false,
            idempotency_key: None,
            busy: BusyPolicy::Queue,
            profile: None,
        }),
    };
    for line in [
        &["--session", "s", "--json", "-vv", "ask", "why"][..],
        &["ask", "why", "--session", "s", "--json", "-vv"],
        &["-v", "--json", "ask", "--session=s", "why", "-v", "-v"],
    ] {
        // Of switches on both sides of the command, those behind it count.
        let got = read(line).unwrap();
        assert_eq!(got, want, "{line:?}");
    }
}

#[test]
fn command_line_options_become_settings() {
    let line = [
        "--max-turns",
        "-3",
        "--model",
        "a/b,offline",
        "--data-dir",
        "",
        "chat",
    ];
    let setting = |option: &str, key: &str, value: &str| Setting {
        option: option.into(),
        key: key.into(),
        value: value.into(),
    };
    assert_eq!(
        read(&line).unwrap().options.settings(),
        [
            setting("--max-turns", "oracle.max_turns", "-3"),
            setting("--model", "model.chain", "a/b,offline"),
            setting("--data-dir", "data.dir", ""),
        ]
    );
    assert_eq!(read(&["chat"]).unwrap().options.settings(), []);
}

#[test]
fn command_arguments_are_parsed() {
    let question = |question: &[&str]| {
        Command::Ask(AskArgs {
            question: question.iter().map(|word| (*word).to_owned()).collect(),
            events: false,
            last: false,
            idempotency_key: None,
            busy: BusyPolicy::Queue,
            profile: None,
        })
    };
    let classify = |query: Option<&str>, context: Option<&str>| {
        Command::Dev(DevCommand::Classify(classify::ClassifyArgs {
            query: query.map(str::to_owned),
            context: context.map(str::to_owned),
            jsonl: false,
            evaluate: None,
        }))
    };
    let scenario = PathBuf::from("-");
    for (name, line, command) in [
        ("no question", &["ask"][..], question(&[])),
        (
            "question on standard input",
            &["ask", "-"],
            question(&["-"]),
        ),
        (
            "question with a dash",
            &["ask", "--", "-v?"],
            question(&["-v?"]),
        ),
        (
            "question alone",
            &["--json", "where is it?"],
            question(&["where is it?"]),
        ),
        (
            "question without quotes",
            &["ask", "where", "is", "--json", "it?"],
            question(&["where", "is", "it?"]),
        ),
        (
            "empty query",
            &["dev", "classify", ""],
            classify(Some(""), None),
        ),
        (
            "context",
            &["dev", "classify", "--context", "c"],
            classify(None, Some("c")),
        ),
        (
            "chat",
            &["chat"],
            Command::Chat(ChatArgs {
                events: false,
                last: false,
                profile: None,
            }),
        ),
        (
            "a bare name",
            &["replay", "-"],
            Command::Bare(DevCommand::Replay { scenario }),
        ),
    ] {
        assert_eq!(read(line).unwrap().command, command, "{name}");
    }
}

#[test]
fn common_options_are_refused_where_they_do_nothing() {
    let idle = |option: &str, command: &str| {
        format!("`{option}` does nothing for `oracle {command}`: leave it out")
    };
    for (line, problems) in [
        (&["ask", "--project", "x", "why"][..], vec![]),
        (&["--model", "a/b", "config", "show"], vec![]),
        (&["--max-turns", "3", "dev", "prompt"], vec![]),
        (
            &["--model", "a/b", "keys", "list"],
            vec![idle("--model", "keys list")],
        ),
        (
            &["completions", "--json", "bash", "-v"],
            vec![
                idle("--json", "completions"),
                idle("--verbose", "completions"),
            ],
        ),
        (
            &["replay", "--data-dir", "x", "-"],
            vec![idle("--data-dir", "replay")],
        ),
    ] {
        let told = read(line).map_or_else(|error| error.to_string(), |_| String::new());
        assert_eq!(told, problems.join("\n"), "{line:?}");
    }
}

#[test]
fn help_of_a_command_lists_only_options_that_apply() {
    let mut line = command();
    line.build();
    let mut below = vec![(String::new(), line)];
    let mut leaves = 0;
    while let Some((path, command)) = below.pop() {
        for sub in command
            .get_subcommands()
            .filter(|sub| sub.get_name() != "help")
        {
            below.push((format!("{path} {}", sub.get_name()), sub.clone()));
        }
        if command.has_subcommands() {
            continue;
        }
        let shown = command.get_arguments().filter(|one| !one.is_hide_set());
        let shown: Vec<&str> = shown.map(|one| one.get_id().as_str()).collect();
        let common = arguments::taken_by("ask");
        let common: Vec<&str> = common.filter(|one| shown.contains(one)).collect();
        for (of, options) in [
            (
                "ask",
                "project data_dir config model session max_turns json verbose",
            ),
            ("keys list", "data_dir config json verbose"),
            ("config init", "config json verbose"),
            (
                "config check",
                "project data_dir config model max_turns json verbose",
            ),
            ("completions", ""),
            ("journal stats", "data_dir config json verbose"),
            ("dev mock-model", ""),
        ] {
            if path.trim_start() == of {
                leaves += 1;
                assert_eq!(common.join(" "), options, "{path}");
            }
        }
    }
    assert_eq!(leaves, 7);
}
