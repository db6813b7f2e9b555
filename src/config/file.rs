//! The configuration file: TOML with the lines that its keys stand on.

use std::{
    borrow::Cow,
    fs,
    path::{Path, PathBuf},
};

use toml::{
    Spanned,
    de::{DeTable, DeValue, Error},
};

use super::{
    keys,
    load::{Entry, Given},
    problem::{Origin, Problem, shown, shown_unless_secret},
};

/// A configuration file that has been read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// What people know it by.
    pub path: PathBuf,
    /// What it says.
    pub text: String,
}

impl File {
    /// Reads the file.
    ///
    /// # Errors
    /// [`Problem::Unreadable`], also if it is not UTF-8.
    pub fn read(path: &Path) -> Result<Self, Problem> {
        let text = fs::read_to_string(path).map_err(|error| Problem::Unreadable {
            path: path.to_path_buf(),
            why: error.to_string(),
        })?;
        Ok(Self {
            path: path.to_path_buf(),
            text,
        })
    }

    /// What the file sets, in the order of its lines. A file that is not TOML sets nothing.
    pub(super) fn entries(&self) -> Vec<Result<Entry, Problem>> {
        let (table, errors) = DeTable::parse_recoverable(&self.text);
        if !errors.is_empty() {
            return self.syntax(&errors);
        }
        let mut entries: Vec<(usize, Result<Entry, Problem>)> = Vec::new();
        for (name, value) in table.into_inner() {
            let at = name.span().start;
            match (keys::section(name.get_ref()), value.get_ref()) {
                (Some(section), DeValue::Table(keys)) => {
                    entries.extend(keys.iter().map(|(key, value)| {
                        (key.span().start, Ok(self.entry(section.name, key, value)))
                    }));
                }
                (Some(section), _) => {
                    entries.push((at, Err(self.no_table(section.name, &value, at))))
                }
                (None, _) => entries.push((at, Err(self.unknown(name.get_ref(), &value, at)))),
            }
        }
        entries.sort_by_key(|(at, _)| *at);
        entries.into_iter().map(|(_, entry)| entry).collect()
    }

    fn entry(
        &self,
        section: &str,
        key: &Spanned<Cow<'_, str>>,
        value: &Spanned<DeValue<'_>>,
    ) -> Entry {
        Entry {
            section: section.to_owned(),
            key: key.get_ref().to_string(),
            shown: self.raw(value).to_owned(),
            given: Given::from_toml(value.clone()),
            origin: self.origin(key.span().start),
        }
    }

    fn no_table(&self, section: &str, value: &Spanned<DeValue<'_>>, at: usize) -> Problem {
        Problem::NotAllowed {
            origin: self.origin(at),
            key: section.to_owned(),
            value: shown(self.raw(value)),
            allowed: format!("only a section: the line `[{section}]` and keys below it"),
        }
    }

    fn unknown(&self, name: &str, value: &Spanned<DeValue<'_>>, at: usize) -> Problem {
        let origin = self.origin(at);
        if value.get_ref().is_table() {
            let (section, remedy) = (shown(name), keys::section_remedy(name));
            return Problem::UnknownSection {
                origin,
                section,
                remedy,
            };
        }
        Problem::UnknownKey {
            origin,
            key: shown(name),
            value: shown_unless_secret(name, self.raw(value)),
            remedy: keys::key_remedy("", name),
        }
    }

    /// The first complaint about each line: what follows on the line is mostly its echo.
    fn syntax(&self, errors: &[Error]) -> Vec<Result<Entry, Problem>> {
        let mut lines: Vec<(usize, &str)> = Vec::new();
        for error in errors {
            let line = self.line(error.span().unwrap_or_default().start);
            if lines.iter().all(|(known, _)| *known != line) {
                lines.push((line, error.message()));
            }
        }
        lines.sort_by_key(|(line, _)| *line);
        let problem = |(line, why)| {
            let origin = Origin::File {
                path: self.path.clone(),
                line,
            };
            Err(Problem::Syntax {
                origin,
                why: shown(why),
            })
        };
        lines.into_iter().map(problem).collect()
    }

    fn raw(&self, value: &Spanned<DeValue<'_>>) -> &str {
        self.text.get(value.span()).unwrap_or_default()
    }

    fn origin(&self, at: usize) -> Origin {
        Origin::File {
            path: self.path.clone(),
            line: self.line(at),
        }
    }

    fn line(&self, at: usize) -> usize {
        let before = self.text.bytes().take(at);
        before.filter(|&byte| byte == b'\n').count() + 1
    }
}
