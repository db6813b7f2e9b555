//! A journal that breaks under the program: it exits with code 6 at once, and the next start finds
//! everything that was acknowledged.

use std::process::Command;

use super::{
    Workspace,
    ask::{FILES, QUESTION, json_lines},
};

/// A shell that runs the rest of its arguments with a file size limit of 128 blocks of 512 bytes:
/// enough to open a journal, too little for a long question.
const SMALL_DISK: &str = "trap '' XFSZ; ulimit -f 128; exec \"$0\" \"$@\"";

#[test]
fn torn_write_ends_the_program_and_loses_nothing_acknowledged() {
    let place = Workspace::new(&FILES);
    let ask = |question: &str| {
        let run = place.oracle("ask --json --session s");
        json_lines(&run.arg(question).output().stdout)[0].clone()
    };
    let before = ask(QUESTION);
    let long = "where? ".repeat(50_000);
    let run = place
        .oracle("ask --json --session s")
        .stdin(long.as_bytes());
    let whole = run.command();
    let mut small = Command::new("sh");
    small.args(["-c", SMALL_DISK]).arg(whole.get_program());
    small.args(whole.get_args());
    small
        .current_dir(whole.get_current_dir().unwrap())
        .env_clear();
    small.envs(
        whole
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    for pipe in [Command::stdin, Command::stdout, Command::stderr] {
        pipe(&mut small, std::process::Stdio::piped());
    }
    let output = run.output_of(small);
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(6), "{told}");
    assert!(
        told.contains("the journal failed and cannot be trusted any more"),
        "{told}"
    );
    assert_eq!(output.stdout, b"", "nothing is acknowledged");
    let after = ask(QUESTION);
    let query = |answer: &serde_json::Value| answer["query"].as_u64().unwrap();
    assert_eq!(query(&after), query(&before) + 1, "it was never accepted");
}
