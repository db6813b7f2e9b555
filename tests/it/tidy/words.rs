//! Words that have no place in code: lifted lints, things left to do, sleeping tests.

use super::Violation;
use super::source::Source;
use super::tokens::{Gate, Kind, Token};

/// Every `allow` and `expect` of a lint says why; `#[expect(…)]` is the one to prefer, because it
/// complains when it is no longer needed.
pub(super) fn lints_are_lifted_with_a_reason(source: &Source) -> Vec<Violation> {
    let tokens = &source.tokens;
    (0..tokens.len())
        .filter_map(|at| {
            let attribute = attribute_at(tokens, at)?;
            let lifted = attribute
                .windows(2)
                .find(|two| (two[0].is("allow") || two[0].is("expect")) && two[1].is("("))?;
            if has_reason(attribute) {
                return None;
            }
            let what = format!(
                "`{}` without a reason: use `#[expect(…, reason = \"why\")]`, or do without",
                lifted[0].text
            );
            Some(source.violation(lifted[0].line, what))
        })
        .collect()
}

/// The tokens between the brackets of an attribute that starts at `at`.
fn attribute_at(tokens: &[Token], at: usize) -> Option<&[Token]> {
    if !tokens[at].is("#") {
        return None;
    }
    let inner = usize::from(tokens.get(at + 1)?.is("!"));
    let body = tokens
        .get(at + 1 + inner..)
        .filter(|rest| rest.first().is_some_and(|t| t.is("[")))?;
    let mut depth = 0_usize;
    let end = body.iter().position(|token| {
        depth += usize::from(token.is("["));
        depth -= usize::from(token.is("]"));
        depth == 0
    })?;
    body.get(1..end)
}

fn has_reason(attribute: &[Token]) -> bool {
    attribute.windows(3).any(|three| {
        three[0].is("reason")
            && three[1].is("=")
            && three[2].kind == Kind::Literal
            && three[2].text.trim_matches(['"', ' ']).len() > 1
    })
}

/// No `todo!`, `unimplemented!`, `dbg!`, in tests neither.
pub(super) fn nothing_is_left_to_do(source: &Source) -> Vec<Violation> {
    source
        .tokens
        .windows(3)
        .filter(|three| {
            ["todo", "unimplemented", "dbg"]
                .iter()
                .any(|name| three[0].is(name))
                && three[1].is("!")
                && !three[2].is("=")
        })
        .map(|three| {
            let what = format!("`{}!` is left over: finish it or remove it", three[0].text);
            source.violation(three[0].line, what)
        })
        .collect()
}

/// A test waits for what it wants to see, never for time to pass.
pub(super) fn tests_do_not_sleep(source: &Source) -> Vec<Violation> {
    source
        .tokens
        .windows(2)
        .filter(|two| {
            two[0].gate == Gate::Test
                && two[1].is("(")
                && ["sleep", "sleep_ms", "sleep_until"]
                    .iter()
                    .any(|name| two[0].is(name))
        })
        .map(|two| {
            let what = "a test that sleeps: wait for the event itself, or move a paused clock on \
                        with `tokio::time::advance`";
            source.violation(two[0].line, what)
        })
        .collect()
}

/// A route of the server stands with its description: one that was added without would be in no table of
/// who may use it.
pub(super) fn routes_are_described(source: &Source) -> Vec<Violation> {
    if source.room() != Some("http") {
        return Vec::new();
    }
    let without = ["route", "route_service", "nest", "nest_service"];
    source
        .tokens
        .windows(3)
        .filter(|three| {
            three[0].is(".")
                && without.iter().any(|name| three[1].is(name))
                && three[2].is("(")
                && three[0].gate < Gate::Test
        })
        .map(|three| {
            let what = format!(
                "`.{}(` without a description: write `.routes(routes!(…))`",
                three[1].text
            );
            source.violation(three[1].line, what)
        })
        .collect()
}

/// A test's name is a sentence about behaviour.
pub(super) fn test_names_state_behaviour(source: &Source) -> Vec<Violation> {
    let tokens = &source.tokens;
    (1..tokens.len())
        .filter(|at| {
            tokens[at - 1].is("fn")
                && tokens[*at].text.starts_with("test_")
                && is_marked_as_test(&tokens[..*at])
        })
        .map(|at| {
            let what = format!("`{}`: name the behaviour, without `test_`", tokens[at].text);
            source.violation(tokens[at].line, what)
        })
        .collect()
}

/// Whether the item that begins in `before` has `#[test]`, `#[tokio::test(…)]` or the like.
fn is_marked_as_test(before: &[Token]) -> bool {
    let ends_item = |token: &Token| [";", "{", "}"].iter().any(|mark| token.is(mark));
    let item = before.iter().rposition(ends_item).map_or(0, |end| end + 1);
    before[item..]
        .windows(2)
        .any(|two| two[0].is("test") && (two[1].is("]") || two[1].is("(")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(rule: fn(&Source) -> Vec<Violation>, path: &str, text: &str) -> Vec<usize> {
        rule(&Source::new(path, text))
            .iter()
            .map(|violation| violation.line)
            .collect()
    }

    #[test]
    fn a_lint_lifted_without_a_reason_is_refused() {
        for (name, text, expected) in [
            ("bare", "#[allow(dead_code)]\nfn f() {}", vec![1]),
            ("whole file", "\n#![allow(dead_code)]", vec![2]),
            ("bare expect", "#[expect(dead_code)] fn f() {}", vec![1]),
            (
                "by condition",
                "#[cfg_attr(unix,\nallow(dead_code))] fn f() {}",
                vec![2],
            ),
            (
                "empty reason",
                "#[allow(dead_code, reason = \"\")] fn f() {}",
                vec![1],
            ),
            (
                "reason of a neighbour",
                "#[allow(a)]\n#[expect(b, reason = \"why\")]\nfn f() {}",
                vec![1],
            ),
            (
                "reason",
                "#[allow(dead_code, reason = \"why\")] fn f() {}",
                vec![],
            ),
            ("method", "fn f() { x[allow(y)]; z.expect(\"w\"); }", vec![]),
            (
                "text",
                "// #[allow(x)]\nconst A: &str = \"#[allow(x)]\";",
                vec![],
            ),
        ] {
            assert_eq!(
                lines(lints_are_lifted_with_a_reason, "src/a.rs", text),
                expected,
                "{name}"
            );
        }
    }

    #[test]
    fn what_is_left_to_do_is_refused() {
        for (name, text, expected) in [
            ("todo", "fn f() {\n todo!()\n}", vec![2]),
            ("unimplemented", "fn f() { unimplemented!(\"x\") }", vec![1]),
            ("dbg", "fn f() { dbg!(1); }", vec![1]),
            ("comparison", "fn f() { todo != 1 }", vec![]),
            (
                "comment and string",
                "// todo!()\nconst A: &str = \"dbg!(1)\";",
                vec![],
            ),
        ] {
            assert_eq!(
                lines(nothing_is_left_to_do, "src/a.rs", text),
                expected,
                "{name}"
            );
        }
    }

    #[test]
    fn a_test_that_sleeps_is_refused() {
        for (name, path, text, expected) in [
            (
                "integration",
                "tests/it/a.rs",
                "fn f() {\n tokio::time::sleep(d) }",
                vec![2],
            ),
            (
                "thread",
                "src/a/tests.rs",
                "fn f() { std::thread::sleep(d) }",
                vec![1],
            ),
            (
                "until",
                "tests/it/a.rs",
                "fn f() { sleep_until(d) }",
                vec![1],
            ),
            (
                "inline",
                "src/a.rs",
                "#[cfg(test)] mod tests { fn f() { sleep(d) } }",
                vec![1],
            ),
            (
                "production",
                "src/actor/a.rs",
                "fn f() { tokio::time::sleep(d) }",
                vec![],
            ),
            (
                "a field",
                "tests/it/a.rs",
                "fn f() { x.sleep.len() }",
                vec![],
            ),
            (
                "text",
                "tests/it/a.rs",
                "const A: &str = \"sleep(1)\"; // sleep(1)",
                vec![],
            ),
        ] {
            assert_eq!(lines(tests_do_not_sleep, path, text), expected, "{name}");
        }
    }

    #[test]
    fn a_route_without_a_description_is_refused() {
        let plain = "fn f() {\n r.route(\"/a\", get(a)) }";
        for (name, path, text, expected) in [
            ("plain", "src/http/a.rs", plain, vec![2]),
            ("in the room's own file", "src/http.rs", plain, vec![2]),
            (
                "nested",
                "src/http/a.rs",
                "fn f() { r.nest(\"/a\", b) }",
                vec![1],
            ),
            (
                "described",
                "src/http/a.rs",
                "fn f() { r.routes(routes!(a)) }",
                vec![],
            ),
            (
                "of a test",
                "src/http/a/tests.rs",
                "fn f() { r.route(\"/a\", get(a)) }",
                vec![],
            ),
            ("of another server", "src/mock/server.rs", plain, vec![]),
        ] {
            assert_eq!(lines(routes_are_described, path, text), expected, "{name}");
        }
    }

    #[test]
    fn a_test_named_after_nothing_is_refused() {
        for (name, text, expected) in [
            ("prefixed", "#[test]\nfn test_works() {}", vec![2]),
            (
                "async",
                "#[tokio::test(start_paused = true)] async fn test_works() {}",
                vec![1],
            ),
            (
                "more attributes",
                "#[test]\n#[ignore]\nfn test_works() {}",
                vec![3],
            ),
            ("behaviour", "#[test] fn testing_is_fun() {}", vec![]),
            ("no test", "#[test] fn a() {} fn test_kit() {}", vec![]),
        ] {
            assert_eq!(
                lines(test_names_state_behaviour, "src/a.rs", text),
                expected,
                "{name}"
            );
        }
    }
}
