//! What types have of others, by their heads: what a type calls of itself may be what it inherits. Pure.

use super::super::{
    evidence::Evidence,
    rank::implementing,
    source::{Lines, behind, defines_type, implements},
};
use crate::words::Tongue;

/// Most lines behind the first that a head may have.
const MOST_BEHIND: usize = 3;

/// Whether a type that is defined in a file has a base; none if its head is not known.
pub(super) fn has_base(evidence: &Evidence, path: &str, name: &str) -> Option<bool> {
    let lines = evidence.files.get(path)?;
    let heads = lines
        .keys()
        .filter(|at| defines_type(path, lines, **at, name));
    heads.map(|at| names_base(path, lines, *at, name)).max()
}

/// Whether it is known that a type may have what lies in another: it has a base, or implements that.
pub(super) fn inherits(evidence: &Evidence, name: &str, owner: &str) -> bool {
    let wanted = format!("{owner} for {name}");
    let implemented = |lines: &Lines| {
        let mut heads = lines.values().filter(|line| implements(line));
        heads.any(|line| implementing(line).is_some_and(|one| one == wanted))
    };
    let mut files = evidence.files.iter();
    files.any(|(path, lines)| {
        implemented(lines) || has_base(evidence, path, name).unwrap_or_default()
    })
}

/// Whether the head in a line names a base behind its name.
fn names_base(path: &str, lines: &Lines, at: u32, name: &str) -> bool {
    let Some((_, rest)) = lines.get(&at).and_then(|line| line.split_once(name)) else {
        return false;
    };
    let mut rest = rest.to_owned();
    for line in behind(lines, at).take(MOST_BEHIND) {
        if rest.contains(['{', ';']) || rest.trim_end().ends_with([':', ')']) {
            break;
        }
        rest.push(' ');
        rest.push_str(line);
    }
    let rest = rest.split(['{', ';']).next().unwrap_or_default().trim();
    match (path.rsplit('.').next(), Tongue::of(path)) {
        (Some("py" | "pyi"), _) => {
            let listed = rest.strip_prefix('(');
            listed.is_some_and(|bases| !bases.trim_start().starts_with(')'))
        }
        // Of what is no trait, the bounds of its own types stand there.
        (_, Tongue::Rust) => {
            let head = lines.get(&at).map(|line| line.trim_start());
            rest.contains(':') && head.is_some_and(|head| head.contains("trait "))
        }
        (Some("rb"), _) => rest.starts_with('<'),
        _ => {
            let mut words = rest.split_whitespace();
            rest.replace("::", "").contains(':')
                || words.any(|word| matches!(word, "extends" | "implements" | "with"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn heads_name_their_bases() {
        for (path, text, has) in [
            ("a.py", "class Kid(Plain):", Some(true)),
            ("a.py", "class Kid:", Some(false)),
            ("a.py", "class Kid():", Some(false)),
            ("a.js", "class Kid extends Plain {", Some(true)),
            ("a.js", "class Kid {", Some(false)),
            (
                "a.java",
                "public class Kid\n    extends Plain {",
                Some(true),
            ),
            ("a.h", "class Kid : public a::Plain {", Some(true)),
            ("a.h", "class Kid {", Some(false)),
            ("a.h", "class Kid;", None),
            ("a.rb", "class Kid < Plain", Some(true)),
            ("a.rs", "pub trait Kid: Plain {", Some(true)),
            ("a.rs", "pub struct Kid<T: Plain> {", Some(false)),
            ("a.js", "new Kid();", None),
        ] {
            let lines: Lines = (1..).zip(text.lines().map(str::to_owned)).collect();
            let evidence = Evidence {
                files: BTreeMap::from([(path.to_owned(), lines)]),
                ..Evidence::default()
            };
            assert_eq!(has_base(&evidence, path, "Kid"), has, "{path}: {text}");
        }
    }
}
