//! Questions for what was written down: logs of changes, to-dos, decisions, links.

use super::says;

const LOG: &str = "\
# Changelog

## [Unreleased]

## [2.0.0] - 2025-03-01

### Added

- `Till::count` counts the coins.

### Removed

- The XML export.

## [1.9.0] - 2025-01-10

### Added

- The XML export.
";

#[tokio::test]
async fn a_log_of_changes_tells_what_changed_and_when() {
    says(
        &[("CHANGELOG.md", LOG), ("src/till.rs", "pub fn xml() {}\n")],
        &[
            (
                &["what changed in 2.0.0?"],
                "answered",
                &[
                    "2.0.0 (2025-03-01) is in CHANGELOG.md:5-13.",
                    "counts the coins",
                    "- The XML export.",
                ],
            ),
            (
                &["what's new?"],
                "answered",
                &["The newest version is 2.0.0", "CHANGELOG.md:5-13"],
            ),
            (
                &["in which version was Till::count added?"],
                "answered",
                &["In 2.0.0 (2025-03-01), CHANGELOG.md:9"],
            ),
            (&["what changed in 3.1?"], "partial", &["2.0.0"]),
            (
                &["what changed in 2.0.0?", "and in 1.9.0?"],
                "answered",
                &["1.9.0 (2025-01-10) is in CHANGELOG.md:15-19."],
            ),
            (
                &["what changed since 1.9.0?"],
                "answered",
                &["2.0.0", "CHANGELOG.md:5"],
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn the_newest_version_may_stand_last() {
    let log = "# Changes\n\n## 1.0.0\n\n- First.\n\n## 1.1.0\n\n- Second.\n\n```sh\n# 9.0.0\n```\n\n## 2.0.0\n\n- Third.\n";
    says(
        &[("CHANGES.md", log)],
        &[
            (
                &["what's new?"],
                "answered",
                &[
                    "The newest version is 2.0.0, in CHANGES.md:15-17.",
                    "- Third.",
                ],
            ),
            (
                &["what changed in 1.1.0?"],
                "answered",
                &["1.1.0 is in CHANGES.md:7-13."],
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn notes_tell_what_is_to_be_done_and_what_holds() {
    let decision = "---\nstatus: superseded by ADR 2\n---\n# ADR 1: Postgres\n\n## Decision\n\nWe store orders in Postgres.\n";
    let successor = "---\nstatus: accepted\ndate: 2025-01-15\n---\n# ADR 2: Cockroach\n\nReplaces [[0001-postgres]].\n\n## Decision\n\nWe store orders in Cockroach.\n";
    let meeting = "---\ndate: 2025-02-10\n---\n# Weekly\n\n## To do\n\n- [ ] Ben: rotate the keys\n- [x] Ann: pay the bill\n";
    says(
        &[
            ("adr/0001-postgres.md", decision),
            ("adr/0002-cockroach.md", successor),
            ("meetings/2025-02-10.md", meeting),
            (
                "index.md",
                "# Home\n\nThe notes of the shop and of its people.\n\n- [ ] Ann: write more\n",
            ),
        ],
        &[
            (
                &["what are my open to-dos?"],
                "answered",
                &[
                    "There are 2 open to-dos in 2 notes",
                    "meetings/2025-02-10.md:8: Ben: rotate the keys",
                ],
            ),
            (
                &["what does Ben have to do?"],
                "answered",
                &["rotate the keys"],
            ),
            (
                &["Welche offenen Aufgaben hat Ann?"],
                "answered",
                &["index.md:5: Ann: write more"],
            ),
            (
                &["what links to 0001-postgres?"],
                "answered",
                &["adr/0002-cockroach.md:7"],
            ),
            (
                &["what was decided about where orders are stored?"],
                "answered",
                &["adr/0002-cockroach.md"],
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn notes_that_mention_something_are_listed() {
    says(
        &[
            (
                "docs/a.md",
                "# Tills\n\nThe cash drawer opens by hand.\n\n## Keys\n\nEach cash drawer has a key.\n",
            ),
            ("docs/b.md", "# Coins\n\nCoins go into the drawer.\n"),
            ("docs/c.md", "# Café\n\nEl caché dura un día.\n"),
            ("src/till.rs", "pub fn drawer() {} // the cache\n"),
        ],
        &[
            (
                &["which notes mention the drawer?"],
                "answered",
                &[
                    "2 notes mention “drawer”:",
                    "- docs/a.md:3: The cash drawer opens by hand.\n- docs/a.md:7: Each cash drawer has a key.",
                    "- docs/b.md:3: Coins go into the drawer.",
                ],
            ),
            (
                &["which notes mention cash drawer?"],
                "answered",
                &["1 note mentions “cash drawer”:\n\n- docs/a.md:3"],
            ),
            (
                &["which notes mention cache?"],
                "answered",
                &["1 note mentions “cache”:\n\n- docs/c.md:3: El caché dura un día."],
            ),
            (&["where is caché?"], "answered", &["src/till.rs:1"]),
            (
                &["which notes mention tenrecs?"],
                "stuck",
                &["I found nothing about “tenrecs”"],
            ),
        ],
    )
    .await;
}
