//! What is shown: folders, then outlines, then what was left out, within a budget.
//!
//! A symbol is worth what its file is, what it is itself, and less the more of its file is shown
//! already; the best are taken until the room is used. A symbol brings what it lies in.

use std::{cmp::Reverse, collections::BinaryHeap, fmt::Write as _};

use tokio_util::sync::CancellationToken;

use super::{
    focus::Focus,
    folders, kinds,
    list::Listing,
    read::{Outlined, Outlines, Shown},
};
use crate::tool::{code::place::Place, outline::SymbolKind, text::counted};

/// Bytes of a token, rather too few: code has many signs.
const TOKEN: usize = 3;
/// Room for the last lines, in bytes.
const NOTES: usize = 320;

/// Writes the map.
pub(super) fn render(
    focus: &Focus,
    place: &Place,
    listing: &Listing,
    outlines: &Outlines,
    tokens: u32,
    stop: &CancellationToken,
) -> String {
    let room = (tokens as usize * TOKEN).saturating_sub(NOTES);
    let head = format!(
        "{}{}{}, {} with an outline\n",
        counted(listing.files.len() as u64, "file", "files"),
        place.words(),
        kinds::told(&listing.files),
        outlines.files.len()
    );
    let share = if focus.is_empty() { 3 } else { 5 };
    let tree = folders::tree(&listing.files, &place.top(), focus, room / share, stop);
    let mut text = format!("{head}{tree}\n");
    let mut chosen = choose(focus, &outlines.files, room.saturating_sub(text.len()));
    if !focus.is_empty() {
        // What fits comes first.
        chosen.sort_by_key(|(file, at)| {
            (
                Reverse(at.iter().map(|&at| worth(file, at)).max()),
                &file.path,
            )
        });
    }
    let mut shown = 0;
    for (file, symbols) in &chosen {
        shown += symbols.len();
        text.push('\n');
        for &at in symbols {
            text.push_str(&line(&file.path, &file.symbols[at]));
        }
        if symbols.len() < file.total {
            let _ = writeln!(
                text,
                "… {} more in {}",
                file.total - symbols.len(),
                file.path
            );
        }
    }
    let all: usize = outlines.files.iter().map(|file| file.total).sum();
    text.push('\n');
    text.push_str(&notes(
        listing,
        outlines,
        shown,
        all,
        chosen.len(),
        stop.is_cancelled(),
    ));
    text
}

fn line(path: &str, symbol: &Shown) -> String {
    let indent = "  ".repeat(symbol.depth.min(6).into());
    format!("{path}:{}: {indent}{}\n", symbol.line, symbol.text)
}

/// How much a symbol is worth, its neighbours aside.
fn worth(file: &Outlined, at: usize) -> i64 {
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

/// The symbols that are shown, by file, in the order of the files.
fn choose<'a>(
    focus: &Focus,
    files: &'a [Outlined],
    mut room: usize,
) -> Vec<(&'a Outlined, Vec<usize>)> {
    // The best symbol of each file that is not chosen yet, the best of all first.
    let orders: Vec<Vec<usize>> = files
        .iter()
        .map(|file| {
            let mut order: Vec<usize> = (0..file.symbols.len()).collect();
            order.sort_by_key(|&at| (Reverse(worth(file, at)), at));
            order
        })
        .collect();
    let step = if focus.is_empty() { 4 } else { 2 };
    let value = |file: usize, taken: usize| {
        let at = *orders[file].get(taken)?;
        let value = worth(&files[file], at) - step * taken as i64;
        Some((value, Reverse(file), taken))
    };
    let mut next: BinaryHeap<_> = (0..files.len()).filter_map(|file| value(file, 0)).collect();
    let mut chosen: Vec<Vec<bool>> = files
        .iter()
        .map(|file| vec![false; file.symbols.len()])
        .collect();
    while let Some((_, Reverse(which), taken)) = next.pop() {
        let file = &files[which];
        let mine = &mut chosen[which];
        let mut at = Some(orders[which][taken]);
        let mut fresh = Vec::new();
        while let Some(place) = at.filter(|&place| !mine[place]) {
            fresh.push(place);
            at = file.symbols[place].parent;
        }
        let is_first = !mine.contains(&true);
        // The empty line, and what says that there is more.
        let around = if is_first { file.path.len() + 24 } else { 0 };
        let bytes: usize = fresh
            .iter()
            .map(|&at| line(&file.path, &file.symbols[at]).len())
            .sum();
        if bytes + around > room {
            break;
        }
        if !fresh.is_empty() {
            room -= bytes + around;
        }
        fresh.into_iter().for_each(|at| mine[at] = true);
        next.extend(value(which, taken + 1));
    }
    let shown = files.iter().zip(chosen).map(|(file, chosen)| {
        let places = chosen.iter().enumerate().filter(|(_, chosen)| **chosen);
        (file, places.map(|(at, _)| at).collect::<Vec<usize>>())
    });
    shown.filter(|(_, places)| !places.is_empty()).collect()
}

fn notes(
    listing: &Listing,
    outlines: &Outlines,
    shown: usize,
    all: usize,
    files: usize,
    is_stopped: bool,
) -> String {
    let mut notes = Vec::new();
    if all > shown {
        notes.push(format!(
            "{shown} of {} in {files} of {}; name a path or a focus, or allow more tokens, for others",
            counted(all as u64, "symbol", "symbols"),
            counted(outlines.files.len() as u64, "file", "files"),
        ));
    } else if all > 0 {
        notes.push("all symbols shown".to_owned());
    } else {
        notes.push("no symbols found".to_owned());
    }
    if outlines.unread > 0 {
        let unread = counted(outlines.unread, "file", "files");
        notes.push(format!(
            "{unread} not read for an outline: others fit better"
        ));
    }
    if listing.more {
        notes.push("there are more files than are looked at: name a folder".to_owned());
    }
    if listing.stopped || outlines.stopped || is_stopped {
        let read = counted(outlines.read, "file", "files");
        notes.push(format!("stopped at the deadline after {read}"));
    }
    let skipped: Vec<String> = [
        (outlines.too_big, "too big for an outline"),
        (
            listing.unreadable + outlines.unreadable,
            "unreadable or binary",
        ),
        (listing.links, "links"),
        (listing.special, "not regular files"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, what)| format!("{count} {what}"))
    .collect();
    if !skipped.is_empty() {
        notes.push(format!("skipped: {}", skipped.join(", ")));
    }
    notes.join("; ")
}
