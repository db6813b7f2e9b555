//! Which files are prose: documents and notes. By their names. Pure.

const ENDINGS: [&str; 7] = ["md", "markdown", "mdx", "rst", "adoc", "txt", "org"];

/// Whether a file is prose, by how its path ends.
pub(crate) fn is_prose(path: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or(path);
    let ending = file.rsplit_once('.').map_or("", |(_, ending)| ending);
    ENDINGS
        .iter()
        .any(|known| known.eq_ignore_ascii_case(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_glob_has_all_endings() {}

    #[test]
    fn prose_is_told_by_its_ending() {
        for (path, is) in [
            ("docs/a.md", true),
            ("README.RST", true),
            ("a.test.txt", true),
            ("docs.md/a.rs", false),
            ("README", false),
            ("md", false),
            ("", false),
        ] {
            assert_eq!(is_prose(path), is, "{path}");
        }
    }
}
