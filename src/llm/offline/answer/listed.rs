//! Answers that are lists of what notes have: to-dos (`tasks`), links, notes with a tag, decisions by how they stand,
//! and the newest note of a kind.

use super::{
    super::{
        evidence::{Group, Place},
        interest::{Interest, Listing},
        plan::is_listed,
        protocol::{Percent, Stand, inert, inert_path, shortened},
        quote::{in_sentence, quote},
        rank::Passage,
    },
    Case, Said, tasks,
};

mod mentions;

/// How sure a list is that was asked for as such.
pub(super) const COUNTED: u32 = 80;
/// Most lines of the newest note that are shown.
const MOST_LINES: u32 = 60;
/// Longest line and longest name of a section, in characters.
const LONGEST_LINE: usize = 200;

/// None if no list was asked for, or none could be made.
pub(super) fn compose(case: &Case<'_>) -> Option<Said> {
    let Interest::Listed(listing) = case.question.interest else {
        return None;
    };
    if !is_listed(listing, case.evidence) {
        return None;
    }
    match listing {
        Listing::Tasks(tasks) => Some(tasks::compose(case, tasks)),
        Listing::Linking | Listing::Broken => Some(links(case)),
        Listing::Tagged => {
            let tag = inert(case.question.subject.trim_start_matches('#'));
            Some(notes(case, &format!("with the tag “{tag}”"), "note"))
        }
        Listing::Mentioning => mentions::compose(case),
        Listing::Standing(status) => Some(notes(case, &format!("that are {status}"), "decision")),
        Listing::Newest(kind) => newest(case, kind),
    }
}

/// A section with its lines, as items of a list.
pub(super) fn told(group: &Group, said: impl Fn(&str) -> String) -> String {
    let day = group
        .day
        .as_ref()
        .filter(|day| !group.within.contains(day.as_str()));
    let day = day.map(|day| format!(" ({day})")).unwrap_or_default();
    let within = shortened(&inert(&group.within), LONGEST_LINE);
    let items = group.lines.iter().map(|(at, text)| {
        let place = in_sentence(&format!("{}:{at}", inert_path(&group.path)));
        format!(
            "- {place}: {}",
            shortened(&inert(&said(text)), LONGEST_LINE)
        )
    });
    let items: Vec<String> = items.collect();
    format!("{within}{day}\n{}", items.join("\n"))
}

pub(super) fn stand(files: usize, missing: Vec<String>) -> Stand {
    match missing.is_empty() {
        true => Stand::Sufficient {
            sources_found: files,
            source_types: if files > 0 { vec!["docs"] } else { Vec::new() },
        },
        false => Stand::Partial {
            missing: missing.join("; "),
            caveat: None,
        },
    }
}

fn links(case: &Case<'_>) -> Said {
    let listed = &case.evidence.listed;
    let count = listed.count.replace('`', "");
    let mut first = inert(&count);
    if let Some(letter) = first.get_mut(..1) {
        letter.make_ascii_uppercase();
    }
    let end = if listed.groups.is_empty() { "." } else { ":" };
    let mut blocks = vec![format!("{first}{end}")];
    let as_it_stands = |text: &str| text.trim().to_owned();
    blocks.extend(listed.groups.iter().map(|group| told(group, as_it_stands)));
    let missing = listed.lacking.clone().into_iter().collect();
    (
        blocks.join("\n\n"),
        stand(listed.groups.len(), missing),
        Percent(COUNTED),
    )
}

/// Notes, each once, with what is known of them.
fn notes(case: &Case<'_>, which: &str, noun: &str) -> Said {
    let mut places: Vec<&Place> = Vec::new();
    for place in &case.evidence.places {
        if !places.iter().any(|known| known.path == place.path) {
            places.push(place);
        }
    }
    let days = case.question.bounds.told();
    let items: Vec<String> = places.iter().map(|place| item(place)).collect();
    let body = match items.len() {
        0 => format!("There are no {noun}s {which}{days} in the notes."),
        1 => format!(
            "There is 1 {noun} {}{days}:\n\n{}",
            which.replace("that are", "that is"),
            items[0]
        ),
        many => format!(
            "There are {many} {noun}s {which}{days}:\n\n{}",
            items.join("\n")
        ),
    };
    (
        body,
        stand(
            items.len(),
            case.question.unknown_days().into_iter().collect(),
        ),
        Percent(COUNTED),
    )
}

fn item(place: &Place) -> String {
    let title = place.within.first().map_or("", String::as_str);
    let known = match &place.record {
        Some(record) => format!(" ({})", inert(record)),
        None => String::new(),
    };
    let at = in_sentence(&format!("{}:{}", inert_path(&place.path), place.lines.0));
    format!("- {at}: {}{known}", shortened(&inert(title), LONGEST_LINE))
}

/// The newest note of a kind, as far as it is shown.
fn newest(case: &Case<'_>, kind: &str) -> Option<Said> {
    let mut dated = case
        .evidence
        .places
        .iter()
        .filter(|place| place.record.is_some());
    let place = dated.next()?;
    let lines = case.evidence.files.get(&place.path)?;
    let known = (1..=MOST_LINES).take_while(|at| lines.contains_key(at));
    let last = known.filter(|at| !lines[at].trim().is_empty()).last()?;
    let passage = Passage::at(&place.path, (1, last), 1);
    let record = place.record.as_deref().unwrap_or_default();
    let day = record.rsplit(", ").next().unwrap_or_default();
    let of = match day.starts_with(|c: char| c.is_ascii_digit()) {
        true => format!(" is of {}: ", inert(day)),
        false => " that I know of is ".to_owned(),
    };
    let title = place.within.first().map_or("", String::as_str);
    let title = shortened(&inert(title), LONGEST_LINE);
    let body = format!(
        "The newest {kind}{of}“{title}”.\n\n{}",
        quote(&passage, case.evidence)
    );
    Some((body, stand(1, Vec::new()), Percent(COUNTED)))
}
