//! What a path says about a file: code or prose, and whether it is what people look for.

use crate::words::{Drift, is_prose};

/// What kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tool::code) enum Kind {
    Code,
    Docs,
    /// What changed when: changelogs, release notes, guides for migration.
    Changes,
    Test,
    Example,
    /// Only declarations of what stands elsewhere.
    Declared,
    /// Settings and other data.
    Data,
    /// Made by tools, minified, copied from others, locks.
    Made,
    /// Translations of messages.
    Locale,
}

impl Kind {
    /// By its path from the project's root, with `/`.
    pub(in crate::tool::code) fn of(path: &str) -> Self {
        let name = path.rsplit('/').next().unwrap_or(path);
        // `README` and `COPYING` are for people, `Makefile` and `Dockerfile` for programs.
        let shouts = !name.contains(|c: char| c.is_lowercase() || c == '.');
        let path = path.to_lowercase();
        let file = path.rsplit('/').next().unwrap_or(&path);
        let (stem, extension) = file.rsplit_once('.').unwrap_or((file, ""));
        let in_folder = |names: &[&str]| {
            let mut folders = path.split('/').rev().skip(1);
            folders.any(|folder| names.contains(&folder))
        };
        let says = |words: &[&str]| {
            let mut parts = stem.split(['-', '_', '.', ' ']);
            parts.any(|part| words.contains(&part))
        };
        let prose = is_prose(file) || shouts;
        if matches!(extension, "lock" | "sum" | "map" | "snap" | "min")
            || LOCKS.contains(&file)
            || stem.ends_with(".min")
            || stem.ends_with("_pb2")
            || file.contains(".generated.")
            || in_folder(&VENDORED)
            || holds_others_in_deps(&path, extension)
            || matches!(
                extension,
                "drawio"
                    | "dot"
                    | "puml"
                    | "svg"
                    | "csv"
                    | "tsv"
                    | "jsonl"
                    | "ipynb"
                    | "pem"
                    | "patch"
            )
        {
            Self::Made
        } else if matches!(extension, "po" | "pot" | "xlf" | "mo" | "resx")
            || in_folder(&["locale", "locales", "translations", "lc_messages"])
        {
            Self::Locale
        } else if (says(&["test", "tests", "spec", "conftest"]) && !prose)
            || in_folder(&[
                "test",
                "tests",
                "__tests__",
                "spec",
                "testdata",
                "testing",
                "fixtures",
                "benches",
                "benchmark",
                "benchmarks",
            ])
        {
            Self::Test
        } else if in_folder(&["example", "examples", "samples", "demo", "demos"]) {
            Self::Example
        } else if prose
            && (says(&CHANGES)
                || in_folder(&[
                    "changes",
                    "changelog",
                    "changelogs",
                    "releases",
                    "release-notes",
                    "migrations",
                    "news",
                ]))
        {
            Self::Changes
        } else if prose {
            Self::Docs
        } else if !file.contains('.')
            || matches!(
                extension,
                "json" | "yaml" | "yml" | "toml" | "ini" | "cfg" | "xml" | "orig" | "properties"
            )
        {
            Self::Data
        } else if extension == "pyi" || file.ends_with(".d.ts") {
            Self::Declared
        } else {
            Self::Code
        }
    }

    /// With what its text says: code that says that a tool made it, or that looks so.
    pub(in crate::tool::code) fn with_text(self, text: &str) -> Self {
        let head = &text[..text.floor_char_boundary(HEAD)];
        let says = || {
            let head = head.to_ascii_lowercase();
            MADE.iter().any(|made| head.contains(made))
        };
        let dense = || text.len() > HEAD && text.len() / text.lines().count().max(1) > DENSE;
        match self {
            Self::Code | Self::Data if says() || dense() => Self::Made,
            Self::Code if is_bindings(text) => Self::Declared,
            kind => kind,
        }
    }

    /// How much a place in such a file is worth to a question of that drift.
    pub(super) fn worth(self, drift: Drift) -> f32 {
        match self {
            Self::Test if drift.tested => 1.3,
            Self::Code | Self::Docs if drift.tested => 0.6,
            Self::Code if drift.change => 0.75,
            Self::Code if drift.code => 1.15,
            Self::Code if drift.guide => 0.85,
            Self::Docs if drift.code && !drift.guide => 0.85,
            Self::Docs if drift.guide || drift.setting => 1.2,
            Self::Code | Self::Docs => 1.0,
            Self::Changes if drift.change => 1.6,
            Self::Changes => 0.55,
            Self::Test if drift.tests => 0.9,
            Self::Test => 0.45,
            Self::Example => 0.6,
            Self::Declared => 0.7,
            Self::Data => 0.6,
            Self::Made => 0.3,
            Self::Locale => 0.1,
        }
    }

    /// What tests are worth that stand in a file of code, beside what it is worth.
    pub(super) fn worth_within_code(drift: Drift) -> f32 {
        let tests = Self::Test.worth(drift);
        if drift.tested {
            tests / Self::Code.worth(drift)
        } else {
            tests
        }
    }

    /// The same for those who look for a text or a pattern, in hundredths.
    pub(in crate::tool::code) fn worth_to_anybody(self) -> u32 {
        (self.worth(Drift::default()) * 100.0) as u32
    }

    /// Whether it is made of headings and paragraphs.
    pub(super) const fn is_prose(self) -> bool {
        matches!(self, Self::Docs | Self::Changes)
    }
}

/// Others' code lies in folders of its own there. Further down that is so of C alone: elsewhere a `deps` may be a
/// project's own.
fn holds_others_in_deps(path: &str, extension: &str) -> bool {
    let behind = match path.strip_prefix("deps/") {
        None if matches!(extension, "c" | "h" | "cc" | "cpp" | "hpp") => {
            path.split_once("/deps/").map(|(_, behind)| behind)
        }
        behind => behind,
    };
    behind.is_some_and(|behind| behind.contains('/'))
}

/// Whether Rust code only declares what stands in a library of another language.
fn is_bindings(text: &str) -> bool {
    if !text.contains("extern \"C\" {") {
        return false;
    }
    let functions = || {
        text.lines()
            .filter(|line| line.trim_start().starts_with("pub fn "))
    };
    let with_body = functions()
        .filter(|line| line.trim_end().ends_with('{'))
        .count();
    let all = functions().count();
    all >= MANY_DECLARED && with_body * 4 < all
}

/// So many declarations make bindings.
const MANY_DECLARED: usize = 20;
/// Where a file says that it was made by a tool, in bytes from its beginning; and how long the lines
/// of people are on the average, at most.
const HEAD: usize = 1_000;
const DENSE: usize = 250;
const MADE: [&str; 7] = [
    "do not edit",
    "don't edit",
    "do not modify",
    "autogenerated",
    "auto-generated",
    "automatically generated",
    "@generated",
];

const LOCKS: [&str; 4] = [
    "package-lock.json",
    "pnpm-lock.yaml",
    "npm-shrinkwrap.json",
    "yarn.lock",
];

const VENDORED: [&str; 12] = [
    "node_modules",
    "bower_components",
    "site-packages",
    "3rdparty",
    "thirdparty",
    "vendor",
    "vendored",
    "third_party",
    "third-party",
    "target",
    "dist",
    "generated",
];

const CHANGES: [&str; 11] = [
    "changelog",
    "changes",
    "history",
    "news",
    "releases",
    "migration",
    "migrating",
    "upgrading",
    "upgrade",
    "whatsnew",
    "breaking",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_tell_what_is_in_them() {
        for (path, kind) in [
            ("src/lib.rs", Kind::Code),
            ("README", Kind::Docs),
            ("Makefile", Kind::Data),
            ("docs/Doxyfile", Kind::Data),
            ("CHANGES", Kind::Changes),
            ("docs/guide.rst", Kind::Docs),
            ("CHANGELOG.md", Kind::Changes),
            ("docs/Migration-Guide-V5.md", Kind::Changes),
            ("doc/changes/8.2.rst", Kind::Changes),
            ("tests/a.rs", Kind::Test),
            ("lib/a.test.js", Kind::Test),
            ("src/test_a.py", Kind::Test),
            ("docs/testing.md", Kind::Docs),
            ("examples/a.rs", Kind::Example),
            ("types/a.d.ts", Kind::Declared),
            ("package.json", Kind::Data),
            ("package-lock.json", Kind::Made),
            ("app.min.js", Kind::Made),
            ("vendor/a.go", Kind::Made),
            ("deps/lua/a.c", Kind::Made),
            ("lib/deps/http/parser.h", Kind::Made),
            ("deps/auth.py", Kind::Code),
            ("app/deps/auth/token.py", Kind::Code),
            ("locale/de/LC_MESSAGES/a.po", Kind::Locale),
        ] {
            assert_eq!(Kind::of(path), kind, "{path}");
        }
    }

    #[test]
    fn code_comes_before_its_tests_and_what_tools_made() {
        let drift = Drift::default();
        let worth = |kind: Kind| kind.worth(drift);
        assert!(worth(Kind::Code) > worth(Kind::Test) && worth(Kind::Test) > worth(Kind::Made));
        let change = Drift {
            change: true,
            ..drift
        };
        assert!(Kind::Changes.worth(change) > Kind::Code.worth(change));
    }

    #[test]
    fn code_that_a_tool_made_is_told_by_its_text() {
        let dense = "x=1;".repeat(1_000);
        for (text, kind) in [
            (
                "// Code generated by x. DO NOT EDIT.\nfn a() {}",
                Kind::Made,
            ),
            (dense.as_str(), Kind::Made),
            ("fn generate() {}", Kind::Code),
            ("", Kind::Code),
        ] {
            assert_eq!(Kind::Code.with_text(text), kind);
        }
        assert_eq!(Kind::Docs.with_text("do not edit"), Kind::Docs);
        let declared = "    pub fn git_add(a: i32) -> i32;\n".repeat(20);
        let bindings = format!("extern \"C\" {{\n{declared}}}\n");
        assert_eq!(Kind::Code.with_text(&bindings), Kind::Declared);
        let one = "extern \"C\" {\n    pub fn git_add(a: i32) -> i32;\n}\n";
        assert_eq!(Kind::Code.with_text(one), Kind::Code);
    }
}
