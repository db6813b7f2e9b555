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
    list::{Item, ItemKey, ItemValue},
    load::{Entry, Given, Said},
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

    /// What the file says, in the order of its lines. A file that is not TOML says nothing.
    pub(super) fn said(&self) -> Vec<Said> {
        let (table, errors) = DeTable::parse_recoverable(&self.text);
        if !errors.is_empty() {
            return self.syntax(&errors);
        }
        let mut said: Vec<(usize, Said)> = Vec::new();
        for (name, value) in table.into_inner() {
            let at = name.span().start;
            match (keys::section(name.get_ref()), value.get_ref()) {
                (Some(section), DeValue::Table(keys)) => {
                    said.extend(keys.iter().map(|(key, value)| {
                        let entry = self.entry(section.name, key, value);
                        (key.span().start, Said::Value(entry))
                    }));
                }
                (Some(section), _) => {
                    said.push((at, Said::Wrong(self.no_table(section.name, &value, at))));
                }
                (None, _) => {
                    let mut lists = keys::LISTS.into_iter();
                    let list = lists.find(|list| list == name.get_ref());
                    match (list, tables(&value)) {
                        (Some(list), Some(items)) => said.extend(
                            items
                                .into_iter()
                                .map(|(at, keys)| (at, Said::Item(list, self.item(at, keys)))),
                        ),
                        (Some(list), None) => said.push((at, Said::Wrong(self.no_list(list, at)))),
                        (None, _) => {
                            let unknown = self.unknown(name.get_ref(), &value, at);
                            said.push((at, Said::Wrong(unknown)));
                        }
                    }
                }
            }
        }
        said.sort_by_key(|(at, _)| *at);
        said.into_iter().map(|(_, said)| said).collect()
    }

    /// A table of a list, its keys in the order of their lines.
    fn item(&self, at: usize, keys: &DeTable<'_>) -> Item {
        let mut keys: Vec<_> = keys.iter().collect();
        keys.sort_by_key(|(key, _)| key.span().start);
        let key = |(key, value): (&Spanned<Cow<'_, str>>, &Spanned<DeValue<'_>>)| {
            let one = || ItemValue::One(Given::from_toml(value.clone()));
            ItemKey {
                name: key.get_ref().to_string(),
                raw: self.raw(value).to_owned(),
                value: tables(value).map_or_else(one, |items| {
                    let item = |(at, keys)| self.item(at, keys);
                    ItemValue::List(items.into_iter().map(item).collect())
                }),
                origin: self.origin(key.span().start),
            }
        };
        Item {
            origin: self.origin(at),
            keys: keys.into_iter().map(key).collect(),
        }
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

    fn no_list(&self, name: &str, at: usize) -> Problem {
        Problem::NotAllowed {
            origin: self.origin(at),
            key: name.to_owned(),
            value: "…".to_owned(),
            allowed: format!("only a list: the line `[[{name}]]` and keys below it"),
        }
    }

    fn unknown(&self, name: &str, value: &Spanned<DeValue<'_>>, at: usize) -> Problem {
        let origin = self.origin(at);
        if value.get_ref().is_table() || tables(value).is_some() {
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
    fn syntax(&self, errors: &[Error]) -> Vec<Said> {
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
            Said::Wrong(Problem::Syntax {
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

/// The tables of a list and where they begin, if it is a list of tables and not empty.
fn tables<'a, 'i>(value: &'a Spanned<DeValue<'i>>) -> Option<Vec<(usize, &'a DeTable<'i>)>> {
    let items = value.get_ref().as_array()?;
    let table =
        |item: &'a Spanned<DeValue<'i>>| Some((item.span().start, item.get_ref().as_table()?));
    let tables = items.iter().map(table).collect::<Option<Vec<_>>>();
    tables.filter(|tables| !tables.is_empty())
}
