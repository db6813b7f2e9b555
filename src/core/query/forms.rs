//! Regular English word forms, generated when a lexicon is compiled.
//!
//! Forms that do not exist do no harm. The lexicon lists irregular ones.

/// Plural or third person, past and participle of a lower-case ASCII word of at least three
/// letters.
pub(super) fn regular(base: &str) -> Vec<String> {
    if base.len() < 3 || !base.bytes().all(|b| b.is_ascii_lowercase()) {
        return Vec::new();
    }
    let mut forms = vec![plural(base)];
    if let Some(stem) = consonant_y(base) {
        forms.extend([format!("{stem}ied"), format!("{base}ing")]);
    } else if let Some(stem) = base.strip_suffix('e') {
        let kept = if stem.ends_with('e') { base } else { stem };
        forms.extend([format!("{base}d"), format!("{kept}ing")]);
    } else {
        for stem in stems(base) {
            forms.extend([format!("{stem}ed"), format!("{stem}ing")]);
        }
    }
    forms
}

fn plural(base: &str) -> String {
    if let Some(stem) = consonant_y(base) {
        return format!("{stem}ies");
    }
    let mut hissing = ["s", "x", "z", "ch", "sh"].iter();
    let hisses = hissing.any(|end| base.ends_with(end));
    format!("{base}{}", if hisses { "es" } else { "s" })
}

fn stems(base: &str) -> Vec<String> {
    if !ends_short(base) {
        return vec![base.to_owned()];
    }
    let doubled = format!("{base}{}", &base[base.len() - 1..]);
    // `plan` doubles, `edit` does not, `commit` does: only stress distinguishes the last two.
    if vowel_groups(base) == 1 {
        vec![doubled]
    } else {
        vec![base.to_owned(), doubled]
    }
}

fn consonant_y(base: &str) -> Option<&str> {
    let stem = base.strip_suffix('y');
    stem.filter(|stem| !stem.ends_with(is_vowel))
}

/// Whether the last consonant may double.
fn ends_short(base: &str) -> bool {
    let mut back = base.chars().rev();
    matches!((back.next(), back.next(), back.next()), (Some(last), Some(mid), Some(first))
        if !is_vowel(last) && !"wxy".contains(last) && is_vowel(mid) && !is_vowel(first))
}

fn vowel_groups(base: &str) -> usize {
    let groups = base.split(|c| !is_vowel(c));
    groups.filter(|group| !group.is_empty()).count()
}

fn is_vowel(c: char) -> bool {
    "aeiou".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regular_forms_follow_english_spelling() {
        for (base, want) in [
            (
                "implement",
                vec!["implements", "implemented", "implementing"],
            ),
            ("file", vec!["files", "filed", "filing"]),
            ("decide", vec!["decides", "decided", "deciding"]),
            ("agree", vec!["agrees", "agreed", "agreeing"]),
            ("plan", vec!["plans", "planned", "planning"]),
            ("fix", vec!["fixes", "fixed", "fixing"]),
            ("query", vec!["queries", "queried", "querying"]),
            ("play", vec!["plays", "played", "playing"]),
            (
                "edit",
                vec!["edits", "edited", "editing", "editted", "editting"],
            ),
            ("search", vec!["searches", "searched", "searching"]),
            ("vs", vec![]),
            ("größe", vec![]),
            ("user_id", vec![]),
        ] {
            assert_eq!(regular(base), want, "{base}");
        }
    }
}
