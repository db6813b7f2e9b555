//! What comes before everything else, however it is worth: quotations, files that were named, and the
//! very name that was asked for.

use super::{
    super::{
        evidence::Evidence,
        question::{Sought, is_that_name},
        source::{Introduces, introduces},
        term::{Term, TermKind, TermSet},
        words::Line,
    },
    About, Found, FoundFile, Passage, owned,
};

/// What a line defines, as far as the question names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Defines {
    Nothing,
    Named,
    Sought,
}

impl FoundFile<'_> {
    pub(super) fn defines(&self, found: &Found<'_>, at: u32) -> Defines {
        let Some(Introduces::Definition { name }) = introduces(self.path, self.lines, at) else {
            return Defines::Nothing;
        };
        // What it lies in is a term too, and stands before it.
        let of_path = found.sought.filter(|sought| sought.owner.is_some());
        if of_path.is_some_and(|sought| sought.name == name) {
            return Defines::Sought;
        }
        match found.terms.iter().any(|term| term.shown == name) {
            true => Defines::Named,
            false => Defines::Nothing,
        }
    }
}

impl Found<'_> {
    /// What has a quoted text as it stands comes first, then what lies in a file that was named.
    pub(super) fn named_first(&self, passages: &mut [Passage]) {
        let those = |wanted: &dyn Fn(&Term) -> bool| {
            let terms = self.terms.iter().enumerate();
            terms
                .filter(|(_, term)| wanted(term))
                .fold(TermSet::default(), |set, (at, _)| set.with(at))
        };
        let quoted = those(&Term::is_saying);
        let files = those(&|term| term.kind == TermKind::Path);
        passages.sort_by_key(|passage| {
            let says = !passage.terms.and(quoted).is_empty();
            // What it stands in may have the name as well, and is no file.
            let path = TermSet::of_line(self.terms, &Line::new(&passage.path));
            let lies = !path.and(files).is_empty();
            (!says, !lies)
        });
    }

    /// What defines the name comes first that is asked for: of a common word the places are too many for a search to
    /// rank that one best. Of several, the one in what it is said to lie in. Then what has that very name.
    pub(super) fn definition_first(
        passages: &mut [Passage],
        sought: Option<Sought<'_>>,
        evidence: &Evidence,
    ) {
        let Some(sought) = sought else { return };
        let defines = |passage: &Passage| match &passage.about {
            Some(About::Definition(name)) => passage.exact && is_that_name(name, sought.name),
            _ => false,
        };
        let has = |passage: &Passage| {
            sought.owner.is_none() && owned::has(passage, evidence, sought.name)
        };
        let lies = |passage: &Passage| owned::lies(passage, evidence, sought);
        passages.sort_by_cached_key(|passage| match defines(passage) {
            true => (0, Some(lies(passage))),
            false if has(passage) => (1, None),
            false => (2, None),
        });
    }

    /// If the best place introduces the very name that was asked for, and has the rest too, others
    /// are worth naming only if they have that name.
    pub(super) fn only_that_name(&self, passages: &mut Vec<Passage>) {
        let needed = TermSet::needed(self.terms);
        let Some(best) = passages.first() else {
            return;
        };
        if !best.exact || !needed.minus(best.all_terms()).is_empty() {
            return;
        }
        let Some(About::Definition(name) | About::Section(name)) = &best.about else {
            return;
        };
        let name = name.to_lowercase();
        passages.retain_mut(|passage| {
            if !passage.exact {
                passage.score /= 4;
            }
            passage.exact || self.has_verbatim(passage, &name)
        });
    }

    fn has_verbatim(&self, passage: &Passage, name: &str) -> bool {
        let file = self.files.iter().find(|file| file.path == passage.path);
        let mut lines = file
            .into_iter()
            .flat_map(|file| file.lines.range(passage.lines.0..=passage.lines.1));
        lines.any(|(_, line)| line.to_lowercase().contains(name))
    }
}
