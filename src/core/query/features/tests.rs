use std::collections::BTreeSet;

use super::*;
use crate::query::Lexicon;
use crate::query::matcher::Matcher;

fn read(text: &str) -> Reading {
    let matcher = Matcher::new(&Lexicon::parse("", "test").unwrap());
    let mut reading = Reading::default();
    matcher.read(text, &mut reading);
    reading
}

/// Keys and texts of the features of a group.
fn features(text: &str, group: FeatureGroup) -> Vec<(u32, String)> {
    let reading = read(text);
    let mut all = Vec::new();
    each_feature(&reading, &mut |feature| {
        if feature.group() == group {
            let letters = &reading.letters[feature.begin..feature.end];
            all.push((feature.key, letters.iter().collect()));
        }
    });
    all
}

#[test]
fn word_features_include_neighbours() {
    let got = features("Fix it. Then go", FeatureGroup::Words);
    let texts: Vec<&str> = got.iter().map(|(_, text)| text.as_str()).collect();
    let want = [
        "fix",
        "fix it",
        "fix it then",
        "fix",
        "fix it",
        "fix",
        "it",
        "it then go",
        "then",
        "then go",
        "then",
        "then go",
        "go",
        "go",
    ];
    assert_eq!(texts, want);
    let keys: BTreeSet<u32> = got.iter().map(|(key, _)| *key).collect();
    assert_eq!(keys.len(), want.len(), "equal texts, different features");
}

#[test]
fn letter_features_cover_words_and_runs() {
    let letters = |text: &str| {
        let all = features(text, FeatureGroup::Letters).into_iter();
        let bounded = all.map(|(_, letters)| format!("|{letters}|"));
        bounded.collect::<Vec<_>>().join(" ")
    };
    let word = "| a| | ab| | ab | |ab| |ab | |b |";
    assert_eq!(letters("ab"), word, "a word");
    let run = "| 修| | 修复| | 修复 | |修| |修复| |修复 | |复| |复 |";
    assert_eq!(letters("修复"), run, "a run");
    let long = "x".repeat(5_000);
    let count = features(&long, FeatureGroup::Letters).len();
    assert!(count < 5 * MAX_LETTERS, "{count} of a word without end");
}

#[test]
fn shape_features_are_detected() {
    for (name, text, place) in [
        ("a question", "is it so?\"", 0),
        ("a question inside", "so? tell me", 1),
        ("a question in Chinese", "什么？", 0),
        ("an exclamation", "no!", 2),
        ("a back-tick", "the `x`", 4),
        ("snake case", "do_it", 5),
        ("camel case", "call doIt now", 6),
        ("a call", "run()", 7),
        ("a file", "see main.rs.", 8),
        ("a path", "in src/cli", 9),
        ("lines", "a\nb", 11),
        ("capitals", "the API", 20),
        ("Cyrillic", "где это", 25),
        ("Hangul", "어디", 27),
        ("Kana before Han", "修正して", 28),
        ("Han", "在哪", 29),
        ("an emoji", "ok 👍", 31),
    ] {
        let there: Vec<usize> = shapes(text, &read(text)).collect();
        assert!(there.contains(&place), "{name}: {there:?}");
    }
    let plain: Vec<usize> =
        shapes("fine so far. what next", &read("fine so far. what next")).collect();
    assert_eq!(plain, [14], "nothing but its length");
}
