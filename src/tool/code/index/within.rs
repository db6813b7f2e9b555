//! The names of what a place stands in: by the outline of its file where its language has one, else by
//! the look of the lines above it. Pure.

use super::{
    kind::Kind,
    shape::{self, Mark},
};
use crate::{
    tool::outline::{self, Symbol, SymbolKind},
    words::Tongue,
};

/// Lines of a file, from 1: the first and the last of a place, and the one that matters most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) top: u64,
}

/// What the lines of a file stand in.
pub(super) struct Frame<'a> {
    lines: &'a [&'a str],
    symbols: Vec<Symbol>,
    /// Where there are no symbols.
    marks: Vec<Mark>,
}

impl<'a> Frame<'a> {
    pub(super) fn new(path: &str, kind: Kind, text: &str, lines: &'a [&'a str]) -> Self {
        // Of prose, the look of the lines knows more ways to write a heading.
        let symbols = match kind.is_prose() {
            true => Vec::new(),
            false => outline::outline(path, text),
        };
        let marks = match symbols.is_empty() {
            true => shape::marks(lines, (!kind.is_prose()).then(|| Tongue::of(path))),
            false => Vec::new(),
        };
        Self {
            lines,
            symbols,
            marks,
        }
    }

    /// The names around a place, outermost first.
    pub(super) fn around(&self, spot: Spot) -> Vec<String> {
        if self.symbols.is_empty() {
            return self.by_marks(spot);
        }
        let line = |line: u64| u32::try_from(line).unwrap_or(u32::MAX);
        let opens = || {
            let range = line(spot.first)..=line(spot.last);
            let mut symbols = self.symbols.iter();
            symbols.find(|symbol| range.contains(&symbol.line))
        };
        let Some(inner) = outline::enclosing(&self.symbols, line(spot.top)).or_else(opens) else {
            return Vec::new();
        };
        let mut names: Vec<String> = Vec::new();
        for symbol in outline::lineage(&self.symbols, inner) {
            match (&symbol.owner, symbol.kind) {
                (Some(of), SymbolKind::Implementation) => {
                    names.push(format!("{of} for {}", symbol.name));
                }
                (Some(owner), _) => names.extend([symbol.name.to_string(), owner.to_string()]),
                (None, _) => names.push(symbol.name.to_string()),
            }
        }
        names.reverse();
        names
    }

    /// The names of what is open at the line that matters, else of what the place opens with.
    fn by_marks(&self, spot: Spot) -> Vec<String> {
        let opens = |mark: &Mark| matches!(mark, Mark::Head { .. } | Mark::Def { .. });
        let top = self.open_at(spot.top as usize);
        if !top.is_empty() {
            return top;
        }
        let (first, end) = (spot.first.saturating_sub(1) as usize, spot.last as usize);
        let inside = self.marks.get(first..end).unwrap_or(&[]);
        let opening = inside.iter().position(opens);
        opening.map_or_else(Vec::new, |at| self.open_at(first + at + 1))
    }

    /// The names of what is open behind so many lines, by how deep they stand.
    fn open_at(&self, lines: usize) -> Vec<String> {
        let mut around: Vec<(usize, &str)> = Vec::new();
        for (mark, line) in self.marks.iter().zip(self.lines).take(lines) {
            let (level, name) = match mark {
                Mark::Head { level } => (*level, line.trim_matches(['#', '=', ' '])),
                Mark::Def {
                    depth,
                    name: (from, to),
                } => (10 + depth, line.get(*from..*to).unwrap_or("")),
                Mark::Blank | Mark::Text | Mark::Note => continue,
            };
            around.retain(|(outer, _)| *outer < level);
            around.push((level, name));
        }
        let names = around.into_iter().map(|(_, name)| name.to_owned());
        names.filter(|name| !name.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_stands_in_the_type_and_the_function_of_its_best_line() {
        for (path, text, top, names) in [
            (
                "a.rs",
                "use a;\n\nimpl Desk {\n    /// Refuses.\n    fn admit(&self) {\n        if a {\n        }\n    }\n}\n",
                4,
                "Desk > admit",
            ),
            (
                "a.rs",
                "impl<T> Stream for KeepAlive<T> {\n    fn poll(&self) {\n        go();\n    }\n}\n",
                3,
                "Stream for KeepAlive > poll",
            ),
            (
                "a.rs",
                "mod tests {\n    fn one() {\n        1\n    }\n}\n",
                3,
                "tests > one",
            ),
            (
                "a.py",
                "class Desk(Base):\n    async def admit(self):\n        return 1\n\nx = 1\n",
                3,
                "Desk > admit",
            ),
            (
                "a.go",
                "package a\n\nfunc (s *Server) Serve() {\n\tgo()\n}\n",
                4,
                "Server > Serve",
            ),
            (
                "a.cpp",
                "int Desk::admit(int a) {\n  return a;\n}\n",
                2,
                "Desk > admit",
            ),
            (
                "a.java",
                "class Desk {\n  int admit() {\n    return 1;\n  }\n}\n",
                3,
                "Desk > admit",
            ),
            (
                "a.ts",
                "export class Desk {\n  async admit(): Promise<void> {\n    go();\n  }\n}\n",
                3,
                "Desk > admit",
            ),
            (
                "a.rb",
                "module Gate\n  class Desk\n    def admit\n      1\n    end\n  end\nend\n",
                4,
                "Gate > Desk > admit",
            ),
            ("a.toml", "[tools]\nmap_tokens = 3\n", 2, "tools"),
            ("a.md", "# Guide\n\n## Setup\n\nText.\n", 5, "Guide > Setup"),
            ("a.lua", "function Desk:admit()\n  go()\nend\n", 2, "Desk"),
            ("b.py", "# a\nimport b\ndef one():\n  pass\n", 1, "one"),
        ] {
            let lines: Vec<&str> = text.lines().collect();
            let frame = Frame::new(path, Kind::of(path), text, &lines);
            let spot = Spot {
                first: 1,
                last: lines.len() as u64,
                top,
            };
            assert_eq!(frame.around(spot).join(" > "), names, "{path}: {text}");
        }
    }
}
