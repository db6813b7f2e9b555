//! Lays file, environment and command line over the defaults, one key at a time, and collects all problems.
//!
//! **Invariant:** only values that the rules allow are laid, so each problem belongs to the one value that
//! was refused.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fmt, fs,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use toml::{
    Spanned, Table, Value,
    de::{DeTable, DeValue, ValueDeserializer},
};

use super::{
    Because, Choice, Config, check,
    rule::{self, ROOT, Rule, SHORT, join, path},
    sections::REQUIRED,
};

/// Sources of values; a later field wins over an earlier one.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The configuration file, if there is one.
    pub file: Option<File>,
    /// The environment; variables of other programs may be in it.
    pub environment: Vec<(OsString, OsString)>,
    /// Settings of the command line; of two for one key the later wins.
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
    /// Its name in messages.
    pub path: PathBuf,
    /// Its contents.
    pub text: String,
}

impl File {
    /// Reads the file.
    ///
    /// # Errors
    /// If it cannot be read, or is not UTF-8.
    pub fn read(path: &Path) -> Result<Self, Problem> {
        let text = fs::read_to_string(path).map_err(|error| Problem {
            place: path.display().to_string(),
            line: 0,
            what: format!("the file cannot be read: {error}"),
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
}

/// The source of a value, least important first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// It is not set.
    Default,
    /// A file.
    File {
        /// As it was given.
        path: PathBuf,
        /// The line of the key, from 1.
        line: usize,
    },
    /// An environment variable of this name.
    Environment(String),
    /// A command-line option, written as people write it: `--max-turns`.
    Option(String),
    /// A [`Config`] made in code.
    Code,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Environment(name) => write!(f, "environment variable {name}"),
            Self::Option(name) => write!(f, "option {name}"),
            Self::Code => f.write_str("set in code"),
        }
    }
}

/// A reason why a configuration is refused, in one line: values are cut and escaped to fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {what}")]
pub struct Problem {
    place: String,
    line: usize,
    what: String,
}

impl Problem {
    fn at(origin: &Origin, what: String) -> Self {
        Self {
            place: origin.to_string(),
            line: match origin {
                Origin::File { line, .. } => *line,
                _ => 0,
            },
            what,
        }
    }

    pub(super) fn not_allowed(origin: &Origin, key: &str, value: &str, allowed: &str) -> Self {
        Self::at(
            origin,
            format!("`{key}` is `{value}`, allowed is {allowed}"),
        )
    }
}

/// Whether the value of a key or header of this name may be a secret.
#[must_use]
pub fn may_be_secret(name: &str) -> bool {
    const WORDS: &str = "auth key token secret cookie password credential";
    let name = name.to_ascii_lowercase();
    WORDS.split(' ').any(|word| name.contains(word))
}

/// A value as it goes into a line: nothing invisible, and at most 60 characters.
pub(super) fn shown(value: &str) -> String {
    const MOST: usize = 60;
    let visible = |c: char| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    let mut short: String = value.chars().take(MOST).map(visible).collect();
    if value.chars().nth(MOST).is_some() {
        short.push('…');
    }
    short
}

/// The value of a key that is refused; of one that may be a secret only numbers and switches are shown. An
/// address may hold a password.
pub(super) fn shown_unless_secret(path: &str, key: &str, rule: Option<Rule>, raw: &str) -> String {
    let is_open = match path.split('.').next() {
        Some("providers") => {
            ["name", "dialect", "stream"].contains(&key)
                || key == "base_url" && !raw.contains(['@', '?', '#'])
        }
        Some("profiles") => rule.is_some() && key != "instructions",
        _ => match rule {
            None => !may_be_secret(&join(path, key)),
            Some(rule) => !matches!(rule, Rule::Section(_) | Rule::List(_)),
        },
    };
    let is_plain = raw.parse::<f64>().is_ok() || ["true", "false", "[]", "{}"].contains(&raw);
    match is_open || is_plain {
        true => shown(raw),
        false => "…".to_owned(),
    }
}

/// A configuration, and the origin of each value of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// The models that are called with it in this environment, and the reason.
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
/// line in its order, and then values that do not go together.
pub fn load(sources: &Sources) -> Result<Loaded, Vec<Problem>> {
    let mut draft = Draft::default();
    if let Some(file) = &sources.file {
        draft.file(file);
    }
    let near_misses = draft.environment(&sources.environment);
    for setting in &sources.options {
        let (section, key) = setting.key.split_once('.').unwrap_or(("", &setting.key));
        let origin = Origin::Option(setting.option.clone());
        draft.text(section, key, &setting.value, origin);
    }
    draft.finish(&sources.environment, near_misses)
}

impl Loaded {
    /// Why these models are called.
    #[must_use]
    pub fn why_these_models(&self) -> String {
        match &self.choice.because {
            Because::Set => format!("by {}", self.origin("model.chain")),
            because => because.to_string(),
        }
    }

    /// The origin of the value of a key such as `oracle.max_turns`.
    #[must_use]
    pub fn origin(&self, key: &str) -> Origin {
        self.origins.get(key).cloned().unwrap_or(Origin::Default)
    }

    /// Every section and key as TOML that can be used as a file, each value with its origin; optional
    /// keys that are not set are named in a comment.
    ///
    /// # Errors
    /// If a value has no form in TOML, which none has that was read from somewhere.
    pub fn show(&self) -> Result<String, toml::ser::Error> {
        let mut text = String::new();
        self.show_table(&mut text, ROOT, "", &Table::try_from(&self.config)?);
        Ok(text.trim_start().to_owned())
    }

    fn show_table(&self, text: &mut String, of: Rule, place: &str, values: &Table) {
        for (key, rule) in of.keys() {
            let place = join(place, key);
            match (rule, values.get(*key)) {
                (Rule::Section(_), Some(Value::Table(values))) => {
                    text.push_str(&format!("\n{}\n", rule.head(&place)));
                    self.show_table(text, *rule, &place, values);
                }
                (Rule::List(_), Some(Value::Array(items))) => {
                    for (at, item) in items.iter().filter_map(Value::as_table).enumerate() {
                        text.push_str(&format!("\n{}\n", rule.head(&place)));
                        self.show_table(text, *rule, &format!("{place}.{at}"), item);
                    }
                }
                (Rule::List(_), _) => {}
                (_, Some(value)) => {
                    text.push_str(&format!("{key} = {value} # {}\n", self.origin(&place)));
                }
                (_, None) if place == "model.chain" => {
                    let Choice { chain, because } = &self.choice;
                    let chain = chain.models().join(", ");
                    text.push_str(&format!("# {key} is not set: {chain}, {because}\n"));
                }
                (_, None) => text.push_str(&format!("# {key} is not set\n")),
            }
        }
    }
}

/// A value of the file, with the digits of a float.
fn from_toml(value: Spanned<DeValue<'_>>) -> (Value, Option<String>) {
    let digits = value.get_ref().as_float();
    let digits = digits.map(|float| float.as_str().to_owned());
    // An integer beyond all bounds is no value of any key, like a date.
    let value = Value::deserialize(ValueDeserializer::from(value));
    (value.unwrap_or(Value::Array(Vec::new())), digits)
}

/// A value from text, in the first of the forms that may be meant.
fn from_text(text: &str, rule: Rule) -> Result<Value, String> {
    let trimmed = text.trim();
    let read = rule.read(&text.into(), None);
    let read = read.or_else(|_| rule.read(&trimmed.into(), None));
    read.or_else(|allowed| match DeValue::parse(trimmed) {
        Ok(value) => {
            let (value, digits) = from_toml(value);
            rule.read(&value, digits.as_deref())
        }
        Err(_) => Err(allowed),
    })
}

#[derive(Default)]
struct Draft {
    /// The values that are laid, and nothing else.
    table: Table,
    origins: BTreeMap<String, Origin>,
    problems: Vec<Problem>,
    /// Keys with a problem, which is told alone.
    bad: BTreeSet<String>,
}

impl Draft {
    /// Lays the values of a file; one that is not TOML has none.
    fn file(&mut self, file: &File) {
        let (table, errors) = DeTable::parse_recoverable(&file.text);
        // The first complaint about each line: what follows on the line is mostly its echo.
        let mut lines = BTreeMap::new();
        for error in &errors {
            let origin = file.origin(error.span().unwrap_or_default().start);
            let problem = Problem::at(&origin, format!("not TOML: {}", shown(error.message())));
            lines.entry(problem.line).or_insert(problem);
        }
        self.problems.extend(lines.into_values());
        if errors.is_empty() {
            self.table = self.table(file, ROOT, "", table.get_ref());
            self.problems.sort_by_key(|problem| problem.line);
        }
    }

    /// The values of a table of a file; `place` is its name with numbers, such as `providers.0`.
    fn table(&mut self, file: &File, of: Rule, place: &str, table: &DeTable<'_>) -> Table {
        let mut made = Table::new();
        for (name, value) in table {
            let (key, origin) = (name.get_ref().as_ref(), file.origin(name.span().start));
            let full = join(place, key);
            let kept = match (of.of(key), value.get_ref(), tables(value)) {
                (Some(rule @ Rule::Section(_)), DeValue::Table(table), _) => {
                    Some(self.table(file, rule, &full, table).into())
                }
                (Some(rule @ Rule::List(_)), _, Some(tables)) => {
                    let tables = tables.iter().enumerate().map(|(number, (at, table))| {
                        let full = format!("{full}.{number}");
                        let made = self.table(file, rule, &full, table);
                        self.require(rule, &full, &file.origin(*at));
                        Value::Table(made)
                    });
                    Some(tables.collect::<Vec<_>>().into())
                }
                (None, found, tables)
                    if place.is_empty()
                        && (found.is_table()
                            || tables.as_ref().is_some_and(|all| !all.is_empty())) =>
                {
                    let (name, remedy) = (shown(key), rule::remedy(ROOT, "", key));
                    let what = format!("there is no section `[{name}]`; {remedy}");
                    self.problems.push(Problem::at(&origin, what));
                    None
                }
                _ => {
                    let raw = file.text.get(value.span()).unwrap_or_default();
                    self.value(of, place, key, raw, origin, |rule| {
                        let (value, digits) = from_toml(value.clone());
                        rule.read(&value, digits.as_deref())
                    })
                }
            };
            if let Some(value) = kept {
                made.insert(key.to_owned(), value);
            }
        }
        made
    }

    /// Tells which keys are missing in a table of a list.
    fn require(&mut self, of: Rule, place: &str, origin: &Origin) {
        for key in REQUIRED {
            let full = join(place, key);
            if of.of(key).is_some() && !self.origins.contains_key(&full) {
                self.bad.insert(full);
                let what = format!("{} has no `{key}`, which it needs", of.head(place));
                self.problems.push(Problem::at(origin, what));
            }
        }
    }

    /// The value of a key; none, and a problem, if it is refused.
    fn value(
        &mut self,
        of: Rule,
        place: &str,
        key: &str,
        raw: &str,
        origin: Origin,
        read: impl FnOnce(Rule) -> Result<Value, String>,
    ) -> Option<Value> {
        let path = join(&path(place), key);
        let told = shown_unless_secret(place, key, of.of(key), raw);
        let Some(rule) = of.of(key) else {
            let (path, remedy) = (shown(&path), rule::remedy(of, place, key));
            let what = format!("`{path}` is `{told}`, but there is no such key; {remedy}");
            self.problems.push(Problem::at(&origin, what));
            return None;
        };
        let full = join(place, key);
        // Also of a value that is refused: the key is there.
        self.origins.insert(full.clone(), origin.clone());
        let allowed = match read(rule) {
            Ok(value) => return Some(value),
            Err(allowed) if matches!(rule, Rule::Section(_) | Rule::List(_)) => {
                let head = rule.head(&path);
                format!("{allowed}: the line `{head}` and keys below it")
            }
            Err(allowed) => allowed,
        };
        let problem = Problem::not_allowed(&origin, &path, &told, &allowed);
        self.problems.push(problem);
        self.bad.insert(full);
        None
    }

    /// Lays a value that is written as text.
    fn text(&mut self, section: &str, key: &str, text: &str, origin: Origin) {
        let known = ROOT.of(section);
        let known = known.filter(|rule| matches!(rule, Rule::Section(_)));
        let of = known.unwrap_or(ROOT);
        let read = |rule| from_text(text, rule);
        if let Some(value) = self.value(of, section, key, text, origin, read)
            && let Value::Table(table) = self
                .table
                .entry(section)
                .or_insert_with(|| Table::new().into())
        {
            table.insert(key.to_owned(), value);
        }
    }

    /// Lays `ORACLE_<SECTION>__<KEY>`, and for the keys of `[oracle]` `ORACLE_<KEY>`, in the order of the names.
    /// Other variables are left alone; those that are near one of ours are returned with it.
    fn environment(&mut self, variables: &[(OsString, OsString)]) -> Vec<(String, String)> {
        let named = |(name, value): &'_ (OsString, OsString)| {
            Some((name.to_str()?.to_owned(), value.clone()))
        };
        let variables: BTreeMap<String, OsString> = variables.iter().filter_map(named).collect();
        let mut near_misses = Vec::new();
        for (name, value) in &variables {
            let Some((section, key)) = target(name) else {
                near_misses.extend(near_miss(name).map(|near| (name.clone(), near)));
                continue;
            };
            let (origin, full) = (Origin::Environment(name.clone()), join(&section, &key));
            let usual = variable(&section, &key);
            let problem = if *name != usual && is_key(&section, &key) {
                let value = shown_unless_secret(&section, &key, None, &value.to_string_lossy());
                let remedy = format!("there is no such key; the variable is {usual}");
                Problem::at(&origin, format!("`{full}` is `{value}`, but {remedy}"))
            } else if let Some(text) = value.to_str() {
                self.text(&section, &key, text, origin);
                continue;
            } else {
                let value = shown(&value.to_string_lossy());
                Problem::not_allowed(&origin, &full, &value, "only text in UTF-8")
            };
            self.problems.push(problem);
        }
        near_misses
    }

    fn finish(
        mut self,
        environment: &[(OsString, OsString)],
        near_misses: Vec<(String, String)>,
    ) -> Result<Loaded, Vec<Problem>> {
        let mut config: Config = match self.table.try_into() {
            Ok(config) => config,
            // A value that its rule allows and its type does not.
            Err(error) => {
                let allowed = shown(error.message());
                let problem = Problem::not_allowed(&Origin::Code, "configuration", "…", &allowed);
                self.problems.push(problem);
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

/// The variable that sets a key.
fn variable(section: &str, key: &str) -> String {
    let name = match section {
        SHORT => key.to_owned(),
        section => format!("{section}__{key}"),
    };
    format!("ORACLE_{}", name.to_ascii_uppercase())
}

fn is_key(section: &str, key: &str) -> bool {
    ROOT.of(section).and_then(|of| of.of(key)).is_some()
}

/// The section and key that a variable stands for; the key may not exist. None if it is not ours.
fn target(name: &str) -> Option<(String, String)> {
    let rest = name.strip_prefix("ORACLE_")?;
    if rest.chars().any(char::is_lowercase) {
        return None;
    }
    let rest = rest.to_lowercase();
    match rest.split_once("__") {
        Some((section, key)) => matches!(ROOT.of(section), Some(Rule::Section(_)))
            .then(|| (section.to_owned(), key.to_owned())),
        None => is_key(SHORT, &rest).then(|| (SHORT.to_owned(), rest)),
    }
}

/// The variable of ours that another one is near.
fn near_miss(name: &str) -> Option<String> {
    name.strip_prefix("ORACLE_")?;
    let upper = name.to_ascii_uppercase();
    let ours = rule::section_keys().map(|(section, key)| variable(section, key));
    let near = ours.map(|ours| (strsim::levenshtein(&upper, &ours), ours));
    let near = near.filter(|(edits, _)| *edits <= 2).min();
    near.map(|(_, ours)| ours)
}

/// The tables of a list and where they begin, if it is a list of nothing else.
fn tables<'a, 'i>(value: &'a Spanned<DeValue<'i>>) -> Option<Vec<(usize, &'a DeTable<'i>)>> {
    let items = value.get_ref().as_array()?.iter();
    let table =
        |item: &'a Spanned<DeValue<'i>>| Some((item.span().start, item.get_ref().as_table()?));
    items.map(table).collect()
}
