use super::*;
use crate::query::Lexicon;
use crate::query::matcher::Matcher;

fn read(text: &str) -> Reading {
    let matcher = Matcher::new(&Lexicon::parse("", "test").unwrap());
    let mut reading = Reading::default();
    matcher.read(text, &mut reading);
    reading
}

fn names(text: &str, wanted: impl Fn(&Feature) -> bool) -> Vec<String> {
    let reading = read(text);
    let mut names = Vec::new();
    each_feature(&reading, &mut |feature| {
        if wanted(&feature) {
            names.push(feature.name(&reading));
        }
    });
    names
}

#[test]
fn word_features_include_neighbours() {
    let got = names("Fix it. Then go", |f| f.group() == FeatureGroup::Words);
    let want = [
        "word \"fix\"",
        "words \"fix it\"",
        "words around \"fix it then\"",
        "clause begins \"fix\"",
        "clause begins \"fix it\"",
        "begins \"fix\"",
        "word \"it\"",
        "words around \"it then go\"",
        "word \"then\"",
        "words \"then go\"",
        "clause begins \"then\"",
        "clause begins \"then go\"",
        "word \"go\"",
        "ends \"go\"",
    ];
    assert_eq!(got, want);
}

#[test]
fn letter_features_cover_words_and_runs() {
    let letters = |text: &str| {
        let names = names(text, |f| f.group() == FeatureGroup::Letters).into_iter();
        let bare = names.map(|name| name.trim_start_matches("letters ").replace('"', "|"));
        bare.collect::<Vec<_>>().join(" ")
    };
    let word = "| a| | ab| | ab | |ab| |ab | |b |";
    assert_eq!(letters("ab"), word, "a word");
    let run = "| 修| | 修复| | 修复 | |修| |修复| |修复 | |复| |复 |";
    assert_eq!(letters("修复"), run, "a run");
    let long = "x".repeat(5_000);
    let count = names(&long, |f| f.group() == FeatureGroup::Letters).len();
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
        let there: Vec<usize> = shapes(text, &read(text)).places().collect();
        assert!(there.contains(&place), "{name}: {there:?}");
    }
    let plain: Vec<usize> = shapes("fine so far. what next", &read("fine so far. what next"))
        .places()
        .collect();
    assert_eq!(plain, [14], "nothing but its length");
}

#[test]
fn shape_names_are_unique() {
    let names: std::collections::BTreeSet<_> = (0..SHAPES).map(Shapes::name).collect();
    assert_eq!((names.len(), names.contains("")), (SHAPES, false));
}
