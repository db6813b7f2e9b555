//! Applies file, environment and command line over the defaults, one key at a time, and collects
//! all problems.
//!
//! **Invariant:** only values that their rules allow are applied, so each problem belongs to a
//! single value.

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
    ChainReason, Config, ModelChoice, check,
    rule::{self, ROOT, Rule, SHORT, join, path},
    sections::REQUIRED,
};

/// Sources of values; later fields override earlier ones.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The configuration file, if any.
    pub file: Option<ConfigFile>,
    /// The environment; variables of other programs are ignored.
    pub environment: Vec<(OsString, OsString)>,
    /// Settings of the command line; a later one overrides an earlier one of the same key.
    pub options: Vec<Setting>,
}

/// A value from the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The option as typed: `--max-turns`.
    pub option: String,
    /// The key that it sets, with its section: `oracle.max_turns`.
    pub key: String,
    /// The value as typed.
    pub value: String,
}

impl Setting {
    /// Creates a setting.
    pub fn new(option: &str, key: &str, value: &str) -> Self {
        let [option, key, value] = [option, key, value].map(str::to_owned);
        Self { option, key, value }
    }
}

/// The content of a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFile {
    /// Path, for messages.
    pub path: PathBuf,
    /// Content.
    pub text: String,
}

impl ConfigFile {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read or is not UTF-8.
    pub fn read(path: &Path) -> Result<Self, Problem> {
        let text = fs::read_to_string(path).map_err(|error| Problem {
            place: path.display().to_string(),
            line: 0,
            what: format!("cannot read the file: {error}; use a readable one with --config"),
        })?;
        Ok(Self {
            path: path.to_path_buf(),
            text,
        })
    }

    fn origin(&self, at: usize) -> Origin {
        let before = self.text.bytes().take(at);
        Origin::ConfigFile {
            path: self.path.clone(),
            line: before.filter(|&byte| byte == b'\n').count() + 1,
        }
    }
}

/// The source of a value, in rising precedence from [`Self::Default`] to [`Self::Option`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// No source sets it.
    Default,
    /// A configuration file.
    ConfigFile {
        /// The path as given.
        path: PathBuf,
        /// The line of the key, from 1.
        line: usize,
    },
    /// The environment variable of this name.
    Environment(String),
    /// A command-line option as typed: `--max-turns`.
    Option(String),
    /// A [`Config`] made in code.
    Code,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::ConfigFile { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Environment(name) => write!(f, "environment variable {name}"),
            Self::Option(name) => write!(f, "option {name}"),
            Self::Code => f.write_str("set in code"),
        }
    }
}

/// A reason why a configuration is rejected, on one line: values are escaped and cut to fit.
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
                Origin::ConfigFile { line, .. } => *line,
                _ => 0,
            },
            what,
        }
    }

    pub(super) fn not_allowed(origin: &Origin, key: &str, value: &str, allowed: &str) -> Self {
        Self::at(origin, format!("`{key}` is `{value}`, expected {allowed}"))
    }
}

/// Whether a key or header of this name may have a secret value.
pub fn may_be_secret(name: &str) -> bool {
    const WORDS: &str = "auth key token secret cookie password credential";
    let name = name.to_ascii_lowercase();
    WORDS.split(' ').any(|word| name.contains(word))
}

/// A value for a message: control characters escaped, at most 60 characters.
pub(super) fn printable(value: &str) -> String {
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

/// A rejected value for a message. Of possible secrets, such as addresses with a password, only
/// numbers and switches are shown.
pub(super) fn mask_secret(path: &str, key: &str, rule: Option<Rule>, raw: &str) -> String {
    let is_open = match path.split('.').next() {
        Some("providers") => {
            ["name", "dialect", "stream"].contains(&key)
                || key == "base_url" && !raw.contains(['@', '?', '#'])
        }
        Some("journal" | "cluster") => !raw.contains('@'),
        Some("profiles") => rule.is_some() && key != "instructions",
        Some("mcp") => {
            !matches!(rule, None | Some(Rule::Words | Rule::Map(..)))
                && !raw.contains(['@', '?', '#'])
        }
        _ => match rule {
            None => !may_be_secret(&join(path, key)),
            Some(rule) => !matches!(rule, Rule::Section(_) | Rule::List(_)),
        },
    };
    let is_plain = raw.parse::<f64>().is_ok() || ["true", "false", "[]", "{}"].contains(&raw);
    match is_open || is_plain {
        true => printable(raw),
        false => "…".to_owned(),
    }
}

/// A configuration and the origin of each value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// The models that it selects in this environment, and the reason.
    pub choice: ModelChoice,
    /// By key with section, and with an index in lists; an absent key has its default.
    origins: BTreeMap<String, Origin>,
}

/// Loads a configuration from all sources.
///
/// # Errors
/// All problems: of the file by line, of the environment by name, of the command line in its order,
/// and then values that conflict with others.
pub fn load(sources: &Sources) -> Result<Loaded, Vec<Problem>> {
    let mut draft = Draft::default();
    if let Some(file) = &sources.file {
        draft.file(file);
    }
    draft.environment(&sources.environment);
    for setting in &sources.options {
        let (section, key) = setting.key.split_once('.').unwrap_or(("", &setting.key));
        let origin = Origin::Option(setting.option.clone());
        draft.text(section, key, &setting.value, origin);
    }
    draft.finish(&sources.environment)
}

/// Environment variables that resemble ours but set nothing, each with the nearest that would.
pub fn near_misses(variables: &[(OsString, OsString)]) -> impl Iterator<Item = (&str, String)> {
    let names = variables.iter().filter_map(|(name, _)| name.to_str());
    let others = names.filter(|name| target(name).is_none());
    others.filter_map(|name| Some((name, near_miss(name)?)))
}

impl Loaded {
    /// The reason for the selected models.
    pub fn model_choice_reason(&self) -> String {
        match &self.choice.because {
            ChainReason::Set => format!("by {}", self.origin("model.chain")),
            because => because.to_string(),
        }
    }

    /// The origin of a key's value, such as `oracle.max_turns`.
    pub fn origin(&self, key: &str) -> Origin {
        self.origins.get(key).cloned().unwrap_or(Origin::Default)
    }

    /// The configuration as a TOML file, each value with its origin: the values that are set, or
    /// `all`; then comments name optional keys that are not set.
    ///
    /// # Errors
    /// When a value cannot be written as TOML, which is impossible for one that was loaded.
    pub fn show(&self, all: bool) -> Result<String, toml::ser::Error> {
        let text = self.show_table(ROOT, "", &Table::try_from(&self.config)?, all);
        Ok(text.trim_start().to_owned())
    }

    fn show_table(&self, of: Rule, place: &str, values: &Table, all: bool) -> String {
        let mut text = String::new();
        let section = |rule: &Rule, place: &str, at: &str, values: &Table| {
            let settings = self.show_table(*rule, at, values, all);
            let head = rule.head(place);
            (!settings.is_empty()).then(|| format!("\n{head}\n{settings}"))
        };
        for (key, rule) in of.keys() {
            let place = join(place, key);
            match (rule, values.get(*key)) {
                (Rule::Section(_), Some(Value::Table(values))) => {
                    text.extend(section(rule, &place, &place, values));
                }
                (Rule::List(_), Some(Value::Array(items))) => {
                    let items = items.iter().filter_map(Value::as_table).enumerate();
                    text.extend(items.filter_map(|(at, item)| {
                        section(rule, &place, &format!("{place}.{at}"), item)
                    }));
                }
                (Rule::List(_), _) => {}
                (_, Some(value)) => {
                    let origin = self.origin(&place);
                    if all || origin != Origin::Default {
                        text.push_str(&format!("{key} = {value} # {origin}\n"));
                    }
                }
                (_, None) if place == "model.chain" => {
                    let ModelChoice { chain, because } = &self.choice;
                    let chain = chain.models().join(", ");
                    text.push_str(&format!("# {key} is not set: {chain}, {because}\n"));
                }
                (_, None) if all => text.push_str(&format!("# {key} is not set\n")),
                (_, None) => {}
            }
        }
        text
    }
}

/// Converts a value of the file, with the digits of a float as written.
fn from_toml(value: Spanned<DeValue<'_>>) -> (Value, Option<String>) {
    let digits = value.get_ref().as_float();
    let digits = digits.map(|float| float.as_str().to_owned());
    // An integer that does not fit becomes a value that every rule rejects.
    let value = Value::deserialize(ValueDeserializer::from(value));
    (value.unwrap_or(Value::Array(Vec::new())), digits)
}

/// Parses text in the first form that the rule allows: as it is, trimmed, or as TOML.
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
    /// Only values that their rules allow.
    table: Table,
    origins: BTreeMap<String, Origin>,
    problems: Vec<Problem>,
    /// Keys that have a problem, and cause no further ones.
    rejected: BTreeSet<String>,
}

impl Draft {
    /// Applies a file, or nothing if it is not valid TOML.
    fn file(&mut self, file: &ConfigFile) {
        let (table, errors) = DeTable::parse_recoverable(&file.text);
        // Only the first error of each line: later ones mostly follow from it.
        let mut lines = BTreeMap::new();
        for error in &errors {
            let origin = file.origin(error.span().unwrap_or_default().start);
            let problem = Problem::at(&origin, format!("not TOML: {}", printable(error.message())));
            lines.entry(problem.line).or_insert(problem);
        }
        self.problems.extend(lines.into_values());
        if errors.is_empty() {
            self.table = self.table(file, ROOT, "", table.get_ref());
            self.problems.sort_by_key(|problem| problem.line);
        }
    }

    fn table(&mut self, file: &ConfigFile, of: Rule, place: &str, table: &DeTable<'_>) -> Table {
        let mut made = Table::new();
        for (name, value) in table {
            let (key, origin) = (name.get_ref().as_ref(), file.origin(name.span().start));
            let full = join(place, key);
            let accepted = match (of.of(key), value.get_ref(), tables(value)) {
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
                    let (name, remedy) = (printable(key), rule::remedy(ROOT, "", key));
                    let what = format!("unknown section `[{name}]`; {remedy}");
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
            if let Some(value) = accepted {
                made.insert(key.to_owned(), value);
            }
        }
        made
    }

    fn require(&mut self, of: Rule, place: &str, origin: &Origin) {
        for key in REQUIRED {
            let full = join(place, key);
            if of.of(key).is_some() && !self.origins.contains_key(&full) {
                self.rejected.insert(full);
                let what = format!("{} lacks the required key `{key}`", of.head(place));
                self.problems.push(Problem::at(origin, what));
            }
        }
    }

    /// `None` if the value is rejected, with a problem.
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
        let shown_value = mask_secret(place, key, of.of(key), raw);
        let Some(rule) = of.of(key) else {
            let (path, remedy) = (printable(&path), rule::remedy(of, place, key));
            let what = format!("unknown key `{path}` (set to `{shown_value}`); {remedy}");
            self.problems.push(Problem::at(&origin, what));
            return None;
        };
        let full = join(place, key);
        // A rejected value counts as set, so the key is not reported as missing.
        self.origins.insert(full.clone(), origin.clone());
        let allowed = match read(rule) {
            Ok(value) => return Some(value),
            Err(allowed) if matches!(rule, Rule::Section(_) | Rule::List(_)) => {
                let head = rule.head(&path);
                format!("{allowed}: write the line `{head}` with its keys below")
            }
            Err(allowed) => allowed,
        };
        let problem = Problem::not_allowed(&origin, &path, &shown_value, &allowed);
        self.problems.push(problem);
        self.rejected.insert(full);
        None
    }

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

    /// Applies `ORACLE_<SECTION>__<KEY>`, and `ORACLE_<KEY>` for `[oracle]`, in the order of the
    /// names.
    fn environment(&mut self, variables: &[(OsString, OsString)]) {
        let named = |(name, value): &'_ (OsString, OsString)| {
            Some((name.to_str()?.to_owned(), value.clone()))
        };
        let variables: BTreeMap<String, OsString> = variables.iter().filter_map(named).collect();
        for (name, value) in &variables {
            let Some((section, key)) = target(name) else {
                continue;
            };
            let (origin, full) = (Origin::Environment(name.clone()), join(&section, &key));
            let usual = variable(&section, &key);
            let problem = if *name != usual && is_key(&section, &key) {
                let value = mask_secret(&section, &key, None, &value.to_string_lossy());
                let remedy = format!("the variable must be spelled {usual}");
                Problem::at(&origin, format!("`{full}` is `{value}`, but {remedy}"))
            } else if let Some(text) = value.to_str() {
                self.text(&section, &key, text, origin);
                continue;
            } else {
                let value = printable(&value.to_string_lossy());
                Problem::not_allowed(&origin, &full, &value, "UTF-8 text")
            };
            self.problems.push(problem);
        }
    }

    fn finish(mut self, environment: &[(OsString, OsString)]) -> Result<Loaded, Vec<Problem>> {
        let mut config: Config = match self.table.try_into() {
            Ok(config) => config,
            // The rule allows a value that the type does not.
            Err(error) => {
                let allowed = printable(error.message());
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
            (!self.rejected.contains(key)).then_some(origin)
        };
        self.problems.extend(check::conflicts(&config, &origin));
        if !self.problems.is_empty() {
            return Err(self.problems);
        }
        Ok(Loaded {
            choice: config.choice(environment),
            config,
            origins: self.origins,
        })
    }
}

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

/// The section and key that a variable names; the key may not exist. `None` if the variable is not
/// ours.
fn target(name: &str) -> Option<(String, String)> {
    let suffix = name.strip_prefix("ORACLE_")?;
    if suffix.chars().any(char::is_lowercase) {
        return None;
    }
    let suffix = suffix.to_lowercase();
    match suffix.split_once("__") {
        Some((section, key)) => matches!(ROOT.of(section), Some(Rule::Section(_)))
            .then(|| (section.to_owned(), key.to_owned())),
        None => is_key(SHORT, &suffix).then(|| (SHORT.to_owned(), suffix)),
    }
}

/// The variable that a similar name may mean: up to two letters differ, or its section is missing
/// or wrong.
fn near_miss(name: &str) -> Option<String> {
    let own_key = name.strip_prefix("ORACLE_")?.to_ascii_lowercase();
    let own_key = own_key.split_once("__").map_or(&*own_key, |(_, key)| key);
    let near = rule::section_keys().filter_map(|(section, key)| {
        let ours = variable(section, key);
        let edits = strsim::levenshtein(&name.to_ascii_uppercase(), &ours);
        let of_key = strsim::levenshtein(own_key, key);
        (edits <= 2 || of_key <= key.len() / 5).then(|| (edits.min(of_key), ours))
    });
    near.min().map(|(_, ours)| ours)
}

/// The tables of a list with their offsets; `None` if it has other values.
fn tables<'a, 'i>(value: &'a Spanned<DeValue<'i>>) -> Option<Vec<(usize, &'a DeTable<'i>)>> {
    let items = value.get_ref().as_array()?.iter();
    let table =
        |item: &'a Spanned<DeValue<'i>>| Some((item.span().start, item.get_ref().as_table()?));
    items.map(table).collect()
}
