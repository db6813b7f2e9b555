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
            && says(&[
                "version", "release", "versión", "change", "drop", "remov", " v",
            ]);
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
            tests: run.iter().any(|word| {
                ["test", "tests", "example", "examples", "fixture"].contains(&word.as_str())
            }),
        }
    }
}

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
                "the tests of the gateway",
                Drift {
                    tests: true,
                    ..Drift::default()
                },
            ),
        ] {
            assert_eq!(Asked::read(question).drift, expected, "{question}");
        }
    }
}
