//! Questions about a name that say where it lies: `Router::nest`, `QuerySet.filter`. Pure.

use super::{
    super::lexicon::holds,
    Interest, Term, TermKind, TermSet,
    defined::{DEFINED, WHERE, asks},
    files,
};

/// A name and what it is said to lie in: a type, a module, or what a value is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Qualified {
    pub(in super::super) owner: String,
    pub(in super::super) name: String,
    /// Both, as the question joins them.
    pub(in super::super) shown: String,
}

impl Qualified {
    /// If the question is about nothing else.
    pub(super) fn of(plain: &str, interest: Interest, terms: &[Term]) -> Option<Self> {
        let (token, mut parts) = paths(plain).next()?;
        let is_said = |term: &Term| token.split([':', '.']).any(|part| part == term.shown);
        let is_alone = TermSet::needed(terms).of(terms).all(is_said);
        let (name, owner) = (parts.pop()?, parts.pop()?);
        // `reply` in `reply.send` may be a variable, and `linger.ms` the name of a setting.
        let is_certain = token.contains("::") || owner.starts_with(char::is_uppercase);
        let is_sought = is_certain || (asks(plain, WHERE) && asks(plain, DEFINED));
        let is_of_self = holds(OF_SELF, owner);
        let is_of_prose = asks(plain, IN_PROSE);
        (interest == Interest::Places && is_alone && is_sought && !is_of_self && !is_of_prose).then(
            || Self {
                owner: owner.to_owned(),
                name: name.to_owned(),
                shown: format!("{owner}{}{name}", joint(token, name)),
            },
        )
    }

    /// The first of a question for uses.
    pub(super) fn used(plain: &str) -> Option<Self> {
        let (token, mut parts) = paths(plain).next()?;
        let (name, owner) = (parts.pop()?, parts.pop()?);
        (!holds(OF_SELF, owner)).then(|| Self {
            owner: owner.to_owned(),
            name: name.to_owned(),
            shown: format!("{owner}{}{name}", joint(token, name)),
        })
    }

    /// Both as names: "nest" is no word of the language there, and "get" not one that says nothing.
    pub(super) fn put_among(&self, terms: &mut Vec<Term>) {
        for part in [&self.owner, &self.name] {
            let name = Term::new(TermKind::Name, part);
            match terms.iter_mut().find(|term| term.same(&name)) {
                Some(term) => *term = name,
                None => terms.push(name),
            }
        }
        *terms = super::terms::most_telling(std::mem::take(terms));
    }
}

/// What a value calls itself says nothing of what it is.
const OF_SELF: &str = "self this cls super crate";

/// Who asks for what is written about a name, does not ask for what defines it.
const IN_PROSE: &str = "\
    documented documentation docs described description dokumentiert dokumentation beschrieben documenté documentée décrit \
    documentado documentada descrito";

/// What stands before the last name.
fn joint(token: &str, name: &str) -> &'static str {
    match token.strip_suffix(name) {
        Some(before) if before.ends_with("::") => "::",
        Some(_) | None => ".",
    }
}

/// The names that say where they lie, each with its parts: `Session::decide`, `reply.send()`.
pub(super) fn paths(text: &str) -> impl Iterator<Item = (&str, Vec<&str>)> {
    let is_part = |part: &str| {
        part.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && part.chars().all(|c| c.is_alphanumeric() || c == '_')
    };
    text.split_whitespace().filter_map(move |token| {
        let token = token.trim_matches(|c: char| !c.is_alphanumeric() && c != '_');
        let is_path = files::in_word(token).is_none() && token.contains("::") | token.contains('.');
        let parts = token.split("::").flat_map(|part| part.split('.'));
        let parts: Vec<&str> = parts.collect();
        let is_named = parts.last().is_some_and(|last| last.len() > 1);
        (is_path && is_named && parts.iter().copied().all(is_part)).then_some((token, parts))
    })
}

#[cfg(test)]
mod tests {
    use super::super::Question;

    #[test]
    fn a_name_is_asked_for_with_what_it_lies_in() {
        for (text, qualified) in [
            ("where is Router::nest defined?", Some("Router::nest")),
            ("what does `Session::decide()` do?", Some("Session::decide")),
            ("where is QuerySet.filter defined?", Some("QuerySet.filter")),
            ("DBImpl::Get", Some("DBImpl::Get")),
            (
                "wo ist kernel::Session::decide definiert?",
                Some("Session::decide"),
            ),
            ("où est défini Router::nest ?", Some("Router::nest")),
            ("¿dónde está definido Router::nest?", Some("Router::nest")),
            ("where is reply.send defined?", Some("reply.send")),
            ("linger.ms default?", None),
            ("where is self.filter defined?", None),
            ("where is Router::nest documented?", None),
            ("who calls Router::nest?", None),
            ("who last changed Router::nest?", None),
            ("does tokio::time understand cron expressions?", None),
            ("how does Router::nest treat a trailing slash?", None),
            ("where is src/a.rs?", None),
            ("where is main.rs?", None),
            ("where is HashMap defined?", None),
        ] {
            let question = Question::read(text, &[], None);
            let got = question.qualified.as_ref().map(|one| &*one.shown);
            assert_eq!(got, qualified, "{text}");
        }
    }

    #[test]
    fn both_of_its_parts_are_names_that_are_looked_for() {
        let terms = Question::read("what does DBImpl::Get do?", &[], None).terms;
        let terms: Vec<&str> = terms.iter().map(|term| &*term.shown).collect();
        assert_eq!(terms, ["DBImpl", "Get"]);
    }
}
