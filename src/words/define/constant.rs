//! Constants with a type before their name: C, C++, C#, Dart, Java. Pure.

use super::{Tongue, is_part};

/// Where in a line the name stands of the constant that it sets: `const unsigned int kLimit = 3;`. A local one is no
/// more than a variable that does not change, unless it is spelt as constants are. Tables are not looked at: what is
/// in them is looked for.
pub(super) fn set(tongue: Tongue, line: &str) -> Option<(usize, usize)> {
    let sign = line.find(['=', '(', ';', '{', '"', '\''])?;
    let is_set = line[sign..].starts_with('=') && !line[sign..].starts_with("==");
    let before = &line[..sign];
    let may_stand = |c: char| is_part(c) || " \t*&<>:,".contains(c);
    let is_table = line.trim_end().ends_with('{') || !before.chars().all(may_stand);
    if !tongue.has_heads() || !is_set || is_table {
        return None;
    }
    let mut words = before.split_whitespace();
    let leading: Vec<&str> = words.by_ref().take_while(|word| leads(word)).collect();
    let is_fixed = leading.iter().any(|word| fixes(word));
    let named = before.trim_end();
    let start = named.rfind(|c| !is_part(c)).map_or(0, |at| at + 1);
    let name = &named[start..];
    let is_name = name.starts_with(|c: char| c.is_alphabetic() || c == '_') && name != "operator";
    let is_own = line.starts_with(|c: char| !c.is_whitespace())
        || leading
            .iter()
            .any(|word| matches!(*word, "static" | "constexpr"))
        || (tongue == Tongue::Java && leading.contains(&"const"))
        || is_spelt_so(name);
    (is_fixed && is_name && is_own && !leads(name)).then_some((start, start + name.len()))
}

/// Whether a word may stand before the type of a constant.
fn leads(word: &str) -> bool {
    fixes(word)
        || matches!(
            word,
            "static"
                | "inline"
                | "extern"
                | "public"
                | "private"
                | "protected"
                | "internal"
                | "thread_local"
        )
}

/// Whether a word says that what it sets stays so.
fn fixes(word: &str) -> bool {
    matches!(word, "const" | "constexpr" | "final" | "readonly")
}

/// `LIMIT`, `kLimit`.
fn is_spelt_so(name: &str) -> bool {
    let behind = name.strip_prefix('k').unwrap_or_default();
    let is_capital = |c: char| c.is_uppercase() || c.is_ascii_digit() || c == '_';
    behind.starts_with(char::is_uppercase) || (name.len() > 1 && name.chars().all(is_capital))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_as_it_is_set_has_its_name_before_the_sign() {
        for (path, line, name) in [
            (
                "a.h",
                "const unsigned int kMaxVarint64Length = 10;",
                "kMaxVarint64Length",
            ),
            ("a.h", "static const int limit = 3;", "limit"),
            ("a.cc", "const std::string Options::kName = f(x);", "kName"),
            (
                "a.cc",
                "constexpr std::array<int, 3> kAll = {1, 2, 3};",
                "kAll",
            ),
            ("a.c", "static const struct option options[] = {", ""),
            ("a.c", "const char *const names[] = {\"a\"};", ""),
            ("a.h", "  static constexpr size_t size = 3;", "size"),
            ("a.cc", "  const size_t kSize = 3;", "kSize"),
            ("a.cc", "  const size_t size = 3;", ""),
            ("a.cc", "  const auto& it = all.find(key);", ""),
            ("a.h", "extern const int kLimit;", ""),
            ("a.h", "const int& limit() const {", ""),
            ("a.h", "const T& operator=(const T& other);", ""),
            ("a.cc", "for (const auto& one : all) {", ""),
            ("a.cc", "int count = 3;", ""),
            ("a.cc", "const = 3;", ""),
            (
                "A.java",
                "    public static final int MAX_SIZE = 3;",
                "MAX_SIZE",
            ),
            ("A.java", "        final int size = 3;", ""),
            ("A.cs", "    private const int Size = 3;", "Size"),
            ("A.cs", "    static readonly List<int> All = new();", "All"),
            ("a.rs", "const int limit = 3;", ""),
        ] {
            let found = set(Tongue::of(path), line).map_or("", |(start, end)| &line[start..end]);
            assert_eq!(found, name, "{path}: {line}");
        }
    }
}
