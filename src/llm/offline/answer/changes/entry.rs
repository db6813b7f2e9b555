//! When something was added, removed or deprecated, by the entries of change logs that name it.

use super::{
    super::{
        super::{
            changelog::{Deed, Entry, Strength, Wanted, ordered_entries},
            protocol::{Percent, Stand, inert, inert_path},
            quote::{in_sentence, quote},
            rank::Passage,
        },
        Case, Said,
    },
    sufficient,
};

/// Most other entries that are named.
const MOST_NAMED: usize = 4;
const OF_SAID: Percent = Percent(80);
const OF_LISTED: Percent = Percent(70);
const OF_NAMED: Percent = Percent(45);

/// None if no entry has the name, or none that says so of what is spelt as any word.
pub(super) fn compose(case: &Case<'_>, wanted: &Wanted, name: &str, deed: Deed) -> Option<Said> {
    let entries = ordered_entries(wanted, case.evidence);
    let best = entries.first()?;
    let says = best.class() >= Strength::Listed;
    if !says && !wanted.is_of_code() {
        return None;
    }
    let passage = Passage::at(best.path, best.lines, best.at);
    let mut blocks = vec![lead(best, name, deed), quote(&passage, case.evidence)];
    blocks.extend(others(&entries, best));
    let name = inert(name);
    let said = match says {
        true if best.heading.is_some() => {
            let is_said = best.strength == Strength::Said;
            (
                blocks.join("\n\n"),
                sufficient(1),
                if is_said { OF_SAID } else { OF_LISTED },
            )
        }
        true => (
            blocks.join("\n\n"),
            partial("the version of that entry".to_owned()),
            OF_NAMED,
        ),
        false => {
            let missing = format!("an entry that says that {name} was {}", deed.told());
            (blocks.join("\n\n"), partial(missing), OF_NAMED)
        }
    };
    Some(said)
}

/// What a change log says of it beside a history.
pub(super) fn told(case: &Case<'_>, wanted: &Wanted) -> Option<String> {
    let Wanted::Entry { name, deed } = wanted else {
        return None;
    };
    let entries = ordered_entries(wanted, case.evidence);
    let best = entries
        .first()
        .filter(|best| best.class() >= Strength::Listed)?;
    let passage = Passage::at(best.path, best.lines, best.at);
    Some(format!(
        "The change log says: {}\n\n{}",
        lead(best, name, *deed),
        quote(&passage, case.evidence)
    ))
}

fn partial(missing: String) -> Stand {
    Stand::Partial {
        missing,
        caveat: None,
    }
}

/// `In 0.7.0 (27. November, 2023), CHANGELOG.md:350:`
fn lead(best: &Entry<'_>, name: &str, deed: Deed) -> String {
    let version = version(best).unwrap_or_else(|| "a version that I do not know".to_owned());
    let (place, name) = (place(best), inert(name));
    let order = if deed == Deed::Added {
        "oldest"
    } else {
        "newest"
    };
    match best.class() {
        Strength::Listed | Strength::Said => format!("In {version}, {place}:"),
        Strength::Named | Strength::Beside => format!(
            "I found no entry that says that `{name}` was {}; the {order} that names it is in {version}, {place}:",
            deed.told()
        ),
    }
}

fn version(entry: &Entry<'_>) -> Option<String> {
    entry.heading.as_ref().map(|heading| inert(&heading.told()))
}

fn place(entry: &Entry<'_>) -> String {
    in_sentence(&format!("{}:{}", inert_path(entry.path), entry.lines.0))
}

/// Other entries that say so, by their versions.
fn others(entries: &[Entry<'_>], best: &Entry<'_>) -> Option<String> {
    let others = entries
        .iter()
        .skip(1)
        .filter(|entry| entry.class() == best.class());
    let told = others.map(|entry| match version(entry) {
        Some(version) => format!("{} ({version})", place(entry)),
        None => place(entry),
    });
    let told: Vec<String> = told.take(MOST_NAMED).collect();
    (!told.is_empty()).then(|| format!("See also {}.", told.join(", ")))
}
