//! Which language a text is in: by its name, or by its first line.

/// A language whose symbols are known; those that are read alike are one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    Rust,
    /// JavaScript and TypeScript, with and without JSX.
    Script,
    Go,
    Java,
    CSharp,
    Kotlin,
    Swift,
    Php,
    /// C and C++.
    C,
    Python,
    Ruby,
    Shell,
    Sql,
    Markdown,
    /// reStructuredText.
    Rest,
    Toml,
    Yaml,
    Json,
}

impl Language {
    pub(super) fn of(path: &str, text: &str) -> Option<Self> {
        let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
        match name.rsplit_once('.') {
            Some((stem, extension)) if !stem.is_empty() => Self::by_extension(extension),
            _ => Self::by_name(name).or_else(|| Self::by_first_line(text)),
        }
    }

    fn by_extension(extension: &str) -> Option<Self> {
        Some(match extension.to_ascii_lowercase().as_str() {
            "rs" => Self::Rust,
            "js" | "jsx" | "mjs" | "cjs" | "ts" | "tsx" | "mts" | "cts" => Self::Script,
            "go" => Self::Go,
            "java" => Self::Java,
            "cs" => Self::CSharp,
            "kt" | "kts" => Self::Kotlin,
            "swift" => Self::Swift,
            "php" | "phtml" => Self::Php,
            "c" | "h" | "cc" | "cpp" | "cxx" | "hh" | "hpp" | "hxx" | "ipp" | "inl" => Self::C,
            "py" | "pyi" | "pyw" => Self::Python,
            "rb" | "rake" | "gemspec" | "ru" => Self::Ruby,
            "sh" | "bash" | "zsh" | "ksh" | "bats" => Self::Shell,
            "sql" | "ddl" => Self::Sql,
            "md" | "markdown" | "mdx" | "mkd" => Self::Markdown,
            "rst" => Self::Rest,
            "toml" => Self::Toml,
            "yaml" | "yml" => Self::Yaml,
            "json" | "jsonc" => Self::Json,
            _ => return None,
        })
    }

    fn by_name(name: &str) -> Option<Self> {
        match name {
            "Rakefile" | "Gemfile" | "Vagrantfile" | "Podfile" => Some(Self::Ruby),
            "Cargo.lock" | "Pipfile" => Some(Self::Toml),
            ".bashrc" | ".profile" | ".zshrc" | "PKGBUILD" => Some(Self::Shell),
            _ => None,
        }
    }

    fn by_first_line(text: &str) -> Option<Self> {
        let line = text.lines().next()?.strip_prefix("#!")?;
        // A first line may be all there is of a huge text.
        let line = line.get(..200).unwrap_or(line);
        let names = |names: &[&str]| names.iter().any(|name| line.contains(name));
        if names(&["python"]) {
            Some(Self::Python)
        } else if names(&["ruby"]) {
            Some(Self::Ruby)
        } else if names(&["node", "deno", "bun"]) {
            Some(Self::Script)
        } else if names(&["php"]) {
            Some(Self::Php)
        } else if names(&["sh"]) {
            Some(Self::Shell)
        } else {
            None
        }
    }

    /// What a line of a comment begins with.
    pub(super) const fn comment_marks(self) -> &'static [&'static str] {
        match self {
            Self::Rust
            | Self::Script
            | Self::Go
            | Self::Java
            | Self::CSharp
            | Self::Kotlin
            | Self::Swift
            | Self::C => &["//"],
            Self::Php => &["//", "#"],
            Self::Python | Self::Ruby | Self::Shell | Self::Toml | Self::Yaml => &["#"],
            Self::Sql => &["--"],
            Self::Markdown | Self::Rest | Self::Json => &[],
        }
    }

    /// Whether comments stand between `/*` and `*/`.
    pub(super) const fn has_block_comments(self) -> bool {
        matches!(
            self,
            Self::Rust
                | Self::Script
                | Self::Go
                | Self::Java
                | Self::CSharp
                | Self::Kotlin
                | Self::Swift
                | Self::C
                | Self::Php
                | Self::Sql
        )
    }
}
