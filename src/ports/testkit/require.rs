//! Parts of the machine that some tests need: a test without its part is skipped, or fails where the
//! environment variable `ORACLE_REQUIRE` names the part, as it does in CI.

use std::{
    env,
    fmt::Display,
    io::{self, Write as _},
};

/// The names in `ORACLE_REQUIRE`, with commas between them. `tests/browser/run.sh` reads the last.
const PARTS: [&str; 3] = ["postgres", "cc", "chromium"];

/// Returns a part of the machine, or `None` if it is missing, which is printed: the test is skipped.
///
/// # Panics
/// If the part is missing and `ORACLE_REQUIRE` names it, or names an unknown part.
pub fn require<T, E: Display>(part: &str, found: Result<T, E>) -> Option<T> {
    let missing = match found {
        Ok(found) => return Some(found),
        Err(missing) => missing,
    };
    let required = env::var("ORACLE_REQUIRE").unwrap_or_default();
    let may_skip = may_skip(part, &required);
    assert_eq!(may_skip, Ok(()), "`{part}` is missing: {missing}");
    // The test harness shows what a passing test prints only if it is written like this.
    let _ = writeln!(io::stderr(), "SKIPPED, `{part}` is missing: {missing}");
    None
}

/// Whether a test may be skipped that lacks a part.
fn may_skip(part: &str, required: &str) -> Result<(), String> {
    let mut required = required.split(',').filter(|name| !name.is_empty());
    if let Some(unknown) = required.clone().find(|name| !PARTS.contains(name)) {
        let known = PARTS.join("`, `");
        return Err(format!("ORACLE_REQUIRE names `{unknown}`: use `{known}`"));
    }
    match required.any(|name| name == part) {
        true => Err(format!("ORACLE_REQUIRE names `{part}`: install it")),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_is_skipped_unless_its_part_is_required() {
        let install = |part: &str| Err(format!("ORACLE_REQUIRE names `{part}`: install it"));
        let unknown = "ORACLE_REQUIRE names `postgers`: use `postgres`, `cc`, `chromium`";
        for (part, required, may) in [
            ("postgres", "", Ok(())),
            ("postgres", "cc,chromium", Ok(())),
            ("postgres", "postgres", install("postgres")),
            ("cc", "postgres,cc,", install("cc")),
            ("cc", "postgers,cc", Err(unknown.to_owned())),
        ] {
            assert_eq!(may_skip(part, required), may, "{part} of {required:?}");
        }
    }
}
