//! Which days and how many commits questions ask for.

use super::*;

#[test]
fn days_and_numbers_are_taken_from_questions() {
    for (question, since, until, most, rest) in [
        (
            "what changed last week?",
            "1 week ago",
            "",
            0,
            "what changed",
        ),
        (
            "what did we change yesterday?",
            "yesterday",
            "yesterday",
            0,
            "what did we change",
        ),
        (
            "what changed since yesterday?",
            "yesterday",
            "",
            0,
            "what changed",
        ),
        (
            "what commits were made in November 2026?",
            "2026-11-01",
            "2026-11-30",
            0,
            "what commits were made",
        ),
        (
            "what happened on 2026-11-21?",
            "2026-11-21",
            "2026-11-21",
            0,
            "what happened",
        ),
        (
            "what changed since 2026-11-20",
            "2026-11-20",
            "",
            0,
            "what changed",
        ),
        (
            "changes between 2024-02-01 and 2024-02-03 in src/a",
            "2024-02-01",
            "2024-02-03",
            0,
            "changes in src/a",
        ),
        (
            "what changed until 2024-02",
            "",
            "2024-02-29",
            0,
            "what changed",
        ),
        (
            "what was fixed on March 3rd, 2025?",
            "2025-03-03",
            "2025-03-03",
            0,
            "what was fixed",
        ),
        (
            "what was fixed on 3 March 2025?",
            "2025-03-03",
            "2025-03-03",
            0,
            "what was fixed",
        ),
        (
            "what was added in 2024?",
            "2024-01-01",
            "2024-12-31",
            0,
            "what was added",
        ),
        (
            "what changed in the last 3 days",
            "3 days ago",
            "",
            0,
            "what changed",
        ),
        (
            "what changed 2 days ago?",
            "2 days ago",
            "2 days ago",
            0,
            "what changed",
        ),
        (
            "was hat sich letzte Woche geändert?",
            "1 week ago",
            "",
            0,
            "was hat sich geändert?",
        ),
        (
            "was wurde vor zwei Tagen geändert?",
            "2 days ago",
            "2 days ago",
            0,
            "was wurde geändert?",
        ),
        (
            "qu'est-ce qui a changé la semaine dernière ?",
            "1 week ago",
            "",
            0,
            "qu'est-ce qui a changé ?",
        ),
        (
            "¿qué cambió ayer?",
            "yesterday",
            "yesterday",
            0,
            "¿qué cambió",
        ),
        (
            "¿qué cambió el 3 de marzo de 2025?",
            "2025-03-03",
            "2025-03-03",
            0,
            "¿qué cambió",
        ),
        (
            "show me the last 3 commits",
            "",
            "",
            3,
            "show me the last commits",
        ),
        (
            "the five most recent commits",
            "",
            "",
            5,
            "the most recent commits",
        ),
        (
            "was wurde vorgestern geändert?",
            "2 days ago",
            "2 days ago",
            0,
            "was wurde geändert?",
        ),
        (
            "what changed before 2026?",
            "",
            "2025-12-31",
            0,
            "what changed",
        ),
        (
            "what changed after 2025?",
            "2026-01-01",
            "",
            0,
            "what changed",
        ),
        (
            "what changed before yesterday?",
            "",
            "2 days ago",
            0,
            "what changed",
        ),
        (
            "what changed after 2024-02-29?",
            "2024-03-01",
            "",
            0,
            "what changed",
        ),
        (
            "what changed before March 2024?",
            "",
            "2024-02-29",
            0,
            "what changed",
        ),
        (
            "what changed after yesterday?",
            "today",
            "",
            0,
            "what changed",
        ),
        (
            "was wurde vor 2026 geändert?",
            "",
            "2025-12-31",
            0,
            "was wurde geändert?",
        ),
        (
            "was wurde nach 2025 geändert?",
            "2026-01-01",
            "",
            0,
            "was wurde geändert?",
        ),
        (
            "was wurde vor dem 2026-03-01 geändert?",
            "",
            "2026-02-28",
            0,
            "was wurde geändert?",
        ),
        (
            "qu'est-ce qui a changé avant 2026 ?",
            "",
            "2025-12-31",
            0,
            "qu'est-ce qui a changé ?",
        ),
        (
            "¿qué cambió antes de 2026?",
            "",
            "2025-12-31",
            0,
            "¿qué cambió",
        ),
        (
            "¿qué cambió después de 2025?",
            "2026-01-01",
            "",
            0,
            "¿qué cambió",
        ),
        (
            "what changed since 2025?",
            "2025-01-01",
            "",
            0,
            "what changed",
        ),
        (
            "what changed between november 20 and november 22 2026?",
            "2026-11-20",
            "2026-11-22",
            0,
            "what changed",
        ),
        (
            "what changed between december 20 and january 5 2026?",
            "2025-12-20",
            "2026-01-05",
            0,
            "what changed",
        ),
        (
            "what changed between february and april 2024?",
            "2024-02-01",
            "2024-04-30",
            0,
            "what changed",
        ),
        (
            "what changed between december and january 2026?",
            "2025-12-01",
            "2026-01-31",
            0,
            "what changed",
        ),
        (
            "what changed between 2026-11-22 and 2026-11-20?",
            "2026-11-20",
            "2026-11-22",
            0,
            "what changed",
        ),
        ("les 3 derniers commits", "", "", 3, "les derniers commits"),
        (
            "what listens on port 2024?",
            "",
            "",
            0,
            "what listens on port 2024?",
        ),
        (
            "why may 3 retries fail?",
            "",
            "",
            0,
            "why may 3 retries fail?",
        ),
        (
            "which commits fixed rule 42?",
            "",
            "",
            0,
            "which commits fixed rule 42?",
        ),
        ("2026-13-40", "", "", 0, "2026-13-40"),
        ("", "", "", 0, ""),
    ] {
        let (bounds, left) = Bounds::taken_from(question);
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let expected = Bounds {
            since: some(since),
            until: some(until),
            most: (most > 0).then_some(most),
            ..Bounds::default()
        };
        assert_eq!((bounds, &*left), (expected, rest), "{question}");
    }
    let (bounds, _) = Bounds::taken_from("how many commits were made in May 2026?");
    assert_eq!(
        (bounds.is_counted, bounds.told()),
        (true, " from 2026-05-01 to 2026-05-31".to_owned())
    );
    let (bounds, left) = Bounds::taken_from("How many commits are there since yesterday?");
    assert_eq!(
        (bounds.is_counted, bounds.told(), &*left),
        (true, " since yesterday".to_owned(), "commits are there")
    );
}

#[test]
fn numbers_of_any_size_are_read() {
    for question in [
        "what changed before 4294967295 days ago?",
        "what changed before 4294967295 weeks ago?",
        "what changed after 99999999999 days ago?",
        "the last 4294967295 commits",
        "between december 20 and january 5 0000",
        "what changed before 0000-01-01?",
        "what changed before 9999-12-31?",
    ] {
        let (bounds, _) = Bounds::taken_from(question);
        assert!(
            bounds.most.is_none_or(|most| most <= 1_000_000),
            "{question}"
        );
    }
}

#[test]
fn spans_without_a_year_or_with_large_numbers_are_taken() {
    for (question, since, until, most) in [
        ("what changed this year?", "this year", "", 0),
        ("what changed in November?", "November", "November", 0),
        ("what changed since November?", "November", "", 0),
        ("was wurde seit März geändert?", "March", "", 0),
        ("what changed since Friday?", "Friday", "", 0),
        ("what changed last Friday?", "Friday", "Friday", 0),
        ("was wurde am Montag geändert?", "Monday", "Monday", 0),
        // What depends on the day it is is no day, and said to be none by whom it is handed on to.
        (
            "what changed before Friday?",
            "",
            "the day before Friday",
            0,
        ),
        (
            "what changed after this year?",
            "the day after this year",
            "",
            0,
        ),
        (
            "what changed from Monday to Friday?",
            "Monday",
            "Friday after Monday",
            0,
        ),
        (
            "what changed between March and June?",
            "March",
            "June after March",
            0,
        ),
        ("et hier ?", "yesterday", "yesterday", 0),
        ("the first commit of 2024", "2024-01-01", "2024-12-31", 0),
        ("was wurde seit 3 Tagen geändert?", "3 days ago", "", 0),
        ("what changed within 14 days?", "14 days ago", "", 0),
        (
            "what changed within the last 14 days?",
            "14 days ago",
            "",
            0,
        ),
        ("the last 1000 commits", "", "", 1000),
        (
            "what changed in the last 500 years?",
            "500 years ago",
            "",
            0,
        ),
        // What is no time.
        ("what may the parser change?", "", "", 0),
        ("was wurde hier geändert?", "", "", 0),
        ("what is on port 8080 of 2024?", "", "", 0),
        ("qu'est-ce qui a changé hier ?", "yesterday", "yesterday", 0),
    ] {
        let (bounds, _) = Bounds::taken_from(question);
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        assert_eq!(
            (bounds.since, bounds.until, bounds.most.unwrap_or(0)),
            (some(since), some(until), most),
            "{question}"
        );
    }
}

#[test]
fn which_commits_are_meant_is_taken() {
    for (question, author, is_sample, one) in [
        ("how many commits did ann make?", "ann", false, None),
        ("how many commits did we make?", "", false, None),
        ("how many commits by bob?", "bob", false, None),
        ("how many commits by day?", "", false, None),
        ("commits by person X", "X", false, None),
        ("show commits by the author Ann Lee", "Ann Lee", false, None),
        ("how many commits by user ann?", "ann", false, None),
        ("commits by person", "", false, None),
        ("commits by user and day", "", false, None),
        ("show me commits by Ann Lee, please", "Ann Lee", false, None),
        ("show me Ann's last 3 commits", "Ann", false, None),
        ("what was changed by Bob in 2024?", "Bob", false, None),
        ("what did Ann change in 2024?", "Ann", false, None),
        ("what did Ann change?", "Ann", false, None),
        ("what did the parser change in 2024?", "", false, None),
        ("wie viele Commits von Ann?", "Ann", false, None),
        ("which of the last 20 commits touched it?", "", true, None),
        (
            "how many of the last 20 commits touched it?",
            "",
            true,
            None,
        ),
        ("did the last 5 commits touch it?", "", true, None),
        (
            "welche der letzten 20 Commits haben es geändert?",
            "",
            true,
            None,
        ),
        ("what changed in it in the last 20 commits?", "", true, None),
        ("the last 20 commits to it", "", false, None),
        ("a list of the last 20 commits to it", "", false, None),
        (
            "what was the first commit after 2024-02-01?",
            "",
            false,
            Some(Change::First),
        ),
        (
            "when was the last commit before 2025?",
            "",
            false,
            Some(Change::Latest),
        ),
        ("the last commits before 2025", "", false, None),
    ] {
        let (bounds, _) = Bounds::taken_from(question);
        assert_eq!(
            (bounds.author.as_deref(), bounds.is_sample, bounds.one),
            (Some(author).filter(|name| !name.is_empty()), is_sample, one),
            "{question}"
        );
    }
}

#[test]
fn days_without_an_end_are_read_in_time() {
    let many = "jan 1 to ".repeat(50_000);
    assert_eq!(Bounds::taken_from(&many).0, Bounds::default());
}

#[test]
fn hashes_and_what_a_commit_changed_are_taken_from_questions() {
    for (question, commit, is_detailed, rest) in [
        (
            "what did commit 1a9e23a change?",
            "1a9e23a",
            false,
            "what did commit change?",
        ),
        ("show me commit `1A9E`", "1a9e", false, "show me commit"),
        ("show me 1a9e23a", "1a9e23a", false, "show me"),
        (
            "what changed in 1a9e23a?",
            "1a9e23a",
            false,
            "what changed in",
        ),
        (
            "what did commit 1234567 change?",
            "1234567",
            false,
            "what did commit change?",
        ),
        (
            "which files were touched by 1a9e23a?",
            "1a9e23a",
            false,
            "which files were touched by",
        ),
        (
            "why was 1a9e23a reverted?",
            "1a9e23a",
            false,
            "why was reverted?",
        ),
        ("1a9e23a", "1a9e23a", false, ""),
        (
            "where was commit 1a9e23a made?",
            "1a9e23a",
            false,
            "where was commit made?",
        ),
        (
            "where is the hash d41d8cd98f00b204e9800998ecf8427e used?",
            "",
            false,
            "",
        ),
        ("where is the color 1e90ffcc changed?", "", false, ""),
        ("where is sha1 da39a3ee5e6b used?", "", false, ""),
        ("which test changes 1a2b3c4?", "", false, ""),
        ("what changed between v0.2 and 1a2b3c4?", "", false, ""),
        ("what did commit 1234 change?", "", false, ""),
        ("what did the commit added yesterday change?", "", false, ""),
        ("where is the color ff00aa1 used?", "", false, ""),
        ("why does commit fade out?", "", false, ""),
        ("what did the last commit change?", "", true, ""),
        ("what files did the first commit add?", "", true, ""),
        ("explain the latest commit", "", true, ""),
        ("was macht der letzte Commit?", "", true, ""),
        ("when was the last commit?", "", false, ""),
        ("who made the last commit?", "", false, ""),
        ("what changed since the last commit?", "", false, ""),
        ("what did the last change do?", "", false, ""),
        ("what did the last commits change?", "", false, ""),
    ] {
        let (bounds, without) = Bounds::taken_from(question);
        let wanted = Some(commit).filter(|hash| !hash.is_empty());
        assert_eq!(bounds.commit.as_deref(), wanted, "{question}");
        assert_eq!(bounds.is_detailed, is_detailed, "{question}");
        if wanted.is_some() {
            assert_eq!(without, rest, "{question}");
        }
    }
}

#[test]
fn hashes_bound_a_question_as_days_do() {
    let between = |first, last| (Some(first), Some(last));
    let before = Some("the commit before 3477bff");
    for (question, bounds) in [
        ("what changed since 1a9e23a?", (Some("1a9e23a"), None)),
        (
            "what changed after commit 1a9e23a?",
            (Some("1a9e23a"), None),
        ),
        ("how many commits since 1a9e23a?", (Some("1a9e23a"), None)),
        ("what is new since the commit 1a9e?", (Some("1a9e"), None)),
        ("was wurde seit 1a9e23a geändert?", (Some("1a9e23a"), None)),
        ("what changed before 3477bff?", (None, before)),
        ("what changed up to 3477bff?", (None, Some("3477bff"))),
        (
            "what changed between 1a9e23a and 3477bff?",
            between("1a9e23a", "3477bff"),
        ),
        (
            "commits from commit 1a9e23a to commit 3477bff",
            between("1a9e23a", "3477bff"),
        ),
        (
            "what changed in 1a9e23a..3477bff?",
            between("1a9e23a", "3477bff"),
        ),
        (
            "what changed since 2024-02-01 before 3477bff?",
            (Some("2024-02-01"), before),
        ),
        ("what did commit 1a9e23a change?", (None, None)),
        ("where is it changed after 1e90ffcc?", (None, None)),
    ] {
        let (read, _) = Bounds::taken_from(question);
        assert_eq!(
            (read.since.as_deref(), read.until.as_deref()),
            bounds,
            "{question}"
        );
    }
}

#[test]
fn commits_bound_in_words_that_are_true_whichever_is_older() {
    for (question, told) in [
        (
            "what changed between 1a9e23a and 3477bff?",
            " between 1a9e23a and 3477bff, the newer one included",
        ),
        (
            "what changed between 5d2d329 and 5d2d329?",
            " between 5d2d329 and itself",
        ),
        (
            "what changed since 2024-02-01 before 3477bff?",
            " since 2024-02-01, up to the commit before 3477bff",
        ),
        ("what changed since 1a9e23a?", " since 1a9e23a"),
    ] {
        assert_eq!(Bounds::taken_from(question).0.told(), told, "{question}");
    }
}

#[test]
fn what_is_spelt_as_a_name_may_be_no_author() {
    for (question, author, is_open) in [
        ("what did Session change?", "Session", true),
        ("was hat Anna geändert?", "Anna", true),
        ("what did Ann change last week?", "Ann", true),
        ("commits by Ann", "Ann", false),
        ("how many commits did Ann make?", "Ann", false),
        ("what did Session::open change?", "", false),
        ("what did Session change in 1.1.0?", "", false),
        ("what did Session change in v2.0?", "", false),
        ("what did Anna write?", "", false),
        ("how did Session change?", "", false),
        ("what did the session change?", "", false),
    ] {
        let (bounds, _) = Bounds::taken_from(question);
        let wanted = Some(author).filter(|name| !name.is_empty());
        assert_eq!(bounds.author.as_deref(), wanted, "{question}");
        assert_eq!(bounds.may_be_no_author, is_open, "{question}");
    }
}
