//! What a question asks for: its terms, and sets of them.

use super::words::{Line, is_spaceless, stem, subwords};

/// Most lines of a file that are shown for a range of them.
const MOST_LINES: u32 = 60;

/// Most terms that are looked for; a long question is cut to its most telling ones.
pub(super) const MAX_TERMS: usize = 12;

/// How telling a term is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TermKind {
    /// A word such as "function": helps to choose, is never missed.
    Weak,
    /// A word.
    Word,
    /// A file, as `src/main.rs`.
    Path,
    /// A name from code.
    Name,
    /// A quoted piece of text.
    Phrase,
}

/// One thing that the question asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Term {
    /// As it stands in the question.
    pub(super) shown: String,
    /// How telling it is.
    pub(super) kind: TermKind,
    lower: String,
    stems: Vec<String>,
    /// What else it may be called: in English, or as it is spelt rightly.
    others: Vec<String>,
    is_version: bool,
    /// The lines of a file that are meant, both ends included.
    lines: Option<(u32, u32)>,
    /// Those behind them that are meant too, but too many.
    more_lines: Option<(u32, u32)>,
    /// Whether a sentence begins with it, so that its capital says nothing.
    begins_sentence: bool,
}

impl Term {
    pub(super) fn new(kind: TermKind, shown: &str) -> Self {
        let lower = shown.to_lowercase();
        let stems = match kind {
            TermKind::Weak | TermKind::Word if is_spaceless(&lower) => Vec::new(),
            TermKind::Weak | TermKind::Word => vec![stem(&lower)],
            TermKind::Name => subwords(shown).iter().map(|part| stem(part)).collect(),
            // Words of a phrase or of a path mean little apart.
            TermKind::Path | TermKind::Phrase => Vec::new(),
        };
        Self {
            shown: shown.to_owned(),
            kind,
            lower,
            stems,
            others: Vec::new(),
            is_version: shown.contains('.')
                && shown.bytes().all(|b| b.is_ascii_digit() || b == b'.'),
            lines: None,
            more_lines: None,
            begins_sentence: false,
        }
    }

    /// The same word at the beginning of a sentence.
    pub(super) fn begins_sentence(mut self) -> Self {
        self.begins_sentence = true;
        self
    }

    /// Whether it is spelt with a capital, as names of types are.
    pub(super) fn is_capital(&self) -> bool {
        self.shown.starts_with(char::is_uppercase) && !self.begins_sentence
    }

    /// The same file at some lines, of which [`MOST_LINES`] are looked at.
    pub(super) fn at_lines(mut self, lines: Option<(u32, u32)>) -> Self {
        let cut = |(first, _): (u32, u32)| first.saturating_add(MOST_LINES - 1);
        self.lines = lines.map(|lines| (lines.0, lines.1.min(cut(lines))));
        self.more_lines = lines
            .filter(|lines| lines.1 > cut(*lines))
            .map(|lines| (cut(lines) + 1, lines.1));
        self
    }

    /// The first and the last line that it names and that are not looked at, being too many.
    pub(super) fn more_lines(&self) -> Option<(u32, u32)> {
        self.more_lines
    }

    /// The first and the last line of the file that it names, if it names any.
    pub(super) fn lines(&self) -> Option<(u32, u32)> {
        self.lines
    }

    /// Whether it names this file: from the top of the project, from a folder in it or from above.
    pub(super) fn is_path_of(&self, path: &str) -> bool {
        let path = path.to_lowercase();
        let ends = |long: &str, short: &str| {
            let rest = long.strip_suffix(short);
            rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
        };
        self.kind == TermKind::Path
            && !path.is_empty()
            && (ends(&path, &self.lower) || ends(&self.lower, &path))
    }

    /// The term with what it is called otherwise.
    pub(super) fn or_called(mut self, others: impl IntoIterator<Item = String>) -> Self {
        self.others.extend(others);
        self
    }

    /// Of what changed in a file, change logs tell, and not the file.
    pub(super) fn not_as_place(self) -> Self {
        match self.kind {
            TermKind::Path => Self::new(TermKind::Name, &self.shown),
            TermKind::Weak | TermKind::Word | TermKind::Name | TermKind::Phrase => self,
        }
    }

    /// Takes what it is rightly spelt.
    pub(super) fn read_as(&mut self, word: &str) {
        self.others.push(word.to_owned());
    }

    /// Whether it is a quotation of several words, which stands where it is said and hardly elsewhere.
    pub(super) fn is_saying(&self) -> bool {
        self.kind == TermKind::Phrase && self.lower.contains(char::is_whitespace)
    }

    /// Whether both stand for the same.
    pub(super) fn same(&self, other: &Self) -> bool {
        self.lower == other.lower || (!self.stems.is_empty() && self.stems == other.stems)
    }

    /// What finding it is worth.
    pub(super) const fn weight(&self) -> u32 {
        match self.kind {
            TermKind::Weak => 1,
            TermKind::Word => 3,
            TermKind::Path => 4,
            TermKind::Name => 6,
            TermKind::Phrase => 8,
        }
    }

    /// Whether a line has it: by stem, all parts of a name, or as it stands.
    pub(super) fn is_in(&self, line: &Line) -> bool {
        if self.is_version {
            return line.has_version(&self.lower);
        }
        let by_parts = !self.stems.is_empty() && self.stems.iter().all(|stem| line.has(stem));
        let verbatim = match self.kind {
            TermKind::Weak | TermKind::Word => self.stems.is_empty(),
            TermKind::Path | TermKind::Name | TermKind::Phrase => true,
        };
        by_parts
            || (verbatim && line.lower.contains(&self.lower))
            || self.is_path_of(&line.lower)
            || self.others.iter().any(|other| line.has_term(other))
    }

    /// Texts that are in all its forms, for a search that takes its query literally: the term
    /// itself or the stem of a word.
    pub(super) fn literal(&self) -> &str {
        match (self.kind, self.stems.first()) {
            (TermKind::Weak | TermKind::Word, Some(stem)) if self.lower.starts_with(&**stem) => {
                &self.lower[..stem.len()]
            }
            (
                TermKind::Weak
                | TermKind::Word
                | TermKind::Path
                | TermKind::Name
                | TermKind::Phrase,
                _,
            ) => &self.shown,
        }
    }

    /// The parts of a name, each for itself; nothing for others.
    pub(super) fn parts(&self) -> Vec<&str> {
        match self.kind {
            TermKind::Name if self.stems.len() > 1 => self
                .stems
                .iter()
                .map(String::as_str)
                .filter(|part| part.len() >= 3)
                .collect(),
            TermKind::Phrase => self
                .shown
                .split_whitespace()
                .filter(|w| w.len() >= 3)
                .collect(),
            TermKind::Weak | TermKind::Word | TermKind::Path | TermKind::Name => Vec::new(),
        }
    }
}

/// A set of terms, by their place in the question.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct TermSet(u16);

impl TermSet {
    /// Those terms that a line has.
    pub(super) fn of_line(terms: &[Term], line: &Line) -> Self {
        terms
            .iter()
            .enumerate()
            .filter(|(_, term)| term.is_in(line))
            .fold(Self::default(), |set, (at, _)| set.with(at))
    }

    /// Those terms that may be missed.
    pub(super) fn needed(terms: &[Term]) -> Self {
        terms
            .iter()
            .enumerate()
            .filter(|(_, term)| term.kind != TermKind::Weak)
            .fold(Self::default(), |set, (at, _)| set.with(at))
    }

    pub(super) const fn with(self, at: usize) -> Self {
        Self(self.0 | 1 << at)
    }

    pub(super) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(super) const fn minus(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) const fn len(self) -> u32 {
        self.0.count_ones()
    }

    pub(super) const fn has(self, at: usize) -> bool {
        self.0 & (1 << at) != 0
    }

    /// The terms in it, in their order.
    pub(super) fn of(self, terms: &[Term]) -> impl Iterator<Item = &Term> {
        terms
            .iter()
            .enumerate()
            .filter(move |(at, _)| self.has(*at))
            .map(|(_, term)| term)
    }
}

const _: () = assert!(MAX_TERMS <= 16, "a term set has 16 places");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_term_is_found_by_stem_by_its_parts_or_as_it_stands() {
        for (name, kind, shown, line, found) in [
            (
                "another form",
                TermKind::Word,
                "passivation",
                "if idle { passivate() }",
                true,
            ),
            (
                "part of a name",
                TermKind::Word,
                "turns",
                "max_turns: u32",
                true,
            ),
            ("inside a word", TermKind::Word, "art", "start", false),
            (
                "a name in another case",
                TermKind::Name,
                "maxTurns",
                "let max_turns = 3;",
                true,
            ),
            (
                "parts of a name apart",
                TermKind::Name,
                "max_turns",
                "turns, at max",
                true,
            ),
            ("half a name", TermKind::Name, "max_turns", "turns", false),
            (
                "a phrase",
                TermKind::Phrase,
                "not found",
                "Error: Not found",
                true,
            ),
            (
                "words of a phrase",
                TermKind::Phrase,
                "not found",
                "found, not lost",
                false,
            ),
            ("a path", TermKind::Path, "src/a.rs", "see src/a.rs:3", true),
            ("no spaces", TermKind::Word, "函数", "// 这个函数返回", true),
        ] {
            assert_eq!(
                Term::new(kind, shown).is_in(&Line::new(line)),
                found,
                "{name}"
            );
        }
    }

    #[test]
    fn a_literal_is_in_all_forms_of_the_term() {
        for (kind, shown, literal, parts) in [
            (TermKind::Word, "Passivation", "passiv", vec![]),
            (TermKind::Word, "retries", "retri", vec![]),
            (TermKind::Word, "函数", "函数", vec![]),
            (TermKind::Name, "maxTurns", "maxTurns", vec!["max", "turn"]),
            (
                TermKind::Phrase,
                "not found",
                "not found",
                vec!["not", "found"],
            ),
        ] {
            let term = Term::new(kind, shown);
            assert_eq!((term.literal(), term.parts()), (literal, parts), "{shown}");
        }
    }

    #[test]
    fn sets_know_what_is_missing() {
        let terms = [
            Term::new(TermKind::Word, "session"),
            Term::new(TermKind::Weak, "function"),
            Term::new(TermKind::Name, "max_turns"),
        ];
        let found = TermSet::of_line(&terms, &Line::new("fn open(session)"));
        let missing: Vec<&str> = TermSet::needed(&terms)
            .minus(found)
            .of(&terms)
            .map(|term| &*term.shown)
            .collect();
        assert_eq!((found.len(), missing), (1, vec!["max_turns"]));
    }
}
