//! What a question is after: its words, and which kind of note it asks for.
//!
//! Who asks why, or since when, is shown decisions and lists of changes first. Pure.

use std::{collections::HashSet, sync::LazyLock};

use super::{
    kind::Kind,
    page::Unit,
    words::{self, Key},
};

/// Most words of a question that count.
pub(super) const MAX_WORDS: usize = 32;

/// Words by which a question says what kind of note it is after, in the forms that people use.
const WHY: &str = "\
    why decide decides decided deciding decision decisions reason reasons rationale rationales choose \
    chooses chose chosen choosing choice choices adr adrs alternative alternatives tradeoff tradeoffs \
    warum wieso weshalb beschlossen entschieden entscheidung entscheidungen grund gründe";
const SINCE: &str = "\
    since version versions release releases released releasing changelog changelogs change changes \
    changed changing introduce introduces introduced introducing add adds added adding \
    remove removes removed removing removal deprecate deprecates deprecated deprecating deprecation \
    break breaks breaking seit";
const MET: &str = "\
    meet meets met meeting meetings minutes agenda agendas discuss discusses discussed discussing \
    discussion agree agrees agreed agreeing agreement agreements standup standups retro retros \
    retrospective besprechung besprechungen besprochen protokoll protokolle sitzung sitzungen vereinbart";

/// What asks for people.
const WHO: &[&str] = &[
    "who",
    "wer",
    "qui",
    "quién",
    "quiénes",
    "participants",
    "deciders",
];

/// The same as [`words::each`] gives them.
static KINDS: LazyLock<[HashSet<Key>; 3]> = LazyLock::new(|| {
    [WHY, SINCE, MET].map(|forms| {
        let mut keys = HashSet::new();
        words::each(forms, |word| {
            keys.insert(words::key(word));
        });
        keys
    })
});

/// A question, understood.
#[derive(Debug, Default)]
pub(super) struct Question {
    /// What is looked for, each word once: as it was asked, and its key.
    pub(super) words: Vec<(String, Key)>,
    pub(super) why: bool,
    /// Whether it asks for people.
    pub(super) who: bool,
    since: bool,
    met: bool,
}

impl Question {
    /// Reads a question. Words that say what kind of note is meant count as such only, unless there
    /// are no others.
    pub(super) fn of(text: &str) -> Self {
        let mut question = Self::default();
        let (mut seen, mut kinds, mut weak) = (HashSet::new(), Vec::new(), Vec::new());
        let mut said = text.split(|c: char| !c.is_alphanumeric());
        question.who = said.any(|word| WHO.contains(&word.to_lowercase().as_str()));
        let runs = text
            .split_whitespace()
            .map(|run| run.trim_matches(|c: char| !c.is_alphanumeric()));
        let mut word_of = |run: &str, word: &str| {
            let key = words::key(word);
            let [why, since, met] = KINDS.each_ref().map(|keys| keys.contains(&key));
            question.why |= why;
            question.since |= since;
            question.met |= met;
            if seen.insert(key) {
                let list = match (words::is_stop(key), why || since || met) {
                    (true, _) => &mut weak,
                    (false, true) => &mut kinds,
                    (false, false) => &mut question.words,
                };
                list.push((run.to_owned(), key));
            }
        };
        runs.for_each(|run| words::each(run, |word| word_of(run, word)));
        for list in [kinds, weak] {
            if question.words.is_empty() {
                question.words = list;
            }
        }
        question.words.truncate(MAX_WORDS);
        question
    }

    /// How much more a section counts for being what was asked for: itself, or as a part of its page.
    pub(super) fn wish(&self, page: Kind, section: &Unit) -> f32 {
        let of = |asked: bool, more: f32| if asked { more } else { 1.0 };
        let own = match section.kind {
            // What was decided before what led to it.
            Kind::Decision if section.decides => of(self.why, 2.6).max(of(self.since, 1.1)),
            Kind::Decision => of(self.why, 2.2).max(of(self.since, 1.1)),
            Kind::Changelog => of(self.since, 2.2).max(of(self.why, 1.1)),
            Kind::Meeting => of(self.why, 1.3),
            Kind::Note => 1.0,
        };
        own.max(of(self.met && page == Kind::Meeting, 2.5))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_of_a_word_say_what_is_asked_for() {
        for (of, forms) in [
            ("why", "why decided Decisions reasons chose chosen choosing"),
            (
                "since",
                "since version releases introduced adding added removes deprecated breaking changed",
            ),
            (
                "met",
                "meeting meetings met agreed agrees agree discussed minutes Sitzungen",
            ),
        ] {
            for form in forms.split(' ') {
                let question = Question::of(form);
                let asked = [question.why, question.since, question.met];
                let want = ["why", "since", "met"].map(|name| name == of);
                assert_eq!(asked, want, "{form}");
            }
        }
        for other in ["cache", "address", "meter", "because"] {
            let question = Question::of(other);
            assert!(!question.why && !question.since && !question.met, "{other}");
        }
    }

    #[test]
    fn words_of_intent_count_only_alone() {
        let words = |text: &str| -> Vec<String> {
            Question::of(text)
                .words
                .into_iter()
                .map(|(word, _)| word)
                .collect()
        };
        assert_eq!(words("Why did we decide for SQLite?"), ["SQLite"]);
        assert_eq!(words("decisions"), ["decisions"]);
        assert_eq!(words("what is this"), ["what", "is", "this"]);
        assert_eq!(words(&"word ".repeat(100)), ["word"]);
        let many: String = (0..100).map(|n| format!("word{n} ")).collect();
        assert_eq!(words(&many).len(), MAX_WORDS);
    }
}
