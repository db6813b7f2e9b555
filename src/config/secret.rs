//! What smells of a secret, by its name alone.

/// Words in the name of a key or a header whose value may be a secret.
const WORDS: [&str; 7] = [
    "auth",
    "key",
    "token",
    "secret",
    "cookie",
    "password",
    "credential",
];

/// Whether the value that has this name may be a secret.
#[must_use]
pub fn may_be_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    WORDS.iter().any(|word| name.contains(word))
}
