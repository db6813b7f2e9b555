//! Who implements or extends a type: what lines of the evidence say so, by the look of their heads. Pure.
//!
//! `head` reads a head, `ask` what asks for it.

mod ask;
mod head;

pub(super) use ask::{asks, is_said, is_type};

use super::{
    evidence::Evidence,
    source::{FileKind, Lines, behind},
    toolbox::is_for_kin,
    uses::{Spot, Uses, has_word, is_remark},
};
use head::Head;

/// Most lines of a head.
const LONGEST: u32 = 4;

/// Those that implement or extend a type.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Kin<'a> {
    /// Code first, by path and line.
    pub(super) of_it: Vec<Relative<'a>>,
    pub(super) defined: Vec<Spot<'a>>,
    /// How many lines were found and not shown.
    pub(super) unshown: u64,
    /// Whether not all files were looked at.
    pub(super) is_stopped: bool,
}

/// What implements or extends it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Relative<'a> {
    kind: FileKind,
    pub(super) spot: Spot<'a>,
    /// As it is spelt there.
    pub(super) name: String,
    pub(super) relation: Relation,
}

/// What one type is to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Relation {
    Implements,
    Extends,
}

impl<'a> Kin<'a> {
    pub(super) fn of(evidence: &'a Evidence, name: &str) -> Self {
        let uses = Uses::of(evidence, name);
        let mut of_it: Vec<Relative<'a>> = Vec::new();
        for (path, lines) in &evidence.files {
            let kind = FileKind::of(path);
            if kind == FileKind::Docs {
                continue;
            }
            let having = lines.iter().filter(|(_, text)| has_word(text, name));
            of_it.extend(having.filter_map(|(at, _)| {
                let (line, head) = relative((path, lines, *at), name)?;
                Some(Relative {
                    kind,
                    spot: Spot { path, line },
                    name: head.name,
                    relation: head.relation,
                })
            }));
        }
        of_it.sort_unstable();
        // A head of several lines may have the name in two of them.
        of_it.dedup_by(|one, other| one.spot == other.spot);
        let mut searched = evidence.searched.iter();
        // What others did not show of all its lines need be none of these.
        let own = searched.rfind(|search| is_for_kin(&search.query, name));
        Self {
            of_it,
            defined: uses.defined,
            unshown: own.map_or(uses.unshown, |search| search.unshown),
            is_stopped: own.map_or(uses.is_stopped, |search| search.is_stopped),
        }
    }

    /// Whether nothing is known that implements or extends it.
    pub(super) const fn is_empty(&self) -> bool {
        self.of_it.is_empty()
    }

    /// Whether there are more lines than these, or may be.
    pub(super) const fn is_cut(&self) -> bool {
        self.unshown > 0 || self.is_stopped
    }
}

/// The head that has this line, and where it begins: there, or a few lines above.
fn relative((path, lines, at): (&str, &Lines, u32), name: &str) -> Option<(u32, Head)> {
    if is_remark(lines.get(&at)?) {
        return None;
    }
    let known = (0..LONGEST).map_while(|up| {
        let from = at.checked_sub(up)?;
        lines.get(&from).map(|text| (from, text))
    });
    // Above a line that opens or ends something, another head would begin.
    let mut is_open = true;
    for (from, text) in known {
        if from < at {
            is_open &= !text.contains([';', '{', '}']) && !is_remark(text);
        }
        if !is_open {
            return None;
        }
        let rest = behind(lines, from).take(LONGEST as usize);
        let text = std::iter::once(text.as_str()).chain(rest);
        let text: String = text.map(|line| format!("{} ", line.trim())).collect();
        if let Some(head) = Head::read(path, &text, name) {
            return Some((from, head));
        }
    }
    None
}

#[cfg(test)]
mod tests;
