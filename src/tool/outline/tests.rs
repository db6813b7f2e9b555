//! Tables by language, properties of any text, and bounds.

use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;

mod braces;
mod lines;
mod typed;

/// Formats a symbol per line: kind, name, first line, line of the name, last line.
fn render(path: &str, text: &str) -> String {
    let symbols = outline(path, text);
    let fault = fault(&symbols, text);
    assert_eq!(fault, None, "{path}");
    symbols.iter().fold(String::new(), |mut shown, symbol| {
        let owner = symbol.owner.as_ref().map(|owner| format!("{owner}."));
        let _ = writeln!(
            shown,
            "{}{} {}{} {}:{}-{}",
            "  ".repeat(symbol.depth.into()),
            symbol.kind,
            owner.unwrap_or_default(),
            symbol.name,
            symbol.first_line,
            symbol.line,
            symbol.last_line
        );
        shown
    })
}

/// The first violated invariant.
fn fault(symbols: &[Symbol], text: &str) -> Option<String> {
    let lines = text.split('\n').count() as u32;
    for (at, symbol) in symbols.iter().enumerate() {
        let wrong = |what: &str| Some(format!("{what}: {symbol:?}"));
        if symbol.name.trim().is_empty() || symbol.name.chars().count() > MAX_NAME {
            return wrong("its name");
        }
        if symbol.first_line < 1 || symbol.first_line > symbol.line || symbol.line > lines {
            return wrong("its first line");
        }
        if symbol.last_line < symbol.line || symbol.last_line > lines {
            return wrong("its last line");
        }
        if at > 0 && symbols[at - 1].first_line > symbol.first_line {
            return wrong("its place");
        }
        match symbol.parent {
            None if symbol.depth > 0 => return wrong("its depth"),
            None => {}
            Some(parent) => {
                let outer = &symbols[parent as usize];
                let is_inside = outer.first_line <= symbol.first_line
                    && symbol.last_line <= outer.last_line
                    && (parent as usize) < at;
                if !is_inside {
                    return wrong("its parent");
                }
            }
        }
    }
    for line in 1..=lines.min(200) {
        // Of the symbols that contain the line, the one that begins last.
        let naive = symbols.iter().rfind(|symbol| symbol.contains_line(line));
        if enclosing(symbols, line) != naive {
            return Some(format!("line {line} belongs to {naive:?}"));
        }
    }
    None
}

const PATHS: [&str; 19] = [
    "a.rs", "a.py", "a.tsx", "a.go", "a.java", "a.cs", "a.kt", "a.swift", "a.php", "a.c", "a.rb",
    "a.sh", "a.sql", "a.md", "a.rst", "a.toml", "a.yaml", "a.json", "a.txt",
];

const PIECES: [&str; 80] = [
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "<",
    ">",
    ";",
    ":",
    ",",
    ".",
    "=",
    "=>",
    "->",
    "::",
    "#",
    "@",
    "!",
    "\"",
    "'",
    "`",
    "\"\"\"",
    "'''",
    "r#\"",
    "\"#",
    "R\"(",
    "<<<A",
    "${",
    "\\(",
    "\\",
    "$$",
    "/*",
    "*/",
    "//",
    "--",
    "/",
    "\n",
    "\n",
    "\n",
    "\n    ",
    "\n\t",
    " ",
    " ",
    " ",
    "fn ",
    "impl ",
    "for ",
    "struct ",
    "class ",
    "def ",
    "func ",
    "function ",
    "type ",
    "const ",
    "export default ",
    "fun ",
    "enum ",
    "interface ",
    "namespace ",
    "typedef ",
    "create table ",
    "begin",
    "end",
    "operator",
    "template<",
    "#if 0",
    "#else",
    "#endif",
    "#define ",
    "```",
    "===",
    "=======\n",
    "<<<<<<< a\n",
    "---",
    "a",
    "b1",
    "é🦀",
    "\0",
    "\r\n",
];

proptest! {
    #[test]
    fn arbitrary_code_pieces_give_a_valid_outline(
        path in proptest::sample::select(&PATHS[..]),
        pieces in proptest::collection::vec(proptest::sample::select(&PIECES[..]), 0..120),
    ) {
        let text = pieces.concat();
        let symbols = outline(path, &text);
        prop_assert_eq!(fault(&symbols, &text), None, "{}: {:?}", path, text);
    }

    #[test]
    fn arbitrary_bytes_give_a_valid_outline(
        path in proptest::sample::select(&PATHS[..]),
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let text = String::from_utf8_lossy(&bytes);
        prop_assert_eq!(fault(&outline(path, &text), &text), None, "{}: {:?}", path, text);
    }
}

#[test]
fn truncated_code_keeps_its_earlier_symbols() {
    let text = "fn first() {\n    one();\n}\n\nstruct Second {\n    a: u8,\n}\n\nfn third() { let a = \"x\";";
    for end in (0..=text.len()).filter(|&end| text.is_char_boundary(end)) {
        let symbols = outline("a.rs", &text[..end]);
        assert_eq!(fault(&symbols, &text[..end]), None, "{end}");
        let first = symbols.first().map(|symbol| &*symbol.name);
        assert!(end < 12 || first == Some("first"), "{end}: {symbols:?}");
    }
}

#[test]
fn broken_symbol_ends_at_the_next_unindented_definition() {
    for (path, text, want) in [
        (
            "a.rs",
            "fn a() {\n  if x {\n}\n\nfn b() {\n}\n",
            "function a 1:1-3\nfunction b 5:5-6\n",
        ),
        (
            "a.js",
            "function a() {\n  `${x\n}\n\nexport function b() {\n}\n",
            "function a 1:1-3\nfunction b 5:5-6\n",
        ),
        (
            "a.go",
            "func a() {\n  x := \"{\n  {\n\nfunc b() {\n}\n",
            "function a 1:1-3\nfunction b 5:5-6\n",
        ),
        (
            "a.py",
            "def a():\n    x = (1,\n\ndef b():\n    pass\n",
            "function a 1:1-2\nfunction b 4:4-5\n",
        ),
    ] {
        assert_eq!(render(path, text), want, "{path}");
    }
}

#[test]
fn outline_size_is_bounded() {
    let many = "fn f() {}\n".repeat(30_000);
    assert_eq!(outline("a.rs", &many).len(), MAX_SYMBOLS);
    let deep = format!(
        "fn a() {}{}",
        "{ fn b() ".repeat(20_000),
        "}".repeat(20_000)
    );
    assert_eq!(fault(&outline("a.rs", &deep), &deep), None);
    let long = format!("fn {}() {{}}", "x".repeat(200_000));
    assert_eq!(outline("a.rs", &long)[0].name.len(), MAX_NAME);
    let minified = "function a(b){return b/2},".repeat(10_000);
    assert!(outline("a.js", &minified).len() <= MAX_SYMBOLS);
    let beyond = format!("{}\nfn late() {{}}\n", " ".repeat(MAX_TEXT));
    assert_eq!(outline("a.rs", &beyond), []);
}

/// Guards against quadratic time on texts that end on their line.
#[test]
fn text_that_ends_on_its_line_is_scanned_in_linear_time() {
    for (name, path, head, piece, tail) in [
        ("C", "a.c", "", "\\\"", ""),
        ("JavaScript", "a.js", "", "\\\"", ""),
        ("apostrophes", "a.js", "", "\\'", ""),
        ("texts in templates", "a.js", "`${", "\\'", ""),
        ("C#", "a.cs", "", "\\$\"", ""),
        ("Kotlin", "a.kt", "", "\\\"", ""),
        ("names of Kotlin", "a.kt", "", "\\`", ""),
        ("JSON", "a.json", "", "\\\"", ""),
        ("lines that go on", "a.py", "", "\\", &" ".repeat(400_000)),
        (
            "comments above one line",
            "a.js",
            "",
            "//\n",
            &"function a(){}".repeat(4_000),
        ),
        (
            "comments that are none",
            "a.php",
            "<?php\n",
            "#[A] function a(){}\n",
            "",
        ),
    ] {
        let text = format!("{head}{}{tail}", piece.repeat(200_000 / piece.len()));
        let symbols = outline(path, &text);
        assert_eq!(fault(&symbols, &text), None, "{name}");
    }
}

/// Quadratic time would take minutes here.
#[test]
fn unterminated_constructs_are_scanned_in_linear_time() {
    for (name, path, piece) in [
        ("quotes", "a.js", "'\n"),
        ("templates", "a.js", "x = `${ '\n"),
        ("nested templates", "a.kt", "\"${ "),
        ("classes of expressions", "a.js", "([/["),
        ("comments", "a.rs", "/* "),
        ("raw texts", "a.rs", "r#\" "),
        ("raw texts of C++", "a.cpp", "R\"( "),
        ("here documents", "a.php", "<?php <<<A\n"),
        ("dollars", "a.sql", "$a$ $b$ "),
        ("generics", "a.cpp", "a<b<c "),
        ("generics of a head", "a.java", "<a "),
        ("headings", "a.md", "a\n=\n"),
        ("comments above", "a.rs", "*/\nfn f() {}\n"),
        ("attributes", "a.rs", "#[a(b)]\n"),
        ("braces in brackets", "a.js", "({"),
        ("keys", "a.json", "{\"a\":"),
    ] {
        let text = piece.repeat(100_000 / piece.len());
        let symbols = outline(path, &text);
        assert!(symbols.len() <= MAX_SYMBOLS, "{name}");
    }
}

#[test]
fn language_is_detected_by_name_or_first_line() {
    for (path, text, finds) in [
        ("src/A.RS", "fn a() {}", true),
        ("bin/tool", "#!/usr/bin/env python3\ndef a(): pass\n", true),
        ("bin/run", "#!/bin/sh\na() {\n}\n", true),
        ("Rakefile", "def a\nend\n", true),
        (".bashrc", "a() {\n}\n", true),
        ("LICENSE", "def a(): pass\n", false),
        ("a.txt", "fn a() {}", false),
        ("a.rs/b", "fn a() {}", false),
        ("a.rs", "", false),
        ("a.rs", "\u{feff}fn a() {}", true),
        ("a.md", "\u{feff}# A\n", true),
        ("a.py", "\u{feff}def a(): pass\n", true),
        ("a.toml", "\u{feff}[a]\n", true),
        ("a.php", "\u{feff}<?php function a() {}", true),
    ] {
        assert_eq!(!outline(path, text).is_empty(), finds, "{path}");
    }
}

#[test]
fn symbol_names_are_qualified_by_their_scope() {
    for (path, text, want) in [
        ("a.rs", "impl A for B { fn c() {} }", vec!["B", "B::c"]),
        ("a.go", "func (s *Server) Run() {\n}\n", vec!["Server.Run"]),
        ("a.py", "class A:\n  def b(self): pass\n", vec!["A", "A.b"]),
        ("a.cpp", "int A::b() { return 1; }", vec!["A::b"]),
        ("a.md", "# A\n## B\n# C\n", vec!["A", "A > B", "C"]),
    ] {
        let symbols = outline(path, text);
        let names: Vec<String> = symbols
            .iter()
            .map(|symbol| qualified(path, &symbols, symbol))
            .collect();
        assert_eq!(names, want, "{path}");
    }
}

#[test]
fn a_line_belongs_to_the_innermost_symbol() {
    let text = "use x;\n/// Doc.\nimpl A {\n    // Why.\n    fn b() {\n    }\n\n    fn c() {}\n}\n";
    let symbols = outline("a.rs", text);
    let names: Vec<&str> = (1..=10)
        .map(|line| enclosing(&symbols, line).map_or("", |symbol| &symbol.name))
        .collect();
    assert_eq!(names, ["", "A", "A", "b", "b", "b", "A", "c", "A", ""]);
}
