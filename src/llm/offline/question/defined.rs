//! Questions that ask where a name is defined.

use super::{super::lexicon::holds, Interest, Question, named::asks_what_is, words_of};

/// The name that is asked for, and what it is to lie in.
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
        let alone = || self.sought_name();
        of_path.or_else(|| alone().map(|name| Sought { name, owner: None }))
    }

    /// Whether it asks where something is defined.
    pub(in super::super) fn asks_for_definition(&self) -> bool {
        asks(&self.plain, WHERE) && asks(&self.plain, DEFINED)
    }

    /// The name whose definition is asked for, or what it is, if that is all that is asked for.
    pub(in super::super) fn sought_definition(&self) -> Option<&str> {
        let is_asked = self.asks_for_definition() || asks_what_is(&self.plain);
        self.sought_name().filter(|_| is_asked)
    }

    /// The one name that is looked for, where that says nothing of what it lies in.
    fn sought_name(&self) -> Option<&str> {
        self.very_name()
            .filter(|_| self.interest == Interest::Places)
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
            ("where is Router defined?", Some("Router")),
            ("where is the Router defined?", Some("Router")),
            ("Wo ist der Zwischenspeicher definiert?", None),
            ("where is total defined?", Some("total")),
            ("where is the function total defined?", Some("total")),
            ("where is the total defined?", None),
            ("where is retrying implemented?", None),
            ("what is Chunk?", Some("Chunk")),
            ("what is a Chunk?", Some("Chunk")),
            ("what is `chunk`?", Some("chunk")),
            ("what does max_jobs do?", Some("max_jobs")),
            ("Was ist Wiederholung?", None),
            ("what is caching?", None),
        ] {
            let question = Question::read(text, &[], None);
            assert_eq!(question.sought_definition(), name, "{text}");
        }
    }
}
