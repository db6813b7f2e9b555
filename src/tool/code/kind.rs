//! Classifies files by path and text: code, prose, tests, generated.

use crate::tool::text::is_one_of;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKind {
    Code,
    Docs,
    Changes,
    Test,
    Data,
    Generated,
}

/// Whether a question asks for changelogs or guides, which then rank higher.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FilePreference {
    pub(crate) change: bool,
    pub(crate) guide: bool,
}

impl FilePreference {
    /// Classifies a `question` in lower case.
    pub(crate) fn of(question: &str, has_version: bool) -> Self {
        let mentions = |phrases: &str| phrases.split('|').any(|phrase| question.contains(phrase));
        Self {
            change: has_version || mentions(CHANGES),
            guide: mentions(GUIDES),
        }
    }
}

const GUIDES: &str = "\
    how do i|how can i|how to|how do we|can i ";
const CHANGES: &str = "\
    changed in|what changed|which release|which version|what version|since when|since which|\
    when was|when did|release notes|changelog|breaking change|was removed|was dropped|\
    upgrad|migrat";

impl FileKind {
    /// Classifies a path relative to the project, with `/`.
    pub(crate) fn of(path: &str) -> Self {
        let lower = path.to_lowercase();
        let (folders, file) = lower.rsplit_once('/').unwrap_or(("", &lower));
        let (stem, extension) = file.rsplit_once('.').unwrap_or((file, ""));
        let within = |names: &str| folders.split('/').any(|folder| is_one_of(names, folder));
        let has_word = |words: &str| {
            let mut parts = stem.split(['-', '_', '.', ' ']);
            parts.any(|part| is_one_of(words, part))
        };
        let ends = |endings: &str| is_one_of(endings, extension);
        // `README` and `COPYING` are prose, `Makefile` and `Dockerfile` are code.
        let name = path.rsplit('/').next().unwrap_or(path);
        let shouts = !name.contains(|c: char| c.is_lowercase() || c == '.');
        let is_prose = ends("md markdown mdx rst adoc txt org") || shouts;
        if ends(MADE) || has_word("lock min pb2 generated shrinkwrap") || within(VENDORED) {
            Self::Generated
        } else if within(TESTING) || !is_prose && has_word("test tests spec conftest") {
            Self::Test
        } else if is_prose
            && (has_word(CHANGED) || within("changes changelogs releases migrations news"))
        {
            Self::Changes
        } else if is_prose {
            Self::Docs
        } else if ends(DATA) || file.ends_with(".d.ts") || !file.contains('.') {
            Self::Data
        } else {
            Self::Code
        }
    }

    pub(crate) const fn worth(self, preference: FilePreference) -> f32 {
        match self {
            Self::Code if preference.change => 0.75,
            Self::Code if preference.guide => 0.85,
            Self::Docs if preference.guide => 1.2,
            Self::Code | Self::Docs => 1.0,
            Self::Changes if preference.change => 1.6,
            Self::Changes => 0.55,
            Self::Test => 0.45,
            Self::Data => 0.6,
            Self::Generated => 0.25,
        }
    }
}

const MADE: &str =
    "lock sum map snap min po pot xlf mo resx drawio dot puml svg csv tsv jsonl ipynb pem patch";
const VENDORED: &str = "node_modules bower_components site-packages 3rdparty thirdparty vendor vendored \
    third_party third-party target dist generated locale locales translations lc_messages deps";
const TESTING: &str =
    "test tests __tests__ spec testdata testing fixtures benches benchmark benchmarks";
const CHANGED: &str = "changelog changes history news releases migration migrating upgrading upgrade whatsnew breaking";
const DATA: &str = "json yaml yml toml ini cfg xml orig properties pyi";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_kind_follows_from_the_path() {
        for (path, kind) in [
            ("src/lib.rs", FileKind::Code),
            ("README", FileKind::Docs),
            ("Makefile", FileKind::Data),
            ("docs/Doxyfile", FileKind::Data),
            ("CHANGES", FileKind::Changes),
            ("docs/guide.rst", FileKind::Docs),
            ("CHANGELOG.md", FileKind::Changes),
            ("docs/Migration-Guide-V5.md", FileKind::Changes),
            ("doc/changes/8.2.rst", FileKind::Changes),
            ("tests/a.rs", FileKind::Test),
            ("lib/a.test.js", FileKind::Test),
            ("src/test_a.py", FileKind::Test),
            ("docs/testing.md", FileKind::Docs),
            ("types/a.d.ts", FileKind::Data),
            ("package.json", FileKind::Data),
            ("package-lock.json", FileKind::Generated),
            ("app.min.js", FileKind::Generated),
            ("vendor/a.go", FileKind::Generated),
            ("deps/lua/a.c", FileKind::Generated),
            ("lib/deps/http/parser.h", FileKind::Generated),
            ("locale/de/LC_MESSAGES/a.po", FileKind::Generated),
        ] {
            assert_eq!(FileKind::of(path), kind, "{path}");
        }
    }
}
