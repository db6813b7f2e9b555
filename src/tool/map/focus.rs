//! The focus of a map as words and paths, and how well a path or a name matches it.

use crate::tool::code::{
    lexicon::NaturalLanguage,
    words::{self, lexemes, stem},
};

/// Maximum words and paths in a focus; further ones are ignored.
const MAX_WORDS: usize = 32;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Focus {
    words: Vec<Word>,
    paths: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
struct Word {
    whole: String,
    parts: Vec<String>,
}

impl Focus {
    pub(super) fn new(text: &str) -> Self {
        let mut focus = Self::default();
        let apart = |c: char| c.is_whitespace() || "\"'`,;()[]{}<>?!".contains(c);
        for piece in text.split(apart).take(8 * MAX_WORDS) {
            let piece = piece.trim_matches(['.', ':', '/', '-', '#', '&', '*']);
            let is_path = piece.contains('/')
                || piece
                    .rsplit_once('.')
                    .is_some_and(|(stem, end)| !stem.is_empty() && (1..=5).contains(&end.len()));
            if is_path && focus.paths.len() < MAX_WORDS {
                let is_line = |line: &str| line.chars().all(|c| c.is_ascii_digit() || c == '-');
                let at = piece.split_once(':').filter(|(_, line)| is_line(line));
                let path = at.map_or(piece, |(path, _)| path);
                focus.paths.push(path.to_lowercase());
            }
            // The parts of `Type::method` and `path/file.rs` are words too.
            for word in piece.split([':', '/', '.', '#']) {
                let whole = bare(word);
                let is_new = focus.words.iter().all(|known| known.whole != whole);
                if whole.len() > 1
                    && is_new
                    && !NaturalLanguage::English.is_common(&whole)
                    && focus.words.len() < MAX_WORDS
                {
                    focus.words.push(Word {
                        parts: parts(word),
                        whole,
                    });
                }
            }
        }
        focus
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty() && self.paths.is_empty()
    }

    pub(super) fn of_path(&self, path: &str) -> u32 {
        let lower = path.to_lowercase();
        let named = self.paths.iter().map(|wanted| {
            let is_file = lower == *wanted || lower.ends_with(&format!("/{wanted}"));
            let is_below =
                lower.starts_with(&format!("{wanted}/")) || lower.contains(&format!("/{wanted}/"));
            match (is_file, is_below) {
                (true, _) => 120,
                (false, true) => 60,
                (false, false) => 0,
            }
        });
        let file = path.rsplit('/').next().unwrap_or(path);
        let stem = file.split('.').next().unwrap_or(file);
        let folders = path.strip_suffix(file).unwrap_or("");
        let (stem_parts, folder_parts) = (parts(stem), parts(folders));
        let by_words = self.words.iter().map(|word| {
            if bare(stem) == word.whole {
                40
            } else if word.is_in(&stem_parts) {
                20
            } else if word.is_in(&folder_parts) {
                12
            } else {
                0
            }
        });
        named.chain(by_words).sum()
    }

    pub(super) fn of_name(&self, name: &str) -> u32 {
        if self.words.is_empty() {
            return 0;
        }
        let (whole, parts) = (bare(name), parts(name));
        let fits = self.words.iter().map(|word| {
            if whole == word.whole {
                50
            } else if word.is_in(&parts) {
                20
            } else {
                0
            }
        });
        fits.sum()
    }
}

impl Word {
    fn is_in(&self, parts: &[String]) -> bool {
        !self.parts.is_empty() && self.parts.iter().all(|own| parts.contains(own))
    }
}

fn bare(text: &str) -> String {
    let letters = text.chars().filter(|c| c.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

/// Stems of the words in a name: `HttpServer_run2` yields `http`, `server`, `run2`.
fn parts(text: &str) -> Vec<String> {
    let parts = lexemes(text).flat_map(|run| words::parts(run.text()));
    parts.map(|part| stem(&part)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn focus_scores_names_and_paths_by_their_parts() {
        for (focus, name, path, fits_name, fits_path) in [
            (
                "thread search",
                "ThreadSearch",
                "src/tool/threads.rs",
                40,
                20,
            ),
            ("ThreadSearch", "thread_search", "src/a.rs", 50, 0),
            (
                "how does the indexing work?",
                "Index",
                "src/index/mod.rs",
                20,
                12,
            ),
            ("src/tool", "x", "src/tool/a.rs", 0, 84),
            ("guard/path.rs:12", "x", "src/guard/path.rs", 0, 172),
            ("src/v2:10-12", "x", "src/v2/a.rs", 0, 84),
            ("HTTPServer", "HttpServerError", "a/http_server.go", 20, 40),
            ("the is of", "the", "the/is.rs", 0, 0),
            ("cat", "category", "category.rs", 0, 0),
        ] {
            let focus_on = Focus::new(focus);
            let got = (focus_on.of_name(name), focus_on.of_path(path));
            assert_eq!(got, (fits_name, fits_path), "{focus}");
        }
    }

    #[test]
    fn focus_terms_are_bounded() {
        let focus = Focus::new(&"word1 word2 ".repeat(10_000));
        assert_eq!(focus.words.len(), 2);
        let words: Vec<String> = (0..1_000).map(|at| format!("w{at}")).collect();
        assert_eq!(Focus::new(&words.join(" ")).words.len(), MAX_WORDS);
        let paths: Vec<String> = (0..1_000).map(|at| format!("a/{at}.rs")).collect();
        assert_eq!(Focus::new(&paths.join(" ")).paths.len(), MAX_WORDS);
        assert!(Focus::new(" ?! the ").is_empty());
    }
}
