//! What kind of place answers a question, by how it is put.

use super::asked::{Concept, Sort};

/// What kind of place answers; several may.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Drift {
    /// What is different since when: changelogs and guides for migration.
    pub(crate) change: bool,
    /// How to do something: guides.
    pub(crate) guide: bool,
    /// Where in the code.
    pub(crate) code: bool,
    /// A default, an option.
    pub(crate) setting: bool,
    /// A message, a failure.
    pub(crate) error: bool,
    /// Tests or examples.
    pub(crate) tests: bool,
    /// Where something is tested: tests, and not what they test.
    pub(crate) tested: bool,
}

const GUIDES: &[&str] = &[
    "how do i",
    "how can i",
    "how to",
    "how do we",
    "how should i",
    "how would i",
    "how can we",
    "what is the best way",
    "is there a way",
    "can i ",
    "wie kann ich",
    "wie mache ich",
    "wie verwende",
    "wie benutze",
    "wie teste",
    "wie richte",
    "wie stelle",
    "comment puis",
    "comment faire",
    "comment utiliser",
    "comment je",
    "comment configurer",
    "cómo puedo",
    "como puedo",
    "cómo se usa",
    "cómo hago",
    "cómo uso",
    "cómo configuro",
    "what should i use",
];
const CODE: &[&str] = &[
    "where is",
    "where are",
    "where does",
    "where do",
    "the code that",
    "the part that",
    "the place",
    "which function",
    "which file",
    "which class",
    "which module",
    "implemented",
    "wo wird",
    "wo ist",
    "wo werden",
    "où est",
    "où sont",
    "dónde se",
    "dónde está",
    "code qui",
    "el código",
];
const CHANGES: &[&str] = &[
    "changed in",
    "what changed",
    "which release",
    "which version",
    "what version",
    "since when",
    "since which",
    "when was",
    "when did",
    "release notes",
    "changelog",
    "breaking change",
    "was removed",
    "was added",
    "was dropped",
    "upgrad",
    "migrat",
    "seit wann",
    "seit welcher",
    "welche version",
    "in welcher version",
    "depuis quand",
    "quelle version",
    "depuis la version",
    "desde cuándo",
    "qué versión",
    "desde la versión",
    "en qué versión",
    "was hat sich",
    "qu'est-ce qui a changé",
    "qué cambió",
    "hat sich in",
    "renamed to",
    "what is new",
    "what's new",
    "new in",
    "was ist neu",
    "neu in",
    "quoi de neuf",
    "nouveautés",
    "novedades",
];
const SETTINGS: &[&str] = &[
    "default",
    "option",
    "setting",
    "configur",
    "how long may",
    "how many",
    "how large",
    "how big",
    "maximum",
    "limit",
    "standardwert",
    "voreinstellung",
    "einstellung",
    "défaut",
    "réglage",
    "defecto",
    "predeterminad",
    "opción",
    "by default",
];
const ERRORS: &[&str] = &[
    "error",
    "warning",
    "why do i get",
    "exception",
    "fails",
    "complain",
    "throws",
    "crash",
    "traceback",
    "panic",
    "fehler",
    "warum",
    "erreur",
    "pourquoi",
    "por qué",
    "mean",
];

/// How far behind "which" the release stands that it asks for: "in which axum-core release".
const RELEASE_WITHIN: usize = 4;

impl Drift {
    pub(super) fn of(question: &str, run: &[String], concepts: &[Concept]) -> Self {
        let lower = question.to_lowercase();
        let says = |phrases: &[&str]| phrases.iter().any(|phrase| lower.contains(phrase));
        let versioned = concepts.iter().any(|concept| concept.sort == Sort::Version)
            && (lower.split_whitespace().any(is_version)
                || says(&["version", "release", "versión", "change", "drop", "remov"]));
        let which = run
            .iter()
            .position(|word| word == "which" || word == "what");
        let of_release = which.is_some_and(|at| {
            let mut next = run.iter().skip(at + 1).take(RELEASE_WITHIN);
            next.any(|word| ["release", "releases", "version"].contains(&word.as_str()))
        });
        Self {
            change: says(CHANGES) || versioned || of_release,
            guide: says(GUIDES),
            code: says(CODE),
            setting: says(SETTINGS),
            error: says(ERRORS) || lower.contains(['"', '“', '„', '«', '`']),
            tests: asks_for_tests(run),
            tested: asks_where_tested(run) && !says(GUIDES),
        }
    }
}

/// `v5`, `(v0.8`
fn is_version(word: &str) -> bool {
    let word = word.trim_start_matches(|c: char| !c.is_alphanumeric());
    let number = word.strip_prefix('v');
    number.is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit()))
}

/// Whether it is about tests or examples; who wants to know how to test something reads of it elsewhere.
fn asks_for_tests(run: &[String]) -> bool {
    run.iter().enumerate().any(|(at, word)| {
        let before = at.checked_sub(1).and_then(|at| run.get(at));
        match word.as_str() {
            "tests" | "example" | "examples" | "fixture" => true,
            "test" => before.is_none_or(|before| !DOERS.contains(&before.as_str())),
            _ => false,
        }
    })
}

/// Whether it asks for the tests of something: "where is it tested", "which tests cover it". What is tested against
/// something is checked, and what tests or runs tests is code.
fn asks_where_tested(run: &[String]) -> bool {
    let holds = |list: &str, word: Option<&String>| {
        word.is_some_and(|word| list.split(' ').any(|entry| entry == word))
    };
    let asks = holds(ASKING, run.first());
    let asks_where = asks && holds(LYING, run.get(1)) || holds(SHOWING, run.first());
    run.iter().enumerate().any(|(at, word)| {
        let before = at.checked_sub(1).and_then(|at| run.get(at));
        let next = run.get(at + 1);
        let (is_tests, is_tested) = (holds(TESTS, Some(word)), holds(TESTED, Some(word)));
        let is_noun = before.is_none() || holds(BEFORE_TESTS, before);
        let about = at >= 2 && run[at - 2] == "about";
        (is_tests && is_noun && holds(OF_TESTS, next))
            || (is_tests && next.is_none() && (asks_where || about))
            || (asks && is_tested && next.is_none())
            || (asks && is_tested && holds(ARTICLES, next))
    })
}

const ASKING: &str =
    "where which what how is are wo welche wie wird werden ist où quels comment est dónde qué cómo";
const LYING: &str = "are is sind liegen stehen sont se están hay";
const SHOWING: &str = "show find list";
const TESTS: &str = "test tests unittests pruebas";
const BEFORE_TESTS: &str = "a the any which what no there are unit integration regression our its welche die der ein einen les des un las los";
const TESTED: &str = "tested getestet testé testée testés testées prueba prueban";
const OF_TESTS: &str = "of for that which cover covers covering exercise exercises check checks für von zu pour du de del para";
/// French and Spanish say behind the verb what is tested.
const ARTICLES: &str = "le la les l el los las";

/// What stands before a verb.
const DOERS: [&str; 8] = ["i", "we", "you", "to", "people", "users", "one", "properly"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::Asked;

    #[test]
    fn the_kind_of_place_is_told_by_the_question() {
        for (question, expected) in [
            (
                "what changed in 2.0?",
                Drift {
                    change: true,
                    ..Drift::default()
                },
            ),
            (
                "how do I add a plug-in?",
                Drift {
                    guide: true,
                    ..Drift::default()
                },
            ),
            (
                "where is the gateway?",
                Drift {
                    code: true,
                    ..Drift::default()
                },
            ),
            (
                "the default of max_turns",
                Drift {
                    setting: true,
                    ..Drift::default()
                },
            ),
            (
                "\"no such thing\"",
                Drift {
                    error: true,
                    ..Drift::default()
                },
            ),
            (
                "Wo wird der Statuscode 503 vom Gateway behandelt?",
                Drift {
                    code: true,
                    ..Drift::default()
                },
            ),
            (
                "how do we test the gateway",
                Drift {
                    guide: true,
                    ..Drift::default()
                },
            ),
            (
                "dropped with v5?",
                Drift {
                    change: true,
                    ..Drift::default()
                },
            ),
            (
                "is there a test of the gateway",
                Drift {
                    tests: true,
                    tested: true,
                    ..Drift::default()
                },
            ),
            (
                "examples of the gateway",
                Drift {
                    tests: true,
                    ..Drift::default()
                },
            ),
        ] {
            assert_eq!(Asked::read(question).drift, expected, "{question}");
        }
    }
    #[test]
    fn who_asks_for_tests_is_told_from_who_asks_what_is_checked() {
        for (question, tested) in [
            ("where is Gateway tested?", true),
            ("is Gateway tested?", true),
            ("where are the tests of the gateway", true),
            ("which tests cover the gateway?", true),
            ("where are the gateway tests?", true),
            ("Wo wird der Gateway getestet?", true),
            ("où est testée la passerelle ?", true),
            ("où la passerelle est-elle testée ?", true),
            ("¿dónde se prueba el gateway?", true),
            ("where is the path tested against the pattern?", false),
            ("how do I write tests for the gateway?", false),
            ("how do we test the gateway", false),
            ("are there tests for the gateway?", true),
            ("what about the tests?", true),
            ("what runs the tests before a release?", false),
            ("where does the gateway test for unknown keys?", false),
            ("how does the runner collect tests?", false),
            ("which option skips slow tests?", false),
            ("how the parser tests for eof", false),
            ("where is the gateway?", false),
        ] {
            assert_eq!(Asked::read(question).drift.tested, tested, "{question}");
        }
    }
}
