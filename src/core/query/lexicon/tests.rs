use super::*;

const ORIGIN: &str = "mine.toml";

fn error(toml: &str) -> String {
    Lexicon::parse(toml, ORIGIN).unwrap_err().to_string()
}

fn weights(lexicon: &Lexicon) -> Vec<(QueryType, &str, f64)> {
    lexicon
        .entries
        .iter()
        .map(|((of, p), &weight)| (*of, p.label.as_str(), weight))
        .collect()
}

#[test]
fn errors_name_the_place_the_problem_and_the_remedy() {
    for (name, toml, want) in [
        (
            "no word",
            "[[code]]\nentries = [\"file\",\n\"?\"]",
            "mine.toml:3: `?` contains no word: add a word or remove it",
        ),
        (
            "anchor inside",
            "[[code]]\nentries = [\"a ^b\"]",
            "mine.toml:2: `a ^b`: `^` may only start an entry and `$` only end it; move it",
        ),
        (
            "too long",
            "[[code]]\nentries = [\"a b c d e f g h i\"]",
            "mine.toml:2: `a b c d e f g h i` is too long: use at most 8 words and 200 alternatives",
        ),
        (
            "weight out of range",
            "[[code]]\nweight = 11.5\nentries = []",
            "mine.toml:2: weight `11.5` is out of range: use -10 to 10, or 0 to disable an entry",
        ),
        (
            "weight that is no number",
            "[[code]]\nweight = nan\nentries = []",
            "mine.toml:2: weight `NaN` is out of range: use -10 to 10, or 0 to disable an entry",
        ),
        (
            "listed twice",
            "[[action]]\nentries = [\"add\"]\n[[action]]\nentries = [\"put/add\"]",
            "mine.toml:4: `add` is listed twice for `action`: keep one of them",
        ),
    ] {
        assert_eq!(error(toml), want, "{name}");
    }
}

#[test]
fn invalid_lexicon_is_refused_with_its_line() {
    for (name, toml, line) in [
        ("not TOML", "[[code]]\nentries = [", 2),
        ("an unknown type", "\n[[cooking]]\nentries = []", 2),
        ("an unknown key", "[[code]]\nwords = []\nentries = []", 2),
        (
            "a weight in words",
            "[[code]]\nweight = \"much\"\nentries = []",
            2,
        ),
        ("an unknown part of the grammar", "[grammar]\nverbs = []", 2),
    ] {
        let error = Lexicon::parse(toml, ORIGIN).unwrap_err();
        let at = matches!(&error.problem, LexiconProblem::Syntax(_)) && error.line == line;
        assert!(at, "{name}: {error}");
    }
}

#[test]
fn entry_may_repeat_across_types_and_anchors() {
    let toml =
        "[[code]]\nentries = [\"new\", \"^new\"]\n[[action]]\nweight = 3\nentries = [\"new\"]";
    let lexicon = Lexicon::parse(toml, ORIGIN).unwrap();
    let want = vec![
        (QueryType::Code, "new", 1.0),
        (QueryType::Code, "new", 1.0),
        (QueryType::Action, "new", 3.0),
    ];
    assert_eq!(weights(&lexicon), want);
}

#[test]
fn extension_adds_replaces_and_disables_entries() {
    let base = "[[code]]\nentries = [\"file\", \"line\"]";
    let more = "[[code]]\nweight = 3\nentries = [\"line\", \"which line\"]\n\
                [[code]]\nweight = 0\nentries = [\"file\"]";
    let read = |toml| Lexicon::parse(toml, ORIGIN).unwrap();
    let extended = read(base).extended_with(read(more));
    let want = vec![
        (QueryType::Code, "file", 0.0),
        (QueryType::Code, "line", 3.0),
        (QueryType::Code, "which line", 3.0),
    ];
    assert_eq!(weights(&extended), want);
    assert_eq!(
        extended.keywords(QueryType::Code),
        BTreeSet::from(["line", "which line"])
    );
}

#[test]
fn extension_extends_the_grammar() {
    let read = |toml| Lexicon::parse(toml, ORIGIN).unwrap();
    let base = read("[grammar]\nfillers = [\"please\"]\n[grammar.forms]\nwrite = [\"wrote\"]");
    let more = read(
        "[grammar]\nfillers = [\"bitte\"]\nfollowup = [\"es\"]\nuninflected = [\"the\"]\n\
         [grammar.contractions]\n\"what's\" = \"what is\"",
    );
    let both = base.clone().extended_with(more.clone());
    assert_eq!(
        both.grammar.fillers,
        &base.grammar.fillers | &more.grammar.fillers
    );
    assert_eq!(both.grammar.followup, more.grammar.followup);
    assert_eq!(both.grammar.uninflected, more.grammar.uninflected);
    assert_eq!(both.grammar.forms, base.grammar.forms);
    let contractions = BTreeMap::from([("whats".into(), vec!["what".into(), "is".into()])]);
    assert_eq!(both.grammar.contractions, contractions);
}
