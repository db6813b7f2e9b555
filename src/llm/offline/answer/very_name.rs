//! A name that was asked for, where no place that is shown has it as it is spelt: what is only like it is something
//! else.

use super::{
    super::{
        protocol::inert,
        question::{has_name, is_that_name},
        rank::{About, Passage, has, is_in_path},
        source::FileKind,
        uses::is_remark,
    },
    Case, Elsewhere,
};

/// That nothing of that very name was seen, or nothing that may define it.
pub(super) fn told(case: &Case<'_>, quoted: &[&Passage]) -> Option<Elsewhere> {
    let name = case.question.very_name()?;
    let shown = inert(name);
    if !quoted.iter().any(|one| has(one, case.evidence, name)) {
        return Some(Elsewhere {
            told: format!("I saw nothing of that very name, `{shown}`: this is the nearest."),
            behind: "",
            missing: format!("`{shown}`, spelt so"),
        });
    }
    let is_sought = case.question.asks_for_definition();
    let is_defined = || quoted.iter().any(|one| may_define(case, one, name));
    (is_sought && !is_defined()).then(|| Elsewhere {
        told: format!("I saw no definition of the very name `{shown}`, it is only mentioned."),
        behind: "",
        missing: format!("a definition of `{shown}`"),
    })
}

/// Whether a passage introduces the name, or has it in code.
fn may_define(case: &Case<'_>, passage: &Passage, name: &str) -> bool {
    let is_about = match &passage.about {
        Some(About::Definition(about)) => is_that_name(about, name),
        Some(About::Section(title)) => has_name(title, name),
        None => false,
    };
    let (first, last) = passage.lines;
    let lines = case.evidence.files.get(&passage.path).into_iter();
    let mut lines = lines.flat_map(|lines| lines.range(first..=last));
    let is_code = passage.kind != FileKind::Docs
        && lines.any(|(_, line)| !is_remark(line) && has_name(line, name));
    is_about || is_code || is_in_path(&passage.path, name)
}
