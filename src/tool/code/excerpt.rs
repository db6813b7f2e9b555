//! The lines that show a place on part of a screen: its definition with the value or body. Pure.

use crate::tool::outline::{self, Symbol, SymbolKind};

/// Maximum rows of an excerpt, and the columns after which a line takes another row.
const ROWS: usize = 13;
const COLUMNS: usize = 78;
/// Lines of a long comment that are shown: its first ones, and those around the best line.
const COMMENT_LINES: usize = 2;
const BEST_LINES: usize = 4;
const GAP: &str = "…";

/// An excerpt of a file, with a mark where lines were left out.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Excerpt {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) text: String,
}

/// The symbol at the best line of a place, or the first one that it defines.
pub(super) fn symbol(symbols: &[Symbol], top: u32, (first, last): (u32, u32)) -> Option<&Symbol> {
    let opens = || {
        let mut symbols = symbols.iter();
        symbols.find(|one| (first..=last).contains(&one.line))
    };
    outline::enclosing(symbols, top).or_else(opens)
}

/// Describes a place in a few words: the definition or heading, or else its best line.
pub(super) fn description(
    path: &str,
    lines: &[&str],
    symbols: &[Symbol],
    symbol: Option<&Symbol>,
    top: u32,
) -> String {
    let line = |number: u32| {
        lines
            .get(number as usize - 1)
            .map_or("", |line| line.trim())
    };
    match symbol {
        None => line(top)
            .trim_start_matches(['/', '!', '*', ' '])
            .to_owned(),
        Some(one) => match one.kind {
            SymbolKind::Heading => outline::qualified(path, symbols, one),
            SymbolKind::Constant
            | SymbolKind::Variable
            | SymbolKind::Key
            | SymbolKind::Macro
            | SymbolKind::Implementation => line(one.line).trim_end_matches([' ', '{']).to_owned(),
            kind => format!(
                "{} {}",
                kind.as_str(),
                outline::qualified(path, symbols, one)
            ),
        },
    }
}

/// The excerpt of a place. It is the largest definition around the best line that fits, or else
/// the beginning of its comment, its first line, and the lines from the best one on.
pub(super) fn excerpt(
    lines: &[&str],
    symbols: &[Symbol],
    symbol: Option<&Symbol>,
    top: u32,
    (first, last): (u32, u32),
) -> Excerpt {
    let rows = |number: u32| {
        let line = lines.get(number as usize - 1);
        line.map_or(0, |line| 1 + line.chars().count() / COLUMNS)
    };
    let around = symbol
        .into_iter()
        .flat_map(|one| outline::lineage(symbols, one));
    let fits = |one: &&Symbol| {
        let whole = one.first_line..=one.last_line;
        one.last_line - one.first_line < ROWS as u32 && whole.map(rows).sum::<usize>() <= ROWS
    };
    let whole = around.take_while(fits).last();
    let (first, own, last) = match whole.or(symbol) {
        Some(one) => (one.first_line, one.line, one.last_line),
        None => (first, top.saturating_sub(2).max(first), last),
    };
    let from = match whole {
        None if top > own + ROWS as u32 / 2 => top - 2,
        _ => own,
    };
    let comment = (first..own).filter(|_| symbol.is_some());
    let order = [own].into_iter();
    let order = order.chain(comment.clone().take(COMMENT_LINES));
    let order = order.chain((top.max(first)..own).take(BEST_LINES));
    let order = order.chain(from..=last);
    let order = order.chain(comment.skip(COMMENT_LINES));
    let order = order.chain((first..from).rev());
    let (mut left, mut shown) = (ROWS, Vec::new());
    for number in order {
        if shown.contains(&number) {
            continue;
        }
        let rows = rows(number);
        if rows > left && !shown.is_empty() {
            break;
        }
        left = left.saturating_sub(rows);
        shown.push(number);
    }
    shown.sort_unstable();
    let text = |number: &u32| lines.get(*number as usize - 1).copied().unwrap_or_default();
    while shown.len() > 1
        && shown
            .last()
            .is_some_and(|last| text(last).trim().is_empty())
    {
        shown.pop();
    }
    let texts = shown
        .iter()
        .map(text)
        .filter(|line| !line.trim().is_empty());
    let indent = texts.map(|line| line.len() - line.trim_start_matches(' ').len());
    let indent = indent.min().unwrap_or(0);
    let mut written = Vec::new();
    for (at, number) in shown.iter().enumerate() {
        if at > 0 && shown[at - 1] + 1 < *number {
            written.push(GAP);
        }
        written.push(text(number).get(indent..).unwrap_or_default());
    }
    if shown.last().is_some_and(|end| *end < last) {
        written.push(GAP);
    }
    Excerpt {
        first: shown.first().copied().unwrap_or(first).into(),
        last: shown.last().copied().unwrap_or(last).into(),
        text: written.join("\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(path: &str, text: &str, top: u32) -> (String, Excerpt) {
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
            let (description, excerpt) = shown(path, &text, top);
            assert_eq!(description, what, "{name}");
            assert_eq!((excerpt.first, excerpt.last), lines, "{name}: {excerpt:?}");
            for part in contains {
                assert!(excerpt.text.contains(part), "{name}: {excerpt:?}");
            }
            assert!(excerpt.text.lines().count() <= 16, "{name}: {excerpt:?}");
        }
    }
}
