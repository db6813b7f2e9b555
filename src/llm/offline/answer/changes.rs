//! The answer to what changed in a version, behind one, lately, or when something came and went: what change
//! logs say, under the versions that they say it of.

use super::{
    super::{
        changelog::{
            Heading, Section, Version, Wanted, are_all_behind, is_cut, latest, main_log,
            may_be_newer, nearest, of_version, within,
        },
        protocol::{Percent, Stand, inert, inert_path},
        quote::in_sentence,
    },
    Case, Said,
};

mod entry;
mod pieces;

use pieces::{first_words, last_line, quoted};

/// Most versions of a list.
const MOST_LISTED: usize = 30;
/// How sure that is: of a section, of a list, and that there is none.
const OF_SECTION: Percent = Percent(80);
const OF_LIST: Percent = Percent(75);
const OF_NONE: Percent = Percent(60);

/// None if nothing of a change log was asked for, or no change log is known.
pub(super) fn compose(case: &Case<'_>) -> Option<Said> {
    let wanted = case.question.of_log.as_ref()?;
    let said = match wanted {
        Wanted::Entry { name, deed } => return entry::compose(case, wanted, name, *deed),
        Wanted::Version { version, of } => of_one(case, version, of.as_deref()),
        Wanted::Between { after, upto } => behind(case, after, upto.as_ref()),
        Wanted::Latest => of_latest(case),
    };
    main_log(case.evidence).and(said)
}

/// What the history says, with what change logs say of the same.
pub(super) fn beside(case: &Case<'_>, (body, stand, sure): Said) -> Said {
    let wanted = case.question.of_log.as_ref();
    let told = wanted.and_then(|wanted| entry::told(case, wanted));
    match told {
        Some(told) => (format!("{body}\n\n{told}"), stand, sure),
        None => (body, stand, sure),
    }
}

fn sufficient(files: usize) -> Stand {
    Stand::Sufficient {
        sources_found: files,
        source_types: vec!["docs"],
    }
}

/// Where a heading is.
fn place(path: &str, heading: &Heading) -> String {
    in_sentence(&format!("{}:{}", inert_path(path), heading.at))
}

/// Where a section is.
fn span(case: &Case<'_>, section: &Section<'_>) -> String {
    let (first, last) = (section.heading.at, last_line(case, section));
    let path = inert_path(section.path);
    in_sentence(&match first == last {
        true => format!("{path}:{first}"),
        false => format!("{path}:{first}-{last}"),
    })
}

fn told(heading: &Heading) -> String {
    inert(&heading.told())
}

/// All of a version, or the versions that are called so.
fn of_one(case: &Case<'_>, version: &Version, of: Option<&str>) -> Option<Said> {
    let sections = of_version(case.evidence, version, of);
    let Some(first) = sections.first() else {
        // "TLS 1.3" is no version of the project: the files may tell.
        return of.is_none().then(|| none(case, version)).flatten();
    };
    if first.heading.version() != Some(version) {
        let lead = format!(
            "No heading is just {}; these are all of its versions that are known, the newest first:",
            version.told()
        );
        return Some(list(case, &lead, &sections));
    }
    let mut blocks = vec![format!(
        "{} is in {}.",
        told(&first.heading),
        span(case, first)
    )];
    blocks.extend(quoted(case, first));
    let others = sections.iter().skip(1).filter(|one| one.path != first.path);
    let others: Vec<String> = others.map(|one| place(one.path, &one.heading)).collect();
    if !others.is_empty() {
        blocks.push(format!("See also {}.", others.join(", ")));
    }
    Some((blocks.join("\n\n"), sufficient(1), OF_SECTION))
}

/// That there is no such version, and which are next to it.
fn none(case: &Case<'_>, version: &Version) -> Option<Said> {
    let main = main_log(case.evidence)?;
    let near: Vec<String> = nearest(case.evidence, version)
        .iter()
        .map(|(path, heading)| format!("{}, {}", told(heading), place(path, heading)))
        .collect();
    let near = match (near.is_empty(), is_cut(case.evidence)) {
        (true, _) => String::new(),
        (false, false) => format!(" Next to it: {}.", near.join("; ")),
        (false, true) => format!(
            " Of those that I saw, which are not all, next to it: {}.",
            near.join("; ")
        ),
    };
    let body = format!(
        "I found no heading of {} in a change log, such as {}.{near}",
        version.told(),
        in_sentence(&inert_path(main))
    );
    let stand = Stand::Partial {
        missing: format!("a section about {}", version.told()),
        caveat: None,
    };
    Some((body, stand, OF_NONE))
}

/// The versions behind one.
fn behind(case: &Case<'_>, after: &Version, upto: Option<&Version>) -> Option<Said> {
    let sections = within(case.evidence, after, upto);
    let range = match upto {
        Some(upto) => format!("behind {}, up to {}", after.told(), upto.told()),
        None => format!("behind {}", after.told()),
    };
    if sections.is_empty() {
        let (body, _, sure) = none(case, upto.unwrap_or(after))?;
        let stand = Stand::Partial {
            missing: format!("versions {range}"),
            caveat: None,
        };
        return Some((format!("I found no versions {range}. {body}"), stand, sure));
    }
    let are_all = are_all_behind(case.evidence, after);
    let lead = match (sections.len(), are_all) {
        (1, true) => format!("There is one version {range}:"),
        (1, false) => format!("I saw one version {range}:"),
        (many, true) => format!("There are {many} versions {range}, the newest first:"),
        (many, false) => format!("I saw {many} versions {range}, the newest first:"),
    };
    let (body, stand, sure) = list(case, &lead, &sections);
    match are_all {
        true => Some((body, stand, sure)),
        false => {
            let missing =
                "other versions: not all headings of the change log were looked at".to_owned();
            Some((
                format!("{body}\n\nMissing: {missing}."),
                Stand::Partial {
                    missing,
                    caveat: None,
                },
                OF_NONE,
            ))
        }
    }
}

/// Versions, each with its line and its first words.
fn list(case: &Case<'_>, lead: &str, sections: &[Section<'_>]) -> Said {
    let lines = sections.iter().take(MOST_LISTED).map(|section| {
        let place = place(section.path, &section.heading);
        match first_words(case, section) {
            Some(words) => format!("- {}, {place}: {words}", told(&section.heading)),
            None => format!("- {}, {place}", told(&section.heading)),
        }
    });
    let mut lines: Vec<String> = lines.collect();
    if let (Some(last), more @ 1..) = (sections.last(), sections.len().saturating_sub(MOST_LISTED))
    {
        lines.push(format!(
            "- … {more} more, down to {}, {}",
            told(&last.heading),
            place(last.path, &last.heading)
        ));
    }
    let mut files: Vec<&str> = sections.iter().map(|section| section.path).collect();
    files.dedup();
    (
        format!("{lead}\n\n{}", lines.join("\n")),
        sufficient(files.len()),
        OF_LIST,
    )
}

/// What is not released so far, and the newest version.
fn of_latest(case: &Case<'_>) -> Option<Said> {
    let sections = latest(case.evidence);
    sections.first()?;
    let mut blocks = Vec::new();
    for section in &sections {
        blocks.push(match section.heading.version() {
            Some(_) => format!(
                "The newest version is {}, in {}.",
                told(&section.heading),
                span(case, section)
            ),
            None => format!("Not released so far is what {} says.", span(case, section)),
        });
        blocks.extend(quoted(case, section));
    }
    let missing = "newer versions: not all headings of versions were looked at".to_owned();
    let stand = match may_be_newer(case.evidence) {
        true => Stand::Partial {
            missing,
            caveat: None,
        },
        false => sufficient(1),
    };
    Some((blocks.join("\n\n"), stand, OF_SECTION))
}
