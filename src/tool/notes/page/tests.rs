//! What a page is made of.

use std::sync::Arc;

use super::*;

const STAMP: Stamp = Stamp {
    changed: None,
    size: 0,
};

fn page(path: &str, text: &str) -> Page {
    Page::read(path.to_owned(), STAMP, text, |_| true)
}

fn often(page: &Page, unit: &Unit, text: &str) -> f32 {
    let mut found = 0.0;
    words::each(text, |word| {
        let word = words::key(word);
        found = unit.often(word, page.shares(word)).all();
    });
    found
}

#[test]
fn words_count_by_where_they_stand() {
    let text = "---\ntags: [storage]\n---\n# Journal\nintro\n## SQLite\nsqlite keeps records\n";
    let page = page("docs/data.md", text);
    let [intro, sqlite] = &page.units[..] else {
        panic!("{page:?}");
    };
    for (word, in_intro, in_sqlite) in [
        ("records", 0.0, 1.0),
        ("sqlite", 0.0, 5.0),
        ("journal", 6.0, 3.5),
        ("storage", 2.0, 2.0),
        ("data", 1.5, 1.5),
        ("absent", 0.0, 0.0),
    ] {
        assert_eq!(
            (often(&page, intro, word), often(&page, sqlite, word)),
            (in_intro, in_sqlite),
            "{word}"
        );
    }
}

#[test]
fn a_day_is_the_nearest_one_named() {
    for (path, text, want) in [
        (
            "2024-01-01-x.md",
            "---\ndate: 2025-01-01\n---\n# A\n",
            "2025-01-01",
        ),
        ("2024-01-01-x.md", "# A\nDate: 2023-01-01\n", "2024-01-01"),
        ("x.md", "# A\nDate: 2023-01-01\n", "2023-01-01"),
        ("2022/02/02.md", "# A\n", "2022-02-02"),
        ("2024-01-01-x.md", "# A (2020-01-01)\n", "2020-01-01"),
    ] {
        let day = page(path, text).units[0].date;
        assert_eq!(day, want.parse().ok(), "{path} {text}");
    }
}

/// A small file whose headings would take much memory, had each section all of them.
#[test]
fn headings_are_kept_once_and_weighed() {
    let long = "🦀".repeat(200);
    let mut text = String::new();
    for level in 1..=5 {
        text += &format!("{} {long}\n", "#".repeat(level));
    }
    text += &"###### x\n".repeat(1_900);
    let page = page("a.md", &text);
    let sections = &page.note.sections;
    assert_eq!(sections.len(), 1_905);
    assert!(Arc::ptr_eq(&sections[5].path[0], &sections[1_904].path[0]));
    let text = format!("# {long}\n").repeat(1_900);
    assert!(self::page("a.md", &text).weight() * WORD > text.len());
}

#[test]
fn what_units_share_is_kept_once_and_blank_lines_are_none() {
    let tags: Vec<String> = (0..50)
        .map(|tag| format!("{tag}aa/{tag}bb/{tag}cc"))
        .collect();
    let front = format!("---\ntags: [{}]\n---\n# A\n", tags.join(", "));
    let short = page("a.md", &format!("{front}x\n"));
    let long = page("a.md", &format!("{front}{}x\n", "x\n".repeat(2_400)));
    let units = long.units.len() - short.units.len();
    assert!(units >= 100, "{units}");
    let each = (long.weight() - short.weight()) / units;
    assert!(each < 20, "a unit takes as much as {each} words");
    let blank = page("a.md", &format!("{front}{}x\n", "\n".repeat(2_400)));
    let places: Vec<(u32, u32)> = blank
        .units
        .iter()
        .map(|one| (one.first, one.last))
        .collect();
    assert_eq!(places.len(), 2, "{places:?}");
    let last = blank.units.last().unwrap();
    assert_eq!((last.last, often(&blank, last, "7bb")), (2_405, 2.0));
}

#[test]
fn a_file_is_read_as_far_as_there_is_room() {
    let text = "# A\nword\n".repeat(1_000);
    let read = |most: usize| {
        let mut taken = 0;
        let has_room = |more: usize| {
            taken += more;
            taken < most
        };
        let page = Page::read("a.md".to_owned(), STAMP, &text, has_room);
        (page.units.len(), page.is_whole)
    };
    assert_eq!(read(usize::MAX), (1_000, true));
    let (units, is_whole) = read(500);
    assert!(!is_whole && (10..200).contains(&units), "{units}");
    let words: String = (0..MOST_WORDS + 1).map(|at| format!("w{at} ")).collect();
    let page = page("a.md", &words);
    assert!(!page.is_whole && page.units[0].words.0.len() == MOST_WORDS);
}

#[test]
fn some_files_are_notes() {
    for (path, is) in [
        ("a.md", true),
        ("a/B.Markdown", true),
        ("docs/index.rst", true),
        ("CHANGELOG", true),
        ("HISTORY.txt", true),
        ("a.txt", false),
        ("LICENSE", false),
        ("news.rs", false),
        ("md", false),
    ] {
        assert_eq!(is_note(path), is, "{path}");
    }
}
