//! `repo_map`: shows folders and outlines of the project within a token budget.
//!
//! Files and symbols that match the focus get more space; the rest shrinks to folders with file
//! counts.
//!
//! **Invariants:** equal trees and arguments yield equal texts, unless the deadline cut the call,
//! which the text then states; omitted items are counted; listing and reading are bounded.

mod focus;
mod read;
#[cfg(test)]
mod tests;
mod tree;

use std::{cmp::Reverse, collections::BTreeSet, fmt::Write as _, iter, time::Duration};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{
    FnTool, ProjectRoot, ToolError, ToolOutput, arguments,
    blocking::BlockingRunner,
    outline::SymbolKind,
    text::counted,
    walk::{self, Listing, Scope},
};
use crate::model::tool::ToolNeed;

use focus::Focus;
use read::{MapSymbol, OutlinedFile, Outlines};

/// Range of the token budget.
const MIN_TOKENS: u32 = 200;
const MAX_TOKENS: u32 = 16_000;
/// Bytes per token; a low estimate, because code has many signs.
const BYTES_PER_TOKEN: usize = 3;
/// Space for the last lines, in bytes.
const NOTES: usize = 320;
/// Maximum number of concurrent calls.
const CONCURRENT: usize = 2;

/// Settings of `repo_map`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepoMapSettings {
    /// Default token budget; 200–16,000.
    pub max_tokens: u32,
    /// Maximum number of files listed.
    pub max_files: usize,
    /// Maximum number of files outlined, best matches first.
    pub max_outlined: usize,
    /// Maximum size of an outlined file, in bytes.
    pub max_file_bytes: u64,
    /// Deadline of a call, which then shows what it has.
    pub deadline: Duration,
}

impl Default for RepoMapSettings {
    fn default() -> Self {
        Self {
            max_tokens: 2_000,
            max_files: 200_000,
            max_outlined: 2_000,
            max_file_bytes: 512 * 1024,
            deadline: Duration::from_secs(5),
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MapArguments {
    /// Words, names and paths that get more room.
    focus: Option<String>,
    /// A folder, file or glob.
    path: Option<String>,
    /// Most tokens.
    #[schemars(range(min = 200, max = 16_000))]
    max_tokens: Option<u32>,
}

/// The tool `repo_map` for one project.
pub fn repo_map(root: ProjectRoot, settings: RepoMapSettings) -> FnTool {
    let description = format!(
        "Maps the project's folders, definitions and headings in {} tokens by default.",
        settings.max_tokens
    );
    let spec = arguments::spec::<MapArguments>("repo_map", description, ToolNeed::Code);
    BlockingRunner::new(CONCURRENT, settings.deadline).tool(spec, move |wanted, stop| {
        map(&root, &wanted, settings, stop)
    })
}

fn map(
    root: &ProjectRoot,
    wanted: &MapArguments,
    settings: RepoMapSettings,
    stop: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let tokens = wanted.max_tokens.unwrap_or(settings.max_tokens);
    if !(MIN_TOKENS..=MAX_TOKENS).contains(&tokens) {
        refuse!("`max_tokens` is {tokens}, the range is {MIN_TOKENS} to {MAX_TOKENS}");
    }
    let focus = Focus::new(wanted.focus.as_deref().unwrap_or(""));
    let place = Scope::find(root, wanted.path.as_deref())?;
    let listing = walk::list(root, &place, settings.max_files, |_| true, stop);
    let outlines = read::outlines(root, &listing, &focus, settings, stop);
    let room = (tokens as usize * BYTES_PER_TOKEN).saturating_sub(NOTES);
    let head = format!(
        "{}{}, {} with an outline\n",
        counted(listing.files.len() as u64, "file"),
        place.words,
        outlines.files.len()
    );
    let share = if focus.is_empty() { 3 } else { 5 };
    let tree = tree::tree(&listing.files, &place.top(), &focus, room / share, stop);
    let mut text = format!("{head}{tree}\n");
    let mut chosen = choose(&focus, &outlines.files, room.saturating_sub(text.len()));
    if !focus.is_empty() {
        // Matches come first.
        chosen.sort_by_key(|(file, at)| {
            let best = at.iter().map(|&at| worth(file, at)).max();
            (Reverse(best), &file.path)
        });
    }
    let mut shown = 0;
    let mut files = Vec::new();
    for (file, symbols) in &chosen {
        shown += symbols.len();
        text.push('\n');
        for &at in symbols {
            text.push_str(&line(&file.path, &file.symbols[at]));
        }
        if symbols.len() < file.total {
            let more = file.total - symbols.len();
            let _ = writeln!(text, "… {more} more in {}", file.path);
        }
        let lines: Vec<u32> = symbols.iter().map(|&at| file.symbols[at].line).collect();
        files.push(json!({ "path": file.path, "lines": lines }));
    }
    text.push('\n');
    let shown = (shown, chosen.len());
    let (most, is_stopped) = (settings.max_file_bytes, stop.is_cancelled());
    text += &notes(&listing, &outlines, shown, most, is_stopped);
    Ok(ToolOutput::new(text, &json!({ "files": files })))
}

fn line(path: &str, symbol: &MapSymbol) -> String {
    let indent = "  ".repeat(symbol.depth.min(6).into());
    format!("{path}:{}: {indent}{}\n", symbol.line, symbol.text)
}

fn worth(file: &OutlinedFile, at: usize) -> i64 {
    let symbol = &file.symbols[at];
    let kind = match symbol.kind {
        SymbolKind::Type | SymbolKind::Interface | SymbolKind::Table => 12,
        SymbolKind::Function | SymbolKind::Macro => 10,
        SymbolKind::Implementation | SymbolKind::Method | SymbolKind::Module => 6,
        SymbolKind::Heading => 8,
        SymbolKind::Constant => 4,
        SymbolKind::Variable | SymbolKind::Key => 0,
    };
    file.rank + kind - 6 * i64::from(symbol.depth) + 10 * i64::from(symbol.fits)
}

fn choose<'a>(
    focus: &Focus,
    files: &'a [OutlinedFile],
    mut room: usize,
) -> Vec<(&'a OutlinedFile, Vec<usize>)> {
    // The further symbols of a file are worth less, so that the others have their turn.
    let step = if focus.is_empty() { 4 } else { 2 };
    let mut offers = Vec::new();
    for (which, file) in files.iter().enumerate() {
        let mut order: Vec<usize> = (0..file.symbols.len()).collect();
        order.sort_by_key(|&at| (Reverse(worth(file, at)), at));
        for (before, at) in (0..).zip(order) {
            offers.push((Reverse(worth(file, at) - step * before), which, at));
        }
    }
    offers.sort_unstable();
    let mut chosen = vec![BTreeSet::new(); files.len()];
    for (_, which, at) in offers {
        let (file, mine) = (&files[which], &mut chosen[which]);
        let with_parents = iter::successors(Some(at), |&at| file.symbols[at].parent);
        let fresh: Vec<usize> = with_parents.take_while(|at| !mine.contains(at)).collect();
        if fresh.is_empty() {
            continue;
        }
        // Space for the empty line and the note about omitted symbols.
        let around = match mine.is_empty() {
            true => file.path.len() + 24,
            false => 0,
        };
        let bytes = |&at: &usize| line(&file.path, &file.symbols[at]).len();
        let lines: usize = fresh.iter().map(bytes).sum();
        let Some(left) = room.checked_sub(around + lines) else {
            break;
        };
        room = left;
        mine.extend(fresh);
    }
    let shown = files.iter().zip(chosen).filter(|(_, at)| !at.is_empty());
    shown
        .map(|(file, at)| (file, at.into_iter().collect()))
        .collect()
}

fn notes(
    listing: &Listing,
    outlines: &Outlines,
    (shown, files): (usize, usize),
    most: u64,
    is_stopped: bool,
) -> String {
    let all: usize = outlines.files.iter().map(|file| file.total).sum();
    let mut notes = vec![match (all, shown) {
        (0, _) => "no symbols found".to_owned(),
        (all, shown) if all == shown => "all symbols shown".to_owned(),
        _ => format!(
            "{shown} of {} in {files} of {}; name a path or a focus, or allow more tokens, for others",
            counted(all as u64, "symbol"),
            counted(outlines.files.len() as u64, "file"),
        ),
    }];
    if outlines.unread > 0 {
        let unread = counted(outlines.unread, "file");
        notes.push(format!(
            "{unread} not read for an outline: others fit better"
        ));
    }
    if listing.more > 0 {
        notes.push("too many files to read them all: name a folder".to_owned());
    }
    if is_stopped {
        let read = counted(outlines.read, "file");
        notes.push(format!("stopped at the deadline after {read}"));
    }
    notes.extend(outlines.skipped.note(most));
    notes.join("; ")
}
