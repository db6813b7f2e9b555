//! What notes are divided into, and what is read out of them.

use proptest::prelude::*;

use super::*;

fn sections(text: &str) -> Vec<(String, u32, u32)> {
    let note = Note::read(text);
    let shown = |section: Section| (section.full_name(), section.first, section.last);
    note.sections.into_iter().map(shown).collect()
}

#[test]
fn headings_divide_a_note() {
    for (name, text, want) in [
        ("one", "# A\n\nx\n", vec![("A", 1, 3)]),
        (
            "nested",
            "# A\nx\n## B\ny\n# C\n",
            vec![("A", 1, 2), ("A › B", 3, 4), ("C", 5, 5)],
        ),
        (
            "text before",
            "intro\n\n# A\n",
            vec![("", 1, 1), ("A", 3, 3)],
        ),
        (
            "blank lines are nobody's",
            "\n\n# A\n\n\n# B\n\n",
            vec![("A", 3, 3), ("B", 6, 6)],
        ),
        (
            "underlined",
            "A\n===\nx\n\nB\n---\ny\n",
            vec![("A", 1, 3), ("A › B", 5, 7)],
        ),
        (
            "no heading in code",
            "# A\n```sh\n# not\n```\n    # nor this\n",
            vec![("A", 1, 5)],
        ),
        ("an open fence", "# A\n~~~\n# not\n", vec![("A", 1, 3)]),
        (
            "nor in quotes and lists",
            "# A\n> # q\n\n- # l\n",
            vec![("A", 1, 4)],
        ),
        (
            "with marks",
            "# `a_b` *is* **it** #\n",
            vec![("a_b is it", 1, 1)],
        ),
        (
            "levels left out",
            "# A\n### C\n## B\n",
            vec![("A", 1, 1), ("A › C", 2, 2), ("A › B", 3, 3)],
        ),
        (
            "after front matter",
            "---\ntitle: T\n---\nx\n# A\n",
            vec![("", 4, 4), ("A", 5, 5)],
        ),
        (
            "front matter alone",
            "---\ntitle: T\n---\n",
            vec![("", 1, 3)],
        ),
        ("no heading at all", "x\ny\n", vec![("", 1, 2)]),
        (
            "Windows",
            "# A\r\nx\r\n# B\r\n",
            vec![("A", 1, 2), ("B", 3, 3)],
        ),
        (
            "a mark at the beginning",
            "\u{feff}# A\n",
            vec![("A", 1, 1)],
        ),
        ("nothing", "", vec![]),
    ] {
        let want: Vec<_> = want
            .into_iter()
            .map(|(path, a, b)| (path.to_owned(), a, b))
            .collect();
        assert_eq!(sections(text), want, "{name}");
    }
}

#[test]
fn links_lead_to_notes() {
    let text = "[a](b.md#x) [[Wiki|shown]] [[Other#Part]]\n[ref][r] [out](https://h/a.md) <https://h>\n\
                `[[no]]` ![[embed]] [here](#x) [s](my%20note.md)\n\n[r]: ../c.md\n";
    let links: Vec<_> = Note::read(text)
        .links
        .into_iter()
        .map(|link| (link.to, link.line))
        .collect();
    let path = |path: &str, line| (Target::Path(path.to_owned()), line);
    let name = |name: &str, line| (Target::Name(name.to_owned()), line);
    let want = [
        path("b.md", 1),
        name("Wiki", 1),
        name("Other", 1),
        path("../c.md", 2),
        name("embed", 3),
        path("my note.md", 3),
    ];
    assert_eq!(links, want);
}

#[test]
fn tags_are_words_after_a_sharp() {
    let text =
        "---\ntags: [Front]\n---\n# Head\n#one and #two-a/b, **#three** a#b #12 `#code` #my_tag\n";
    let tags: Vec<_> = Note::read(text).tags.into_iter().collect();
    assert_eq!(tags, ["front", "my_tag", "one", "three", "two-a/b"]);
}

#[test]
fn a_title_is_that_of_the_front_matter_or_the_first_heading() {
    for (text, want) in [
        ("---\ntitle: F\n---\n# H\n", Some("F")),
        ("x\n## H\n# I\n", Some("H")),
        ("x\n", None),
    ] {
        assert_eq!(Note::read(text).title.as_deref(), want, "{text}");
    }
}

#[test]
fn a_note_without_end_is_cut() {
    let note = Note::read(&"# a [x](y.md)\n\n#t \n\n".repeat(MAX_SECTIONS + 10));
    assert_eq!(
        (note.sections.len(), note.links.len()),
        (MAX_SECTIONS, MAX_LINKS)
    );
    assert_eq!(
        note.sections.last().map(|last| last.last),
        Some(note.lines - 1)
    );
}

fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("# "),
        Just("## "),
        Just("\n"),
        Just("\n\n"),
        Just("---\n"),
        Just("===\n"),
        Just("```\n"),
        Just("[["),
        Just("]]"),
        Just("|"),
        Just("#tag "),
        Just("[a](b.md)"),
        Just("> "),
        Just("- "),
        Just("key: v\n"),
        Just("word "),
        Just("é\u{301}"),
        Just("\r\n"),
        Just("\0"),
        Just("[^1]: "),
        Just("<div>"),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn whatever_the_text_sections_are_its_lines_in_order(text in prop_oneof![pieces(), any::<String>()]) {
        let note = Note::read(&text);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        prop_assert_eq!(note.lines as usize, text.lines().count());
        let mut before = 0;
        for section in &note.sections {
            prop_assert!(section.first > before, "{:?}", section);
            prop_assert!(section.last >= section.first, "{:?}", section);
            before = section.last;
        }
        prop_assert!(before <= note.lines, "{:?}", note);
        for link in &note.links {
            prop_assert!((1..=note.lines).contains(&link.line));
        }
        prop_assert!(text.trim().is_empty() || !note.sections.is_empty());
    }

    #[test]
    fn whatever_the_bytes_they_are_read(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        Note::read(&String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn other_notes_have_headings_too() {
    for (name, text, want) in [
        (
            "reStructuredText",
            "=====\nTitle\n=====\n\nx\n\nOne\n---\ny\n\nTwo\n---\n\nDeep\n~~~~\nz\n",
            vec![
                ("Title", 1, 5),
                ("Title › One", 7, 9),
                ("Title › Two", 11, 12),
                ("Title › Two › Deep", 14, 16),
            ],
        ),
        (
            "versions",
            "History\n\n1.1.0 (2024-05-06)\n\n- a\n\n1.0.0\n\n- b, since 0.9.1 it is so\n",
            vec![("", 1, 1), ("1.1.0 (2024-05-06)", 3, 5), ("1.0.0", 7, 9)],
        ),
        ("a transition", "x\n\n----\n\ny\n", vec![("", 1, 5)]),
        (
            "too short a line",
            "A long heading\n---\n",
            vec![("", 1, 2)],
        ),
        ("nothing", "", vec![]),
    ] {
        let sections = Note::read_plain(text).sections.into_iter();
        let got: Vec<_> = sections
            .map(|one| (one.full_name(), one.first, one.last))
            .collect();
        let want: Vec<_> = want
            .into_iter()
            .map(|(path, a, b)| (path.to_owned(), a, b))
            .collect();
        assert_eq!(got, want, "{name}");
    }
}

proptest! {
    #[test]
    fn plain_notes_are_divided_in_order_too(text in prop_oneof![pieces(), any::<String>()]) {
        let note = Note::read_plain(&text);
        let mut before = 0;
        for section in &note.sections {
            prop_assert!(section.first > before && section.last >= section.first, "{:?}", section);
            before = section.last;
        }
        prop_assert!(before <= note.lines, "{:?}", note);
    }
}
