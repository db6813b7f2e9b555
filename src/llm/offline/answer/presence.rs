//! The answer to whether a file is there: where it lies, or where none was seen.

use super::{
    super::{
        manifest,
        presence::{self, Seen},
        protocol::{Percent, Stand, inert, inert_path},
        question::Presence,
        quote::{in_sentence, quote},
        rank::Passage,
        source::LONGEST_WHOLE,
    },
    Case, Said, source_types,
};

/// Most files that are named, and most lines that are quoted of the first.
const MOST_NAMED: usize = 6;
const MOST_LINES: u32 = 12;
/// The same of a file all of which is asked for.
const OF_WHOLE: u32 = LONGEST_WHOLE;

/// None if that was not asked, or no place was looked at.
pub(super) fn compose(case: &Case<'_>) -> Option<Said> {
    let wanted = case.question.presence.as_ref()?;
    let seen = presence::seen(&wanted.places, &case.conversation.asked)?;
    Some(match seen.paths.is_empty() && seen.more == 0 {
        true => none(wanted, &seen),
        false => some(case, wanted, &seen),
    })
}

fn some(case: &Case<'_>, wanted: &Presence, seen: &Seen) -> Said {
    let named = seen.paths.iter().take(MOST_NAMED);
    let named: Vec<String> = named.map(|path| in_sentence(&inert_path(path))).collect();
    let unnamed = seen.more + seen.paths.len().saturating_sub(MOST_NAMED) as u64;
    let more = match (named.is_empty(), unnamed) {
        (_, 0) => String::new(),
        (true, many) => format!("{many} of them, deep in folders"),
        (false, many) => format!(" and {many} more"),
    };
    let is_at_top = |path: &String| !path.contains('/') || path.starts_with('.');
    let is_of_folder = wanted.named.contains('/');
    let below = match is_of_folder || seen.paths.iter().any(is_at_top) {
        true => "",
        false => " At the top of the project I saw none.",
    };
    let is_stranger = |name: &String| !manifest::is_of(name, case.evidence);
    let stranger = wanted.of.as_ref().filter(|name| is_stranger(name));
    let lead = match stranger {
        None => format!("Yes: {}{more}.{below}", named.join(", ")),
        Some(name) => format!(
            "Here is {}{more}.{below} Whether that is the one of “{}” I cannot tell: no manifest that I read says that \
             the project is called so.",
            named.join(", "),
            inert(name)
        ),
    };
    let most = match case.question.is_whole {
        true => OF_WHOLE,
        false => MOST_LINES,
    };
    let first = seen
        .paths
        .first()
        .and_then(|path| beginning(case, path, most));
    let quoted = first.as_ref().map(|first| quote(first, case.evidence));
    let blocks: Vec<String> = [lead].into_iter().chain(quoted).collect();
    if let Some(name) = stranger {
        let missing = format!("whether that is the one of “{}”", inert(name));
        let stand = Stand::Partial {
            missing,
            caveat: None,
        };
        return (blocks.join("\n\n"), stand, Percent(50));
    }
    let stand = Stand::Sufficient {
        sources_found: seen.paths.len().max(1),
        source_types: first.map_or(vec!["code"], |first| source_types(&[&first])),
    };
    (blocks.join("\n\n"), stand, Percent(85))
}

/// The first lines of a file, as far as they were read.
fn beginning(case: &Case<'_>, path: &str, most: u32) -> Option<Passage> {
    let lines = case.evidence.files.get(path)?;
    let known = (1..=most).take_while(|at| lines.contains_key(at));
    let last = known.filter(|at| !lines[at].trim().is_empty()).last()?;
    Some(Passage::at(path, (1, last), 1))
}

/// What is hidden or ignored is in no map, so that nobody knows that there is none.
fn none(wanted: &Presence, seen: &Seen) -> Said {
    let (globs, paths): (Vec<&String>, Vec<&String>) =
        seen.looked.iter().partition(|place| place.contains('{'));
    let globs: Vec<String> = globs.into_iter().flat_map(|glob| names_in(glob)).collect();
    let paths: Vec<String> = paths.iter().map(|path| marked(path)).collect();
    let in_folders = format!(
        "for {} in all folders that are neither hidden nor ignored",
        globs.join(", ")
    );
    let by_path = format!("by its path for {}", paths.join(", "));
    let looked = match (globs.is_empty(), paths.is_empty()) {
        (false, false) => format!("{in_folders}, and {by_path}"),
        (false, true) => in_folders,
        (true, _) => by_path,
    };
    let cut = match seen.is_cut {
        true => " Not all files were looked at.",
        false => "",
    };
    let named = &wanted.named;
    let body = format!("I saw no {named} here. I looked {looked}.{cut}");
    let stand = Stand::Partial {
        missing: format!(
            "certainty that there is no {}: I know only of where I looked",
            inert(named)
        ),
        caveat: None,
    };
    (body, stand, Percent(60))
}

/// The names of a glob.
fn names_in(glob: &str) -> Vec<String> {
    let inside = glob.trim_start_matches('{').trim_end_matches('}');
    let names = inside.split(',');
    names
        .map(|name| marked(name.trim_start_matches("**/")))
        .collect()
}

fn marked(name: &str) -> String {
    format!("`{}`", inert(name))
}
