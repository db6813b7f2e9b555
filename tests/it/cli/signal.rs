//! `oracle signal`: the signals and visible text of replies.

use super::{Workspace, assert_transcript};

const STUCK: &str = r#"I looked everywhere.

<signal type="stuck" confidence="0.4">
  <attempted>["code_search", "file_read"]</attempted>
  <blocker>The folder holds no code</blocker>
  <colour>blue</colour>
</signal>
"#;

#[test]
fn a_reply_comes_from_a_file_or_from_standard_input() {
    let rejected = "Done. <signal type=\"need_turn\"><reason>Why</reason></signal>";
    let place = Workspace::new(&[
        ("stuck.txt", STUCK),
        ("rejected.txt", rejected),
        ("plain.txt", "It is in `src/read.rs`.\n"),
        ("empty.txt", ""),
        ("folder/file.txt", ""),
    ]);
    assert_transcript!(
        "signal",
        [
            place.oracle("signal stuck.txt"),
            place.oracle("signal rejected.txt"),
            place.oracle("signal plain.txt"),
            place.oracle("signal empty.txt"),
            place.oracle("signal").stdin(STUCK.as_bytes()),
            place.oracle("signal -").stdin(rejected.as_bytes()),
            place.oracle("signal missing.txt"),
            place.oracle("signal folder"),
        ]
    );
}

#[test]
fn every_type_shows_its_own_fields() {
    let replies = [
        "<signal type='need_turn'><reason>Still reading</reason><expected_turns>2</expected_turns></signal>",
        "<signal type='context_sufficient'><sources_found>3.0</sources_found></signal>",
        "<signal type='stuck'><attempted>[\"a\"]</attempted><blocker>No index</blocker></signal>",
        "<signal type='need_capability'><capability>shell</capability><reason>To run it</reason></signal>",
        "<signal type='partial_answer'><missing>The tests</missing></signal>",
        "<signal type='delegation_recommended'><reason>Too wide</reason><scope>All tests</scope></signal>",
    ];
    let lines = replies.map(|reply| serde_json::json!({ "response": reply }).to_string());
    let place = Workspace::new(&[("replies.jsonl", &lines.join("\n"))]);
    assert_transcript!(
        "signal_types",
        [place.oracle("signal --jsonl replies.jsonl")]
    );
}

#[test]
fn replies_come_by_json_line() {
    let place = Workspace::new(&[]);
    let lines = b"{\"response\": \"Hi <signal>\", \"id\": 7}\n\"a\\n\\n\\n\\nb\"\n\n{\"reply\": \"\"}\n\"not read\"\n";
    assert_transcript!(
        "signal_jsonl",
        [
            place.oracle("signal --jsonl").stdin(lines),
            place.oracle("signal --jsonl").stdin(b"[\"an array\"]\n"),
        ]
    );
}
