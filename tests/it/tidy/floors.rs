//! Who may import whom (architecture.md, "Rooms and floors").
//!
//! Imports point down; rooms on one floor do not know one another; only `app` names concrete back
//! ends; the test kit stays out of production code. Relative order within a room is its own affair.

use super::Violation;
use super::paths::{Named, into_library};
use super::source::Source;
use super::tokens::Gate;

/// Every room and its floor. A new room needs a line here, so that its place is a decision.
const FLOORS: &[(&str, u8)] = &[
    ("model", 0),
    ("signal", 1),
    ("words", 1),
    ("query", 2),
    ("prompt", 2),
    ("kernel", 2),
    ("llm", 2),
    ("tool", 2),
    ("journal", 2),
    ("config", 2),
    ("access", 2),
    ("actor", 3),
    ("mock", 3),
    ("control", 4),
    ("http", 5),
    ("cli", 5),
    ("mcp", 5),
    ("telemetry", 5),
    ("app", 6),
];

/// May import every room; only tests import it.
const TEST_KIT: &str = "testkit";

/// Only mirrors the settings of others for the file, so it imports the vocabulary alone.
const CONFIG: (&str, &str) = ("config", "model");

/// Concrete models and journals, by the first part of their module or type.
const BACK_ENDS: &[(&str, &[&str])] = &[
    (
        "llm",
        &[
            "openai",
            "anthropic",
            "remote",
            "offline",
            "scripted",
            "genai",
        ],
    ),
    ("journal", &["memory", "sqlite", "postgres"]),
];

fn floor(room: &str) -> Option<u8> {
    FLOORS
        .iter()
        .find(|(name, _)| *name == room)
        .map(|(_, floor)| *floor)
}

/// The rooms that a file names besides its own, with the first segment as the room.
fn named(source: &Source) -> impl Iterator<Item = (String, Named)> {
    let own = source.room().map(String::from);
    into_library(source)
        .into_iter()
        .map(|named| (named.segments[0].clone(), named))
        .filter(move |(room, _)| Some(room) != own.as_ref())
}

/// A room imports only rooms on lower floors.
pub(super) fn imports_point_down(source: &Source) -> Vec<Violation> {
    let Some(own) = source.room().filter(|room| *room != TEST_KIT) else {
        return Vec::new(); // The root, the binary, tests and examples may import every room.
    };
    let Some(own_floor) = floor(own) else {
        let what = format!("the room `{own}` has no floor: give it one in tests/it/tidy/floors.rs");
        return vec![source.violation(1, what)];
    };
    let judge = |room: &str| match floor(room) {
        _ if room == TEST_KIT => None, // Has its own rule.
        _ if room == "*" => Some("imports the whole crate root: import the rooms it needs".into()),
        None => Some(format!(
            "`crate::{room}` is no room: import from the room that defines it, not from the root"
        )),
        Some(_) if own == CONFIG.0 && room != CONFIG.1 => Some(format!(
            "`{own}` imports only `{}`, not `{room}`: let `app` map it",
            CONFIG.1
        )),
        Some(there) if there >= own_floor => Some(format!(
            "`{own}` (floor {own_floor}) must not import `{room}` (floor {there}): move what they \
             share to a lower floor, usually `model`"
        )),
        Some(_) => None,
    };
    named(source)
        .filter_map(|(room, named)| Some(source.violation(named.line, judge(&room)?)))
        .collect()
}

/// Only the composition root chooses between implementations of a port.
pub(super) fn only_app_names_back_ends(source: &Source) -> Vec<Violation> {
    let chooses = match source.room() {
        Some(room) => room == "app" || room == TEST_KIT,
        None => source.path != "src/main.rs",
    };
    // Sessions in memory have their own journals.
    if chooses || source.path == "src/actor/ephemeral.rs" {
        return Vec::new();
    }
    let is_back_end = |room: &str, part: &str| {
        let part = part.to_lowercase();
        BACK_ENDS
            .iter()
            .any(|(port, names)| *port == room && names.iter().any(|name| part.starts_with(name)))
    };
    named(source)
        .filter(|(room, named)| {
            named.gate == Gate::Open
                && named
                    .segments
                    .get(1)
                    .is_some_and(|part| is_back_end(room, part))
        })
        .map(|(_, named)| {
            let path = named.segments.join("::");
            let what = format!("only `app` names a back end like `{path}`: take the port's trait");
            source.violation(named.line, what)
        })
        .collect()
}

/// Production code does not use the test kit.
pub(super) fn test_kit_stays_in_tests(source: &Source) -> Vec<Violation> {
    named(source)
        .filter(|(room, named)| room == TEST_KIT && named.gate == Gate::Open)
        .map(|(_, named)| {
            let what = "production code imports `testkit`: put it behind \
                        `#[cfg(any(test, feature = \"testkit\"))]` or do without";
            source.violation(named.line, what)
        })
        .collect()
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
    fn an_import_that_does_not_point_down_is_refused() {
        for (name, path, text, expected) in [
            (
                "down",
                "src/kernel/phase.rs",
                "use crate::{model::Seq, signal::read};",
                vec![],
            ),
            (
                "down by many",
                "src/app.rs",
                "use crate::{cli, actor, model};",
                vec![],
            ),
            (
                "own room",
                "src/kernel.rs",
                "use crate::kernel::phase; use self::phase::P;",
                vec![],
            ),
            (
                "own room upwards",
                "src/kernel/a/b.rs",
                "use super::super::phase::P;",
                vec![],
            ),
            (
                "the vocabulary knows nobody",
                "src/model/id.rs",
                "use crate::signal::X;",
                vec![1],
            ),
            (
                "rooms of floor 2",
                "src/query.rs",
                "use crate::model::Q;\nuse crate::prompt::S;",
                vec![2],
            ),
            (
                "in a group",
                "src/llm.rs",
                "use crate::{\n    model::Q,\n    tool::{self, T},\n};",
                vec![3, 3],
            ),
            (
                "in code",
                "src/tool/web.rs",
                "fn f() {\n    crate::llm::g()\n}",
                vec![2],
            ),
            ("up", "src/journal.rs", "use crate::actor::H;", vec![1]),
            (
                "by super",
                "src/kernel/phase.rs",
                "use super::super::actor::H;",
                vec![1],
            ),
            (
                "by super of the room",
                "src/kernel.rs",
                "use super::llm::R;",
                vec![1],
            ),
            (
                "by super in its tests",
                "src/kernel.rs",
                "mod tests {\n use super::super::llm::R;\n}",
                vec![2],
            ),
            (
                "edges do not know one another",
                "src/http.rs",
                "use crate::cli::X;",
                vec![1],
            ),
            (
                "an edge does not start the app",
                "src/cli/serve.rs",
                "use crate::app::run;",
                vec![1],
            ),
            (
                "telemetry beside the edges",
                "src/http.rs",
                "use crate::telemetry::init;",
                vec![1],
            ),
            (
                "config needs only model",
                "src/config/load.rs",
                "use crate::model::Limits;",
                vec![],
            ),
            (
                "config takes no settings",
                "src/config.rs",
                "use crate::signal::X;",
                vec![1],
            ),
            ("root by glob", "src/kernel.rs", "use super::*;", vec![1]),
            (
                "root by alias",
                "src/kernel.rs",
                "use crate as all;",
                vec![1],
            ),
            (
                "re-export of the root",
                "src/actor.rs",
                "use crate::Oracle;",
                vec![1],
            ),
            ("a room without a floor", "src/attic/box.rs", "", vec![1]),
            (
                "kit imports all",
                "src/testkit.rs",
                "use crate::{app, actor, llm};",
                vec![],
            ),
            (
                "the root lists all",
                "src/lib.rs",
                "pub use crate::app::Oracle;",
                vec![],
            ),
            (
                "tests import all",
                "tests/it/a.rs",
                "use oracle_agent::{app, kernel};",
                vec![],
            ),
            (
                "doc links",
                "src/model.rs",
                "//! See [`crate::kernel`].\n// use crate::llm;",
                vec![],
            ),
        ] {
            assert_eq!(lines(imports_point_down, path, text), expected, "{name}");
        }
    }

    #[test]
    fn a_violation_says_what_to_do() {
        let source = Source::new("src/query.rs", "use crate::prompt;");
        let found: Vec<String> = imports_point_down(&source)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            found,
            [
                "src/query.rs:1: `query` (floor 2) must not import `prompt` (floor 2): move what they \
              share to a lower floor, usually `model`"
            ]
        );
    }

    #[test]
    fn a_back_end_is_named_by_app_alone() {
        for (name, path, text, expected) in [
            (
                "port",
                "src/actor.rs",
                "use crate::llm::{Backend, Request};",
                vec![],
            ),
            (
                "module",
                "src/actor.rs",
                "use crate::llm::openai::Client;",
                vec![1],
            ),
            (
                "type",
                "src/actor.rs",
                "use crate::journal::SqliteJournal;",
                vec![1],
            ),
            (
                "binary",
                "src/main.rs",
                "use oracle_agent::llm::offline;",
                vec![1],
            ),
            (
                "app",
                "src/app.rs",
                "use crate::llm::openai::Client;",
                vec![],
            ),
            (
                "its own room",
                "src/llm/offline.rs",
                "use super::scripted::Script;",
                vec![],
            ),
            (
                "test",
                "src/actor.rs",
                "#[cfg(test)] mod tests { use crate::journal::memory::M; }",
                vec![],
            ),
            (
                "example",
                "examples/embed.rs",
                "use oracle_agent::llm::scripted::Script;",
                vec![],
            ),
        ] {
            assert_eq!(
                lines(only_app_names_back_ends, path, text),
                expected,
                "{name}"
            );
        }
    }

    #[test]
    fn the_test_kit_is_imported_by_tests_alone() {
        for (name, path, text, expected) in [
            (
                "room",
                "src/actor.rs",
                "use crate::testkit::Clock;",
                vec![1],
            ),
            (
                "binary",
                "src/main.rs",
                "use oracle_agent::testkit::Clock;",
                vec![1],
            ),
            (
                "root",
                "src/lib.rs",
                "pub use crate::testkit::Clock;",
                vec![1],
            ),
            (
                "test",
                "src/actor/tests.rs",
                "use crate::testkit::Clock;",
                vec![],
            ),
            (
                "gated",
                "src/llm.rs",
                "#[cfg(feature = \"testkit\")]\nuse crate::testkit::C;",
                vec![],
            ),
            (
                "example",
                "examples/embed.rs",
                "use oracle_agent::testkit::Clock;",
                vec![],
            ),
        ] {
            assert_eq!(
                lines(test_kit_stays_in_tests, path, text),
                expected,
                "{name}"
            );
        }
    }
}
