//! What of a name is asked for that is no place of its own: the tests that use it, what its type has. Pure.

use super::{
    super::lexicon::{holds, without_politeness},
    Interest, Qualified, Question, Term, TermKind, TermSet, all_terms, beginning,
    defined::WHERE,
    interest_of, kind_of, last_of_path,
    named::{is_german, only_name},
    terms_of, words_of,
};

/// What is asked for of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Aspect {
    /// Where it is tested.
    Tests,
    /// What it has, as its outline tells: its methods, or all of it.
    Methods,
    Members,
    /// Its fields or variants, which no outline has: its definition does.
    Fields,
}

impl Question {
    /// The type of which all is asked for that it has.
    pub(in super::super) fn member_of(&self) -> Option<&str> {
        let is_asked = matches!(self.aspect, Some(Aspect::Methods | Aspect::Members));
        let name = self.terms.last().filter(|_| is_asked)?;
        Some(&name.shown)
    }

    /// The type of which the fields or variants are asked for.
    pub(in super::super) fn fields_of(&self) -> Option<&str> {
        let is_asked = self.aspect == Some(Aspect::Fields);
        let name = self.terms.last().filter(|_| is_asked)?;
        Some(&name.shown)
    }
}

impl Aspect {
    /// What a question asks for, and its name: one of its own, or that of the question before it.
    pub(super) fn of(own: &str, previous: Option<&str>) -> Option<(Self, String)> {
        let lower = own.to_lowercase();
        let (asked, _) = without_politeness(lower.trim());
        let words: Vec<&str> = words_of(asked).filter(|word| !word.is_empty()).collect();
        let has = |list: &str| words.iter().any(|word| holds(list, word));
        let aspect = match () {
            () if has(WHERE) && has(TESTED) => Self::Tests,
            () if has(WHICH) && has(TESTS) && has(COVER) => Self::Tests,
            () if has(WHICH) && has(METHODS) && has(HAVE) => Self::Methods,
            () if has(WHICH) && has(MEMBERS) && has(HAVE) => Self::Members,
            () if has(WHICH) && has(FIELDS) && has(HAVE) => Self::Fields,
            () => return None,
        };
        let rest = words_of(own).filter(|word| {
            let lower = word.to_lowercase();
            let lists = [
                WHERE, WHICH, TESTED, TESTS, COVER, METHODS, MEMBERS, FIELDS, HAVE,
            ];
            !lists.iter().any(|list| holds(list, &lower))
        });
        let rest = rest.collect::<Vec<_>>().join(" ");
        let terms = terms_of([&*rest]);
        // In German all nouns have a capital, and what stands alone here is a name.
        let alone = || match &*terms {
            [term] if term.is_capital() => Some(term.shown.clone()),
            _ => None,
        };
        let path = match aspect {
            Self::Tests => Qualified::used(own).map(|one| one.shown),
            Self::Methods | Self::Members | Self::Fields => last_of_path(own).map(str::to_owned),
        };
        let is_bare = path.is_none() && names_nothing(&rest, is_german(beginning(own)));
        let own_name = || path.or_else(|| name_in(own, &terms)).or_else(alone);
        let name = match (previous, aspect) {
            (Some(previous), Self::Tests) if is_bare => subject(previous),
            (Some(previous), _) if is_bare => subject(previous).map(|name| type_of(&name)),
            (Some(_) | None, _) => own_name(),
        };
        Some((aspect, name?))
    }
}

/// Whether a question has nothing but pronouns and weak words, and no name however short: "DB" is one.
fn names_nothing(rest: &str, is_german: bool) -> bool {
    all_terms([rest]).iter().all(|term| {
        let is_small = !term.shown.starts_with(char::is_uppercase);
        match term.kind {
            // In German all nouns have a capital.
            TermKind::Weak => is_small || is_german,
            TermKind::Word => is_small && term.shown.chars().count() < 3,
            TermKind::Path | TermKind::Name | TermKind::Phrase => false,
        }
    })
}

/// What of a name in something has members: `Session` of `Session::decide`, `Router` of `http::Router`.
fn type_of(name: &str) -> String {
    let parts = name.split([':', '.']).filter(|part| !part.is_empty());
    let parts: Vec<&str> = parts.collect();
    let is_type = |part: &str| part.starts_with(char::is_uppercase);
    match *parts {
        [.., owner, last] if !is_type(last) || is_type(owner) => owner.to_owned(),
        [.., last] => last.to_owned(),
        [] => name.to_owned(),
    }
}

/// The name that a question is about, which a next one may call "it".
pub(super) fn subject(previous: &str) -> Option<String> {
    let kind = kind_of(previous);
    let mut terms = terms_of([previous]);
    let is_of_uses = interest_of(kind, previous) == Interest::Uses;
    terms.retain(|term| term.kind != TermKind::Weak);
    if is_of_uses && terms.iter().any(|term| term.kind == TermKind::Name) {
        terms.retain(|term| term.kind == TermKind::Name);
    }
    let named = || only_name(previous, &terms).map(str::to_owned);
    let path = Qualified::used(previous).map(|one| one.shown);
    let alone = || match &*terms {
        [term] if is_of_uses => Some(term.shown.clone()),
        _ => None,
    };
    path.or_else(named)
        .or_else(|| name_in(previous, &terms))
        .or_else(alone)
}

/// The only one that is spelt as names are.
fn name_in(text: &str, terms: &[Term]) -> Option<String> {
    let needed = TermSet::needed(terms);
    let term = needed.of(terms).next().filter(|_| needed.len() == 1)?;
    let is_name = term.kind == TermKind::Name
        || (term.kind == TermKind::Word && term.is_capital() && !is_german(beginning(text)));
    let path = || last_of_path(text).map(str::to_owned);
    path().or_else(|| is_name.then(|| term.shown.clone()))
}

const WHICH: &str = "\
    which what list show there any welche welcher was zeig gibt quels quelles quel quelle liste montre qué cuáles que \
    cuales muestra lista";
const TESTED: &str = "tested getestet testé testée testés prueba probado probada";
const TESTS: &str = "test tests testfall testfälle prueba pruebas";
const COVER: &str = "\
    cover covers covering exercise exercises use uses check checks for call calls test tests testen prüfen für couvrent \
    testent pour prueban para cubren";
const METHODS: &str = "\
    method methods function functions methode methoden funktionen méthode méthodes fonctions método métodos funciones";
const MEMBERS: &str = "\
    member members mitglieder membres miembros";
const FIELDS: &str = "\
    field fields property properties attribute attributes variant variants felder eigenschaften varianten champs \
    attributs variantes campos propiedades atributos";
const HAVE: &str = "\
    have has having offer offers provide provides of on there in hat haben bietet gibt von a ont offre de du tiene tienen \
    ofrece hay del";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_and_members_are_asked_of_a_name_or_of_the_one_before() {
        for (previous, text, asked) in [
            (
                "who calls run_job?",
                "and where is it tested?",
                Some((Aspect::Tests, "run_job")),
            ),
            (
                "who calls run?",
                "and where is it tested?",
                Some((Aspect::Tests, "run")),
            ),
            (
                "where is Router defined?",
                "where is it tested?",
                Some((Aspect::Tests, "Router")),
            ),
            (
                "who calls Router::nest?",
                "where is it tested?",
                Some((Aspect::Tests, "Router::nest")),
            ),
            (
                "",
                "where is run_job tested?",
                Some((Aspect::Tests, "run_job")),
            ),
            (
                "",
                "which tests cover run_job?",
                Some((Aspect::Tests, "run_job")),
            ),
            (
                "Wo ist run_job definiert?",
                "und wo wird es getestet?",
                Some((Aspect::Tests, "run_job")),
            ),
            (
                "where is Router defined?",
                "which methods does it have?",
                Some((Aspect::Methods, "Router")),
            ),
            (
                "",
                "which methods does Router have?",
                Some((Aspect::Methods, "Router")),
            ),
            (
                "",
                "what fields does `Router` have?",
                Some((Aspect::Fields, "Router")),
            ),
            (
                "Wo ist Router definiert?",
                "Welche Methoden hat es?",
                Some((Aspect::Methods, "Router")),
            ),
            (
                "",
                "welche Methoden hat Router?",
                Some((Aspect::Methods, "Router")),
            ),
            (
                "where is Iterator defined?",
                "which methods does DB have?",
                Some((Aspect::Methods, "DB")),
            ),
            (
                "",
                "where is Router::nest tested?",
                Some((Aspect::Tests, "Router::nest")),
            ),
            (
                "",
                "which tests cover Router::nest?",
                Some((Aspect::Tests, "Router::nest")),
            ),
            (
                "where is Tree defined?",
                "which methods does http::Router have?",
                Some((Aspect::Methods, "Router")),
            ),
            (
                "who calls Session::decide?",
                "which methods does it have?",
                Some((Aspect::Methods, "Session")),
            ),
            (
                "who calls Table::Size?",
                "which members does it have?",
                Some((Aspect::Members, "Table")),
            ),
            (
                "who calls Color::name?",
                "which variants does it have?",
                Some((Aspect::Fields, "Color")),
            ),
            ("how are retries done?", "and where is it tested?", None),
            ("", "where is the router tested?", None),
            ("", "which methods are tested?", None),
            ("", "what do the tests need?", None),
        ] {
            let previous = Some(previous).filter(|previous| !previous.is_empty());
            let got = Aspect::of(text, previous);
            let asked = asked.map(|(aspect, name)| (aspect, name.to_owned()));
            assert_eq!(got, asked, "{text}");
        }
    }
}
