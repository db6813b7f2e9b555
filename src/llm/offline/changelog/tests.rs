//! Tables of headings, versions, questions and entries.

use super::*;
use crate::llm::offline::interest::Interest;

fn lines(text: &str) -> Lines {
    (1..).zip(text.lines().map(str::to_owned)).collect()
}

fn version(text: &str) -> Version {
    Version::read(text).unwrap()
}

#[test]
fn change_logs_are_known_by_their_paths() {
    for (path, expected) in [
        ("CHANGELOG.md", true),
        ("librdkafka/CHANGELOG.md", true),
        ("Changelog.rst", true),
        ("NEWS", true),
        ("docs/news.rst", true),
        ("docs/releases/4.2.txt", true),
        ("docs/releases/security.txt", false),
        ("docs/history/whatsnew-5.5.rst", true),
        ("src/history.rs", false),
        ("src/changes/2.py", false),
        ("docs/changing.md", false),
        ("node_modules/a/CHANGELOG.md", false),
    ] {
        assert_eq!(is_change_log(path), expected, "{path}");
    }
}

#[test]
fn versions_are_read_and_put_in_their_order() {
    for text in [
        "",
        "v",
        "rc.1",
        "1.x",
        "2.0-final-of-all",
        "1..2",
        "1234.bugfix",
    ] {
        assert_eq!(Version::read(text), None, "{text}");
    }
    for (older, newer) in [
        ("0.9.0", "0.10.0"),
        ("2.0.0-rc.1", "2.0"),
        ("1.3b1", "1.3"),
        ("1.3a2", "1.3b1"),
        ("1.3rc9", "1.3rc10"),
        ("1.3-rc.9", "1.3-rc.10"),
        ("v1.54", "1.54.1"),
        ("0.18.7+1.9.6", "0.18.8+1.9.7"),
    ] {
        assert!(version(older) < version(newer), "{older} {newer}");
    }
    assert_eq!(version("0.8"), version("v0.8.0"));
    assert!(version("0.8.9").is_of(&version("0.8")) && !version("0.81").is_of(&version("0.8")));
}

#[test]
fn headings_tell_versions_and_dates() {
    for (text, expected) in [
        ("# 0.8.0", Some(("0.8.0", None))),
        // Letters that have more or fewer bytes in small.
        ("# What's new in 1.2.0", Some(("1.2.0", None))),
        ("# What's new in \u{1e9e}eta", None),
        (
            "# \u{130}\u{130}\u{130}\u{130}\u{130}\u{130}\u{130}\u{130}",
            None,
        ),
        (
            "# 0.7.0 (27. November, 2023)",
            Some(("0.7.0", Some("27. November, 2023"))),
        ),
        (
            "## [7.0.0](https://a.b/compare/6...7) (2021-04-29)",
            Some(("7.0.0", Some("2021-04-29"))),
        ),
        (
            "## [1.2.0] - 2020-01-02",
            Some(("1.2.0", Some("2020-01-02"))),
        ),
        (
            "## v4.10.0+2.12.1 (2026-01-25)",
            Some(("4.10.0", Some("2026-01-25"))),
        ),
        ("# librdkafka v2.12.1", Some(("2.12.1", None))),
        ("== 1.5.0", Some(("1.5.0", None))),
        (
            "Scrapy 2.11.0 (2023-09-18)\n--------------------------",
            Some(("2.11.0", Some("2023-09-18"))),
        ),
        (
            "Release 1.3b1 (released Oct 10, 2014)\n=====================================",
            Some(("1.3-b1", Some("Oct 10, 2014"))),
        ),
        (
            "What's new in Celery 5.5 (Immunity)\n===================================",
            Some(("5.5", None)),
        ),
        (
            "Django 4.2 release notes\n========================",
            Some(("4.2", None)),
        ),
        ("Version 1.2\n===========", Some(("1.2", None))),
        ("Scrapy 2.11.0 (2023-09-18)", None),
        ("# Upgrading from 0.7 to 0.8", None),
        ("# Features removed in 5.0", None),
        ("### Python 3.9 support is gone", None),
        ("## rc.1", None),
        ("```\n# 1.0.0\n```", None),
    ] {
        let found = headings("CHANGELOG.md", &lines(text));
        let told = found.first().map(|heading| {
            let version = heading.version().map(Version::told);
            (version.unwrap_or_default(), heading.date.clone())
        });
        let expected = expected.map(|(version, date): (&str, Option<&str>)| {
            (version.to_owned(), date.map(str::to_owned))
        });
        assert_eq!(told, expected, "{text}");
    }
}

#[test]
fn a_section_goes_to_the_next_version_whatever_stands_in_it() {
    let text = "# Log\n\n## [Unreleased]\n\n## [2.0.0]\n\n### Changed\n\n- a\n\n### Removed\n\n- b\n\n# 1.9.9\n\n- c\n";
    let lines = lines(text);
    let told: Vec<(String, u32, u32, bool, bool)> = sections("CHANGELOG.md", &lines)
        .iter()
        .map(|one| {
            let (at, last) = (one.heading.at, one.last);
            (
                one.heading.told(),
                at,
                last,
                one.is_whole,
                one.has_content(&lines),
            )
        })
        .collect();
    let row = |name: &str, at, last, is_whole, has| (name.to_owned(), at, last, is_whole, has);
    assert_eq!(
        told,
        [
            row("what is not released", 3, 4, true, false),
            row("2.0.0", 5, 14, true, true),
            row("1.9.9", 15, 17, false, true),
        ]
    );
    let over = "8.2\n===\n\n8.2.1\n=====\n\n* a\n\n8.2.0\n=====\n\n* b\n";
    let lines = self::lines(over);
    let told: Vec<u32> = sections("doc/changes/8.2.rst", &lines)
        .iter()
        .map(|one| one.heading.at)
        .collect();
    assert_eq!(told, [4, 9]);
}

#[test]
fn patterns_find_the_lines_that_are_headings() {
    let all = regex::Regex::new(&heading_pattern(None)).unwrap();
    let one = regex::Regex::new(&heading_pattern(Some(&version("2.3")))).unwrap();
    let newer = regex::Regex::new(&newer_pattern(&version("1.11")).unwrap()).unwrap();
    for (line, expected) in [
        ("# 2.3.0", (true, true, true)),
        ("# librdkafka v2.3.0", (true, true, true)),
        ("## [2.3.0](https://a.b) (2021)", (true, true, true)),
        ("Scrapy 2.3.0 (2020-08-04)", (true, true, true)),
        (" What's new in Celery 2.3 (x)", (true, true, true)),
        ("2.3", (true, true, true)),
        ("# 2.31.0", (true, false, true)),
        ("# 1.2.3", (true, false, false)),
        ("## [Unreleased]", (true, false, false)),
        ("- fixed since 2.3", (false, false, false)),
        ("This is as of 2.3 and before.", (false, false, false)),
    ] {
        let is_in = (all.is_match(line), one.is_match(line), newer.is_match(line));
        assert_eq!(is_in, expected, "{line}");
    }
}

#[test]
fn questions_tell_what_they_want_of_a_change_log() {
    let of = |text: &str| {
        Some(Wanted::Version {
            version: version(text),
            of: None,
        })
    };
    let of_part = |text: &str, part: &str| {
        Some(Wanted::Version {
            version: version(text),
            of: Some(part.to_owned()),
        })
    };
    let between = |after: &str, upto: Option<&str>| {
        Some(Wanted::Between {
            after: version(after),
            upto: upto.map(version),
        })
    };
    let entry = |name: &str, deed| {
        Some(Wanted::Entry {
            name: name.to_owned(),
            deed,
        })
    };
    for (question, expected) in [
        ("what changed in 0.8.0?", of("0.8.0")),
        ("What's new in v5?", of("5")),
        ("what is new in version 2?", of("2")),
        ("breaking changes in 0.8", of("0.8")),
        ("changelog for 2.0.0-rc.1", of("2.0.0-rc.1")),
        ("Was hat sich in 0.8 geändert?", of("0.8")),
        ("qu'est-ce qui a changé dans la version 2.0 ?", of("2.0")),
        ("¿qué cambió en la versión 2.0?", of("2.0")),
        ("What is new in Scrapy 2.20?", of_part("2.20", "Scrapy")),
        (
            "what changed in librdkafka 2.3.0?",
            of_part("2.3.0", "librdkafka"),
        ),
        (
            "what changed between 0.7 and 0.8?",
            between("0.7", Some("0.8")),
        ),
        ("what changed since 1.9.0?", between("1.9.0", None)),
        ("was hat sich seit 1.9 geändert", between("1.9", None)),
        ("What's new?", Some(Wanted::Latest)),
        ("what's new in the latest release?", Some(Wanted::Latest)),
        ("release notes", Some(Wanted::Latest)),
        ("what changed in the latest version?", Some(Wanted::Latest)),
        ("Was ist neu?", Some(Wanted::Latest)),
        ("quoi de neuf ?", Some(Wanted::Latest)),
        ("when was Server removed?", entry("Server", Deed::Removed)),
        (
            "when was axum::serve added?",
            entry("axum::serve", Deed::Added),
        ),
        (
            "when was the USE_L10N setting removed",
            entry("USE_L10N", Deed::Removed),
        ),
        (
            "in which version was JoinSet introduced?",
            entry("JoinSet", Deed::Added),
        ),
        (
            "since when is scrapy.log deprecated?",
            entry("scrapy.log", Deed::Deprecated),
        ),
        (
            "when was napoleon added to sphinx?",
            entry("napoleon", Deed::Added),
        ),
        ("wann wurde `run()` entfernt?", entry("run", Deed::Removed)),
        ("what changed in 0.8.0 about the path syntax?", None),
        ("What changed in version 7 about decorators?", None),
        ("Which Python version was dropped in 8.2?", None),
        (
            "What has to be changed when migrating from Tokio 1 to Tokio 2?",
            None,
        ),
        ("when is a session removed?", None),
        ("what does new do?", None),
        ("where is the changelog?", None),
        ("what's in my notes?", None),
        ("what changed recently?", None),
        ("when was it removed?", None),
        ("does it need 0.8?", None),
        ("what changed?", None),
    ] {
        assert_eq!(Wanted::of(question), expected, "{question}");
    }
    let entry = entry("a", Deed::Added).unwrap();
    assert!(entry.fits(Interest::Places) && !Wanted::Latest.fits(Interest::Notes));
}

#[test]
fn entries_tell_what_was_done_to_the_very_name() {
    use Deed::{Added, Deprecated, Removed};
    use Strength::{Beside, Listed, Named, Said};
    for (text, name, deed, expected) in [
        (
            "- task: add `JoinSet` for sets",
            "JoinSet",
            Added,
            Some(Said),
        ),
        ("- task: add `JoinSet::spawn`", "JoinSet", Added, None),
        ("- add `track` to `JoinSet`", "JoinSet", Added, Some(Beside)),
        (
            "- implement `Extend` for `JoinSet`",
            "JoinSet",
            Added,
            Some(Beside),
        ),
        (
            "* Added ``sphinx.ext.napoleon`` extension",
            "napoleon",
            Added,
            Some(Said),
        ),
        (
            "* add todo support in napoleon",
            "napoleon",
            Added,
            Some(Beside),
        ),
        (
            "* napoleon: Add support for types",
            "napoleon",
            Added,
            Some(Beside),
        ),
        (
            "- Added support for napoleon",
            "napoleon",
            Added,
            Some(Said),
        ),
        (
            "* The ``USE_L10N`` setting is removed.",
            "USE_L10N",
            Removed,
            Some(Said),
        ),
        ("- Removed `axum::Server`", "Server", Removed, Some(Said)),
        (
            "- Removed `a::Server`. Use `a::serve`",
            "serve",
            Removed,
            Some(Named),
        ),
        ("- Deprecated `old`", "old", Removed, Some(Named)),
        ("- Deprecated `old`", "old", Deprecated, Some(Said)),
        ("### Removed\n\n- `old`", "old", Removed, Some(Listed)),
        (
            "### Deprecation removals\n\n- `old`",
            "old",
            Removed,
            Some(Listed),
        ),
        (
            "### Deprecation removals\n\n- `old`",
            "old",
            Deprecated,
            Some(Named),
        ),
        ("- fix `old`", "old", Added, Some(Named)),
        (
            "- Saving a new ``Model`` instance is faster",
            "Model",
            Added,
            Some(Beside),
        ),
        (
            "- `Router` tests were removed",
            "Router",
            Removed,
            Some(Beside),
        ),
        (
            "- Removed the deprecated Queue option",
            "Queue",
            Removed,
            Some(Beside),
        ),
        ("- Removed the `Queue` option", "Queue", Removed, Some(Said)),
        (
            "- Removed the Queue class (#7)",
            "Queue",
            Removed,
            Some(Said),
        ),
        ("- Removed Queue.", "Queue", Removed, Some(Said)),
        ("- Removed Queue entirely", "Queue", Removed, Some(Said)),
        ("- Removed Queue's tests", "Queue", Removed, Some(Beside)),
        (
            "- Removed [`Queue`](a.md) tests",
            "Queue",
            Removed,
            Some(Beside),
        ),
        ("- Add Router documentation", "Router", Added, Some(Beside)),
        ("- Added `Router`", "Router", Added, Some(Said)),
        ("- Added `run()` to start", "run", Added, Some(Said)),
        ("- Added Queue benchmarks", "Queue", Added, Some(Beside)),
        ("- Added `Queue` options", "Queue", Added, Some(Beside)),
        (
            "- Added the `first` and `second` options",
            "first",
            Added,
            Some(Said),
        ),
        (
            "- The `Sender` docs are now deprecated",
            "Sender",
            Deprecated,
            Some(Beside),
        ),
        (
            "- The `Sender` type is now deprecated",
            "Sender",
            Deprecated,
            Some(Said),
        ),
        (
            "- Sender and Receiver have been deprecated",
            "Sender",
            Deprecated,
            Some(Said),
        ),
        (
            "- Sender is deprecated and will be removed",
            "Sender",
            Removed,
            Some(Beside),
        ),
        (
            "### Removed\n\n- `Router` tests",
            "Router",
            Removed,
            Some(Named),
        ),
        (
            "### Added\n\n- `Till::count` counts the coins.",
            "Till::count",
            Added,
            Some(Listed),
        ),
        (
            "### New features\n\n- The :setting:`WAIT` setting, in seconds",
            "WAIT",
            Added,
            Some(Listed),
        ),
        (
            "### Added\n\n- `first`, `second` and `third` for sets",
            "third",
            Added,
            Some(Listed),
        ),
        (
            "### Added\n\n- Support for brotli (#7)",
            "brotli",
            Added,
            Some(Listed),
        ),
        (
            "### New features\n\n- The :command:`crawl`, :command:`parse` and :command:`run` commands now warn",
            "crawl",
            Added,
            Some(Named),
        ),
        (
            "### New features\n\n- CrawlerProcess got an option to stop",
            "CrawlerProcess",
            Added,
            Some(Named),
        ),
        (
            "### New features\n\n- CrawlerProcess documentation",
            "CrawlerProcess",
            Added,
            Some(Named),
        ),
        (
            "### New features\n\n- router: a way back",
            "router",
            Added,
            Some(Named),
        ),
        (
            "### New features\n\n- Improved `Router` errors",
            "Router",
            Added,
            Some(Named),
        ),
        (
            "### Removed\n\n- `old` no longer takes a path",
            "old",
            Removed,
            Some(Named),
        ),
    ] {
        let all = entry::entries("CHANGELOG.md", &lines(text), name, deed);
        let strength = all.first().map(|entry| entry.strength);
        assert_eq!(strength, expected, "{text}");
        let last = text.lines().last().unwrap();
        let is_found = regex::Regex::new(&entry_pattern(name, None))
            .unwrap()
            .is_match(last);
        assert_eq!(is_found, expected.is_some(), "the pattern on {last}");
        if expected == Some(Said) {
            let said = regex::Regex::new(&entry_pattern(name, Some(deed))).unwrap();
            assert!(said.is_match(last), "{last}");
        }
    }
}

#[test]
fn an_entry_stands_under_the_version_above_it() {
    let text = "# 2.0.0 (2024)\n\n- add `b`\n\n# 1.0.0 (2023)\n\n- add `a`,\n  which is new\n";
    let log = lines(text);
    let first = |path: &str, lines: &Lines| {
        let entry = entry::entries(path, lines, "a", Deed::Added).remove(0);
        (entry.lines, entry.heading.map(|heading| heading.told()))
    };
    let whole = ((7, 8), Some("1.0.0 (2023)".to_owned()));
    assert_eq!(first("CHANGELOG.md", &log), whole);
    // Where the lines between are not known, another version may begin there.
    let torn: Lines = log.into_iter().filter(|(at, _)| *at != 6).collect();
    assert_eq!(first("CHANGELOG.md", &torn), ((7, 8), None));
    assert_eq!(
        first("docs/releases/5.0.txt", &torn).1,
        Some("5.0".to_owned())
    );
}
