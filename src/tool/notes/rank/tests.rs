//! Which sections come first for which question, and what filters leave.

use std::sync::Arc;

use super::*;
use crate::tool::notes::{index::Passed, page::Stamp};

fn index(files: &[(&str, &str)]) -> Index {
    let stamp = Stamp {
        changed: None,
        size: 0,
    };
    let page = |(path, text): &(&str, &str)| {
        Arc::new(Page::read((*path).to_owned(), stamp, text, |_| true))
    };
    Index::new(files.iter().map(page).collect(), Passed::default())
}

fn found(index: &Index, question: &str, filter: &Filter) -> Vec<String> {
    let shown = |hit: Hit| {
        let page = &index.pages[hit.page];
        format!("{}:{}", page.path, page.units[hit.unit].first)
    };
    rank(index, &Question::of(question), filter)
        .hits
        .into_iter()
        .map(shown)
        .collect()
}

fn sample() -> Index {
    index(&[
        (
            "CHANGELOG.md",
            "# Changelog\n## 1.1.0 - 2026-02-01\n- The cache has a limit\n## 1.0.0 - 2026-01-01\n- The cache\n",
        ),
        (
            "docs/adr/0001-cache.md",
            "---\nstatus: superseded by 2\ndate: 2025-01-01\n---\n# Cache in memory\nWe cache answers, as they cost.\n",
        ),
        (
            "docs/adr/0002-cache.md",
            "---\nstatus: accepted\ndate: 2025-06-01\n---\n# Cache on disk\nWe cache answers, as they cost.\n",
        ),
        (
            "docs/guide.md",
            "# Guide\nText.\n## The cache\nThe cache keeps answers. #ops/disk\n",
        ),
        (
            "meetings/2025-05-01.md",
            "# Weekly\n## Agenda\n- cache\n## Decisions\n- The cache goes to disk\n",
        ),
    ])
}

#[test]
fn what_a_question_is_after_comes_first() {
    let index = sample();
    for (question, first) in [
        ("the cache keeps answers", "docs/guide.md:3"),
        ("Why do we cache answers?", "docs/adr/0002-cache.md:5"),
        (
            "since which version does the cache have a limit",
            "CHANGELOG.md:2",
        ),
        (
            "in which meeting was the cache discussed",
            "meetings/2025-05-01.md:2",
        ),
        ("text of the guide", "docs/guide.md:1"),
    ] {
        assert_eq!(
            found(&index, question, &Filter::default())[0],
            first,
            "{question}"
        );
    }
    let all = found(&index, "Why do we cache answers?", &Filter::default());
    let at = |place: &str| all.iter().position(|one| one == place);
    assert!(
        at("docs/adr/0002-cache.md:5") < at("docs/adr/0001-cache.md:5"),
        "{all:?}"
    );
}

/// Records after Nygard: so few that scores alone would say little.
fn records() -> Index {
    index(&[
        (
            "docs/adr/0001-use-rocksdb.md",
            "# 1. Use RocksDB for the journal\n\nDate: 2024-02-01\n\n## Status\n\nSuperseded by 0003\n\n\
             ## Context\n\nWe need a fast store.\n\n## Decision\n\nRocksDB, because it is fast.\n",
        ),
        (
            "docs/adr/0003-use-sqlite.md",
            "# 3. Use SQLite for the journal\n\nDate: 2025-06-01\n\n## Status\n\nAccepted\n\n## Context\n\n\
             The journal must survive crashes and be readable by other tools. We compared RocksDB, LMDB and \
             plain files on the machines of three customers.\n\n## Decision\n\nSQLite, because one file with \
             full sync recovers in milliseconds, and everybody has a tool to look into it.\n\n\
             ## Consequences\n\nWriters are serialised; a group commit makes up for that.\n",
        ),
        (
            "docs/adr/0004-use-voles.md",
            "# Use voles\n\n## Status\n\nSuperseded by 0005\n\n## Decision\n\nWe use voles because of the \
             burrow limit.\n",
        ),
        (
            "docs/adr/0005-use-voles-in-winter.md",
            "# Use voles only in winter\n\n## Status\n\nAccepted\n\n## Decision\n\nWe use voles in winter \
             because of the burrow limit.\n",
        ),
    ])
}

#[test]
fn what_holds_and_says_something_comes_first() {
    let index = records();
    for (question, first) in [
        (
            "why do we use SQLite for the journal?",
            &["0003:13", "0003:9", "0003:17"][..],
        ),
        (
            "What was decided about the journal?",
            &["0003:13", "0003:9", "0003:17"],
        ),
        ("journal", &["0003:9", "0003:13", "0003:17"]),
        ("why do we use voles?", &["0005:7", "0004:7"]),
        ("why not RocksDB for the journal?", &["0001:13"]),
        ("why is it fast in the docs?", &["0001:13"]),
        ("What is the status of SQLite?", &["0003:5"]),
    ] {
        let all = found(&index, question, &Filter::default());
        let short = |place: &String| {
            let (path, line) = place.rsplit_once(':').unwrap();
            format!("{}:{line}", &path["docs/adr/".len()..][..4])
        };
        let all: Vec<String> = all.iter().map(short).collect();
        let begins: Vec<&str> = all.iter().take(first.len()).map(String::as_str).collect();
        assert_eq!(begins, first, "{question}: {all:?}");
        let at = |place: &str| all.iter().position(|one| one == place);
        for (later, than) in [
            ("0003:1", "0003:17"),
            ("0001:5", "0001:9"),
            ("0004:3", "0004:7"),
        ] {
            let both = at(later).is_some() && at(than).is_some();
            assert!(!both || at(later) > at(than), "{question}: {all:?}");
        }
    }
}

#[test]
fn filters_leave_out_the_rest() {
    let index = sample();
    let day = |day: &str| day.parse().ok();
    for (name, filter, want) in [
        (
            "tag",
            Filter {
                tag: Some("ops".into()),
                ..Filter::default()
            },
            vec!["docs/guide.md:3"],
        ),
        (
            "folder",
            Filter {
                place: Some("docs/adr".into()),
                ..Filter::default()
            },
            vec!["docs/adr/0002-cache.md:5", "docs/adr/0001-cache.md:5"],
        ),
        (
            "no folder",
            Filter {
                place: Some("docs/ad".into()),
                ..Filter::default()
            },
            vec![],
        ),
        (
            "from",
            Filter {
                from: day("2026-02-01"),
                ..Filter::default()
            },
            vec!["CHANGELOG.md:2"],
        ),
        (
            "to",
            Filter {
                to: day("2025-01-01"),
                ..Filter::default()
            },
            vec!["docs/adr/0001-cache.md:5"],
        ),
        (
            "kind",
            Filter {
                kind: Some(Kind::Meeting),
                ..Filter::default()
            },
            vec!["meetings/2025-05-01.md:2"],
        ),
    ] {
        assert_eq!(found(&index, "cache", &filter), want, "{name}");
    }
}

#[test]
fn the_newer_of_equals_comes_first_and_so_without_words() {
    let same = "# Cache\nabout it\n";
    let index = index(&[
        ("2024-01-01.md", same),
        ("2025-01-01.md", same),
        ("a.md", same),
    ]);
    let want = ["2025-01-01.md:1", "2024-01-01.md:1", "a.md:1"];
    assert_eq!(found(&index, "cache", &Filter::default()), want);
    assert_eq!(found(&index, "", &Filter::default()), want);
    assert_eq!(found(&index, "elephants", &Filter::default()), [""; 0]);
}
