use proptest::prelude::*;

use super::*;

const WHOLE: &str = "\
# The *retry* policy

A call is retried up to **three** times, see `src/lib.rs:12` and
[the docs](https://example.org/retry). It waits longer each time.

- one
- two, which is a longer item than fits into one row of the terminal
  - nested
  - `code`
- three

3. third

4. fourth

> Quoted text
> in two lines

| name | what it is | n |
|:-----|------------|--:|
| a | a short one | 1 |
| b | a longer description that does not fit | 22 |

```rust
fn main() {
\tprintln!(\"{}\", 1);
}
```

---

[g]: https://example.org/guide

```python
def f():
    \"\"\"Example:
    ```
    f()
    \"\"\"\r
```

Last line: ~~gone~~ <b>kept</b>, [the guide][g]
";

const PROJECT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn plain(columns: usize) -> Look {
    Look {
        columns,
        is_coloured: false,
        links: None,
    }
}

fn coloured() -> Look {
    Look {
        is_coloured: true,
        links: Some(std::path::Path::new(PROJECT).into()),
        ..plain(80)
    }
}

fn rendered(text: &str, look: &Look) -> String {
    Markdown::default().whole(text, look).join("\n")
}

#[test]
fn blocks_become_rows() {
    insta::assert_snapshot!("forty_columns", rendered(WHOLE, &plain(40)));
    let escaped = rendered(WHOLE, &coloured()).replace('\x1b', "␛");
    let escaped = escaped.replace(PROJECT, "/project");
    insta::assert_snapshot!("colours", escaped);
}

#[test]
fn no_row_is_wider_than_the_terminal() {
    for columns in [1, 5, 20, 40, 80] {
        // Code is left to the terminal.
        let text = WHOLE.replace("```", "");
        for row in rendered(&text, &plain(columns)).lines() {
            let most = columns.max(18);
            assert!(
                unicode_width::UnicodeWidthStr::width(row) <= most,
                "{columns}: {row:?}"
            );
        }
    }
}

#[test]
fn words_break_where_their_script_allows_it() {
    for (name, text, rows) in [
        ("words", "one two three", &["one two", "three"][..]),
        (
            "a long word",
            "a https://example.org/",
            &["a", "https://", "example.", "org/"],
        ),
        ("wide", "日本語のテキスト", &["日本語の", "テキスト"]),
        (
            "combining",
            "e\u{301}e\u{301}e\u{301} abcdef",
            &["e\u{301}e\u{301}e\u{301}", "abcdef"],
        ),
        ("a line end", "one  \ntwo", &["one", "two"]),
        ("right to left", "שלום עולם", &["שלום", "עולם"]),
    ] {
        assert_eq!(
            rendered(text, &plain(8)).lines().collect::<Vec<_>>(),
            rows,
            "{name}"
        );
    }
}

#[test]
fn colours_of_code_suit_light_and_dark_terminals() {
    let theme = &*code::THEME;
    let colours = theme.scopes.iter().filter_map(|item| item.style.foreground);
    for colour in colours {
        // Black, white and greys vanish on one of them. An alpha of 1 is the terminal's own colour.
        let is_palette = colour.a == 0 && matches!(colour.r, 1..=6 | 9..=14);
        assert!(is_palette || colour.a == 1, "{colour:?}");
    }
}

#[test]
fn control_sequences_are_harmless() {
    let text = "a \x1b[31mred\x1b[0m \x1b]8;;http://x\x07b\u{202e}c\r\n\n```\n\x1b[2J\n```\n";
    let entities = "&#27;]52;c;eA==&#7; &#x9b;2J `&#27;` &#x202e; **&#27;[2J**\n\n| &#27; |\n|-|\n| &#27;[2J |\n\n\
                    [a](http://a/&#27;[2J) ![&#27;](x&#27;)\n";
    let linked = Look {
        is_coloured: false,
        ..coloured()
    };
    for (text, look) in [(text, plain(80)), (entities, plain(80)), (entities, linked)] {
        let rows = rendered(text, &look);
        let commands = ['\x1b', '\x07', '\r', '\u{202e}', '\u{9b}'];
        assert!(!rows.contains(commands), "{rows:?}");
    }
}

#[test]
fn long_open_text_becomes_final() {
    let mut markdown = Markdown::default();
    let (mut rows, look) = (0, plain(80));
    for _ in 0..20_000 {
        rows += markdown.push("word ", &look).len();
        assert!(markdown.open.len() <= MAX_OPEN);
    }
    assert!(rows > 1_000, "{rows}");
}

proptest! {
    #[test]
    fn pieces_do_not_change_the_rows(cuts in prop::collection::vec(0..WHOLE.len(), 0..40)) {
        let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| WHOLE.is_char_boundary(*cut)).collect();
        cuts.extend([0, WHOLE.len()]);
        cuts.sort_unstable();
        for look in [plain(40), coloured()] {
            let mut markdown = Markdown::default();
            let mut rows = Vec::new();
            for piece in cuts.windows(2) {
                rows.extend(markdown.push(&WHOLE[piece[0]..piece[1]], &look));
                let _ = markdown.open_rows(&look);
            }
            rows.extend(markdown.finish(&look));
            prop_assert_eq!(rows.join("\n"), rendered(WHOLE, &look));
        }
    }
}
