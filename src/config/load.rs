//! Lays file, environment and command line over the defaults, one key at a time, and collects all problems.
//!
//! **Invariant:** only values that the schema allows are laid, so each problem belongs to the one value that
//! was refused.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    ffi::{OsStr, OsString},
    fs,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use toml::{
    Spanned, Table, Value,
    de::{DeTable, DeValue, ValueDeserializer},
};

use super::{
    Because, Choice, Config, check,
    problem::{Origin, Problem, plain, shown, shown_unless_secret},
    schema::{self, LISTS, List, Rule, SECTIONS},
};

/// Where values may come from; a later field wins over an earlier one.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The configuration file, if there is one.
    pub file: Option<File>,
    /// The environment; variables that are not ours may be in it.
    pub environment: Vec<(OsString, OsString)>,
    /// What the command line sets; of two for one key the later wins.
    pub options: Vec<Setting>,
}

/// A value from the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The option as people write it: `--max-turns`.
    pub option: String,
    /// The key it sets, with its section: `oracle.max_turns`.
    pub key: String,
    /// The value as written.
    pub value: String,
}

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

    fn origin(&self, at: usize) -> Origin {
        let before = self.text.bytes().take(at);
        Origin::File {
            path: self.path.clone(),
            line: before.filter(|&byte| byte == b'\n').count() + 1,
        }
    }

    fn raw(&self, value: &Spanned<DeValue<'_>>) -> &str {
        self.text.get(value.span()).unwrap_or_default()
    }
}

/// A configuration, and where each value of it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// The models that are asked with it in this environment, and why.
    pub choice: Choice,
    /// Variables that look like ones of ours and are not, each with the nearest that is.
    pub near_misses: Vec<(String, String)>,
    /// By key with section, of lists with their number; a key that is not here has its default.
    origins: BTreeMap<String, Origin>,
}

/// Makes the configuration.
///
/// # Errors
/// All problems of all sources: of the file by line, of the environment by name, of the command
/// line in its order, and then what does not go together.
pub fn load(sources: &Sources) -> Result<Loaded, Vec<Problem>> {
    let mut draft = Draft::default();
    if let Some(file) = &sources.file {
        draft.file(file);
    }
    let near_misses = draft.environment(&sources.environment);
    for setting in &sources.options {
        let (section, key) = setting.key.split_once('.').unwrap_or(("", &setting.key));
        let origin = Origin::Option(setting.option.clone());
        draft.lay(
            section,
            key,
            &setting.value,
            &Given::text(&setting.value),
            origin,
        );
    }
    draft.finish(&sources.environment, near_misses)
}

impl Loaded {
    /// Why these models are asked.
    #[must_use]
    pub fn why_these_models(&self) -> String {
        match &self.choice.because {
            Because::Set => format!("by {}", self.origin("model.chain")),
            because => because.to_string(),
        }
    }

    /// Where the value of a key such as `oracle.max_turns` came from.
    #[must_use]
    pub fn origin(&self, key: &str) -> Origin {
        self.origins.get(key).cloned().unwrap_or(Origin::Default)
    }

    /// Every section and key as TOML that can be used as a file, each value with where it came from; optional
    /// keys that are not set are named in a comment.
    ///
    /// # Errors
    /// If a value has no form in TOML, which none has that was read from somewhere.
    pub fn show(&self) -> Result<String, toml::ser::Error> {
        let config = Table::try_from(&self.config)?;
        let mut text = String::new();
        for section in &SECTIONS {
            let parted = if text.is_empty() { "" } else { "\n" };
            text.push_str(&format!("{parted}[{}]\n", section.name));
            let there = config.get(section.name);
            for (key, _) in section.keys {
                let value = there.and_then(|values| values.get(key));
                if value.is_none() && (section.name, *key) == ("model", "chain") {
                    let Choice { chain, because } = &self.choice;
                    let chain = chain.models().join(", ");
                    text.push_str(&format!("# {key} is not set: {chain}, {because}\n"));
                    continue;
                }
                text.push_str(&self.line(section.name, key, value));
            }
        }
        for list in LISTS {
            self.show_list(&mut text, list, list.path, config.get(list.path));
        }
        Ok(text)
    }

    fn show_list(&self, text: &mut String, list: &List, place: &str, tables: Option<&Value>) {
        let tables = tables.and_then(Value::as_array).into_iter().flatten();
        for (at, table) in tables.enumerate() {
            let place = format!("{place}.{at}");
            text.push_str(&format!("\n{}\n", list.head));
            for (key, rule) in list.keys {
                match rule {
                    Rule::Tables(inner) => {
                        self.show_list(text, inner, &format!("{place}.{key}"), table.get(key));
                    }
                    _ => text.push_str(&self.line(&place, key, table.get(key))),
                }
            }
        }
    }

    fn line(&self, place: &str, key: &str, value: Option<&Value>) -> String {
        match value {
            Some(value) => {
                let origin = self.origin(&format!("{place}.{key}"));
                format!("{key} = {value} # {origin}\n")
            }
            None => format!("# {key} is not set\n"),
        }
    }
}

/// A value, as far as it is known what was meant.
enum Given {
    /// Text that may stand for a value of any kind.
    Text(String),
    /// A value of a certain kind, of a float with its digits.
    Value(Value, Option<String>),
}

impl Given {
    fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    fn from_toml(value: Spanned<DeValue<'_>>) -> Self {
        let digits = value.get_ref().as_float();
        let digits = digits.map(|float| float.as_str().to_owned());
        // An integer beyond all bounds is no value of any key, like an empty list.
        let value = Value::deserialize(ValueDeserializer::from(value));
        Self::Value(value.unwrap_or(Value::Array(Vec::new())), digits)
    }

    /// The value as it is kept, in the first of the forms that may be meant; else what is allowed.
    fn read(&self, rule: Rule) -> Result<Value, String> {
        match self {
            Self::Value(value, digits) => rule.read(value, digits.as_deref()),
            Self::Text(text) => {
                let trimmed = text.trim();
                let read = rule.read(&text.as_str().into(), None);
                let read = read.or_else(|_| rule.read(&trimmed.into(), None));
                read.or_else(|allowed| match DeValue::parse(trimmed) {
                    Ok(value) => Self::from_toml(value).read(rule),
                    Err(_) => Err(allowed),
                })
            }
        }
    }
}

/// A part of the file.
enum Part<'f, 'i> {
    Key(
        &'static str,
        &'f Spanned<Cow<'i, str>>,
        &'f Spanned<DeValue<'i>>,
    ),
    Item(&'static List, &'f DeTable<'i>),
    Wrong(Problem),
}

#[derive(Default)]
struct Draft {
    /// What has been laid, and nothing else.
    table: Table,
    origins: BTreeMap<String, Origin>,
    problems: Vec<Problem>,
    /// Keys with a problem: what else follows from their value is not told.
    bad: BTreeSet<String>,
}

impl Draft {
    /// Lays what the file says, in the order of its lines; a file that is not TOML says nothing.
    fn file(&mut self, file: &File) {
        let (table, errors) = DeTable::parse_recoverable(&file.text);
        if !errors.is_empty() {
            // The first complaint about each line: what follows on the line is mostly its echo.
            let mut lines = BTreeMap::new();
            for error in &errors {
                let at = error.span().unwrap_or_default().start;
                let line = file
                    .text
                    .bytes()
                    .take(at)
                    .filter(|&byte| byte == b'\n')
                    .count();
                lines.entry(line).or_insert_with(|| Problem::Syntax {
                    origin: file.origin(at),
                    why: shown(error.message()),
                });
            }
            return self.problems.extend(lines.into_values());
        }
        let mut parts: Vec<(usize, Part<'_, '_>)> = Vec::new();
        for (name, value) in table.get_ref() {
            let at = name.span().start;
            let (section, list) = (
                schema::section(name.get_ref()),
                LISTS.into_iter().find(|list| list.path == name.get_ref()),
            );
            match (section, value.get_ref(), list, tables(value)) {
                (Some(section), DeValue::Table(keys), ..) => {
                    let part = |(key, value)| Part::Key(section.name, key, value);
                    parts.extend(keys.iter().map(|pair| (pair.0.span().start, part(pair))));
                }
                (_, _, Some(list), Some(items)) => {
                    let items = items.into_iter();
                    parts.extend(items.map(|(at, keys)| (at, Part::Item(list, keys))));
                }
                _ => parts.push((at, Part::Wrong(misplaced(file, name, value)))),
            }
        }
        parts.sort_by_key(|(at, _)| *at);
        for (at, part) in parts {
            match part {
                Part::Key(section, key, value) => {
                    let (raw, given) = (file.raw(value), Given::from_toml(value.clone()));
                    self.lay(section, key.get_ref(), raw, &given, file.origin(at));
                }
                Part::Item(list, keys) => {
                    let there = self.table.get(list.path).and_then(Value::as_array);
                    let place = format!("{}.{}", list.path, there.map_or(0, Vec::len));
                    let item = self.item(file, list, &place, at, keys);
                    let there = self.table.entry(list.path);
                    let there = there.or_insert_with(|| Value::Array(Vec::new()));
                    if let Value::Array(items) = there {
                        items.push(item.into());
                    }
                }
                Part::Wrong(problem) => self.problems.push(problem),
            }
        }
    }

    /// Lays a value of a section's key.
    fn lay(&mut self, section: &str, key: &str, raw: &str, given: &Given, origin: Origin) {
        let name = format!("{section}.{key}");
        let name = name.trim_start_matches('.').to_owned();
        let known = schema::section(section);
        let Some(rule) = known.and_then(|section| schema::rule(section.keys, key)) else {
            return self.problems.push(Problem::UnknownKey {
                origin,
                key: shown(&name),
                value: shown_unless_secret(&name, raw),
                remedy: schema::key_remedy(section, key),
            });
        };
        match given.read(rule) {
            Ok(value) => {
                let table = self.table.entry(section);
                let table = table.or_insert_with(|| Value::Table(Table::new()));
                if let Value::Table(table) = table {
                    table.insert(key.to_owned(), value);
                }
                self.origins.insert(name, origin);
            }
            Err(allowed) => {
                self.bad.insert(name.clone());
                self.problems.push(Problem::NotAllowed {
                    origin,
                    key: name,
                    value: shown(raw),
                    allowed,
                });
            }
        }
    }

    /// A table of a list, as far as it is in order: what is missing or refused has a value that stands for it.
    fn item(
        &mut self,
        file: &File,
        list: &'static List,
        place: &str,
        at: usize,
        keys: &DeTable<'_>,
    ) -> Table {
        let good = list.required.iter();
        let good = good.map(|(key, value)| ((*key).to_owned(), Value::from(*value)));
        let mut made: Table = good.collect();
        let mut keys: Vec<_> = keys.iter().collect();
        keys.sort_by_key(|(key, _)| key.span().start);
        for &(key, value) in &keys {
            let (name, raw, origin) = (
                key.get_ref().as_ref(),
                file.raw(value),
                file.origin(key.span().start),
            );
            let path = format!("{}.{}", list.path, shown(name));
            let Some(rule) = schema::rule(list.keys, name) else {
                self.problems.push(Problem::UnknownKey {
                    origin,
                    key: path,
                    value: plain(raw),
                    remedy: schema::item_remedy(list, name),
                });
                continue;
            };
            let full = format!("{place}.{name}");
            // Also of one that is refused: it is there.
            self.origins.insert(full.clone(), origin.clone());
            if matches!(rule, Rule::Tables(_)) && tables(value).is_some() {
                continue;
            }
            match Given::from_toml(value.clone()).read(rule) {
                Ok(value) => drop(made.insert(name.to_owned(), value)),
                Err(allowed) => {
                    // An address may hold a user's password.
                    let hidden =
                        (list.hides)(name) || (name == "base_url" && raw.contains(['@', '?', '#']));
                    let value = if hidden { plain(raw) } else { shown(raw) };
                    self.problems.push(Problem::NotAllowed {
                        origin,
                        key: path,
                        value,
                        allowed,
                    });
                    self.bad.insert(full);
                }
            }
        }
        for (key, _) in list.required {
            let full = format!("{place}.{key}");
            if !self.origins.contains_key(&full) {
                self.bad.insert(full);
                self.problems.push(Problem::Missing {
                    origin: file.origin(at),
                    place: list.head.to_owned(),
                    key: (*key).to_owned(),
                });
            }
        }
        for (key, value) in keys {
            let name = key.get_ref().as_ref();
            if let (Some(Rule::Tables(inner)), Some(items)) =
                (schema::rule(list.keys, name), tables(value))
            {
                let items = items.into_iter().enumerate().map(|(number, (at, keys))| {
                    let place = format!("{place}.{name}.{number}");
                    Value::Table(self.item(file, inner, &place, at, keys))
                });
                let items: Vec<Value> = items.collect();
                made.insert(name.to_owned(), items.into());
            }
        }
        made
    }

    /// Lays `ORACLE_<SECTION>__<KEY>`, and for the keys of `[oracle]` `ORACLE_<KEY>`, in the order of the names.
    /// Other variables are left alone; those that are near one of ours are given back with it.
    fn environment(&mut self, variables: &[(OsString, OsString)]) -> Vec<(String, String)> {
        let named = |(name, value): &'_ (OsString, OsString)| {
            Some((name.to_str()?.to_owned(), value.clone()))
        };
        let variables: BTreeMap<String, OsString> = variables.iter().filter_map(named).collect();
        let mut near_misses = Vec::new();
        for (name, value) in &variables {
            match target(name) {
                Some((section, key)) => self.variable(name, value, section, &key),
                None => near_misses.extend(near_miss(name).map(|near| (name.clone(), near))),
            }
        }
        near_misses
    }

    fn variable(&mut self, name: &str, value: &OsStr, section: &str, key: &str) {
        let origin = Origin::Environment(name.to_owned());
        let is_long = section == SHORT && name.contains("__");
        if is_long && schema::section(SHORT).is_some_and(|of| schema::rule(of.keys, key).is_some())
        {
            return self.problems.push(Problem::UnknownKey {
                origin,
                key: format!("{SHORT}.{key}"),
                value: shown_unless_secret(key, &value.to_string_lossy()),
                remedy: format!("the variable is ORACLE_{}", key.to_ascii_uppercase()),
            });
        }
        match value.to_str() {
            Some(text) => self.lay(section, key, text, &Given::text(text), origin),
            None => self.problems.push(Problem::NotAllowed {
                origin,
                key: format!("{section}.{key}"),
                value: shown(&value.to_string_lossy()),
                allowed: "only text in UTF-8".to_owned(),
            }),
        }
    }

    fn finish(
        mut self,
        environment: &[(OsString, OsString)],
        near_misses: Vec<(String, String)>,
    ) -> Result<Loaded, Vec<Problem>> {
        let mut config: Config = match self.table.try_into() {
            Ok(config) => config,
            // What the schema allows and a room's own type does not.
            Err(error) => {
                self.problems.push(Problem::NotAllowed {
                    origin: Origin::Code,
                    key: "configuration".to_owned(),
                    value: "…".to_owned(),
                    allowed: shown(error.message()),
                });
                return Err(self.problems);
            }
        };
        let by_option = |key| matches!(self.origins.get(key), Some(Origin::Option(_)));
        let (turns, chain) = (by_option("oracle.max_turns"), by_option("model.chain"));
        for profile in &mut config.profiles {
            profile.max_turns = profile.max_turns.filter(|_| !turns);
            profile.chain = profile.chain.take().filter(|_| !chain);
        }
        let origin = |key: &str| {
            let origin = self.origins.get(key).cloned().unwrap_or(Origin::Default);
            (!self.bad.contains(key)).then_some(origin)
        };
        self.problems.extend(check::clashes(&config, &origin));
        if !self.problems.is_empty() {
            return Err(self.problems);
        }
        Ok(Loaded {
            choice: config.choice(environment),
            config,
            near_misses,
            origins: self.origins,
        })
    }
}

/// The section whose keys have short names as variables.
const SHORT: &str = "oracle";

/// The section and key that a variable stands for; the key may not exist. None if it is not ours.
fn target(name: &str) -> Option<(&'static str, String)> {
    let rest = name.strip_prefix("ORACLE_")?;
    if rest.chars().any(char::is_lowercase) {
        return None;
    }
    let rest = rest.to_lowercase();
    if let Some((section, key)) = rest.split_once("__") {
        return Some((schema::section(section)?.name, key.to_owned()));
    }
    let section = schema::section(SHORT)?;
    schema::rule(section.keys, &rest)?;
    Some((section.name, rest))
}

/// The variable of ours that another one is near.
fn near_miss(name: &str) -> Option<String> {
    name.strip_prefix("ORACLE_")?;
    let upper = name.to_ascii_uppercase();
    let variables = SECTIONS.iter().flat_map(|section| {
        section.keys.iter().map(|(key, _)| match section.name {
            SHORT => format!("ORACLE_{key}").to_ascii_uppercase(),
            section => format!("ORACLE_{section}__{key}").to_ascii_uppercase(),
        })
    });
    let near = variables.map(|ours| (strsim::levenshtein(&upper, &ours), ours));
    let near = near.filter(|(edits, _)| *edits <= 2).min();
    near.map(|(_, ours)| ours)
}

/// What is wrong with a name outside of all sections, or with what stands for a section or a list.
fn misplaced(file: &File, name: &Spanned<Cow<'_, str>>, value: &Spanned<DeValue<'_>>) -> Problem {
    let (origin, raw) = (file.origin(name.span().start), file.raw(value));
    let name = name.get_ref().as_ref();
    let not_allowed = |value: String, allowed: String| Problem::NotAllowed {
        origin: origin.clone(),
        key: name.to_owned(),
        value,
        allowed,
    };
    if schema::section(name).is_some() {
        let allowed = format!("only a section: the line `[{name}]` and keys below it");
        return not_allowed(shown(raw), allowed);
    }
    if let Some(list) = LISTS.into_iter().find(|list| list.path == name) {
        let allowed = format!("only a list: the line `{}` and keys below it", list.head);
        return not_allowed("…".to_owned(), allowed);
    }
    if value.get_ref().is_table() || tables(value).is_some() {
        return Problem::UnknownSection {
            origin,
            section: shown(name),
            remedy: schema::section_remedy(name),
        };
    }
    Problem::UnknownKey {
        origin,
        key: shown(name),
        value: shown_unless_secret(name, raw),
        remedy: schema::key_remedy("", name),
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
