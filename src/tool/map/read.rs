//! Outlines the best matching files on a few threads.

use std::{cmp::Reverse, collections::BTreeSet};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::{RepoMapSettings, focus::Focus};
use crate::tool::{
    ProjectRoot,
    code::kind::FileKind,
    outline::{self, Symbol, SymbolKind},
    text::{is_one_of, on_one_line, shortened},
    walk::{self, ListedFile, Listing, Skipped},
};

/// Maximum number of symbols kept of a file.
const MAX_SYMBOLS: usize = 400;
/// Longest line shown, in characters.
const MAX_LINE: usize = 120;
/// Maximum number of bytes read in a call.
const MAX_READ: u64 = 64 * 1024 * 1024;

#[derive(Debug, Default)]
pub(super) struct Outlines {
    pub(super) files: Vec<OutlinedFile>,
    pub(super) read: u64,
    /// Files with a known language that were not read, because others match better.
    pub(super) unread: u64,
    pub(super) skipped: Skipped,
}

#[derive(Debug)]
pub(super) struct OutlinedFile {
    pub(super) path: String,
    pub(super) rank: i64,
    pub(super) symbols: Vec<MapSymbol>,
    pub(super) total: usize,
}

#[derive(Debug)]
pub(super) struct MapSymbol {
    pub(super) line: u32,
    pub(super) depth: u16,
    pub(super) kind: SymbolKind,
    pub(super) fits: u32,
    pub(super) text: String,
    pub(super) parent: Option<usize>,
}

pub(super) fn outlines(
    root: &ProjectRoot,
    listing: &Listing,
    focus: &Focus,
    settings: RepoMapSettings,
    stop: &CancellationToken,
) -> Outlines {
    let mut found = Outlines {
        skipped: listing.skipped,
        ..Outlines::default()
    };
    let mut ranked: Vec<(i64, &ListedFile)> = Vec::new();
    for file in &listing.files {
        if stop.is_cancelled() {
            break;
        }
        if !outline::is_supported(&file.shown) {
            continue;
        }
        if file.stamp.bytes > settings.max_file_bytes {
            found.skipped.too_big += 1;
        } else {
            ranked.push((rank(&file.shown, focus), file));
        }
    }
    ranked.sort_by(|(a, first), (b, second)| b.cmp(a).then_with(|| first.shown.cmp(&second.shown)));
    let mut room = MAX_READ;
    let enough = |(_, file): &&(i64, &ListedFile)| {
        let fits = room >= file.stamp.bytes;
        room = room.saturating_sub(file.stamp.bytes);
        fits
    };
    let chosen = ranked.iter().take(settings.max_outlined).take_while(enough);
    let chosen: Vec<(i64, &ListedFile)> = chosen.copied().collect();
    found.unread = (ranked.len() - chosen.len()) as u64;
    let found = Mutex::new(found);
    walk::on_threads(&chosen, |files| {
        let mut buffer = Vec::new();
        for &(rank, file) in files {
            if stop.is_cancelled() {
                break;
            }
            if let Err(why) = walk::read(root, &file.path, settings.max_file_bytes, &mut buffer) {
                found.lock().skipped.count(why);
                continue;
            }
            let text = String::from_utf8_lossy(&buffer);
            let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
            let symbols = outline::outline(&file.shown, text);
            let outlined = outlined(file, rank, &symbols, text, focus);
            let mut found = found.lock();
            found.read += 1;
            if !symbols.is_empty() {
                found.files.push(outlined);
            }
        }
    });
    let mut found = found.into_inner();
    found.files.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn outlined(
    file: &ListedFile,
    rank: i64,
    symbols: &[Symbol],
    text: &str,
    focus: &Focus,
) -> OutlinedFile {
    let fits = |symbol: &Symbol| {
        let owner = symbol.owner.as_deref();
        let owner = owner.map_or(0, |owner| focus.of_name(owner) / 2);
        focus.of_name(&symbol.name) + owner
    };
    let order = symbols.iter().enumerate();
    let order = order.map(|(at, symbol)| (Reverse(fits(symbol)), symbol.depth, at));
    let mut order: Vec<(Reverse<u32>, u16, usize)> = order.collect();
    order.sort_unstable();
    order.truncate(MAX_SYMBOLS);
    let mut kept = BTreeSet::new();
    for (.., at) in order {
        let mut next = Some(at);
        // Adds the enclosing symbols as well.
        while let Some(at) = next.filter(|at| kept.insert(*at)) {
            next = symbols[at].parent.map(|parent| parent as usize);
        }
    }
    let kept: Vec<usize> = kept.into_iter().collect();
    let lines: Vec<&str> = text.split('\n').collect();
    let line = |symbol: &Symbol| lines.get(symbol.line as usize - 1).copied();
    let shown = kept.iter().map(|&at| {
        let symbol = &symbols[at];
        let mut text = shorten(line(symbol).unwrap_or_default());
        if text.is_empty() {
            text = symbol.name.to_string();
        }
        MapSymbol {
            line: symbol.line,
            depth: symbol.depth,
            kind: symbol.kind,
            fits: fits(symbol),
            text,
            parent: symbol
                .parent
                .and_then(|parent| kept.binary_search(&(parent as usize)).ok()),
        }
    });
    OutlinedFile {
        path: file.shown.clone(),
        rank,
        symbols: shown.collect(),
        total: symbols.len(),
    }
}

fn shorten(line: &str) -> String {
    let bare = line.trim().trim_end_matches(['{', '(']).trim_end();
    on_one_line(&shortened(bare, MAX_LINE)).into_owned()
}

fn rank(path: &str, focus: &Focus) -> i64 {
    const ENTRIES: &str = "main lib mod index app __init__ cli readme";
    let file = path.rsplit('/').next().unwrap_or(path);
    let stem = file.split('.').next().unwrap_or(file).to_lowercase();
    let depth = path.matches('/').count().min(12) as i64;
    let kind = match FileKind::of(path) {
        FileKind::Code => 0,
        FileKind::Docs if stem == "readme" => 0,
        FileKind::Docs | FileKind::Changes | FileKind::Data => -15,
        FileKind::Test | FileKind::Generated => -25,
    };
    let entry = if is_one_of(ENTRIES, &stem) { 8 } else { 0 };
    40 - 2 * depth + 10 * i64::from(focus.of_path(path)) + kind + entry
}
