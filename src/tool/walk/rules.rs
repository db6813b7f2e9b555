//! Applies `.gitignore` and `.ignore` to the entries of a walk. Folders of version control are
//! never entered; a hidden name needs a rule that names its dot.
//!
//! Each file is opened once, without blocking on a FIFO, and read within bounds. A walk meets a
//! folder before its entries, so rules are stored under the folder's path. Nearer rules take
//! precedence.

use std::{
    borrow::Cow,
    collections::HashMap,
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder, Glob},
};
use parking_lot::RwLock;
use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
};

use super::Scope;
use crate::tool::guard::{READ, is_never_read};

/// Names of rule files; within a folder the later takes precedence.
const RULES: [&str; 2] = [".gitignore", ".ignore"];
/// Largest rule file, in bytes; each line is compiled and kept.
const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// Maximum size of all rules of a walk, in bytes: each line is tested against every file below it,
/// and real projects have far fewer.
const MAX_TOTAL_BYTES: u64 = 2 * 1024 * 1024;

#[derive(Debug)]
pub(super) struct Rules {
    folders: RwLock<HashMap<PathBuf, Arc<IgnoreFolder>>>,
    top: Option<Arc<IgnoreFolder>>,
    /// Bytes of rules that may still be read.
    remaining: AtomicU64,
    /// Folders that are left out, because their rules are no regular file, or cannot be read or
    /// parsed, so they might forbid anything; at least one if the start itself is affected.
    invalid: AtomicU64,
}

#[derive(Debug, Default)]
struct IgnoreFolder {
    own: Option<Gitignore>,
    above: Option<Arc<IgnoreFolder>>,
}

impl IgnoreFolder {
    fn below(own: Option<Gitignore>, above: Arc<Self>) -> Arc<Self> {
        let above = Some(above);
        Arc::new(Self { own, above })
    }
}

impl Rules {
    pub(super) fn of(scope: &Scope) -> Self {
        let remaining = AtomicU64::new(MAX_TOTAL_BYTES);
        let mut top = Some(Arc::new(IgnoreFolder::default()));
        let above = scope.ancestor_folders();
        for folder in above.iter().rev().chain([&scope.start]) {
            match read(folder, &remaining) {
                Ok(None) => {}
                Ok(own) => top = top.map(|above| IgnoreFolder::below(own, above)),
                Err(InvalidRuleFile) => top = None,
            }
        }
        Self {
            folders: RwLock::default(),
            top,
            remaining,
            invalid: AtomicU64::new(0),
        }
    }

    pub(super) fn invalid(&self) -> u64 {
        self.invalid.load(Ordering::Relaxed)
    }

    /// Whether a walk includes an entry.
    pub(super) fn include(&self, path: &Path, is_dir: bool) -> bool {
        let name = path.file_name().unwrap_or_default();
        if is_never_read(name) {
            return false;
        }
        let known = |folder| self.folders.read().get(folder).cloned();
        let around = path.parent().and_then(known);
        let Some(around) = around.or_else(|| self.top.clone()) else {
            self.invalid.fetch_max(1, Ordering::Relaxed);
            return false;
        };
        let is_hidden = name.as_encoded_bytes().starts_with(b".");
        let mut folders = std::iter::successors(Some(&*around), |one| one.above.as_deref());
        let is_ignored =
            folders.find_map(|folder| match folder.own.as_ref()?.matched(path, is_dir) {
                Match::None => None,
                Match::Ignore(_) => Some(true),
                Match::Whitelist(rule) => Some(is_hidden && !matches_hidden(rule)),
            });
        if is_ignored.unwrap_or(is_hidden) {
            return false;
        }
        if is_dir {
            let within = match read(path, &self.remaining) {
                Ok(None) => around,
                Ok(own) => IgnoreFolder::below(own, around),
                Err(InvalidRuleFile) => {
                    self.invalid.fetch_add(1, Ordering::Relaxed);
                    return false;
                }
            };
            self.folders.write().insert(path.to_owned(), within);
        }
        true
    }
}

fn matches_hidden(rule: &Glob) -> bool {
    let last = rule.actual().rsplit('/').next();
    last.is_some_and(|last| last.starts_with('.'))
}

#[derive(Debug, PartialEq, Eq)]
struct InvalidRuleFile;

fn read(folder: &Path, remaining: &AtomicU64) -> Result<Option<Gitignore>, InvalidRuleFile> {
    let mut builder: Option<GitignoreBuilder> = None;
    for name in RULES {
        let path = folder.join(name);
        let Some(text) = text_of(&path)? else {
            continue;
        };
        let bytes = text.len() as u64;
        let enough = |remaining: u64| remaining.checked_sub(bytes);
        let left = remaining.fetch_update(Ordering::Relaxed, Ordering::Relaxed, enough);
        left.map_err(|_| InvalidRuleFile)?;
        let builder = builder.get_or_insert_with(|| GitignoreBuilder::new(folder));
        for line in text.trim_start_matches('\u{feff}').lines() {
            // Valid lines of a partly broken file apply, as in git.
            if let Some(line) = to_glob_syntax(line)? {
                let _ = builder.add_line(Some(path.clone()), &line);
            }
        }
    }
    let Some(builder) = builder else {
        return Ok(None);
    };
    let rules = builder.build().map_err(|_| InvalidRuleFile)?;
    Ok(Some(rules).filter(|rules| !rules.is_empty()))
}

fn text_of(path: &Path) -> Result<Option<String>, InvalidRuleFile> {
    // A link is followed, even out of the project: rules are never shown.
    let file = match rustix::fs::open(path, READ | OFlags::CLOEXEC, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        // Some systems cannot open a folder.
        Err(_) if path.is_dir() => return Ok(None),
        Err(_) => return Err(InvalidRuleFile),
    };
    let found = file.metadata().map_err(|_| InvalidRuleFile)?;
    if found.is_dir() {
        return Ok(None);
    }
    if !found.is_file() {
        return Err(InvalidRuleFile);
    }
    let mut bytes = Vec::new();
    let read = file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes);
    if read.is_err() || bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(InvalidRuleFile);
    }
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// Longest rule, in bytes; no path is longer.
const MAX_LINE_BYTES: usize = 4 * 1024;
/// Git's named classes as ranges, independent of the locale.
const CLASSES: [(&str, &str); 8] = [
    ("[:alnum:]", "a-zA-Z0-9"),
    ("[:alpha:]", "a-zA-Z"),
    ("[:blank:]", " \t"),
    ("[:digit:]", "0-9"),
    ("[:lower:]", "a-z"),
    ("[:space:]", " \t-\r"),
    ("[:upper:]", "A-Z"),
    ("[:xdigit:]", "0-9a-fA-F"),
];
/// Named classes whose characters have a meaning inside brackets.
const UNSUPPORTED_CLASSES: [&str; 4] = ["[:cntrl:]", "[:graph:]", "[:print:]", "[:punct:]"];

/// Rewrites a rule so that the glob crate reads it as git does: braces become literal, and named
/// classes become ranges.
fn to_glob_syntax(line: &str) -> Result<Option<Cow<'_, str>>, InvalidRuleFile> {
    if line.len() > MAX_LINE_BYTES {
        return Err(InvalidRuleFile);
    }
    if line.starts_with('#') || !line.contains(['{', '}', '[']) {
        return Ok(Some(Cow::Borrowed(line)));
    }
    let mut spelt = String::with_capacity(line.len() + 8);
    let mut rest = line;
    // Start of the open class's characters.
    let mut class: Option<usize> = None;
    while let Some(c) = rest.chars().next() {
        let named = CLASSES.iter().find(|(name, _)| rest.starts_with(name));
        let mut length = c.len_utf8();
        match (c, named) {
            ('[', Some((name, ranges))) if class.is_some() => {
                spelt.push_str(ranges);
                length = name.len();
            }
            ('[', _) if class.is_none() => {
                let negated = rest[1..].starts_with(['!', '^']);
                spelt.push_str(if negated { "[!" } else { "[" });
                length += usize::from(negated);
                class = Some(spelt.len());
            }
            ('[', None) if rest.starts_with("[:") => {
                let mut known = UNSUPPORTED_CLASSES.iter();
                let is_known = known.any(|name| rest.starts_with(name));
                return (!is_known).then_some(None).ok_or(InvalidRuleFile);
            }
            ('\\', _) if class.is_some() => return Err(InvalidRuleFile),
            (']', _) if class.is_some_and(|start| spelt.len() > start) => {
                class = None;
                spelt.push(c);
            }
            ('{' | '}', _) if class.is_none() => spelt.extend(['\\', c]),
            ('\\', _) => {
                let next = rest[1..].chars().next();
                spelt.push(c);
                spelt.extend(next);
                length += next.map_or(0, char::len_utf8);
            }
            _ => spelt.push(c),
        }
        rest = &rest[length..];
    }
    Ok(class.is_none().then_some(Cow::Owned(spelt)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gitignore_rules_translate_to_globs() {
        for (line, spelt) in [
            ("*.rs", Some("*.rs")),
            ("a{b,c}", Some("a\\{b,c\\}")),
            ("a\\{b", Some("a\\{b")),
            ("# {a}", Some("# {a}")),
            ("secret[[:digit:]].txt", Some("secret[0-9].txt")),
            ("[![:upper:]_]x", Some("[!A-Z_]x")),
            ("ü[ä]{", Some("ü[ä]\\{")),
            ("[{]", Some("[{]")),
            ("a\\", Some("a\\")),
            ("[a{", None),
            ("[abc", None),
            ("[[:none:]]", None),
        ] {
            let got = to_glob_syntax(line).unwrap();
            assert_eq!(got.as_deref(), spelt, "{line}");
        }
        for line in [&*"{".repeat(MAX_LINE_BYTES + 1), "a[[:punct:]]", "x[\\]]y"] {
            assert_eq!(to_glob_syntax(line), Err(InvalidRuleFile), "{line}");
        }
        assert_eq!(to_glob_syntax(&"[".repeat(MAX_LINE_BYTES)), Ok(None));
    }

    /// The expected results come from `git check-ignore`.
    #[test]
    fn translated_classes_match_like_git() {
        for (line, fit, others) in [
            ("a[^[:alnum:]]", "a! a~", "ab a1"),
            ("a[:digit:]", "ad a: ag", "a1"),
            ("x[]-]y", "x]y x-y", "xay"),
            ("x[!-]y", "xay", "x-y"),
            ("x[a!]y", "xay x!y", "xby"),
            ("x[a^-]y", "xay x^y x-y", "xby"),
            ("x[!!]y", "xay", "x!y"),
            ("x[ -~]y", "xay x!y x-y x]y x^y", "xäy"),
        ] {
            let spelt = to_glob_syntax(line).unwrap().unwrap();
            let mut rules = GitignoreBuilder::new("");
            rules.add_line(None, &spelt).unwrap();
            let rules = rules.build().unwrap();
            let fits = |path: &&str| rules.matched(path, false).is_ignore();
            let all: Vec<&str> = fit.split(' ').chain(others.split(' ')).collect();
            let got: Vec<&str> = all.into_iter().filter(fits).collect();
            assert_eq!(got.join(" "), fit, "{line} as {spelt}");
        }
    }
}
