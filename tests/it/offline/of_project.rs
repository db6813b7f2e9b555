//! Questions about the project as such: its version, its license, how it is built; and those that go on from
//! what was shown.

use super::says;

const CARGO: &str = "\
[package]
name = \"shop\"
version = \"1.2.3\"
authors = [\"Ann Lee\"]
license = \"MIT\"

[dependencies]
serde = \"1\"
";

const README: &str = "\
[![badge](x)](y)

# Shop

A shop that sells things by the hour.

## Testing

All tests at once:

```sh
cargo test --workspace
```

## Legal

No warranty.
";

const TILL: &str = "\
//! The till.

/// Opens the till for a customer.
pub fn open_till(customer: &str) -> u32 {
    let mut sum = 0;
    for letter in customer.chars() {
        sum += letter as u32;
        sum += 1;
        sum += 2;
        sum += 3;
        sum += 4;
        sum += 5;
        sum += 6;
        sum += 7;
        sum += 8;
        sum += 9;
        sum += 10;
        sum += 11;
        sum += 12;
        sum += 13;
        sum += 14;
        sum += 15;
        sum += 16;
        sum += 17;
        sum += 18;
    }
    sum
}

pub fn close_till() {}

#[cfg(test)]
mod tests {
    #[test]
    fn the_till_opens() {
        super::open_till(\"Ann\");
    }
}
";

#[tokio::test]
async fn a_project_tells_what_it_states_of_itself() {
    let files = [
        ("Cargo.toml", CARGO),
        ("README.md", README),
        ("LICENSE", "MIT License\n\nCopyright (c) Ann Lee\n"),
        ("src/till.rs", TILL),
        (
            "src/version.rs",
            "/// The version of the wire.\npub const WIRE_VERSION: u32 = 7;\n",
        ),
    ];
    says(
        &files,
        &[
            (
                &["What version is this?"],
                "answered",
                &["The version is “1.2.3”, by Cargo.toml:3.", "Cargo.toml:3\n```toml\nversion = \"1.2.3\"\n```"],
            ),
            (&["which version of shop is this"], "answered", &["“1.2.3”"]),
            (
                &["which version of the wire is there?"],
                "answered",
                &["src/version.rs"],
            ),
            (
                &["Under which license is shop?"],
                "answered",
                &["Its license is “MIT”, by Cargo.toml:5; the text is in LICENSE:1-3."],
            ),
            (&["Who are the authors?"], "answered", &["Cargo.toml:4", "Ann Lee"]),
            (
                &["Welche Abhängigkeiten hat das Projekt?"],
                "answered",
                &["What it depends on is declared in Cargo.toml:7-8."],
            ),
            (
                &["What is this written in?"],
                "answered",
                &["There are 5 files (2 Rust, 1 Markdown, 1 TOML, 1 other)", "src/ till.rs, version.rs"],
            ),
            (&["How many lines of code are there?"], "partial", &["5 files"]),
            (
                &["How do I run the tests?"],
                "answered",
                &["`cargo test --workspace`, by README.md:12. More is said in README.md:7-13.", "All tests at once"],
            ),
            (
                &["Wie baue ich das Projekt?"],
                "partial",
                &["`cargo build` is usual where there is Cargo.toml."],
            ),
            (
                &["run the tests"],
                "partial",
                &["I can only read and quote.", "By hand: `cargo test --workspace`, by README.md:12."],
            ),
            (
                &["what is this project?"],
                "answered",
                &["README.md:3-5\n```markdown\n# Shop\n\nA shop that sells things by the hour.\n```"],
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn what_is_said_elsewhere_is_found_there() {
    says(
        &[
            (
                "package.json",
                "{\n  \"name\": \"shop\",\n  \"scripts\": {\n    \"test\": \"tap\"\n  }\n}\n",
            ),
            ("setup.py", "setup(name='shop', version=read())\n"),
            ("tox.ini", "[tox]\n"),
            (
                "shop/__init__.py",
                "\"\"\"Shop.\"\"\"\n\n__version__ = \"4.5.6\"\n",
            ),
            ("CHANGELOG.md", "# Changes\n\n## 4.4.0\n\n- First\n"),
        ],
        &[
            (
                &["what version is this?"],
                "answered",
                &["The version is “4.5.6”, by shop/__init__.py:3."],
            ),
            (
                &["how do I run the tests?"],
                "partial",
                &[
                    "`npm test`, by package.json:4.",
                    "`tox` is usual where there is tox.ini.",
                ],
            ),
            (
                &["what license is this?"],
                "stuck",
                &[
                    "I found nothing about the license of the project: I read package.json and setup.py and saw nothing of it there.",
                ],
            ),
        ],
    )
    .await;
    says(
        &[
            ("CHANGELOG.md", "# Changes\n\n## 4.4.0\n\n- First\n"),
            ("a.go", "package a\n"),
        ],
        &[(
            &["what version is this?"],
            "partial",
            &["No manifest at its top names a version; the newest in CHANGELOG.md:3 is “4.4.0”."],
        )],
    )
    .await;
    says(
        &[("Makefile", "all:\n\tcc a.c\n"), ("a.c", "int a;\n")],
        &[(
            &["what version is this?"],
            "stuck",
            &["none of the files at the top is known to say it"],
        )],
    )
    .await;
    // What stands in the way is what was looked for, not how it was asked.
    says(
        &[("a.rs", "// It calls what it has.\nfn a() {}\n")],
        &[(
            &["who calls zygote?"],
            "stuck",
            &["no file that was searched has “zygote”."],
        )],
    )
    .await;
}

#[tokio::test]
async fn who_asks_for_more_is_shown_more_of_the_same() {
    let files = [
        ("Cargo.toml", CARGO),
        ("src/till.rs", TILL),
        ("src/code.rs", "/// A code of the shop.\npub struct Code;\n"),
        (
            "src/more.rs",
            "pub fn run() {\n    crate::till::open_till(\"Bo\");\n}\n",
        ),
    ];
    let first = "where is open_till defined?";
    says(
        &files,
        &[
            (
                &[first, "show me the code"],
                "answered",
                &[
                    "All of `open_till` is in src/till.rs:3-28.",
                    "sum += 18;\n    }\n    sum\n}",
                ],
            ),
            (
                &[first, "and who calls it?", "show me the whole function"],
                "answered",
                &["All of `open_till`"],
            ),
            (
                &[first, "show me the code", "who calls it?"],
                "answered",
                &["src/more.rs:2"],
            ),
            (&[first, "go on"], "partial", &["open_till"]),
            (&["show me the code"], "answered", &["`Code`"]),
        ],
    )
    .await;
}
