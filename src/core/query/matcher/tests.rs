use super::*;
use crate::query::lexicon::Lexicon;

const LEXICON: &str = r#"
[grammar]
fillers = ["please", "can you"]
uninflected = ["which", "the"]
[grammar.forms]
write = ["wrote", "written"]
[grammar.contractions]
"where's" = "where is"

[[code]]
entries = ["is which", "implement", "which file", "where is", "数据库", "decided"]
[[documentation]]
entries = ["document", "decide", "plan"]
[[action]]
entries = ["file", "^document", "write", "^new", "go on$", "new"]
[[conversational]]
entries = ["^sure$", "file"]
"#;

fn labels(text: &str) -> Vec<String> {
    let matcher = Matcher::new(&Lexicon::parse(LEXICON, "test").unwrap());
    let mut reading = Reading::default();
    matcher.read(text, &mut reading);
    let label = |e: &Evidence| format!("{}: {}", e.query_type, e.label);
    matcher.evidence(&reading).map(label).collect()
}

#[test]
fn entries_match_word_forms() {
    for (name, text, want) in [
        ("a word", "a document", vec!["documentation: document"]),
        ("not inside another word", "filet profile sured", vec![]),
        (
            "a word form",
            "implementing plans",
            vec!["code: implement", "documentation: plan"],
        ),
        ("an irregular form", "who wrote it", vec!["action: write"]),
        (
            "a listed form hides a generated one",
            "it was decided",
            vec!["code: decided"],
        ),
        (
            "a phrase hides the words inside",
            "so which files?",
            vec!["code: which file"],
        ),
        ("of two that overlap the first", "where is which file", {
            vec!["code: where is", "code: which file"]
        }),
        ("a word beside a phrase counts", "file in which file", {
            vec!["conversational: file", "action: file", "code: which file"]
        }),
        (
            "punctuation inside a phrase does not matter",
            "which-file",
            vec!["code: which file"],
        ),
        ("a contraction", "where's", vec!["code: where is"]),
        (
            "a contraction without apostrophe",
            "Wheres",
            vec!["code: where is"],
        ),
        (
            "once, however often it stands",
            "plan plan plan",
            vec!["documentation: plan"],
        ),
        (
            "characters of an unspaced script",
            "我们的数据库在哪",
            vec!["code: 数据库"],
        ),
        ("an incomplete phrase", "which", vec![]),
        ("nothing", "", vec![]),
    ] {
        assert_eq!(labels(text), want, "{name}");
    }
}

#[test]
fn anchors_bind_an_entry_to_clause_boundaries() {
    for (name, text, want) in [
        ("opens the text", "document it", vec!["action: document"]),
        (
            "elsewhere the plain entry",
            "the document",
            vec!["documentation: document"],
        ),
        (
            "opens a clause",
            "Well: document it",
            vec!["action: document"],
        ),
        (
            "behind a filler",
            "please document it",
            vec!["action: document"],
        ),
        (
            "behind two fillers",
            "Can you please document it",
            vec!["action: document"],
        ),
        (
            "a filler in mid-clause is none",
            "so please document",
            vec!["documentation: document"],
        ),
        ("the anchored entry wins a tie", "new", vec!["action: new"]),
        ("closes the text", "do go on!", vec!["action: go on"]),
        ("closes a clause", "go on. I wait", vec!["action: go on"]),
        ("does not close", "go on reading", vec![]),
        ("both ends", "Sure!", vec!["conversational: sure"]),
        ("only one end", "sure thing", vec![]),
    ] {
        assert_eq!(labels(text), want, "{name}");
    }
}
