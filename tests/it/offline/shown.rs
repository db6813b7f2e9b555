//! Questions for files and folders as they are, for what manifests say besides, and for how a project is tested.

use super::says;

const CARGO: &str = "\
[package]
name = \"shop\"
version = \"1.2.3\"
rust-version = \"1.80\"

[features]
default = [\"till\"]
till = []
";

#[tokio::test]
async fn files_and_folders_are_shown_as_they_are() {
    let long: String = (1..=90).map(|at| format!("// {at}\n")).collect();
    says(
        &[
            ("Cargo.toml", CARGO),
            ("src/lib.rs", &long),
            ("src/till/open.rs", "fn open() {}\n"),
            ("src/till/close.rs", "fn close() {}\n"),
            ("src/till/deep/bell.rs", "fn bell() {}\n"),
        ],
        &[
            (
                &["show me src/lib.rs"],
                "answered",
                &[
                    "src/lib.rs has 90 lines; these are the first 60.",
                    "// 1\n",
                    "// 60\n```",
                ],
            ),
            (
                &["open src/till/open.rs"],
                "answered",
                &["src/till/open.rs has one line.", "fn open() {}"],
            ),
            (
                &["which files are in src/till?"],
                "answered",
                &[
                    "src/till has 3 files, without those that are hidden or ignored.",
                    "- src/till/close.rs\n- src/till/open.rs\n- src/till/deep/bell.rs",
                ],
            ),
            (
                &["list the files in src/tell"],
                "stuck",
                &["I found nothing about “src/tell”: there is no 'src/tell'."],
            ),
            (
                &["show me src/lob.rs"],
                "stuck",
                &["I found nothing about “src/lob.rs”: there is no 'src/lob.rs'."],
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn more_of_a_file_and_files_without_their_folder_are_shown() {
    let long: String = (1..=90).map(|at| format!("// {at}\n")).collect();
    let many: Vec<String> = (0..60).map(|at| format!("many/f{at}.txt")).collect();
    let mut files: Vec<(&str, &str)> = many.iter().map(|path| (path.as_str(), "x\n")).collect();
    files.extend([
        ("Cargo.toml", CARGO),
        ("src/deep/lib.rs", long.as_str()),
        ("left/one.rs", "fn a() {}\n"),
        ("right/one.rs", "fn b() {}\n"),
        ("right/c/two.rs", "fn c() {}\n"),
    ]);
    says(
        &files,
        &[
            (
                &["show me lib.rs"],
                "answered",
                &["src/deep/lib.rs has 90 lines; these are the first 60."],
            ),
            (
                &["show me src/deep/lib.rs", "show me more"],
                "answered",
                &[
                    "src/deep/lib.rs has 90 lines; these are lines 61 to 90.",
                    "// 61\n",
                ],
            ),
            (
                &["show me src/deep/lib.rs", "show me more", "show me more"],
                "answered",
                &["That was all of src/deep/lib.rs."],
            ),
            (
                &["show me one.rs"],
                "partial",
                &["There are 2 files of that name:\n\n- left/one.rs\n- right/one.rs"],
            ),
            (
                &["which files are in left?", "and in right?"],
                "answered",
                &["right has 2 files,", "- right/one.rs\n- right/c/two.rs"],
            ),
            (
                &["which files are in many?"],
                "partial",
                &[
                    "many has 60 files,",
                    "- … and 60 files whose names I was not shown",
                ],
            ),
            (&["show me the folder structure"], "partial", &["right/"]),
            (
                &["how many files are in the project?"],
                "answered",
                &["There are 65 files"],
            ),
        ],
    )
    .await;
}

#[cfg(unix)]
#[tokio::test]
async fn why_a_file_cannot_be_shown_is_told() {
    let folder = crate::files::project(&[("README.md", "# Hi\n")]);
    std::fs::write(folder.path().join("logo.png"), [0x89, 0x50, 0, 1, 2, 0]).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", folder.path().join("link.txt")).unwrap();
    let rows: [(&[&str], &str); 2] = [
        (
            &["show me logo.png"],
            "'logo.png' is a binary file of 6 bytes",
        ),
        (
            &["open link.txt"],
            "'link.txt' lies outside of the project folder",
        ),
    ];
    let conversations = rows.map(|row| row.0);
    let answers = super::answers(&folder, &conversations).await;
    for ((questions, part), (answer, ended)) in rows.iter().zip(answers) {
        assert_eq!(ended, "stuck", "{questions:?}: {answer}");
        assert!(
            answer.contains(part),
            "{questions:?}: no {part:?} in {answer}"
        );
        assert!(!answer.contains("use a path"), "{answer}");
    }
}

#[tokio::test]
async fn what_a_project_needs_and_has_by_default_is_declared() {
    says(
        &[("Cargo.toml", CARGO), ("src/lib.rs", "//! The shop.\n")],
        &[
            (
                &["which Rust version does it need?"],
                "answered",
                &["It needs “1.80”, by Cargo.toml:4."],
            ),
            (&["what is the MSRV?"], "answered", &["“1.80”"]),
            (
                &["what are the default features?"],
                "answered",
                &["Cargo.toml:6-8", "those of `default` are on"],
            ),
            (
                &["which Python version does it need?"],
                "stuck",
                &["I read Cargo.toml and saw nothing of it there"],
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_script_of_the_tools_around_a_project_is_no_certain_answer() {
    let package = "{\n  \"scripts\": {\n    \"test\": \"grunt\"\n  }\n}\n";
    let rows = [(
        &["how do I run the tests?"][..],
        "partial",
        &[
            "`python -m pytest` is usual where there is pyproject.toml. `npm test`, by package.json:3.",
        ][..],
    )];
    let manifest = ("pyproject.toml", "[project]\nname = \"shop\"\n");
    says(&[manifest, ("package.json", package)], &rows).await;
    let guide = "# Tests\n\n## Running the tests\n\n```sh\n./runtests.py\n```\n";
    says(
        &[
            manifest,
            ("package.json", package),
            ("tests/README.md", guide),
        ],
        &[(
            &["how do I run the tests?"],
            "answered",
            &[
                "How its tests are run is said in tests/README.md:",
                "./runtests.py",
            ],
        )],
    )
    .await;
    says(
        &[
            ("Cargo.toml", CARGO),
            ("docs/replies.md", "# Building replies\n\nReturn them.\n"),
            (
                "vendor/other/README.md",
                "# Other\n\n## Building\n\ncmake .\n",
            ),
        ],
        &[(
            &["how do I build it?"],
            "partial",
            &["`cargo build` is usual where there is Cargo.toml."],
        )],
    )
    .await;
}

#[tokio::test]
async fn a_file_that_is_there_is_that_of_the_project_alone() {
    says(
        &[
            ("Cargo.toml", CARGO),
            ("README.md", "# Shop\n\nSells.\n\nMore.\n"),
            ("Dockerfile", "FROM x\n"),
            ("src/lib.rs", "//! The shop.\n"),
        ],
        &[
            (
                &["does shop have a Dockerfile?"],
                "answered",
                &["Yes: Dockerfile."],
            ),
            (
                &["does Kubernetes have a Dockerfile?"],
                "partial",
                &["Here is Dockerfile. Whether that is the one of “Kubernetes” I cannot tell"],
            ),
            (&["is there a readme.md?"], "answered", &["Yes: README.md."]),
            (
                &["is there a Dockerfile?", "and a Jenkinsfile?"],
                "partial",
                &["I saw no `Jenkinsfile` here."],
            ),
            (
                &["is there a README?", "show me the whole file"],
                "answered",
                &["Yes: README.md.", "Sells.\n\nMore."],
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn versions_beyond_what_a_search_shows_are_not_counted() {
    let log: String = (1..=130)
        .rev()
        .map(|minor| format!("## 1.{minor}.0\n\n- Change {minor}\n\n"))
        .collect();
    let log = format!("# Changes\n\n{log}");
    says(
        &[("CHANGELOG.md", &log), ("a.rs", "fn a() {}\n")],
        &[
            (
                &["what changed since 1.2.0?"],
                "partial",
                &[
                    "I saw ",
                    "not all headings of the change log were looked at",
                ],
            ),
            (
                &["what changed since 1.120.0?"],
                "answered",
                &["There are 10 versions behind 1.120.0"],
            ),
        ],
    )
    .await;
}
