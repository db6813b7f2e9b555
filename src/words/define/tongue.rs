//! What tells in a language that something is defined. Pure.

/// A language, by that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tongue {
    /// C and C++: a type before the name, a block behind the brackets.
    C,
    /// Java and what looks like it: the same, and constructors without a type.
    Java,
    /// JavaScript and TypeScript: a word before the name; of a member, brackets and a block behind it.
    Script,
    Rust,
    /// A word before the name.
    Other,
}

impl Tongue {
    /// By the ending of a path.
    pub(crate) fn of(path: &str) -> Self {
        match path.rsplit('.').next().unwrap_or_default() {
            "c" | "cc" | "cpp" | "cxx" | "h" | "hh" | "hpp" | "hxx" | "inl" | "cu" | "cuh"
            | "m" | "mm" => Self::C,
            "java" | "cs" | "dart" => Self::Java,
            "js" | "jsx" | "mjs" | "cjs" | "ts" | "tsx" | "mts" | "cts" | "vue" | "svelte" => {
                Self::Script
            }
            "rs" => Self::Rust,
            _ => Self::Other,
        }
    }

    /// Whether functions are announced by a head without a block.
    pub(crate) fn has_heads(self) -> bool {
        matches!(self, Self::C | Self::Java)
    }

    /// Whether a word only tells more of what is defined, where in other languages it defines: `const char *name(`.
    pub(super) fn is_modifier(self, word: &str) -> bool {
        self.has_heads() && word == "const"
    }

    /// Whether a word defines what follows it in this language alone, or belongs to one that does.
    pub(super) fn is_keyword(self, before: Option<&str>, word: &str) -> bool {
        let belongs = before == Some("static") && matches!(word, "mut" | "ref");
        self == Self::Rust && (word == "static" || belongs)
    }

    /// Whether a bare line with this word only says that something is defined elsewhere: `class Index;`,
    /// `mod tests;`.
    pub(super) fn announces(self, keyword: &str, bare: &str) -> bool {
        let may = match self {
            Self::C | Self::Java => matches!(keyword, "class" | "struct" | "enum" | "union"),
            Self::Rust => keyword == "mod",
            Self::Script | Self::Other => false,
        };
        may && bare.ends_with(';') && !bare.contains(['{', '(', '='])
    }
}
