//! Maps file names to languages, and arranges the definitions that scanners find in a tree of
//! symbols.

use memchr::memchr_iter;

use super::{MAX_NAME, MAX_SYMBOLS, Symbol, SymbolKind};
use crate::tool::text::{clipped, is_one_of};

/// Maximum number of lines searched upwards for comments.
const MAX_COMMENT: usize = 400;
/// Maximum depth that is recorded.
const MAX_DEPTH: u16 = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    Rust,
    Script,
    Go,
    Java,
    CSharp,
    Kotlin,
    Swift,
    Php,
    C,
    Python,
    Ruby,
    Shell,
    Sql,
    Markdown,
    Rest,
    Toml,
    Yaml,
    Json,
}

use Language as L;

impl Language {
    pub(super) fn of(path: &str, text: &str) -> Option<Self> {
        let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
        match name.rsplit_once('.') {
            Some((stem, extension)) if !stem.is_empty() => {
                let extension = extension.to_ascii_lowercase();
                let mut languages = LANGUAGES.iter();
                let known = languages.find(|(_, known, ..)| is_one_of(known, &extension));
                known.map(|(language, ..)| *language)
            }
            _ => Self::by_name(name).or_else(|| Self::by_first_line(text)),
        }
    }

    fn by_name(name: &str) -> Option<Self> {
        match name {
            "Rakefile" | "Gemfile" | "Vagrantfile" | "Podfile" => Some(Self::Ruby),
            "Cargo.lock" | "Pipfile" => Some(Self::Toml),
            ".bashrc" | ".profile" | ".zshrc" | "PKGBUILD" => Some(Self::Shell),
            _ => None,
        }
    }

    fn by_first_line(text: &str) -> Option<Self> {
        let line = text.lines().next()?.strip_prefix("#!")?;
        // The first line may be a huge text.
        let line = line.get(..200).unwrap_or(line);
        const PROGRAMS: [(&str, L); 7] = [
            ("python", L::Python),
            ("ruby", L::Ruby),
            ("node", L::Script),
            ("deno", L::Script),
            ("bun", L::Script),
            ("php", L::Php),
            ("sh", L::Shell),
        ];
        let mut programs = PROGRAMS.into_iter();
        let known = programs.find(|(name, _)| line.contains(name));
        known.map(|(_, language)| language)
    }

    /// Prefixes of comments, and whether `/*` and `*/` also delimit them.
    fn comments(self) -> (&'static [&'static str], bool) {
        let known = LANGUAGES.iter().find(|(language, ..)| *language == self);
        known.map_or((&[], false), |(.., marks, blocks)| (marks, *blocks))
    }
}

/// Languages by file extension, with comments as in [`Language::comments`].
const LANGUAGES: [(L, &str, &[&str], bool); 18] = [
    (L::Rust, "rs", &["//"], true),
    (L::Script, "js jsx mjs cjs ts tsx mts cts", &["//"], true),
    (L::Go, "go", &["//"], true),
    (L::Java, "java", &["//"], true),
    (L::CSharp, "cs", &["//"], true),
    (L::Kotlin, "kt kts", &["//"], true),
    (L::Swift, "swift", &["//"], true),
    (L::Php, "php phtml", &["//", "#"], true),
    (L::C, "c h cc cpp cxx hh hpp hxx ipp inl", &["//"], true),
    (L::Python, "py pyi pyw", &["#"], false),
    (L::Ruby, "rb rake gemspec ru", &["#"], false),
    (L::Shell, "sh bash zsh ksh bats", &["#"], false),
    (L::Sql, "sql ddl", &["--"], true),
    (L::Markdown, "md markdown mdx mkd", &[], false),
    (L::Rest, "rst", &[], false),
    (L::Toml, "toml", &["#"], false),
    (L::Yaml, "yaml yml", &["#"], false),
    (L::Json, "json jsonc", &[], false),
];

#[derive(Debug)]
struct RawSymbol<'a> {
    definition: Definition<'a>,
    start: usize,
    end: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Definition<'a> {
    pub(super) kind: SymbolKind,
    pub(super) name: &'a str,
    pub(super) owner: Option<&'a str>,
    pub(super) at: usize,
}

impl<'a> Definition<'a> {
    pub(super) const fn new(kind: SymbolKind, name: &'a str, at: usize) -> Self {
        Self {
            kind,
            name,
            owner: None,
            at,
        }
    }

    pub(super) fn is_value(&self) -> bool {
        matches!(self.kind, SymbolKind::Constant | SymbolKind::Variable)
    }
}

/// A symbol that ends where its level is closed.
#[derive(Debug)]
pub(super) struct OpenSymbol {
    pub(super) level: usize,
    pub(super) kind: SymbolKind,
    index: Option<usize>,
}

#[derive(Debug)]
pub(super) struct Collector<'a> {
    text: &'a str,
    pub(super) language: Language,
    found: Vec<RawSymbol<'a>>,
    open: Vec<OpenSymbol>,
}

impl<'a> Collector<'a> {
    pub(super) fn new(text: &'a str, language: Language) -> Self {
        Self {
            text,
            language,
            found: Vec::new(),
            open: Vec::new(),
        }
    }

    /// Adds a definition from `start` to `end` (the offset of, say, its last byte); returns an
    /// index for [`Self::end`].
    pub(super) fn add(
        &mut self,
        definition: Definition<'a>,
        start: usize,
        end: usize,
    ) -> Option<usize> {
        let name = definition.name.trim();
        if name.is_empty() || self.is_full() {
            return None;
        }
        self.found.push(RawSymbol {
            start: start.min(definition.at),
            end: end.max(definition.at),
            definition: Definition {
                name: short(name),
                owner: definition.owner.map(short),
                ..definition
            },
        });
        Some(self.found.len() - 1)
    }

    /// Extends the definition that [`Self::add`] returned as `which`.
    pub(super) fn end(&mut self, which: Option<usize>, end: usize) {
        if let Some(raw) = which.and_then(|which| self.found.get_mut(which)) {
            raw.end = raw.end.max(end);
        }
    }

    /// Adds a definition that ends with its level.
    pub(super) fn open(&mut self, level: usize, definition: Definition<'a>, start: usize) {
        let (kind, index) = (definition.kind, self.add(definition, start, definition.at));
        self.open.push(OpenSymbol { level, kind, index });
    }

    pub(super) fn innermost(&self) -> Option<&OpenSymbol> {
        self.open.last()
    }

    /// Ends the open definitions of this level and below.
    pub(super) fn close(&mut self, level: usize, end: usize) {
        while let Some(open) = self.open.pop_if(|open| open.level >= level) {
            self.end(open.index, end);
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.found.len() >= MAX_SYMBOLS
    }

    pub(super) fn finish(mut self) -> Vec<Symbol> {
        if self.found.is_empty() {
            return Vec::new();
        }
        let lines = LineIndex::new(self.text);
        self.found
            .sort_by_key(|raw| (raw.start, std::cmp::Reverse(raw.end)));
        let mut symbols: Vec<Symbol> = Vec::with_capacity(self.found.len());
        // Symbols that have not ended, with their ends.
        let mut open: Vec<(u32, usize)> = Vec::new();
        // Cached, because very many symbols may begin on one line.
        let mut above = (0, 0);
        for raw in &self.found {
            while open.last().is_some_and(|&(_, end)| end < raw.start) {
                open.pop();
            }
            let parent = open.last().copied();
            let Definition { kind, name, .. } = raw.definition;
            let start = lines.of(raw.start);
            if above.0 != start {
                above = (start, self.above(&lines, start));
            }
            let mut symbol = Symbol {
                kind,
                name: name.into(),
                owner: raw.definition.owner.map(Into::into),
                line: number(lines.of(raw.definition.at)),
                first_line: number(above.1),
                last_line: number(lines.of(raw.end)),
                parent: None,
                depth: 0,
            };
            let mut end = raw.end;
            if let Some((at, outer_end)) = parent
                && let Some(outer) = symbols.get(at as usize)
            {
                // Clamped to the parent, because scanners of broken code may report more.
                end = end.min(outer_end);
                symbol.last_line = symbol.last_line.min(outer.last_line);
                symbol.first_line = symbol.first_line.max(outer.first_line);
                symbol.parent = Some(at);
                symbol.depth = (outer.depth + 1).min(MAX_DEPTH);
            }
            // A comment between two definitions belongs to the second alone, and symbols are
            // ordered by first line.
            if let Some(before) = symbols.last() {
                let floor = before.first_line;
                symbol.first_line = symbol.first_line.max(floor).min(symbol.line.max(floor));
            }
            open.push((number(symbols.len()), end));
            symbols.push(symbol);
        }
        symbols
    }

    fn above(&self, lines: &LineIndex<'a>, line: usize) -> usize {
        let mut first = line;
        let (marks, has_blocks) = self.language.comments();
        while first > 1 && line - first < MAX_COMMENT {
            let above = lines.text(first - 1).trim();
            let is_comment = marks.iter().any(|mark| {
                above.starts_with(mark) && !above.starts_with("//!") && !above.starts_with("#!")
            });
            if is_comment {
                first -= 1;
            } else if has_blocks && above.ends_with("*/") {
                let mut before = (1..first).rev().take(MAX_COMMENT);
                match before.find(|&at| lines.text(at).contains("/*")) {
                    Some(at) if lines.text(at).trim_start().starts_with("/*") => first = at,
                    _ => break,
                }
            } else {
                break;
            }
        }
        first
    }
}

fn number(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn short(name: &str) -> &str {
    clipped(name, MAX_NAME).0
}

struct LineIndex<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> LineIndex<'a> {
    fn new(text: &'a str) -> Self {
        let mut starts = vec![0];
        starts.extend(memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1));
        Self { text, starts }
    }

    fn of(&self, at: usize) -> usize {
        self.starts.partition_point(|&start| start <= at).max(1)
    }

    fn text(&self, line: usize) -> &'a str {
        const LONG: usize = 10_000;
        let start = |line: usize| self.starts.get(line).copied();
        let (start, end) = (start(line - 1), start(line));
        let line = start.and_then(|start| self.text.get(start..end.unwrap_or(self.text.len())));
        line.filter(|line| line.len() <= LONG).unwrap_or("")
    }
}
