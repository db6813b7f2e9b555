//! The lines that show a place on part of a screen: its definition with the value or body. Pure.

use std::{collections::BTreeSet, iter};

use crate::tool::outline::{self, Symbol, SymbolKind};

/// Maximum rows of an excerpt without its gaps, of which there are at most three, and the columns
/// after which a line takes another row.
const ROWS: usize = 13;
const COLUMNS: usize = 76;
/// Characters after which the offline model cuts a line.
const LONGEST: usize = 200;
/// Lines of a long comment that are shown: its first ones, and those from the best line on.
const COMMENT_LINES: usize = 2;
const BEST_LINES: usize = 4;
const GAP: &str = "…\n";

/// The symbol at the best line of a place, or the first one that it defines.
pub(super) fn symbol(symbols: &[Symbol], top: u32, (first, last): (u32, u32)) -> Option<&Symbol> {
    let mut opened = symbols.iter().filter(|one| one.line >= first);
    let opened = opened.next().filter(|one| one.line <= last);
    outline::enclosing(symbols, top).or(opened)
}

/// Describes a place in a few words: the definition or heading, or else its best line.
pub(super) fn description(
    path: &str,
    lines: &[&str],
    symbols: &[Symbol],
    symbol: Option<&Symbol>,
    top: u32,
) -> String {
    use SymbolKind::{Constant, Heading, Implementation, Key, Macro, Variable};
    let at = symbol.map_or(top, |one| one.line) as usize;
    let line = lines.get(at - 1).map_or("", |line| line.trim());
    let Some(one) = symbol else {
        return line.trim_start_matches(['/', '!', '*', ' ']).to_owned();
    };
    let name = outline::qualified(path, symbols, one);
    match one.kind {
        Heading => name,
        Constant | Variable | Key | Macro | Implementation => {
            line.trim_end_matches([' ', '{']).to_owned()
        }
        kind => format!("{} {name}", kind.as_str()),
    }
}

/// The excerpt of a place, as its first and last line and its text. It is the largest definition
/// around the best line that fits, or else the beginning of its comment, its first line, and the
/// lines from the best one on.
pub(super) fn excerpt(
    lines: &[&str],
    symbols: &[Symbol],
    symbol: Option<&Symbol>,
    top: u32,
    (first, last): (u32, u32),
) -> (u32, u32, String) {
    let line = |number: u32| lines.get(number as usize - 1).copied().unwrap_or_default();
    let rows = |number: u32| 1 + line(number).chars().take(LONGEST).count() / COLUMNS;
    let fits = |one: &&Symbol| {
        let lines = (one.first_line..=one.last_line).take(ROWS + 1);
        lines.map(rows).sum::<usize>() <= ROWS
    };
    let symbols = symbol
        .into_iter()
        .flat_map(|one| outline::lineage(symbols, one));
    let whole = symbols.take_while(fits).last();
    let (first, own, last) = match whole.or(symbol) {
        Some(one) => (one.first_line, one.line, one.last_line),
        None => (first, top.saturating_sub(2).max(first), last),
    };
    let is_far = whole.is_none() && top > own + ROWS as u32 / 2;
    let from = if is_far { top - 2 } else { own };
    let order = iter::once(own)
        .chain((first..own).take(COMMENT_LINES))
        .chain((top.max(first)..own).take(BEST_LINES))
        .chain(from..=last)
        .chain(first..from);
    let (mut left, mut shown) = (ROWS, BTreeSet::new());
    for number in order {
        let rows = rows(number);
        if rows > left {
            break;
        }
        left -= if shown.insert(number) { rows } else { 0 };
    }
    let is_blank = |number: &u32| line(*number).trim().is_empty();
    while shown.last().is_some_and(is_blank) {
        shown.pop_last();
    }
    let indents = shown
        .iter()
        .filter_map(|number| line(*number).find(|c| c != ' '));
    let indent = indents.min();
    let (mut text, mut before) = (String::new(), 0);
    for number in shown.iter().copied() {
        if before > 0 && before + 1 < number {
            text.push_str(GAP);
        }
        let line = line(number).get(indent.unwrap_or(0)..).unwrap_or_default();
        text.extend(line.chars().take(LONGEST));
        text.push('\n');
        before = number;
    }
    if before < last {
        text.push_str(GAP);
    }
    let first = shown.first().copied().unwrap_or(before);
    (first, before, text.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(path: &str, text: &str, top: u32) -> (String, (u32, u32, String)) {
        let (lines, symbols) = (
            text.lines().collect::<Vec<_>>(),
            outline::outline(path, text),
        );
        let place = (1, lines.len() as u32);
        let symbol = symbol(&symbols, top, place);
        let what = description(path, &lines, &symbols, symbol, top);
        (what, excerpt(&lines, &symbols, symbol, top, place))
    }

    fn comment(lines: usize) -> String {
        let lines = (1..=lines).map(|line| format!("/// Line {line} about connections.\n"));
        lines.collect()
    }

    fn function(lines: usize) -> String {
        let lines = (1..=lines).map(|line| format!("        step({line});\n"));
        format!(
            "impl Server {{\n    fn run(&self) {{\n{}    }}\n}}\n",
            lines.collect::<String>()
        )
    }

    #[test]
    fn excerpt_shows_the_definition_and_not_its_comment_alone() {
        const MAX: &str = "const MAX_CONNECTIONS: usize = 250;\n";
        for (name, path, text, top, what, lines, contains) in [
            (
                "constant below a short comment",
                "a.rs",
                comment(3) + MAX,
                1,
                MAX.trim(),
                (1, 4),
                &["/// Line 3", MAX.trim()][..],
            ),
            (
                "constant below a long comment",
                "a.rs",
                comment(40) + MAX,
                20,
                MAX.trim(),
                (1, 41),
                &["/// Line 1 ", "/// Line 20 ", MAX.trim()],
            ),
            (
                "short method, with its type",
                "a.rs",
                function(4),
                4,
                "method Server::run",
                (1, 8),
                &["impl Server {", "        step(4);\n    }\n}"],
            ),
            (
                "middle of a long method",
                "a.rs",
                function(60),
                40,
                "method Server::run",
                (2, 49),
                &["fn run(&self) {\n…\n    step(36);", "step(38);"],
            ),
            (
                "section",
                "a.md",
                "# Guide\n\n## Limits\n\nAt most 250.\n".to_owned(),
                5,
                "Guide > Limits",
                (1, 5),
                &["At most 250."],
            ),
            (
                "text without an outline",
                "a.txt",
                "one\n  two\nthree\n".to_owned(),
                2,
                "two",
                (1, 3),
                &["one\n  two\nthree"],
            ),
        ] {
            let (description, (first, last, text)) = shown(path, &text, top);
            assert_eq!(description, what, "{name}");
            assert_eq!((first, last), lines, "{name}: {text}");
            for part in contains {
                assert!(text.contains(part), "{name}: {text}");
            }
            assert!(text.lines().count() <= 16, "{name}: {text}");
        }
    }
}
