//! The answer to who wants to see a file or a folder as it is: the first lines of the one, the names in the other.

use super::{
    super::{
        evidence::own,
        presence::{self, Seen},
        protocol::{Percent, Stand, inert_path},
        question::Shown,
        quote::{in_sentence, quote},
        rank::Passage,
        source::LONGEST_WHOLE,
        stuck,
    },
    Case, Said, source_types,
};

/// Most lines of a file that are shown, and most files of a folder that are named.
const MOST_LINES: u32 = 60;
const MOST_NAMED: usize = 60;

/// None if that was not asked, or nothing of it is there.
pub(super) fn compose(case: &Case<'_>) -> Option<Said> {
    let shown = case.question.shown.as_ref()?;
    let place = shown.place();
    let seen = presence::seen(std::slice::from_ref(&place), &case.conversation.asked);
    match shown {
        Shown::File(path) => match seen {
            Some(seen) if seen.paths.len() > 1 => Some(several(path, &seen)),
            Some(_) | None => file(case, path),
        },
        Shown::Folder(folder) => {
            let seen = seen?;
            match seen.paths.is_empty() && seen.more == 0 {
                true => folder.contains('/').then(|| stuck::compose(case)),
                false => Some(of_folder(folder, seen)),
            }
        }
    }
}

/// The file that was named, if it is one alone that was read from its beginning.
fn file(case: &Case<'_>, named: &str) -> Option<Said> {
    let lines_of = |path: &str| case.evidence.files.get(path);
    let is_named = |path: &&String| {
        let before = path.strip_suffix(named);
        before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
    };
    let known = case.evidence.files.keys().filter(is_named);
    let mut read = known.filter(|path| lines_of(path).is_some_and(|lines| lines.contains_key(&1)));
    let path = read.next().filter(|_| read.next().is_none())?;
    let lines = lines_of(path)?;
    let known = (1..).take_while(|at| lines.contains_key(at)).last()?;
    let asked = case.conversation.asked.iter();
    let results = asked.filter_map(|asked| asked.result);
    let total = results
        .filter_map(|result| own::total(&result.content, path))
        .next_back();
    let first = match case.question.is_further {
        true => told_to(case, path) + 1,
        false => 1,
    };
    if first > known {
        return Some(no_more(path, known, total));
    }
    let most = match case.question.is_whole {
        true => LONGEST_WHOLE,
        false => MOST_LINES,
    };
    let last = known.min(first + most - 1);
    let lead = match total {
        Some(1) => "has one line.".to_owned(),
        Some(total) if first == 1 && total <= last => format!("has {total} lines."),
        Some(total) if first == 1 => format!("has {total} lines; these are the first {last}."),
        Some(total) => format!("has {total} lines; these are lines {first} to {last}."),
        None => format!("has more lines; these are lines {first} to {last}."),
    };
    let shown = Passage::at(path, (first, last), first);
    let body = format!(
        "{} {lead}\n\n{}",
        in_sentence(&inert_path(path)),
        quote(&shown, case.evidence)
    );
    let stand = Stand::Sufficient {
        sources_found: 1,
        source_types: source_types(&[&shown]),
    };
    Some((body, stand, Percent(90)))
}

/// The last line of a file that answers before showed from it.
fn told_to(case: &Case<'_>, path: &str) -> u32 {
    let answers = case.conversation.answers.iter();
    let places = answers.flat_map(|answer| answer.text.lines());
    let spans = places.filter_map(|line| {
        let span = line
            .trim_matches('`')
            .strip_prefix(path)?
            .strip_prefix(':')?;
        span.rsplit('-').next()?.parse().ok()
    });
    spans.max().unwrap_or(0)
}

/// That all that was read of it was shown.
fn no_more(path: &str, known: u32, total: Option<u32>) -> Said {
    let named = in_sentence(&inert_path(path));
    match total.filter(|total| *total > known) {
        None => {
            let body = format!("That was all of {named}.");
            let stand = Stand::Sufficient {
                sources_found: 1,
                source_types: vec!["code"],
            };
            (body, stand, Percent(80))
        }
        Some(total) => {
            let (from, to) = (known + 1, total.min(known + MOST_LINES));
            let body = format!(
                "{named} has {total} lines, of which I read the first {known}; “lines {from} to {to} of {}” shows what \
                 follows.",
                inert_path(path)
            );
            let stand = Stand::Partial {
                missing: format!("the lines behind {known}"),
                caveat: None,
            };
            (body, stand, Percent(50))
        }
    }
}

/// Files of the same name, of which nobody said which is meant.
fn several(named: &str, seen: &Seen) -> Said {
    let paths = seen.paths.iter().take(MOST_NAMED);
    let paths: Vec<String> = paths
        .map(|path| format!("- {}", in_sentence(&inert_path(path))))
        .collect();
    let body = format!(
        "There are {} files of that name:\n\n{}",
        seen.paths.len(),
        paths.join("\n")
    );
    let stand = Stand::Partial {
        missing: format!("which {} is meant", inert_path(named)),
        caveat: None,
    };
    (body, stand, Percent(60))
}

fn of_folder(folder: &str, mut seen: Seen) -> Said {
    let depth = |path: &str| path.matches('/').count();
    seen.paths
        .sort_by_cached_key(|path| (depth(path), path.clone()));
    let named = seen.paths.iter().take(MOST_NAMED);
    let named = named.map(|path| format!("- {}", in_sentence(&inert_path(path))));
    let (own, below): (Vec<_>, Vec<_>) = seen.folders.iter().partition(|(path, _)| path == folder);
    let below_named = below.iter().take(MOST_NAMED).map(|(path, count)| {
        let path = inert_path(&format!("{path}/"));
        format!("- {}: {}", in_sentence(&path), files(*count))
    });
    let mut lines: Vec<String> = named.chain(below_named).collect();
    let untold = seen.paths.len().saturating_sub(MOST_NAMED) as u64
        + below
            .iter()
            .skip(MOST_NAMED)
            .map(|(_, count)| count)
            .sum::<u64>()
        + own.iter().map(|(_, count)| count).sum::<u64>();
    if untold > 0 {
        lines.push(format!(
            "- … and {} whose names I was not shown",
            files(untold)
        ));
    }
    let body = format!(
        "{} has {}, without those that are hidden or ignored.\n\n{}",
        in_sentence(&inert_path(folder)),
        files(seen.total),
        lines.join("\n"),
    );
    // Names with a comma come in parts.
    let adds_up = seen.paths.len() as u64 + seen.more == seen.total;
    let missing = match (seen.is_cut, untold > 0, adds_up) {
        (true, ..) => Some("all files of the folder: not all were looked at"),
        (false, true, _) => Some("the names of all its files"),
        (false, false, false) => Some("names that have a comma, which are shown in parts"),
        (false, false, true) => None,
    };
    let stand = match missing {
        Some(missing) => Stand::Partial {
            missing: missing.to_owned(),
            caveat: None,
        },
        None => Stand::Sufficient {
            sources_found: seen.paths.len().max(1),
            source_types: vec!["code"],
        },
    };
    (body, stand, Percent(90))
}

fn files(count: u64) -> String {
    match count {
        1 => "one file".to_owned(),
        many => format!("{many} files"),
    }
}
