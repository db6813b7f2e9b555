//! Python, Ruby and shell scripts, where the indentation of lines says what lies in what. In Ruby that is custom, not
//! law, and told by `end` at the same depth.

use super::{
    SymbolKind,
    collect::{Collector, Definition, Language},
};

/// Finds the definitions of a text.
pub(super) fn scan<'a>(language: Language, text: &'a str, found: &mut Collector<'a>) {
    let mut python = Python::default();
    let mut ruby = Ruby::default();
    let mut open = Open::default();
    let is_python = language == Language::Python;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if found.is_full() {
            break;
        }
        match language {
            Language::Python => python.line(line, at, &mut open, found),
            _ => ruby.line(line, at, &mut open, found),
        }
        at += line.len();
        let is_aside = is_python && open.is_before_next(line);
        if !(line.trim().is_empty() || is_aside) {
            open.last = at - 1;
        }
    }
    open.close(0, open.last, found);
}

/// Definitions that are not over.
#[derive(Default)]
struct Open {
    /// Their depths, numbers, and whether they are types.
    levels: Vec<(usize, Option<usize>, bool)>,
    /// The last byte of the last line with anything in it.
    last: usize,
}

impl Open {
    /// Ends all that begin this deep or deeper.
    fn close(&mut self, depth: usize, end: usize, found: &mut Collector<'_>) {
        while self.levels.last().is_some_and(|level| level.0 >= depth) {
            if let Some((_, Some(symbol), _)) = self.levels.pop() {
                found.end(symbol, end);
            }
        }
    }

    /// Whether a line is a comment that stands no deeper than what is open: it belongs to what follows.
    fn is_before_next(&self, line: &str) -> bool {
        let deepest = self.levels.last();
        line.trim_start().starts_with('#') && deepest.is_some_and(|level| depth(line) <= level.0)
    }

    fn in_type(&self) -> bool {
        self.levels.last().is_some_and(|level| level.2)
    }
}

/// How deep a line is indented.
pub(super) fn depth(line: &str) -> usize {
    let mut depth = 0;
    for byte in line.bytes() {
        match byte {
            b' ' => depth += 1,
            b'\t' => depth = (depth / 8 + 1) * 8,
            _ => break,
        }
    }
    depth
}

/// The word at the beginning of a text: letters, digits, `_`, and what else belongs to names here.
pub(super) fn leading_word<'a>(text: &'a str, others: &str) -> &'a str {
    let belongs = |c: char| c.is_alphanumeric() || c == '_' || others.contains(c);
    let end = text.find(|c: char| !belongs(c)).unwrap_or(text.len());
    &text[..end]
}

fn after_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let rest = text.strip_prefix(word)?;
    rest.starts_with([' ', '\t']).then(|| rest.trim_start())
}

#[derive(Default)]
struct Python {
    /// The mark of the text that goes on over lines.
    text: Option<&'static str>,
    brackets: usize,
    /// Whether the last line said that it goes on.
    goes_on: bool,
    /// Where the decorators of what follows begin.
    decorated: Option<usize>,
}

impl Python {
    fn line<'a>(&mut self, line: &'a str, at: usize, open: &mut Open, found: &mut Collector<'a>) {
        let code = line.trim_start();
        let begins = after_word(code, "def")
            .or(after_word(code, "class"))
            .or(after_word(code, "async"))
            .is_some()
            || code.starts_with('@') && self.brackets == 0;
        // No brackets are open before a definition, whatever was broken before.
        let is_statement = self.text.is_none() && (begins || (self.brackets == 0 && !self.goes_on));
        let is_code = !code.is_empty() && !code.starts_with('#');
        if is_statement && is_code {
            self.brackets = 0;
            let depth = depth(line);
            open.close(depth, open.last, found);
            self.statement(code, at + (line.len() - code.len()), depth, open, found);
        }
        self.pass(line);
    }

    fn statement<'a>(
        &mut self,
        code: &'a str,
        at: usize,
        depth: usize,
        open: &mut Open,
        found: &mut Collector<'a>,
    ) {
        if code.starts_with('@') {
            self.decorated.get_or_insert(at);
            return;
        }
        let start = self.decorated.take().unwrap_or(at);
        let place = |rest: &str| at + (code.len() - rest.len());
        let is_def = after_word(code, "async").unwrap_or(code);
        let (kind, rest) = if let Some(rest) = after_word(is_def, "def") {
            let method = open.in_type();
            (
                if method {
                    SymbolKind::Method
                } else {
                    SymbolKind::Function
                },
                rest,
            )
        } else if let Some(rest) = after_word(code, "class") {
            (SymbolKind::Type, rest)
        } else {
            if depth == 0 {
                constant(code, at, found);
            }
            return;
        };
        let name = leading_word(rest, "");
        let definition = Definition::new(kind, name, place(rest));
        let symbol = found.add(definition, start, at);
        open.levels.push((depth, symbol, kind == SymbolKind::Type));
    }

    /// Goes over a line for what is open after it.
    fn pass(&mut self, line: &str) {
        let bytes = line.as_bytes();
        // Looked for once: a line may be full of backslashes, with blanks behind them.
        let last = bytes.trim_ascii_end().len().checked_sub(1);
        let mut at = 0;
        self.goes_on = false;
        while at < bytes.len() {
            if let Some(mark) = self.text {
                if bytes[at] == b'\\' {
                    at += 2;
                } else if line.as_bytes()[at..].starts_with(mark.as_bytes()) {
                    at += mark.len();
                    self.text = None;
                } else {
                    at += 1;
                }
                continue;
            }
            let rest = &bytes[at..];
            match bytes[at] {
                b'#' => return,
                b'"' if rest.starts_with(b"\"\"\"") => (self.text, at) = (Some("\"\"\""), at + 3),
                b'\'' if rest.starts_with(b"'''") => (self.text, at) = (Some("'''"), at + 3),
                mark @ (b'"' | b'\'') => {
                    at = super::quotes::on_line(bytes, at, mark).unwrap_or(bytes.len());
                }
                b'(' | b'[' | b'{' => (self.brackets, at) = (self.brackets + 1, at + 1),
                b')' | b']' | b'}' => {
                    (self.brackets, at) = (self.brackets.saturating_sub(1), at + 1);
                }
                b'\\' if last == Some(at) => {
                    self.goes_on = true;
                    return;
                }
                _ => at += 1,
            }
        }
    }
}

/// `NAME = …`, `Name: T = …`, `type Name = …` at the top of a file.
fn constant<'a>(code: &'a str, at: usize, found: &mut Collector<'a>) {
    let (kind, rest) = match after_word(code, "type") {
        Some(rest) if rest.starts_with(char::is_alphabetic) => (Some(SymbolKind::Type), rest),
        _ => (None, code),
    };
    let name = leading_word(rest, "");
    let after = rest[name.len()..].trim_start();
    let is_given = (after.starts_with('=') && !after.starts_with("=="))
        || after.starts_with(':') && after.contains('=')
        || kind.is_some() && after.starts_with('[');
    if name.is_empty() || !is_given || name.starts_with(|c: char| c.is_ascii_digit()) {
        return;
    }
    let kind = kind.unwrap_or(if name.starts_with(char::is_uppercase) {
        SymbolKind::Constant
    } else {
        SymbolKind::Variable
    });
    let at = at + (code.len() - rest.len());
    let definition = Definition::new(kind, name, at);
    found.add(definition, at, at);
}

#[derive(Default)]
struct Ruby {
    /// The word that ends a text of several lines.
    here: Option<String>,
    in_comment: bool,
    over: bool,
}

impl Ruby {
    fn line<'a>(&mut self, line: &'a str, at: usize, open: &mut Open, found: &mut Collector<'a>) {
        if let Some(word) = &self.here {
            if line.trim() == word {
                self.here = None;
            }
            return;
        }
        match line.trim_end() {
            "__END__" => self.over = true,
            text if text.starts_with("=begin") => self.in_comment = true,
            text if text.starts_with("=end") => {
                self.in_comment = false;
                return;
            }
            _ => {}
        }
        let code = line.trim();
        if self.in_comment || self.over || code.is_empty() || code.starts_with('#') {
            return;
        }
        let depth = depth(line);
        if leading_word(code, "") == "end" {
            open.close(depth, at + line.trim_end().len() - 1, found);
        } else {
            let from = at + line.find(code).unwrap_or(0);
            statement(code, from, depth, open, found);
        }
        self.here = here_word(code);
    }
}

fn statement<'a>(
    code: &'a str,
    at: usize,
    depth: usize,
    open: &mut Open,
    found: &mut Collector<'a>,
) {
    const BEFORE: [&str; 5] = [
        "private",
        "protected",
        "public",
        "private_class_method",
        "module_function",
    ];
    let stripped = BEFORE
        .iter()
        .find_map(|word| after_word(code, word))
        .unwrap_or(code);
    let (kind, rest) = if let Some(rest) = after_word(stripped, "def") {
        let kind = if open.in_type() {
            SymbolKind::Method
        } else {
            SymbolKind::Function
        };
        (kind, rest)
    } else if let Some(rest) = after_word(code, "class").filter(|rest| !rest.starts_with("<<")) {
        (SymbolKind::Type, rest)
    } else if let Some(rest) = after_word(code, "module") {
        (SymbolKind::Module, rest)
    } else {
        let name = leading_word(code, "");
        let after = code[name.len()..].trim_start();
        if name.starts_with(char::is_uppercase)
            && after.starts_with('=')
            && !after.starts_with("==")
        {
            let definition = Definition::new(SymbolKind::Constant, name, at);
            found.add(definition, at, at);
        }
        return;
    };
    open.close(depth, open.last, found);
    let path = match kind {
        SymbolKind::Method | SymbolKind::Function => leading_word(rest, ".?!=<>[]+-*/%~&|^@"),
        _ => leading_word(rest, ":"),
    };
    let path = path.trim_end_matches(['.', ':']);
    let joint = if path.contains("::") { "::" } else { "." };
    let (owner, name) = match path.rsplit_once(joint) {
        Some((owner, name)) => (Some(owner).filter(|owner| *owner != "self"), name),
        None => (None, path),
    };
    // `def a = 1` takes one line, `a=(value)` is a name.
    let after = rest[path.len()..].trim_start();
    let after = match after
        .strip_prefix('(')
        .and_then(|inner| inner.split_once(')'))
    {
        Some((_, after)) => after.trim_start(),
        None => after,
    };
    let is_whole = after.starts_with("= ")
        || code.ends_with("; end")
        || code.ends_with(" end") && code.contains(';');
    let place = at + (code.len() - rest.len());
    let definition = Definition {
        kind,
        name,
        owner,
        at: place,
    };
    let symbol = found.add(definition, at, at + code.len() - 1);
    if !is_whole {
        let is_type = matches!(kind, SymbolKind::Type | SymbolKind::Module);
        open.levels.push((depth, symbol, is_type));
    }
}

/// The word of `<<~WORD` in a line, or of `<<-'WORD'`.
fn here_word(code: &str) -> Option<String> {
    let (_, rest) = code.split_once("<<")?;
    let rest = rest.strip_prefix(['~', '-'])?;
    let word = leading_word(rest.trim_start_matches(['"', '\'']), "");
    (!word.is_empty()).then(|| word.to_owned())
}

/// Shell scripts: functions and variables. A function ends with the brace that stands as deep as it.
pub(super) fn shell<'a>(text: &'a str, found: &mut Collector<'a>) {
    let mut here: Option<String> = None;
    let mut open: Vec<(usize, Option<usize>)> = Vec::new();
    let (mut at, mut last) = (0, 0);
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        if found.is_full() {
            break;
        }
        let code = line.trim();
        if let Some(word) = &here {
            if code == word {
                here = None;
            }
            continue;
        }
        if code.is_empty() || code.starts_with('#') {
            continue;
        }
        let depth = depth(line);
        let from = start + line.find(code).unwrap_or(0);
        let end = from + code.len() - 1;
        if code.starts_with(['}', ')']) {
            while let Some((_, symbol)) = open.pop_if(|(level, _)| *level >= depth) {
                symbol.into_iter().for_each(|symbol| found.end(symbol, end));
            }
        } else if let Some((name, body)) = function(code) {
            while let Some((_, symbol)) = open.pop_if(|(level, _)| *level >= depth) {
                symbol
                    .into_iter()
                    .for_each(|symbol| found.end(symbol, last));
            }
            let at = from + code.find(name).unwrap_or(0);
            let kind = SymbolKind::Function;
            let symbol = found.add(Definition::new(kind, name, at), from, end);
            let is_whole = body.len() > 1 && body.ends_with(['}', ')']);
            if !is_whole {
                open.push((depth, symbol));
            }
        } else if depth == 0
            && let Some((kind, name)) = variable(code)
        {
            let at = from + code.find(name).unwrap_or(0);
            found.add(Definition::new(kind, name, at), from, end);
        }
        here = shell_here_word(code);
        last = end;
    }
    for (_, symbol) in open {
        symbol
            .into_iter()
            .for_each(|symbol| found.end(symbol, last));
    }
}

/// `name() {`, `function name {`: the name, and what follows it.
fn function(code: &str) -> Option<(&str, &str)> {
    let is_word = |rest: &&str| rest.starts_with([' ', '\t']);
    let (named, code) = match code.strip_prefix("function").filter(is_word) {
        Some(rest) => (true, rest.trim_start()),
        None => (false, code),
    };
    let name = leading_word(code, "-:.");
    let rest = code[name.len()..].trim_start();
    let brackets = rest
        .strip_prefix('(')
        .and_then(|rest| rest.trim_start().strip_prefix(')'));
    let is_name = !name.is_empty() && !name.starts_with(['-', '.', ':']);
    let rest = brackets
        .or(named.then_some(rest))
        .filter(|_| is_name)?
        .trim();
    (rest.is_empty() || rest.starts_with(['{', '(', '#'])).then_some((name, rest))
}

fn variable(code: &str) -> Option<(SymbolKind, &str)> {
    let mut kind = SymbolKind::Variable;
    let mut rest = code;
    for word in ["export", "readonly", "declare", "typeset"] {
        if let Some(after) = rest
            .strip_prefix(word)
            .filter(|after| after.starts_with(' '))
        {
            rest = after.trim_start();
            if word == "readonly" || rest.starts_with("-r") {
                kind = SymbolKind::Constant;
            }
            while rest.starts_with('-') {
                rest = rest
                    .split_once(' ')
                    .map_or("", |(_, after)| after)
                    .trim_start();
            }
        }
    }
    let name = leading_word(rest, "");
    let is_given = rest[name.len()..].starts_with('=');
    let is_loud = name.starts_with(|c: char| c.is_ascii_uppercase());
    (is_given && is_loud).then_some((kind, name))
}

/// The word of `<<WORD`, `<<-'WORD'`; not of `<<<`.
fn shell_here_word(code: &str) -> Option<String> {
    let (_, rest) = code.split_once("<<")?;
    if rest.starts_with('<') {
        return None;
    }
    let rest = rest.strip_prefix('-').unwrap_or(rest).trim_start();
    let word = leading_word(rest.trim_start_matches(['"', '\'', '\\']), "");
    word.starts_with(|c: char| c.is_alphabetic() || c == '_')
        .then(|| word.to_owned())
}
