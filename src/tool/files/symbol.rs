//! Locates a symbol that a model names, or suggests similar ones.

#[cfg(test)]
mod tests;

use std::{fs::File, io::Read as _};

use memchr::memchr;

use super::{in_utf16, is_utf16, window::Span};
use crate::tool::{
    ToolError,
    outline::{self, MAX_SYMBOLS, MAX_TEXT, Symbol, SymbolKind},
    text::{clipped, joined, quoted},
};

/// Longest name that is searched, in characters.
const MAX_NAME: usize = 200;
/// Maximum number of suggestions for a missing symbol, and of further matches of a found one.
const MAX_NAMED: usize = 6;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct FoundSymbol {
    pub(super) span: Span,
    pub(super) words: String,
    pub(super) others: Vec<u32>,
}

/// Finds a symbol in an open file with the path `shown`.
pub(super) fn find(file: &File, shown: &str, wanted: &str) -> Result<FoundSymbol, ToolError> {
    let wanted = wanted.trim();
    let segments = segments(wanted);
    if segments.is_empty() || clipped(wanted, MAX_NAME).1 {
        refuse!(
            "`symbol` is {}, but must be a name such as `run`, `Type::method` or `Class.method`",
            quoted(wanted)
        );
    }
    let text = head(file).map_err(|kind| for_model!("`{shown}` cannot be read: {kind}"))?;
    if is_utf16(&text) {
        return Err(in_utf16(shown));
    }
    if memchr(0, &text).is_some() {
        refuse!("`{shown}` is a binary file: only text can be read");
    }
    let symbols = outline::outline(shown, &String::from_utf8_lossy(&text));
    let mut fits = matches(shown, &symbols, wanted, &segments, str::to_owned);
    if fits.is_empty() {
        fits = matches(shown, &symbols, wanted, &segments, str::to_lowercase);
    }
    // A type comes before its implementation blocks.
    fits.sort_by_key(|symbol| symbol.kind == SymbolKind::Implementation);
    let Some((found, others)) = fits.split_first() else {
        let message = missing(shown, wanted, &symbols, &segments);
        if text.len() >= MAX_TEXT || symbols.len() >= MAX_SYMBOLS {
            let most = MAX_TEXT / 1024 / 1024;
            refuse!(
                "{message} (of a file, the first {most} MiB are looked at, and the first \
                 {MAX_SYMBOLS} symbols known)"
            );
        }
        return Err(ToolError::ForModel(message));
    };
    let name = outline::qualified(shown, &symbols, found);
    let mut others: Vec<u32> = others.iter().map(|symbol| symbol.line).collect();
    others.sort_unstable();
    Ok(FoundSymbol {
        span: Span {
            start: found.first_line.into(),
            end: found.last_line.into(),
        },
        words: format!("{} `{name}`", found.kind),
        others,
    })
}

fn head(mut file: &File) -> Result<Vec<u8>, std::io::ErrorKind> {
    let mut text = Vec::new();
    let read = file.take(MAX_TEXT as u64).read_to_end(&mut text);
    let back = std::io::Seek::rewind(&mut file);
    let read = read.and(back).map(|()| text);
    read.map_err(|error| error.kind())
}

/// Splits `a::b`, `a.b`, `a#b` and `a > b`, without the brackets of a call.
fn segments(wanted: &str) -> Vec<&str> {
    let bare = wanted.trim_end_matches("()").trim_matches('`');
    let parts: Vec<&str> = if bare.contains(" > ") {
        bare.split(" > ").collect()
    } else if bare.contains(' ') {
        // A heading.
        vec![bare.trim_start_matches('#')]
    } else {
        bare.split([':', '.', '#']).collect()
    };
    let parts = parts.into_iter().map(str::trim);
    parts.filter(|part| !part.is_empty()).collect()
}

fn matches<'a>(
    shown: &str,
    symbols: &'a [Symbol],
    wanted: &str,
    segments: &[&str],
    alike: impl Fn(&str) -> String,
) -> Vec<&'a Symbol> {
    let plain = |name: &str| alike(&name.replace('`', ""));
    let whole = plain(wanted);
    let is_shown_so = |symbol: &&Symbol| {
        plain(&symbol.name) == whole || plain(&outline::qualified(shown, symbols, symbol)) == whole
    };
    let fits: Vec<&Symbol> = symbols.iter().filter(is_shown_so).collect();
    let Some((name, within)) = segments.split_last().filter(|_| fits.is_empty()) else {
        return fits;
    };
    let lies_within = |symbol: &Symbol| {
        let above = outline::lineage(symbols, symbol).skip(1);
        let names = above.flat_map(|outer| [Some(&*outer.name), outer.owner.as_deref()]);
        let mut outer = symbol.owner.as_deref().into_iter().chain(names.flatten());
        // Matches from the inside out; intermediate names may be omitted.
        let mut within = within.iter().rev();
        within.all(|part| outer.any(|name| alike(name) == alike(part)))
    };
    let joined = alike(&segments.join("."));
    let fits = |symbol: &&Symbol| {
        let own = alike(&symbol.name);
        (own == alike(name) && lies_within(symbol)) || own == joined
    };
    symbols.iter().filter(fits).collect()
}

fn missing(shown: &str, wanted: &str, symbols: &[Symbol], segments: &[&str]) -> String {
    let wanted = quoted(wanted);
    if symbols.is_empty() {
        return format!(
            "`{shown}` has no known symbols, so there is no {wanted}: read it by lines, or search \
             for the name with `code_search`"
        );
    }
    let name = segments.last().copied().unwrap_or("").to_lowercase();
    let mut near: Vec<(usize, &Symbol)> = symbols
        .iter()
        .map(|symbol| (distance(&name, &symbol.name.to_lowercase()), symbol))
        .filter(|(distance, _)| *distance <= 2 + name.chars().count() / 4)
        .collect();
    near.sort_by_key(|(distance, symbol)| (*distance, symbol.line));
    let named = |symbol: &Symbol| {
        let full = outline::qualified(shown, symbols, symbol);
        format!("{} (line {})", quoted(&full), symbol.line)
    };
    if near.is_empty() {
        let top = symbols.iter().filter(|symbol| symbol.depth == 0);
        let top = joined(top.take(MAX_NAMED).map(named), ", ");
        return format!(
            "there is no {wanted} in `{shown}`; it begins with {top}: find the name with `code_search`"
        );
    }
    let near = near.into_iter().take(MAX_NAMED);
    let near = joined(near.map(|(_, symbol)| named(symbol)), ", ");
    format!("there is no {wanted} in `{shown}`: did you mean {near}?")
}

fn distance(a: &str, b: &str) -> usize {
    if a.len() >= 3 && b.len() >= 3 && (a.contains(b) || b.contains(a)) {
        return 0;
    }
    if a.len().abs_diff(b.len()) > 6 {
        return usize::MAX;
    }
    strsim::levenshtein(a, b)
}

/// What follows the lines of a symbol, up to the line `last`.
pub(super) fn note(place: &FoundSymbol, last: u64) -> String {
    let (words, end, next) = (&place.words, place.span.end, last + 1);
    let mut note = match last < end {
        true => format!("\n… {words} continues to line {end}; continue with start_line={next}"),
        false => format!("\n… all of {words}"),
    };
    let others = &place.others;
    if !others.is_empty() {
        let lines = joined(others.iter().take(MAX_NAMED).map(u32::to_string), ", ");
        let more = if others.len() > MAX_NAMED {
            ", …"
        } else {
            ""
        };
        note += &format!("; others of that name: line {lines}{more}");
    }
    note
}
