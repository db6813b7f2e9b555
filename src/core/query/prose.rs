//! Separates a user's words from fenced code, stack traces and logs.
//!
//! The line above a trace says what the user wants. A pasted trace alone counts as a whole.
//!
//! **Invariant:** a text of one line is the user's.

use std::sync::LazyLock;

use regex::RegexSet;

/// The user's lines; `None` if that is all or none.
pub(super) fn prose(text: &str) -> Option<String> {
    if !text.contains('\n') {
        return None;
    }
    let mut out = String::new();
    let (mut fenced, mut before, mut left_out) = (false, false, false);
    for line in text.lines() {
        let fence = line.trim_start().starts_with("```");
        let machine = fence || fenced || is_machine(line, before);
        fenced ^= fence;
        if !line.trim().is_empty() {
            before = machine;
        }
        left_out |= machine;
        if !machine {
            out.push_str(line);
            out.push('\n');
        }
    }
    let out = out.trim();
    (left_out && out.chars().any(char::is_alphabetic)).then(|| out.to_owned())
}

/// `before`: whether a program wrote the previous line.
fn is_machine(line: &str, before: bool) -> bool {
    let bare = line.trim();
    let continues = || line.starts_with(char::is_whitespace) || is_quoted_code(bare);
    !bare.is_empty()
        && (MACHINE.iter().any(|lines| lines.is_match(bare))
            || is_mostly_signs(bare)
            || before && continues())
}

/// Trimmed lines that a program wrote.
static MACHINE: LazyLock<Option<RegexSet>> = LazyLock::new(|| {
    RegexSet::new([
        // Frames of stack traces, and what surrounds them.
        r"^at .*(?:::|[(/\\].*[:.]|[:.].*[(/\\])",
        r"^(?:#+[0-9]+|[0-9]+: ).*(?:::|0x|\()",
        "^(?:Traceback \\(most recent|File \"|stack backtrace:|Stack trace:|Caused by:|Suppressed:)",
        "^(?:Exception in thread|goroutine |panic: |thread '|warning: unused|note: run with `RUST_B)",
        // `ValueError: …`, `java.lang.IllegalStateException: …`, `error[E0308]: …`.
        r"^[\w.]*(?:Error|Exception|Warning|Fault|Panic)(?:\[[^:]*)?:|^error\[[^:]*:",
        // Code.
        r"(?:[{};\\]|\)\?|->|=>)$",
        r"^(?:\}|//|/\*|#include|#\[|@|\$ |>>> |-->|\+\+\+|--- )",
        // Logs begin with a date, a time or a level.
        r"^\[*(?:[0-9]{4}-[0-9]{2}|[0-9]{2}:[0-9]{2}|ERROR|WARN|INFO|DEBUG|TRACE|FATAL|[EW]/)",
    ])
    .ok()
});

fn is_mostly_signs(bare: &str) -> bool {
    let letters = bare.chars().filter(|c| !c.is_whitespace());
    let signs = "{}()[]<>=;|\\/*&^%$#@_~`+";
    let (all, signs) = letters.fold((0, 0), |(all, some), c| {
        (all + 1, some + usize::from(signs.contains(c)))
    });
    all >= 8 && signs * 5 >= all
}

/// Messages inside a trace quote code.
fn is_quoted_code(bare: &str) -> bool {
    bare.contains('`') || bare.contains("::") || bare.starts_with(|c: char| "|=^~".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PYTHON: &str = "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    \
                          total = add(1, \"2\")\nTypeError: unsupported operand type(s) for +: 'int' and 'str'";
    const RUST: &str = "thread 'main' panicked at src/pool.rs:88:14:\ncalled `Option::unwrap()` on a `None` \
                        value\nstack backtrace:\n   0: rust_begin_unwind\n   1: core::panicking::panic_fmt";
    const JAVA: &str = "java.lang.IllegalStateException: no session\n\tat com.acme.Pool.take(Pool.java:41)\n\t\
                        ... 12 more";
    const NODE: &str = "TypeError: x is not a function\n    at Object.<anonymous> (/app/index.js:3:1)\n    at \
                        node:internal/main/run_main_module:28:49";
    const CODE: &str = "fn f(x: u8) -> u8 {\n    x.wrapping_add(1)\n}";
    const LOG: &str = "2026-03-01T10:00:00Z ERROR pool: no room\n[12:30:01] retrying";

    #[test]
    fn pasted_code_and_logs_are_dropped() {
        for machine in [PYTHON, RUST, JAVA, NODE, CODE, LOG] {
            for (name, text) in [
                (
                    "behind",
                    format!("what did we agree on retries?\n\n{machine}"),
                ),
                (
                    "before",
                    format!("{machine}\n\nwhat did we agree on retries?"),
                ),
                (
                    "in a fence",
                    format!("what did we agree on retries?\n```text\n{machine}\n```"),
                ),
            ] {
                let found = prose(&text);
                assert_eq!(
                    found.as_deref(),
                    Some("what did we agree on retries?"),
                    "{name}: {text}"
                );
            }
            assert_eq!(prose(machine), None, "alone: {machine}");
        }
    }

    #[test]
    fn prose_is_kept_whole() {
        for text in [
            "where is `parse_header()` -> Result?",
            "please add:\n- a section on retries\n- who decides (Ann), by Friday",
            "two things:\n1. rename the note\n2. update the index",
            "Hello,\n\nwhy is the build slow? I think it is the linker.\n\nThanks",
            "dark mode?\nat the earliest in May",
            "数据库在哪里\n请告诉我",
        ] {
            assert_eq!(prose(text), None, "{text}");
        }
    }
}
