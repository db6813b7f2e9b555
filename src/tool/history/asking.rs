//! What git is asked, as arguments. Pure.

use std::ffi::OsString;

use super::{Changed, Wanted, between::Between};

/// How the first day is told to git.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Since {
    /// Each commit is asked for its own date: those that were brought in or written with a wrong clock may
    /// have older ones before them.
    OfEach,
    /// The walk ends at the first commit that is older, in the words of git before 2.37.
    UpToOlder,
}

impl Since {
    const fn option(self) -> &'static str {
        match self {
            Self::OfEach => "--since-as-filter",
            Self::UpToOlder => "--since",
        }
    }
}

/// What is told of the files that a commit changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// Nothing, where that is not known.
    None,
    Names,
    /// How many lines of each, too.
    Lines,
}

impl Told {
    const fn option(self) -> &'static str {
        match self {
            Self::None => "--no-patch",
            Self::Names => "--name-only",
            Self::Lines => "--numstat",
        }
    }
}

/// The arguments of `git log` that lists them.
pub(super) fn listing(
    wanted: &Wanted,
    between: &Between,
    is_top: bool,
    since: Since,
) -> Vec<OsString> {
    // Days choose by when a commit was made; its author may have written it on another day.
    let date = match wanted.has_days() {
        true => "%cI",
        false => "%aI",
    };
    let mut arguments = log(["--name-only", &format(date)]);
    match wanted.is_oldest_first {
        // A number would be that of the newest ones: what is too much is not read.
        true => arguments.push("--reverse".into()),
        false => {
            arguments.push(format!("--max-count={}", wanted.skipped + wanted.commits + 1).into())
        }
    }
    arguments.extend(choosing(wanted, since));
    arguments.extend(texts(wanted));
    // The repository is larger than the project: what is told are paths of the project, as those that are
    // asked for.
    if !is_top {
        arguments.push("--relative".into());
    }
    arguments.extend(within(wanted, between, is_top));
    arguments
}

/// The arguments that count the same commits: a number, or a part for each of those that changed a text,
/// which `rev-list` does not look for.
pub(super) fn counting(
    wanted: &Wanted,
    between: &Between,
    is_top: bool,
    since: Since,
) -> Vec<OsString> {
    let mut arguments = match wanted.changed {
        None => ["rev-list", "--count"].map(OsString::from).to_vec(),
        Some(_) => log(["--no-patch", "--format=%x00"]),
    };
    arguments.extend(choosing(wanted, since));
    arguments.extend(texts(wanted));
    arguments.extend(within(wanted, between, is_top));
    arguments
}

/// The arguments that tell the author of each.
pub(super) fn authors(
    wanted: &Wanted,
    between: &Between,
    is_top: bool,
    since: Since,
) -> Vec<OsString> {
    let mut arguments = log(["--no-patch", "--format=%an%x00"]);
    arguments.extend(choosing(wanted, since));
    arguments.extend(texts(wanted));
    arguments.extend(within(wanted, between, is_top));
    arguments
}

/// The arguments that tell of these commits and of no others, by their whole hashes. No path is among them: merges
/// would be left out that have it as one of their parents does.
pub(super) fn telling(hashes: &[&str], is_top: bool, told: Told) -> Vec<OsString> {
    let mut arguments = log([told.option(), &format("%aI")]);
    arguments.push("--no-walk=unsorted".into());
    arguments.push("--encoding=UTF-8".into());
    // Of a merge, what it brought.
    arguments.push("--diff-merges=first-parent".into());
    if !is_top {
        arguments.push("--relative".into());
    }
    arguments.extend(hashes.iter().map(OsString::from));
    arguments.push("--".into());
    arguments
}

/// The parts of a commit, between marks.
fn format(date: &str) -> String {
    format!("--format=%x00%h%x00{date}%x00%an%x00%B%x00")
}

/// A log without what a repository would have run or shown.
fn log(further: [&str; 2]) -> Vec<OsString> {
    [
        "log",
        "--no-color",
        "--no-decorate",
        "--no-ext-diff",
        "--no-textconv",
        "--no-show-signature",
        "--no-notes",
        "--no-mailmap",
        "--no-renames",
        "--no-follow",
        "--ignore-submodules=all",
        "--submodule=short",
    ]
    .into_iter()
    .chain(further)
    .map(OsString::from)
    .collect()
}

/// Which commits, by their messages, authors and days. Authors are looked for as they stand, like words.
fn choosing(wanted: &Wanted, since: Since) -> Vec<OsString> {
    let how = [
        "--encoding=UTF-8",
        "--fixed-strings",
        "--all-match",
        "--regexp-ignore-case",
    ]
    .map(str::to_owned);
    let words = wanted.words.iter().map(|word| format!("--grep={word}"));
    let author = wanted.author.iter().map(|name| format!("--author={name}"));
    let first = wanted.first_day().into_iter();
    let first = first.map(|day| format!("{}={}", since.option(), day.begins()));
    let until = wanted.last_day().and_then(|day| day.ends()).into_iter();
    let until = until.map(|day| format!("--until={day}"));
    let all = how.into_iter().chain(words).chain(author);
    all.chain(first).chain(until).map(OsString::from).collect()
}

/// What they did to a text.
fn texts(wanted: &Wanted) -> Option<OsString> {
    let looked_for = match wanted.changed.as_ref()? {
        Changed::Text(text) => format!("-S{text}"),
        Changed::Line(text) => format!("-G{}", literally(text)),
    };
    Some(looked_for.into())
}

/// A text as the pattern that finds it and nothing else: behind `-G` stands a POSIX extended regular expression,
/// whatever is asked of messages. A closing bracket or brace that nothing opens stands for itself.
fn literally(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for c in text.chars() {
        if r"\.[(){*+?^$|".contains(c) {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

/// From where on, and by which paths.
fn within(wanted: &Wanted, between: &Between, is_top: bool) -> Vec<OsString> {
    let whole = (!is_top).then_some(".");
    let path = wanted.path.as_deref().or(whole);
    let mut arguments = between.revisions();
    arguments.push("--".into());
    arguments.extend(path.map(OsString::from));
    arguments
}
