//! Commits by what they did to a text, and authors with how many commits each made.

use super::*;

/// A file whose line about the retry is written three times, and then moves.
fn edited() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    git(folder.path(), "", &["init", "-q"]);
    for (day, text, message) in [
        (1, "let wait = retry(1);\n", "Begin"),
        (2, "let wait = retry(2);\n", "Wait longer"),
        (3, "fn more() {}\nlet wait = retry(2);\n", "More"),
        (4, "fn more() {}\n", "Without"),
    ] {
        commit(folder.path(), day, "a.rs", text, message);
    }
    folder
}

#[tokio::test]
async fn what_was_done_to_the_rest_of_a_line_is_found_by_line_alone() {
    let folder = edited();
    for (name, arguments, want) in [
        (
            "more or less of it",
            json!({"text": "retry"}),
            vec!["Without", "Begin"],
        ),
        (
            "its line",
            json!({"line": "RETRY("}),
            vec!["Without", "Wait longer", "Begin"],
        ),
        (
            "with a day and words",
            json!({"line": "retry", "since": "2024-03-02", "query": "wait"}),
            vec!["Wait longer"],
        ),
    ] {
        assert_eq!(subjects(folder.path(), arguments).await, want, "{name}");
    }
    let counted = json!({"line": "retry", "count": true, "max_results": 1});
    let found = search(folder.path(), counted).await.unwrap();
    let want = "the newest 1 commit of 3 that changed lines with `retry`; there are more: narrow the search";
    assert_eq!(found.lines().last(), Some(want));
}

#[tokio::test]
async fn the_text_of_a_line_is_no_pattern() {
    let folder = tempfile::tempdir().unwrap();
    git(folder.path(), "", &["init", "-q"]);
    // What each would find as a pattern, and what it says.
    let rows = [
        ("axbcd", "a.b(c)*[d]"),
        ("x", "$x"),
        ("y", "^y"),
        ("n", r"\n"),
        ("aab", "a+b"),
        ("zz", "z{2}"),
        ("p", "p|q"),
        ("r", "r?"),
        ("w", r"\w"),
        ("s", "[[:alpha:]]"),
        ("]", "}]"),
        ("é", "É.|"),
    ];
    for (at, (alike, text)) in (1..).zip(rows) {
        let (other, own) = (format!("_{alike}_\n"), format!("_{text}_\n"));
        commit(folder.path(), at, &format!("alike{at}"), &other, "Alike");
        commit(folder.path(), at, &format!("own{at}"), &own, text);
    }
    for (_, text) in rows {
        let found = subjects(folder.path(), json!({"line": text})).await;
        assert_eq!(found, [text]);
    }
}

#[tokio::test]
async fn what_no_line_can_be_is_told() {
    let folder = edited();
    for (arguments, says) in [
        (json!({"line": "x".repeat(501)}), "is too long"),
        (json!({"line": "a\nb"}), "`line` has a line break"),
        (
            json!({"line": "a", "text": "b"}),
            "`text` and `line` do not go together",
        ),
        (
            json!({"commit": "abcd", "line": "src"}),
            "`commit` names one commit",
        ),
    ] {
        let told = search(folder.path(), arguments).await.unwrap_err();
        assert!(told.to_string().contains(says), "{told}");
    }
}

#[tokio::test]
async fn authors_are_counted() {
    let folder = chosen::skewed();
    for (name, arguments, want) in [
        (
            "of all",
            json!({"by_author": true}),
            "4 commits by Ada Lovelace\n2 commits by Bob [x].*\n1 commit by Ann Lee\n\nall 3 authors of 7 commits",
        ),
        (
            "of some days, whatever dates lie between",
            json!({"by_author": true, "since": "2024-03-04", "max_results": 2}),
            "1 commit by Ada Lovelace\n1 commit by Ann Lee\n\n\
             the first 2 of 3 authors of 3 commits since `2024-03-04`",
        ),
        (
            "of a file",
            json!({"by_author": true, "path": "src/a.rs"}),
            "2 commits by Ada Lovelace\n\nall 1 author of 2 commits that changed `src/a.rs`",
        ),
        (
            "of lines",
            json!({"by_author": true, "line": "fn again"}),
            "1 commit by Ada Lovelace\n\nall 1 author of 1 commit that changed lines with `fn again`",
        ),
        (
            "of none",
            json!({"by_author": true, "query": "nowhere"}),
            "no commit with `nowhere` in the message",
        ),
    ] {
        let told = search(folder.path(), arguments).await.unwrap();
        assert_eq!(told, want, "{name}");
    }
}
