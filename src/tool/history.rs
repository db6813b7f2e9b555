//! `history_search`: commits of the project's git repository, and the changes of one of them.
//!
//! It runs `git` with an argument list, without a shell, and only reads. The tool exists in every
//! project, so that the list of tools is stable.
//!
//! **Invariants:** model input is never an option, a pattern or a command; only changes within the
//! project folder are shown; a process ends with its call; the size of a result is bounded.

mod git;
#[cfg(test)]
mod tests;

use std::{ffi::OsString, fmt::Write as _, sync::Arc, time::Duration};

use jiff::civil::Date;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    FnTool, ProjectRoot, ToolError, ToolOutput, arguments,
    blocking::BlockingRunner,
    text::{clipped, counted, joined, listed, on_one_line, quoted, shortened},
};
use crate::model::tool::ToolNeed;

use git::{Git, GitOutput, Repository, git_error};

const CONCURRENT: usize = 2;
const MAX_COMMITS: usize = 20;
const MAX_WORDS: usize = 12;
/// Maximum length of a word and of a name, in characters.
const MAX_TEXT: usize = 500;
/// Maximum lines of a message, and listed files.
const MAX_MESSAGE_LINES: usize = 12;
const MAX_FILES: usize = 8;
/// Maximum length of a shown line, in characters.
const MAX_LINE: usize = 240;
/// Maximum length of a result without its last line, in bytes.
const MAX_OUTPUT: usize = 22 * 1024;
/// Delimits the parts of a commit: hash, date, author, message, files.
const SEPARATOR: char = '\0';
const FIELDS: usize = 5;
const SHALLOW: &str =
    "; the clone is shallow: older commits are missing, and its first one seems to add everything";
/// Nothing that a repository configures is run or shown, and a merge shows its diff to the first
/// parent.
const OPTIONS: &str = "--no-color --no-decorate --no-ext-diff --no-textconv --no-show-signature --no-notes \
    --no-mailmap --no-renames --no-follow --ignore-submodules=all --submodule=short --encoding=UTF-8 \
    --diff-merges=first-parent";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct HistoryArguments {
    /// Words of the message.
    query: Option<String>,
    /// Changed file or folder.
    path: Option<String>,
    /// Part of the author's name.
    author: Option<String>,
    /// `2026-11-20` or `3 days ago`.
    since: Option<String>,
    /// Last day.
    until: Option<String>,
    /// A hash: shows that commit with its diff.
    commit: Option<String>,
}

struct HistoryQuery {
    options: Vec<String>,
    has_days: bool,
    path: Option<String>,
    commit: Option<String>,
    words: String,
}

/// Creates the tool `history_search` for one project. At the `deadline`, a call shows what it has
/// found so far.
pub fn history_search(root: ProjectRoot, deadline: Duration) -> FnTool {
    let program = OsString::from("git");
    tool(Git { root, program }, deadline)
}

fn tool(git: Git, deadline: Duration) -> FnTool {
    let description = format!(
        "Finds commits in the git history (log, diffs, authors), the newest {MAX_COMMITS}: who changed what, when and why."
    );
    let spec = arguments::spec::<HistoryArguments>("history_search", description, ToolNeed::Code);
    let spec = spec.rare();
    let (git, turns) = (Arc::new(git), BlockingRunner::new(CONCURRENT, deadline));
    FnTool::new(spec, move |arguments: HistoryArguments, _| {
        let (git, turns) = (Arc::clone(&git), turns.clone());
        async move {
            let wanted = arguments.wanted(&git.root)?;
            let _turn = turns.permit().await?;
            let repository = git.repository(Instant::now() + deadline).await?;
            match &wanted.commit {
                Some(hash) => show(&repository, &wanted, hash).await,
                None => list(&repository, &wanted).await,
            }
        }
    })
}

impl HistoryArguments {
    fn wanted(self, root: &ProjectRoot) -> Result<HistoryQuery, ToolError> {
        let non_blank = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
        let query = non_blank(self.query).unwrap_or_default();
        let queried: Vec<&str> = query.split_whitespace().collect();
        if queried.len() > MAX_WORDS {
            refuse!(
                "`query` has more than {MAX_WORDS} words, and a message must contain them all: \
                 use fewer"
            );
        }
        let author = non_blank(self.author);
        let author = author.as_deref().map(str::trim);
        for text in queried.iter().copied().chain(author) {
            if text.contains('\0') || clipped(text, MAX_TEXT).1 {
                refuse!(
                    "{} is longer than {MAX_TEXT} characters, or contains a NUL character",
                    quoted(text)
                );
            }
        }
        let path = non_blank(self.path).map(|path| root.inside(&path));
        let path = path.transpose()?.filter(|path| path != ".");
        let (since, until) = (non_blank(self.since), non_blank(self.until));
        let commit = non_blank(self.commit).map(|text| hash(&text)).transpose()?;
        let has_days = since.is_some() || until.is_some();
        if commit.is_some() && (!queried.is_empty() || author.is_some() || has_days) {
            refuse!("`commit` names one commit: use no other argument with it except `path`");
        }
        let mut words = String::new();
        let options = queried.iter().map(|word| format!("--grep={word}"));
        let mut options: Vec<String> = options.collect();
        if !queried.is_empty() {
            let _ = write!(words, " with {} in the message", quoted(&queried.join(" ")));
        }
        if let Some(path) = &path {
            let _ = write!(words, " that changed {}", quoted(path));
        }
        if let Some(author) = author {
            options.push(format!("--author={author}"));
            let _ = write!(words, " by {}", quoted(author));
        }
        for (name, day) in [("since", &since), ("until", &until)] {
            if let Some(day) = day {
                options.push(format!("--{name}={}", parse_date(name, day)?));
                let _ = write!(words, " {name} {}", quoted(day));
            }
        }
        Ok(HistoryQuery {
            options,
            has_days,
            path,
            commit,
            words,
        })
    }
}

fn hash(text: &str) -> Result<String, ToolError> {
    let hash = text.trim().to_ascii_lowercase();
    if (4..=64).contains(&hash.len()) && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(hash);
    }
    let text = quoted(text);
    refuse!(
        "`commit` is {text}, which is not a commit hash: use 4 to 64 of its digits, 0–9 and a–f"
    )
}

/// Returns the first moment of a day, month or year, or the last one for `until`, in git's format.
fn parse_date(name: &str, text: &str) -> Result<String, ToolError> {
    let lower = text.trim().to_lowercase();
    let ago = lower.strip_suffix(" ago");
    if let Some((number, unit)) = ago.and_then(|ago| ago.split_once(' ')) {
        let unit = unit.strip_suffix('s').unwrap_or(unit);
        if number.parse::<u16>().is_ok() && ["day", "week", "month", "year"].contains(&unit) {
            return Ok(format!("{number} {unit}s ago"));
        }
    }
    let parse = |text: String| text.parse::<Date>().ok();
    let days = match lower.len() {
        4 => parse(format!("{lower}-01-01")).map(|first| (first, first.last_of_year())),
        7 => parse(format!("{lower}-01")).map(|first| (first, first.last_of_month())),
        10 => parse(lower).map(|day| (day, day)),
        _ => None,
    };
    match days {
        Some((_, last)) if name == "until" => Ok(format!("{last}T23:59:59")),
        Some((first, _)) => Ok(format!("{first}T00:00:00")),
        None => refuse!(
            "`{name}` is {}, which is not a date: write it like `2026-11-20`, `2026-11`, `2026` \
             or `3 days ago`",
            quoted(text)
        ),
    }
}

async fn list(repository: &Repository<'_>, wanted: &HistoryQuery) -> Result<ToolOutput, ToolError> {
    // Filters by day use the commit date, which may differ from the author date.
    let date = if wanted.has_days { "%cI" } else { "%aI" };
    let how = "log --name-only --fixed-strings --all-match --regexp-ignore-case";
    let mut arguments = command(repository, how, date);
    arguments.push(format!("--max-count={}", MAX_COMMITS + 1));
    arguments.extend(wanted.options.iter().cloned());
    arguments.extend(["HEAD", "--"].map(str::to_owned));
    let part = (!repository.is_whole()).then(|| ".".to_owned());
    arguments.extend(wanted.path.clone().or(part));
    let ended = repository.run(arguments).await?;
    if ended.success == Some(false) {
        let head = ["rev-parse", "--quiet", "--verify", "HEAD"];
        let head = repository.run(head).await?;
        return Err(match head.success {
            Some(false) => for_model!("the repository has no commits yet"),
            _ => git_error(&ended),
        });
    }
    let is_stopped = ended.success.is_none() && !ended.cut;
    if is_stopped && ended.output.is_empty() {
        return Err(git_error(&ended));
    }
    let words = &wanted.words;
    Ok(report(&ended, words, is_stopped, repository.is_shallow))
}

fn report(ended: &GitOutput, words: &str, is_stopped: bool, is_shallow: bool) -> ToolOutput {
    let log = String::from_utf8_lossy(&ended.output);
    let mut commits = Commit::all(&log);
    if (is_stopped || ended.cut) && commits.len() > 1 {
        commits.pop();
    }
    let mut text = String::new();
    let mut data = Vec::new();
    for commit in commits.iter().take(MAX_COMMITS) {
        let mut block = commit.head();
        let files = commit.changes.lines().filter(|file| !file.is_empty());
        let files: Vec<String> = files.map(name).collect();
        if !files.is_empty() {
            let _ = writeln!(block, "  changed: {}", listed(&files, MAX_FILES));
        }
        if !text.is_empty() && text.len() + block.len() > MAX_OUTPUT {
            break;
        }
        text.push_str(&block);
        text.push('\n');
        data.push(commit.data(files.into_iter().take(MAX_FILES).collect()));
    }
    let shown = data.len();
    let more = ended.cut || commits.len() > shown;
    let count = counted(shown as u64, "commit");
    let _ = match (shown, more || is_stopped) {
        (0, false) => write!(text, "no commit{words}"),
        (_, false) => write!(text, "all {count}{words}"),
        (_, true) => write!(text, "the newest {count}{words}"),
    };
    if is_stopped {
        text.push_str("; stopped at the deadline: older commits were not searched");
    } else if more {
        text.push_str("; there are more: narrow the search, or continue with `until`");
    }
    if is_shallow {
        text.push_str(SHALLOW);
    }
    let data = json!({ "commits": data, "more": more || is_stopped });
    ToolOutput::new(text, &data)
}

async fn show(
    repository: &Repository<'_>,
    wanted: &HistoryQuery,
    hash: &str,
) -> Result<ToolOutput, ToolError> {
    let shallow = if repository.is_shallow { SHALLOW } else { "" };
    let wants = ["rev-parse", "--quiet", "--verify"].map(str::to_owned);
    let found = wants.into_iter().chain([format!("{hash}^{{commit}}")]);
    let found = repository.run(found).await?;
    let commit = String::from_utf8_lossy(&found.output).trim().to_owned();
    // A tag or branch may have this name.
    if found.success.is_none() {
        return Err(git_error(&found));
    }
    if !commit.starts_with(hash) {
        refuse!("no commit, or more than one, has a hash that begins with `{hash}`{shallow}");
    }
    let mut arguments = command(repository, "show --numstat --patch --unified=3", "%aI");
    arguments.extend([commit, "--".to_owned()]);
    arguments.extend(wanted.path.clone());
    let ended = repository.run(arguments).await?;
    if ended.success != Some(true) && !ended.cut {
        return Err(git_error(&ended));
    }
    let log = String::from_utf8_lossy(&ended.output);
    let is_whole = repository.is_whole();
    let commit = Commit::one(&log).filter(|commit| is_whole || !commit.changes.is_empty());
    let Some(commit) = commit else {
        refuse!("the commit `{hash}` changed nothing in this folder");
    };
    let mut text = commit.head();
    let mut cut = ended.cut;
    for change in commit.changes.lines() {
        let piece = shortened(change, MAX_LINE);
        if text.len() + piece.len() > MAX_OUTPUT {
            cut = true;
            break;
        }
        text += &joined(piece.split('\t').map(on_one_line), "\t");
        text.push('\n');
    }
    text.push_str(match (cut, commit.changes.is_empty()) {
        (true, _) => "\n… the diff continues: name a `path` to see its part",
        (false, true) => "\nit changed nothing there",
        (false, false) => "\nthat is all of the commit",
    });
    if wanted.path.is_some() && !cut {
        text.push_str(&wanted.words);
    }
    text.push_str(shallow);
    // A diff follows the names, so a name that was cut lacks its line break.
    let lines = commit.changes.split_inclusive('\n');
    let names = lines
        .take_while(|line| *line != "\n")
        .filter_map(|line| line.strip_suffix('\n')?.splitn(3, '\t').nth(2))
        .map(name);
    let mut room = MAX_OUTPUT;
    let files = names.take_while(|name| {
        room = room.saturating_sub(name.len());
        room > 0
    });
    let data = json!({ "commits": [commit.data(files.collect())], "more": cut });
    Ok(ToolOutput::new(text, &data))
}

fn command(repository: &Repository<'_>, how: &str, date: &str) -> Vec<String> {
    let (verb, how) = how.split_once(' ').unwrap_or((how, ""));
    let words = OPTIONS.split(' ').chain(how.split(' '));
    let mut arguments: Vec<String> = [verb].into_iter().chain(words).map(str::to_owned).collect();
    arguments.push(format!("--format=%x00%h%x00{date}%x00%an%x00%B%x00"));
    if !repository.is_whole() {
        arguments.push("--relative".to_owned());
    }
    arguments
}

struct Commit<'a> {
    hash: &'a str,
    date: &'a str,
    author: &'a str,
    message: &'a str,
    changes: &'a str,
}

impl<'a> Commit<'a> {
    fn all(log: &'a str) -> Vec<Self> {
        let parts: Vec<&str> = log.split(SEPARATOR).skip(1).collect();
        parts.chunks(FIELDS).map(Self::of).collect()
    }

    fn one(log: &'a str) -> Option<Self> {
        let parts: Vec<&str> = log.splitn(FIELDS + 1, SEPARATOR).skip(1).collect();
        (!parts.is_empty()).then(|| Self::of(&parts))
    }

    fn of(parts: &[&'a str]) -> Self {
        let part = |at: usize| parts.get(at).map_or("", |part| part.trim());
        Self {
            hash: part(0),
            date: part(1),
            author: part(2),
            message: part(3),
            changes: parts.get(4).map_or("", |part| part.trim_matches('\n')),
        }
    }

    fn head(&self) -> String {
        let (hash, date, author) = (line(self.hash), line(self.date), line(self.author));
        let mut head = format!("commit {hash} {date} {author}\n");
        let mut lines = self.message.lines();
        // A blank line would look like the end of a commit.
        let shown = lines.by_ref().take(MAX_MESSAGE_LINES);
        for text in shown.filter(|text| !text.trim().is_empty()) {
            let _ = writeln!(head, "    {}", line(text));
        }
        let more = lines.count() as u64;
        if more > 0 {
            let _ = writeln!(head, "    … {}", counted(more, "more line"));
        }
        head
    }

    fn data(&self, files: Vec<String>) -> Value {
        let subject = self.message.lines().next().map(line).unwrap_or_default();
        json!({
            "hash": self.hash, "date": self.date, "author": line(self.author), "subject": subject, "files": files,
        })
    }
}

fn name(text: &str) -> String {
    let inner = text.strip_prefix('"');
    let inner = inner.and_then(|text| text.strip_suffix('"'));
    let plain = inner.map(|inner| inner.replace("\\\"", "\"").replace("\\\\", "\\"));
    line(plain.as_deref().unwrap_or(text))
}

fn line(text: &str) -> String {
    on_one_line(&shortened(text.trim_end(), MAX_LINE)).into_owned()
}
