//! Scans languages by line: Python, Ruby, shell, TOML and YAML, nested by indentation; SQL and
//! JSON, with top-level definitions only.

use std::sync::LazyLock;

use regex::Regex;

use super::{
    SymbolKind,
    collect::{Collector, Definition, Language},
    lex::{Lexer, TokenKind},
    quotes,
};
use crate::tool::text::is_one_of;

/// Number of unclosed texts that are tried.
const MAX_TRIES: u32 = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SymbolExtent {
    Block,
    MarginBlock,
    Line,
    MarginLine,
}
use Language::{Python, Ruby, Shell, Toml, Yaml};
use SymbolExtent::{Block, Line, MarginBlock, MarginLine};
use SymbolKind::{Constant, Function, Key, Module, Type, Variable};

/// Patterns of definitions; the group is the name.
const RULES: [(Language, SymbolKind, SymbolExtent, &str); 17] = [
    (Python, Function, Block, r"^(?:async\s+)?def\s+(\w+)"),
    (Python, Type, Block, r"^class\s+(\w+)"),
    (Python, Type, MarginLine, r"^type\s+([^\W\d]\w*)\s*[=\[]"),
    (Python, Constant, MarginLine, PYTHON_CONSTANT),
    (Python, Variable, MarginLine, PYTHON_VARIABLE),
    (Ruby, Function, Block, RUBY_METHOD),
    (Ruby, Type, Block, r"^class\s+([\w:]+)"),
    (Ruby, Module, Block, r"^module\s+([\w:]+)"),
    (Ruby, Constant, Line, r"^([A-Z]\w*)\s*=(?:[^=]|$)"),
    (Shell, Function, Block, SHELL_FUNCTION),
    (Shell, Function, Block, r"^(\w[\w:.-]*)\s*\(\s*\)"),
    (Shell, Constant, MarginLine, SHELL_CONSTANT),
    (Shell, Variable, MarginLine, SHELL_VARIABLE),
    (Toml, Key, Block, r"^\[+([^\]]*)"),
    (Toml, Key, Block, r"^([^=\[]+)="),
    (Yaml, Key, MarginBlock, r#"^["']([^"']*)["']\s*:"#),
    (Yaml, Key, MarginBlock, r"^([\w./$][\w./$ -]*):(?:\s|$)"),
];
const PYTHON_CONSTANT: &str = r"^([A-Z]\w*)\s*(?:=(?:[^=]|$)|:.*=)";
const PYTHON_VARIABLE: &str = r"^([^\W\dA-Z]\w*)\s*(?:=(?:[^=]|$)|:.*=)";
const SHELL_FUNCTION: &str = r"^function\s+([\w:.-]+)\s*(?:\(\s*\))?";
const RUBY_METHOD: &str = r"^(?:(?:private|protected|public|private_class_method|module_function)\s+)?def\s+([\w.?!=<>\[\]+*/%~&|^@-]+)";
const SHELL_CONSTANT: &str =
    r"^(?:(?:export|declare|typeset) +)?(?:readonly|-r\w*) +(?:-\S+ +)*([A-Z]\w*)=";
const SHELL_VARIABLE: &str = r"^(?:(?:export|declare|typeset) +(?:-\S+ +)*)?([A-Z]\w*)=";

type Rule = (Language, SymbolKind, SymbolExtent, Regex);

static COMPILED: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let compiled = RULES.into_iter().map(|(language, kind, reach, pattern)| {
        Some((language, kind, reach, Regex::new(pattern).ok()?))
    });
    compiled.flatten().collect()
});

pub(super) fn scan<'a>(text: &'a str, found: &mut Collector<'a>) {
    let mut reader = LineScanner::default();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if found.is_full() || line.trim_end() == "__END__" && found.language == Ruby {
            break;
        }
        if !line.trim().is_empty() {
            reader.line(line, at, found);
        }
        at += line.len();
    }
    found.close(0, reader.last);
}

#[derive(Default)]
struct LineScanner {
    last: usize,
    text: Option<&'static str>,
    brackets: usize,
    continues: bool,
    decorated: Option<usize>,
    here: Option<String>,
    /// Inside `=begin` and `=end` of Ruby.
    in_block_comment: bool,
    has_table: bool,
}

impl LineScanner {
    fn line<'a>(&mut self, line: &'a str, at: usize, found: &mut Collector<'a>) {
        let (language, code, depth) = (found.language, line.trim(), depth(line));
        let from = at + (line.len() - line.trim_start().len());
        let end = from + code.len() - 1;
        if self.skip_text(language, line, code) {
            self.last = end;
            return;
        }
        let is_comment = code.starts_with('#');
        let is_inside = self.text.is_some() || self.brackets > 0 || self.continues;
        // At a definition no bracket is open, whatever was broken before.
        let mut words = ["def ", "class ", "async "].iter();
        let begins =
            language == Python && self.text.is_none() && words.any(|word| code.starts_with(word));
        let is_statement = !is_comment && (begins || !is_inside);
        if is_statement {
            self.brackets = 0;
            self.statement(code, (from, end), depth, found);
        }
        // A comment not deeper than the open level belongs to what follows.
        if !is_comment || found.innermost().is_some_and(|open| depth > open.level) {
            self.last = end;
        }
        match language {
            Toml if is_statement && code.starts_with('[') => {}
            Python | Toml => self.pass(language, line),
            _ if !is_comment => self.here = heredoc_tag(language, code),
            _ => {}
        }
    }

    fn skip_text(&mut self, language: Language, line: &str, code: &str) -> bool {
        if let Some(word) = &self.here {
            if code == word {
                self.here = None;
            }
            return true;
        }
        let was_aside = self.in_block_comment;
        if language == Ruby {
            self.in_block_comment |= line.starts_with("=begin");
            self.in_block_comment &= !line.starts_with("=end");
        }
        self.in_block_comment || was_aside
    }

    fn statement<'a>(
        &mut self,
        code: &'a str,
        (from, end): (usize, usize),
        depth: usize,
        found: &mut Collector<'a>,
    ) {
        let language = found.language;
        let here = |word: &str| {
            let rest = code.strip_prefix(word);
            rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
        };
        if language == Python && code.starts_with('@') {
            found.close(depth, self.last);
            self.decorated.get_or_insert(from);
            return;
        }
        let start = self.decorated.take().unwrap_or(from);
        let defined = self.definition(language, code, depth);
        let closes = match language {
            Python => Some(self.last),
            Ruby if here("end") => Some(end),
            Shell if code.starts_with(['}', ')']) => Some(end),
            Yaml if depth == 0 && (code.starts_with("---") || code == "...") => Some(self.last),
            _ => matches!(defined, Some((_, true))).then_some(self.last),
        };
        let depth = if language == Toml { 0 } else { depth };
        if let Some(closes) = closes {
            found.close(depth, closes);
        }
        let Some((mut definition, continues)) = defined else {
            return;
        };
        let outer = found.innermost().map(|open| open.kind);
        if definition.kind == Function && matches!(outer, Some(Type | Module)) {
            definition.kind = SymbolKind::Method;
        }
        definition.at += from;
        let is_block = definition.kind != Key && continues;
        if is_block && is_whole(language, &code[definition.at - from..]) {
            found.add(definition, start, end);
        } else if continues {
            found.open(depth, definition, start);
        } else {
            found.add(definition, start, from);
        }
    }

    fn definition<'a>(
        &mut self,
        language: Language,
        code: &'a str,
        depth: usize,
    ) -> Option<(Definition<'a>, bool)> {
        let mut rules = COMPILED.iter().filter(|(of, _, reach, _)| {
            let is_unindented = matches!(reach, MarginBlock | MarginLine);
            *of == language && (depth == 0 || !is_unindented)
        });
        let (groups, kind, reach) = rules
            .find_map(|(_, kind, reach, pattern)| Some((pattern.captures(code)?, *kind, *reach)))?;
        let named = groups.get(1)?;
        let (mut name, mut owner) = (named.as_str(), None);
        let body = code[groups.get(0)?.end()..].trim();
        match language {
            Toml => {
                let is_table = code.starts_with('[');
                if self.has_table && !is_table {
                    return None;
                }
                self.has_table |= is_table;
                name = unquoted(name.trim());
            }
            Shell if kind == Function => {
                let opens = body.is_empty() || body.starts_with(['{', '(', '#']);
                opens.then_some(())?;
            }
            Ruby => {
                let path = name.trim_end_matches(['.', ':']);
                let joint = if path.contains("::") { "::" } else { "." };
                name = path;
                if let Some((of, last)) = path.rsplit_once(joint) {
                    (owner, name) = (Some(of).filter(|of| *of != "self"), last);
                }
            }
            _ => {}
        }
        let mut definition = Definition::new(kind, name, named.start());
        definition.owner = owner;
        Some((definition, matches!(reach, Block | MarginBlock)))
    }

    fn pass(&mut self, language: Language, line: &str) {
        let bytes = line.as_bytes();
        // Searched once: a line may be full of backslashes followed by blanks.
        let last = bytes.trim_ascii_end().len().checked_sub(1);
        let mut at = 0;
        self.continues = false;
        while at < bytes.len() {
            let rest = &bytes[at..];
            if let Some(mark) = self.text {
                let ends = rest.starts_with(mark.as_bytes());
                at += match rest[0] {
                    _ if ends => mark.len(),
                    b'\\' => 2,
                    _ => 1,
                };
                self.text = self.text.filter(|_| !ends);
                continue;
            }
            at += 1;
            match rest[0] {
                b'#' => return,
                b'"' if rest.starts_with(b"\"\"\"") => (self.text, at) = (Some("\"\"\""), at + 2),
                b'\'' if rest.starts_with(b"'''") => (self.text, at) = (Some("'''"), at + 2),
                mark @ (b'"' | b'\'') => {
                    at = quotes::on_line(bytes, at - 1, mark).unwrap_or(bytes.len());
                }
                b'(' | b'[' | b'{' => self.brackets += 1,
                b')' | b']' | b'}' => self.brackets = self.brackets.saturating_sub(1),
                b'\\' if last == Some(at - 1) && language == Python => {
                    self.continues = true;
                    return;
                }
                _ => {}
            }
        }
    }
}

fn depth(line: &str) -> usize {
    let blanks = line.bytes().take_while(|byte| matches!(byte, b' ' | b'\t'));
    blanks.fold(0, |depth, byte| match byte {
        b' ' => depth + 1,
        _ => (depth / 8 + 1) * 8,
    })
}

fn unquoted(name: &str) -> &str {
    let within = |mark: char| name.strip_prefix(mark)?.strip_suffix(mark);
    within('"').or(within('\'')).unwrap_or(name)
}

fn is_whole(language: Language, from_name: &str) -> bool {
    static RUBY: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"^[^\s(]+\s*(?:\([^)]*\))?\s*= |;.* end$|; end$").ok());
    match language {
        Ruby => RUBY.iter().any(|whole| whole.is_match(from_name)),
        Shell => {
            from_name.contains(['{', '(']) && {
                let body = from_name.trim_start_matches(|c: char| !matches!(c, '(' | '{'));
                let body = body.strip_prefix("()").unwrap_or(body).trim();
                body.len() > 1 && body.ends_with(['}', ')'])
            }
        }
        _ => false,
    }
}

fn heredoc_tag(language: Language, code: &str) -> Option<String> {
    static WORDS: LazyLock<Option<[Regex; 2]>> = LazyLock::new(|| {
        let ruby = Regex::new(r#"<<[~-]["']?(\w+)"#).ok()?;
        let shell = Regex::new(r#"^(?:[^<]|<[^<])*<<-?\s*["'\\]?([A-Za-z_]\w*)"#).ok()?;
        Some([ruby, shell])
    });
    if !matches!(language, Ruby | Shell) || !code.contains("<<") {
        return None;
    }
    let of = &WORDS.as_ref()?[usize::from(language == Shell)];
    Some(of.captures(code)?[1].to_owned())
}

pub(super) fn json<'a>(text: &'a str, found: &mut Collector<'a>) {
    let mut lexer = Lexer::new(Language::Json, text);
    let (mut depth, mut open, mut key, mut last) = (0_usize, None, None, 0);
    while let Some(token) = lexer.next().filter(|_| !found.is_full()) {
        match token.text {
            _ if token.kind == TokenKind::Text => {
                let within = |text: &'a str| text.strip_prefix('"')?.strip_suffix('"');
                if depth == 1 && open.is_none() {
                    key = within(token.text).map(|name| Definition::new(Key, name, token.at));
                }
            }
            ":" if depth == 1 => {
                if let Some(key) = key.take() {
                    open = found.add(key, key.at, key.at);
                }
            }
            "{" | "[" => depth += 1,
            "}" | "]" | "," => {
                depth -= usize::from(token.text != "," && depth > 0);
                if (token.text == "," && depth == 1) || depth == 0 {
                    found.end(open.take(), last);
                }
            }
            _ => {}
        }
        last = token.end() - 1;
    }
    found.end(open, last);
}

enum SqlStage {
    Begin,
    Made(usize),
    Named(usize, SymbolKind),
    Rest,
}

/// Finds what `create` statements define, up to the semicolon.
pub(super) fn sql<'a>(text: &'a str, found: &mut Collector<'a>) {
    const BETWEEN: &str = "or replace alter temp temporary unlogged global local unique \
        materialized recursive external virtual definer aggregate algorithm";
    static PIECES: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let pieces = r#"--|/\*|'|\$(?:[A-Za-z_]\w*)?\$|;|(?:[\w.]\$?|"[^"\n]*"|`[^`\n]*`|\[[^\]\n]{0,128}\])+|\S"#;
        Regex::new(pieces).ok()
    });
    let Some(pieces) = PIECES.as_ref() else {
        return;
    };
    let (mut stage, mut symbol, mut is_routine) = (SqlStage::Begin, None, false);
    let (mut blocks, mut at, mut last, mut tries) = (0_usize, 0, 0, MAX_TRIES);
    while let Some(piece) = pieces.find_at(text, at).filter(|_| !found.is_full()) {
        at = piece.end();
        let word = piece.as_str().to_ascii_lowercase();
        let close = match &*word {
            "--" => Some("\n"),
            "/*" => Some("*/"),
            "'" => Some("'"),
            mark if mark.starts_with('$') && mark.ends_with('$') && mark.len() > 1 => {
                Some(piece.as_str())
            }
            _ => None,
        };
        if let Some(close) = close {
            let end = match tries {
                0 if word != "--" => None,
                _ => text[at..].find(close),
            };
            match end {
                Some(end) => at += end + close.len(),
                None if word == "--" => at = text.len(),
                None => tries = tries.saturating_sub(1),
            }
            continue;
        }
        match &*word {
            ";" if blocks == 0 => {
                found.end(symbol.take(), piece.start());
                (stage, is_routine) = (SqlStage::Begin, false);
                continue;
            }
            "begin" | "case" if is_routine => blocks += 1,
            // `end if` and `end loop` end blocks that were not counted.
            "end" if is_routine => {
                let rest = text[at..].trim_start();
                let uncounted = ["if", "loop", "while", "repeat"].iter().any(|word| {
                    let head = rest.get(..word.len());
                    head.is_some_and(|head| head.eq_ignore_ascii_case(word))
                });
                blocks = blocks.saturating_sub(usize::from(!uncounted));
            }
            _ => {}
        }
        stage = match stage {
            SqlStage::Begin if word == "create" => SqlStage::Made(piece.start()),
            SqlStage::Made(start) if is_one_of(BETWEEN, &word) => SqlStage::Made(start),
            SqlStage::Made(start) => match &*word {
                "table" | "view" => SqlStage::Named(start, SymbolKind::Table),
                "function" | "procedure" | "trigger" => SqlStage::Named(start, Function),
                "type" | "domain" | "enum" => SqlStage::Named(start, Type),
                "schema" | "database" | "extension" => SqlStage::Named(start, Module),
                "index" | "sequence" | "policy" | "role" => SqlStage::Named(start, Variable),
                _ => SqlStage::Rest,
            },
            SqlStage::Named(start, kind) if is_one_of("if not exists concurrently", &word) => {
                SqlStage::Named(start, kind)
            }
            SqlStage::Named(start, kind) => {
                // The last part of `schema.name`.
                let quote: &[char] = &['"', '`', '[', ']'];
                let name = piece.as_str().trim_end_matches(quote);
                let name = name.rsplit('.').next().unwrap_or(name);
                let name = name.trim_start_matches(quote);
                is_routine = kind == Function;
                symbol = found.add(Definition::new(kind, name, piece.start()), start, at);
                SqlStage::Rest
            }
            SqlStage::Begin | SqlStage::Rest => SqlStage::Rest,
        };
        last = at - 1;
    }
    found.end(symbol, last);
}
