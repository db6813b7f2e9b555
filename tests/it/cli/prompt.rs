//! `oracle prompt`: the segments that it chooses, the directory that it reads, and mistakes in it.

use serde_json::Value;

use super::{Workspace, assert_transcript};

/// A small prompt of each kind, so that the output is independent of the built-in texts.
const FILES: [(&str, &str); 7] = [
    ("prompts/base.md", "{{ max_turns }} turns."),
    ("prompts/signals.md", "Signals."),
    (
        "prompts/tools-reference.md",
        "Tools:{% for tool in tools %} {{ tool.name }}{% endfor %}.",
    ),
    ("prompts/code-analysis.md", "Code."),
    ("prompts/documentation.md", "Docs."),
    ("prompts/research.md", "Research."),
    ("prompts/conversation.md", "Chat."),
];

#[test]
fn a_prompt_is_composed_for_a_type_or_a_query() {
    let place = Workspace::new(&FILES);
    let prompt = |line| place.oracle(line).env("ORACLE_PROMPT__DIR", "prompts");
    assert_transcript!(
        "prompt",
        [
            prompt("prompt --type code"),
            prompt("prompt --type documentation --json"),
            prompt("prompt --type action --json --max-turns 5"),
            prompt("prompt --query ok --json"),
            prompt("prompt --type research").env("ORACLE_PROMPT__TOKEN_BUDGET", "24"),
            prompt("prompt --type research --json").env("ORACLE_PROMPT__TOKEN_BUDGET", "24"),
            prompt("prompt --type research").env("ORACLE_PROMPT__TOKEN_BUDGET", "8"),
        ]
    );
}

#[test]
fn built_in_prompts_need_no_folder() {
    let place = Workspace::new(&[]);
    for (query_type, last) in [
        ("code", "code"),
        ("documentation", "docs"),
        ("research", "research"),
        ("conversational", "conversation"),
        ("action", "docs"),
    ] {
        let output = place
            .oracle("prompt --json --type")
            .arg(query_type)
            .output();
        let prompt: Value = serde_json::from_slice(&output.stdout).unwrap();
        let want = serde_json::json!(["base", "signals", "tools", last]);
        assert_eq!(prompt["segments_included"], want, "{query_type}");
        let content = prompt["content"].as_str().unwrap();
        assert!(content.contains("Signal Emission Protocol"), "{query_type}");
        let text = place.oracle("prompt --type").arg(query_type).output();
        assert_eq!(
            String::from_utf8(text.stdout).unwrap(),
            format!("{content}\n")
        );
    }
}

#[test]
fn prompt_composition_failure_is_explained() {
    let place = Workspace::new(&[
        ("unknown/cod-analysis.md", "Code."),
        ("broken/base.md", "Hello {{ project }}\n"),
        ("broken/signals.md", "one\n{% if %}\n"),
        ("file", ""),
    ]);
    let with = |dir: &str| {
        place
            .oracle("prompt --type code")
            .env("ORACLE_PROMPT__DIR", dir)
    };
    assert_transcript!(
        "prompt_problems",
        [
            place.oracle("prompt --type code --query why"),
            place.oracle("prompt --type Code"),
            with("missing"),
            with("unknown"),
            with("broken"),
            with("file"),
            place.oracle("prompt --type code --project missing"),
            place.oracle("prompt --type code --project file"),
        ]
    );
}

#[test]
fn default_prompt_is_the_small_talk_prompt() {
    let place = Workspace::new(&[]);
    let [plain, small_talk] =
        ["prompt", "prompt --type conversational"].map(|line| place.oracle(line).transcript());
    let text = |transcript: String| transcript.split_once('\n').unwrap().1.to_owned();
    assert_eq!(text(plain), text(small_talk));
}

#[test]
fn project_context_is_part_of_the_prompt() {
    let place = Workspace::new(&[("about.md", "Amounts are in cents, never in euros.\n")]);
    let run = |file: &str| {
        let run = place.oracle("prompt --type code");
        run.env("ORACLE_PROMPT__CONTEXT", file).transcript()
    };
    let told = run("about.md");
    assert!(
        told.contains("Amounts are in cents, never in euros."),
        "{told}"
    );
    let missing = run("nowhere.md");
    assert!(
        missing.contains("cannot read the project's context `nowhere.md`"),
        "{missing}"
    );
    assert!(missing.ends_with("[exit 2]\n"), "{missing}");
}

#[test]
fn note_writing_needs_configuration() {
    let place = Workspace::new(&[("vault/a.md", "# A\n"), ("file", "")]);
    let run = |pairs: &[(&str, &str)]| {
        let run = place.oracle("prompt --type action");
        let run = pairs
            .iter()
            .fold(run, |run, (name, value)| run.env(name, value));
        run.transcript()
    };
    let dir = ("ORACLE_NOTES__DIR", "vault");
    for (name, pairs, tools) in [
        ("the project", &[][..], (true, false)),
        ("a folder", &[dir][..], (true, false)),
        (
            "to write",
            &[dir, ("ORACLE_NOTES__WRITE", "true")][..],
            (true, true),
        ),
    ] {
        let prompt = run(pairs);
        let has = |tool: &str| prompt.contains(&format!("`{tool}`"));
        assert_eq!(
            (has("note_search") && has("note_read"), has("note_write")),
            tools,
            "{name}: {prompt}"
        );
    }
    for (folder, why) in [("nowhere", "entity not found"), ("file", "not a directory")] {
        let prompt = run(&[("ORACLE_NOTES__DIR", folder)]);
        let says = format!("cannot use the notes folder `{folder}`: {why}; check `notes.dir`");
        assert!(
            prompt.contains(&says) && prompt.ends_with("[exit 2]\n"),
            "{prompt}"
        );
    }
    // The project may lie below the notes if the notes are read only.
    for folder in [".", ".."] {
        let dir = ("ORACLE_NOTES__DIR", folder);
        let prompt = run(&[dir]);
        assert!(prompt.ends_with("[exit 0]\n"), "{prompt}");
        let prompt = run(&[dir, ("ORACLE_NOTES__WRITE", "true")]);
        let says = format!(
            "the notes folder `{folder}` is or contains the project, so that `notes.write` would allow \
             writing to all of it; set `notes.dir` to a folder that holds only notes"
        );
        assert!(
            prompt.contains(&says) && prompt.ends_with("[exit 2]\n"),
            "{prompt}"
        );
    }
}
