//! Separates a user's words from fenced code, stack traces and logs.
//!
//! The line above a trace says what the user wants. A pasted trace alone counts as a whole.
//!
//! **Invariant:** a text of one line is the user's.

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
    if bare.is_empty() {
        return false;
    }
    let indented = line.starts_with(char::is_whitespace);
    is_frame(bare)
        || is_fault(bare)
        || is_code(bare)
        || is_log(bare)
        || (before && (indented || is_quoted_code(bare)))
}

const FRAMES: [&str; 12] = [
    "Traceback (most recent",
    "File \"",
    "stack backtrace:",
    "Stack trace:",
    "note: run with `RUST_BACKTRACE",
    "Exception in thread",
    "Caused by:",
    "Suppressed:",
    "goroutine ",
    "panic: ",
    "thread '",
    "warning: unused",
];

fn is_frame(bare: &str) -> bool {
    let at = bare.strip_prefix("at ").is_some_and(|rest| {
        let place = rest.contains(['(', '/', '\\']) && rest.contains([':', '.']);
        place || rest.contains("::")
    });
    let numbered = bare.trim_start_matches('#');
    let digits = numbered.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered = digits.len() < numbered.len();
    let counted = is_numbered
        && (digits.starts_with(": ") || numbered.len() < bare.len())
        && (digits.contains("::") || digits.contains("0x") || digits.contains('('));
    at || counted || FRAMES.iter().any(|frame| bare.starts_with(frame))
}

/// `ValueError: …`, `java.lang.IllegalStateException: …`, `error[E0308]: …`.
fn is_fault(bare: &str) -> bool {
    let Some((name, _)) = bare.split_once(':') else {
        return false;
    };
    let plain = name.split('[').next().unwrap_or_default();
    let fits = |c: char| c.is_alphanumeric() || "._".contains(c);
    let is_name = !plain.is_empty() && plain.chars().all(fits);
    let ends = ["Error", "Exception", "Warning", "Fault", "Panic"];
    is_name
        && (ends.iter().any(|end| plain.ends_with(end))
            || (name.len() > plain.len() && plain == "error"))
}

/// Judges by line ends and by the share of signs.
fn is_code(bare: &str) -> bool {
    let ends = ["{", "}", ";", "};", "});", ")?", "->", "=>", "\\"];
    let begins = [
        "}", "//", "/*", "#include", "#[", "@", "$ ", ">>> ", "-->", "+++", "--- ",
    ];
    if ends.iter().any(|end| bare.ends_with(end)) || begins.iter().any(|b| bare.starts_with(b)) {
        return true;
    }
    let counted = bare.chars().filter(|c| !c.is_whitespace());
    let signs = counted
        .clone()
        .filter(|&c| "{}()[]<>=;|\\/*&^%$#@_~`+".contains(c));
    let (all, signs) = (counted.count(), signs.count());
    all >= 8 && signs * 5 >= all
}

/// A date, a time or a level begins the line.
fn is_log(bare: &str) -> bool {
    let bare = bare.trim_start_matches('[');
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let dated = digits(bare) == 4 && bare[4..].starts_with('-') && digits(&bare[5..]) == 2;
    let timed = digits(bare) == 2 && bare[2..].starts_with(':') && digits(&bare[3..]) == 2;
    let levels = [
        "ERROR", "WARN", "INFO", "DEBUG", "TRACE", "FATAL", "E/", "W/",
    ];
    dated || timed || levels.iter().any(|level| bare.starts_with(level))
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
