//! Lines of a search, and what of them implements or extends a type.

use super::*;
use crate::llm::offline::{
    evidence::Searched,
    toolbox::{Naming, pattern},
};

fn evidence(files: &[(&str, &[(u32, &str)])]) -> Evidence {
    let lines = |lines: &[(u32, &str)]| -> Lines {
        let lines = lines.iter().map(|(at, text)| (*at, (*text).to_owned()));
        lines.collect()
    };
    let files = files
        .iter()
        .map(|(path, of)| ((*path).to_owned(), lines(of)));
    Evidence {
        files: files.collect(),
        ..Evidence::default()
    }
}

#[test]
fn those_that_implement_a_type_are_told_from_what_only_names_it() {
    let found = evidence(&[
        (
            "src/a.rs",
            &[
                (3, "pub trait Backend: Send {"),
                (9, "impl Backend for Offline {"),
                (20, "// impl Backend for Nobody {"),
                (21, "fn run(by: &dyn Backend) {"),
                (30, "impl<T: Backend> Backend for Arc<T>"),
                (31, "where"),
                (40, "impl From<Backend> for Name {"),
            ],
        ),
        ("tests/a.rs", &[(5, "impl Backend for Fake {")]),
        ("docs/a.md", &[(1, "impl Backend for Yours {")]),
        (
            "src/A.java",
            &[
                (4, "public class Online"),
                (5, "    extends Base"),
                (6, "    implements Backend {"),
            ],
        ),
    ]);
    let kin = Kin::of(&found, "Backend");
    let got: Vec<(&str, u32, &str)> = kin
        .of_it
        .iter()
        .map(|one| (one.spot.path, one.spot.line, one.name.as_str()))
        .collect();
    let want = [
        ("src/A.java", 4, "Online"),
        ("src/a.rs", 9, "Offline"),
        ("src/a.rs", 30, "Arc<T>"),
        ("tests/a.rs", 5, "Fake"),
    ];
    assert_eq!(got, want);
    let defined: Vec<u32> = kin.defined.iter().map(|spot| spot.line).collect();
    assert_eq!(defined, [3]);
    assert!(Kin::of(&found, "Frontend").is_empty());
}

#[test]
fn what_other_searches_did_not_show_is_no_relative() {
    let searched = |query: &str, unshown| Searched {
        query: query.to_owned(),
        found: 90,
        unshown,
        reaches: None,
        is_stopped: false,
    };
    let kin = |of_all, of_kin| {
        let own = pattern("Backend", Naming::Kin);
        let evidence = Evidence {
            searched: vec![
                searched(&own, of_kin),
                searched(&pattern("Backend", Naming::Any), of_all),
            ],
            ..evidence(&[("src/a.rs", &[(9, "impl Backend for Offline {")])])
        };
        Kin::of(&evidence, "Backend").is_cut()
    };
    assert!(!kin(80, 0));
    assert!(kin(80, 3));
}
