//! Questions that ask where a name is defined.

use super::{super::lexicon::holds, Interest, Question, TermKind, TermSet, words_of};

/// The name whose definition is asked for, and what it is to lie in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Sought<'a> {
    pub(in super::super) name: &'a str,
    pub(in super::super) owner: Option<&'a str>,
}

impl Question {
    /// What is to come first where it is defined.
    pub(in super::super) fn sought(&self) -> Option<Sought<'_>> {
        let of_path = self.qualified.as_ref().map(|one| Sought {
            name: &one.name,
            owner: Some(&one.owner),
        });
        let alone = || self.sought_definition();
        of_path.or_else(|| alone().map(|name| Sought { name, owner: None }))
    }

    /// Whether it asks where something is defined.
    pub(in super::super) fn asks_for_definition(&self) -> bool {
        asks(&self.plain, WHERE) && asks(&self.plain, DEFINED)
    }

    /// The name whose definition is asked for, if that is all that is asked for.
    pub(in super::super) fn sought_definition(&self) -> Option<&str> {
        let needed = TermSet::needed(&self.terms);
        let term = needed.of(&self.terms).next()?;
        let is_name = term.kind == TermKind::Name
            || (term.kind == TermKind::Word && term.shown.starts_with(char::is_uppercase));
        let is_sought = self.interest == Interest::Places && self.asks_for_definition();
        (is_sought && needed.len() == 1 && is_name).then_some(&*term.shown)
    }
}

/// Whether a question has a word of a list.
pub(super) fn asks(plain: &str, list: &str) -> bool {
    let lower = plain.to_lowercase();
    words_of(&lower).any(|word| holds(list, word))
}

pub(super) const WHERE: &str = "where wo où dónde donde";
pub(super) const DEFINED: &str = "\
    defined declared implemented definition declaration definiert deklariert implementiert definition défini définie \
    déclaré déclarée implémenté implémentée définition define definido definida declara declarado declarada \
    implementado implementada definición";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_name_is_defined_is_asked_in_four_languages() {
        for (text, name) in [
            ("where is HashMap defined?", Some("HashMap")),
            ("where is retry_after declared", Some("retry_after")),
            ("Wo ist HashMap definiert?", Some("HashMap")),
            ("où est défini HashMap ?", Some("HashMap")),
            ("¿dónde está definido HashMap?", Some("HashMap")),
            ("where is HashMap used?", None),
            ("where is the cache defined?", None),
            ("where is HashMap defined in src/a.rs?", None),
            ("how is HashMap defined?", None),
        ] {
            let question = Question::read(text, &[], None);
            assert_eq!(question.sought_definition(), name, "{text}");
        }
    }
}
