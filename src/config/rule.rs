//! Rules of keys: their allowed values, and the remedy for a key that does not exist.

use std::{
    net::{Ipv6Addr, SocketAddr},
    time::Duration,
};

use jiff::fmt::friendly::{Designator, SpanParser, SpanPrinter};
use reqwest::Url;
use toml::{Table, Value};

use super::{
    Config,
    models::{ModelChain, full_name, is_provider},
    sections::TENANTS,
};
use crate::{
    access::KeyName,
    kernel::BasisPoints,
    model::{Day, ProfileName, TenantId, usage::usd},
};

/// The allowed values of a key.
#[derive(Debug, Clone, Copy)]
pub(super) enum Rule {
    Switch,
    /// A whole number within these bounds.
    Whole(u64, u64),
    /// A duration within these bounds, in milliseconds.
    Time(u64, u64),
    /// A fraction, exact to a ten-thousandth.
    Share,
    /// US dollars, more than 0.
    Money,
    /// US dollars, 0 or more.
    Rate,
    OneOf(&'static [&'static str]),
    Text(Form),
    /// Different texts, as a list or separated by commas; the form describes the whole list.
    Texts(Form),
    Models,
    /// Texts in this order; a text may occur twice.
    Words,
    /// A table of texts: what they are, the form of their names, that of their values.
    Map(&'static str, Form, Form),
    /// A table of tenants and their limits.
    Tenants,
    /// A table of key names and their budgets.
    Keys,
    Section(&'static [Key]),
    List(&'static [Key]),
}

pub(super) type Key = (&'static str, Rule);

use Rule::{
    Keys, List, Map, Models, Money, OneOf, Rate, Section, Share, Switch, Tenants, Text, Texts,
    Time, Whole, Words,
};

pub(super) const ROOT: Rule = Section(Config::KEYS);

impl Rule {
    pub(super) fn keys(self) -> &'static [Key] {
        match self {
            Section(keys) | List(keys) => keys,
            Tenants => &TENANTS[..12],
            Keys => &TENANTS[8..12],
            _ => &[],
        }
    }

    pub(super) fn of(self, key: &str) -> Option<Self> {
        let mut keys = self.keys().iter();
        keys.find(|(known, _)| *known == key).map(|(_, rule)| *rule)
    }

    /// The header line of the table at `place` in a file.
    pub(super) fn head(self, place: &str) -> String {
        let path = path(place);
        match self {
            List(_) => format!("[[{path}]]"),
            _ => format!("[{path}]"),
        }
    }

    fn names(self) -> String {
        let names: Vec<&str> = self.keys().iter().map(|(name, _)| *name).collect();
        names.join(", ")
    }

    /// Normalizes a value. `digits` are those of a float as written, which are exact.
    ///
    /// # Errors
    /// A description of the allowed values.
    pub(super) fn read(self, value: &Value, digits: Option<&str>) -> Result<Value, String> {
        let text = value.as_str();
        let decimal = || match value {
            Value::String(text) => text.clone(),
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => digits.map_or_else(|| number.to_string(), str::to_owned),
            _ => String::new(),
        };
        let as_is = |fits: bool| fits.then(|| value.clone());
        let accepted = match self {
            Switch => as_is(value.is_bool()),
            Whole(least, most) => {
                let number = value.as_integer().map(u64::try_from);
                as_is(matches!(number, Some(Ok(number)) if (least..=most).contains(&number)))
            }
            Time(least, most) => {
                let span =
                    text.and_then(|text| SpanParser::new().parse_unsigned_duration(text).ok());
                let fits = |span: &Duration| {
                    let millis = u64::try_from(span.as_millis());
                    span.subsec_nanos().is_multiple_of(1_000_000)
                        && millis.is_ok_and(|millis| (least..=most).contains(&millis))
                };
                span.filter(fits).map(|span| format_span(span).into())
            }
            Share => {
                let share = decimal().parse::<BasisPoints>().ok();
                share.map(|share| share.as_fraction().into())
            }
            Money | Rate => {
                let money = usd::parse(&decimal());
                let money = money.filter(|money| matches!(self, Rate) || money.0 > 0);
                money.map(|money| usd::dollars(money).into())
            }
            OneOf(names) => as_is(text.is_some_and(|text| names.contains(&text))),
            Text(form) => as_is(text.is_some_and(form.allows)),
            Texts(form) => texts(value)
                .filter(|texts| {
                    let double = |at: usize| texts[..at].contains(&texts[at]);
                    texts.iter().all(|text| (form.allows)(text)) && !(0..texts.len()).any(double)
                })
                .map(Value::from),
            Models => {
                let names = texts(value).unwrap_or_default();
                let chain = ModelChain::new(names.iter().map(String::as_str));
                let chain = chain.map_err(|error| error.to_string())?;
                Some(chain.models().to_vec().into())
            }
            Words => as_is(value.as_array().is_some_and(|words| {
                let fits = |word: &Value| word.as_str().is_some_and(NO_NUL.allows);
                words.iter().all(fits)
            })),
            Map(of, names, values) => table(value, of, names, values)?,
            Tenants | Keys => as_is(self.limits(value)?),
            Section(_) | List(_) => None,
        };
        accepted.ok_or_else(|| self.allowed())
    }

    fn limits(self, value: &Value) -> Result<bool, String> {
        let Some(tables) = value.as_table() else {
            return Ok(false);
        };
        for (name, limits) in tables {
            if let Keys = self {
                let name = name.parse::<KeyName>();
                name.map_err(|error| format!("valid key names; {error}"))?;
            } else {
                TenantId::new(name).map_err(|error| format!("valid tenant names; {error}"))?;
            }
            let known = self.names();
            let no_table = || format!("a table for `{name}` with {known}");
            let limits: &Table = limits.as_table().ok_or_else(no_table)?;
            for (key, value) in limits {
                let rule = self.of(key);
                let rule = rule.ok_or_else(|| format!("only {known} in `{name}`"))?;
                let read = rule.read(value, None);
                read.map_err(|allowed| format!("`{name}.{key}` to be {allowed}"))?;
            }
        }
        Ok(true)
    }

    fn allowed(self) -> String {
        let text = match self {
            Switch => "true or false",
            Share => "a number from 0.0 to 1.0 with at most 4 decimals",
            Money => "a positive amount of US dollars, up to 1000000, with at most 6 decimals",
            Rate => "US dollars from 0 to 1000000, with at most 6 decimals",
            Models => "1 to 8 different models, each written provider/model, such as ollama/qwen3",
            Tenants => {
                "tables of limits: write the line `[tenants.named.NAME]` with its keys below"
            }
            Keys => "tables of budgets: write the line `[tenants.keys.NAME]` with its keys below",
            Text(form) | Texts(form) | Map(_, _, form) => form.allowed,
            Words => "a list of texts",
            Section(_) => "a section",
            List(_) => "a list",
            Whole(least, most) => return format!("a whole number from {least} to {most}"),
            Time(least, most) => {
                let [least, most] = [least, most].map(Duration::from_millis).map(format_span);
                return format!("a duration from {least} to {most}, such as 250ms, 30s, 10m or 1h");
            }
            OneOf(names) => {
                let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
                let (last, others) = quoted.split_last().map_or(("", &[][..]), |(l, o)| (l, o));
                return format!("{} or {last}", others.join(", "));
            }
        };
        text.to_owned()
    }
}

/// A duration as it is written in a file.
pub(super) fn format_span(span: Duration) -> String {
    const PRINTER: SpanPrinter = SpanPrinter::new().designator(Designator::Compact);
    PRINTER.unsigned_duration_to_string(&span)
}

fn texts(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::Array(texts) => {
            let texts = texts.iter().map(|text| text.as_str().map(str::to_owned));
            texts.collect()
        }
        Value::String(texts) => {
            let texts = texts.split(',').map(|text| text.trim().to_owned());
            Some(texts.collect())
        }
        _ => None,
    }
}

pub(super) fn section_keys() -> impl Iterator<Item = (&'static str, &'static str)> {
    let sections = Config::KEYS.iter();
    let sections = sections.filter(|(_, rule)| matches!(rule, Section(_)));
    sections.flat_map(|(section, of)| of.keys().iter().map(|(key, _)| (*section, *key)))
}

/// The key with its section, if only one section has it; else as it is.
pub fn full_key(key: &str) -> String {
    let mut sections = section_keys().filter(|(_, known)| *known == key);
    match (sections.next(), sections.next()) {
        (Some((section, _)), None) => join(section, key),
        _ => key.to_owned(),
    }
}

/// The remedy for a key or table that the table at `place` lacks.
pub(super) fn remedy(of: Rule, place: &str, wrong: &str) -> String {
    let own = of.keys().iter().map(|(key, rule)| {
        let full = join(&path(place), key);
        match rule {
            Section(_) | List(_) => (*key, rule.head(&full)),
            _ => (*key, full),
        }
    });
    // Keys of this table come first, so that they win ties.
    let others = section_keys().filter(|_| matches!(of, Section(_)));
    let others = others.map(|(section, key)| (key, join(section, key)));
    let near = own.chain(others).filter_map(|(name, full)| {
        let edits = strsim::osa_distance(wrong, name);
        (edits <= (name.len() / 3).max(1)).then_some((edits, full))
    });
    match near.min_by_key(|(edits, _)| *edits) {
        Some((_, full)) => format!("did you mean `{full}`?"),
        None if of.of(SHORT).is_none() => format!("`{}` has {}", of.head(place), of.names()),
        None => {
            let names = of.names();
            let sections = names.trim_end_matches(", profiles, providers, mcp");
            format!("the sections are {sections}, [[profiles]], [[providers]] and [[mcp]]")
        }
    }
}

/// The section whose keys have short environment variables.
pub(super) const SHORT: &str = "oracle";

pub(super) fn join(place: &str, key: &str) -> String {
    match place {
        "" => key.to_owned(),
        place => format!("{place}.{key}"),
    }
}

/// A place as messages show it, without indices.
pub(super) fn path(place: &str) -> String {
    let is_name = |part: &&str| part.parse::<usize>().is_err();
    let names: Vec<&str> = place.split('.').filter(is_name).collect();
    names.join(".")
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    pub(super) allowed: &'static str,
    pub(super) allows: fn(&str) -> bool,
}

const fn form(allowed: &'static str, allows: fn(&str) -> bool) -> Form {
    Form { allowed, allows }
}

pub(super) const PATH: Form = form("a non-empty path", |text| {
    !text.is_empty() && !text.contains('\0')
});
pub(super) const ADDRESS: Form = form(
    "an IP address and a port, such as 127.0.0.1:7770, [::1]:7770 or 0.0.0.0:80",
    |text| text.parse::<SocketAddr>().is_ok(),
);
pub(super) const INSTRUCTIONS: Form =
    form("1 to 20000 characters, not all of them blank", |text| {
        !text.trim().is_empty() && text.chars().count() <= 20_000
    });
pub(super) const LINE: Form = form("1 to 200 characters on one line", |text| {
    !text.trim().is_empty() && text.chars().count() <= 200 && !text.chars().any(char::is_control)
});
pub(super) const DAY: Form = form("a date, such as \"2026-11-30\"", |text| {
    Day::parse(text).is_some()
});
pub(super) const PROFILE: Form = form(
    "1 to 128 characters from A-Z a-z 0-9 . _ : -, but not \"oracle\", which the sections \
     configure",
    |text| ProfileName::new(text).is_ok_and(|name| name != ProfileName::oracle()),
);
pub(super) const PROVIDER: Form = form(
    "lower-case letters, digits, `-` and `_`, but not \"offline\" or \"scripted\", which are built in",
    |text| is_provider(text) && text.len() <= 64 && !["offline", "scripted"].contains(&text),
);
pub(super) const MCP: Form = form(
    "1 to 32 letters, digits, `-` and `_`, but no `__`, which separates it from the names of tools",
    |text| text.len() <= 32 && is_of("-_", text) && !text.contains("__"),
);
pub(super) const MCP_TOOLS: Form = form("a list of distinct tool names", |text| {
    (1..=128).contains(&text.len()) && !text.contains(char::is_control)
});
pub(super) const NO_NUL: Form = form("values without NUL", |text| !text.contains('\0'));
pub(super) const VARIABLES: Form = form(
    "a list of distinct names of environment variables: capital letters, digits and `_`",
    VARIABLE.allows,
);
pub(super) const FOLDERS: Form = form("a list of distinct absolute paths", |text| {
    text.starts_with('/') && !text.contains('\0')
});
pub(super) const MODEL: Form = form(
    "a model name without white space, quotes and commas",
    |text| full_name(&format!("x/{text}")).is_some_and(|full| full.len() == text.len() + 2),
);
pub(super) const URL: Form = form(
    "an http:// or https:// URL without user, password, `?` and `#`",
    is_url,
);
pub(super) const DATABASE: Form = form("a postgresql:// URL without password", |text| {
    // Not by `Url`: it may have several hosts, each with a port.
    let place = text.strip_prefix("postgresql://");
    place.is_some_and(|place| {
        let (hosts, query) = place.split_once('?').unwrap_or((place, ""));
        let user = hosts.rsplit_once('@').map_or("", |(user, _)| user);
        !user.contains(':') && !query.split('&').any(|pair| pair.starts_with("password="))
    })
});
/// Without lower-case letters, so that a secret in place of a variable's name is usually rejected.
pub(super) const VARIABLE: Form = form(
    "the name of an environment variable: capital letters, digits and `_`",
    |text| {
        let good = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        text.starts_with(|c: char| !c.is_ascii_digit()) && text.chars().all(good)
    },
);
pub(super) const ALIAS: Form = form(
    "model names of 1 to 128 characters without white space",
    |text| (1..=128).contains(&text.len()) && !text.contains(char::is_whitespace),
);
pub(super) const PROFILES: Form = form("a list of distinct names of profiles", ANY_PROFILE.allows);
pub(super) const ANY_PROFILE: Form =
    form("names of profiles", |text| ProfileName::new(text).is_ok());
pub(super) const HEADER: Form = form("header names of letters, digits and `-`", |text| {
    is_of("-", text)
});
pub(super) const HEADER_VALUE: Form = form("ASCII values on one line", |text| {
    text.chars().all(|c| c.is_ascii_graphic() || c == ' ')
});
pub(super) const HOSTS: Form = form(
    "a list of distinct host names or IP addresses without a port, such as oracle.example.org or \
     2001:db8::1",
    |text| {
        let is_name = text.split('.').all(|label| is_of("-_", label));
        text.len() <= 253 && (is_name || text.parse::<Ipv6Addr>().is_ok())
    },
);
pub(super) const ORIGINS: Form = form(
    "a list of distinct origins as browsers send them, such as https://chat.example.org or \
     http://localhost:3000",
    |text| {
        let origin = Url::parse(text).map(|url| url.origin().ascii_serialization());
        is_url(text) && origin.is_ok_and(|origin| origin == text)
    },
);
pub(super) const TOOLS: Form = form(
    "a list of distinct tool names, each 1 to 64 characters from A-Z a-z 0-9 _ -",
    |text| text.len() <= 64 && is_of("-_", text),
);

/// Accepts a table of texts of these forms.
fn table(value: &Value, of: &str, names: Form, values: Form) -> Result<Option<Value>, String> {
    let entries = value.as_table();
    let entries = entries.ok_or_else(|| format!("a table of {of}, each with a value"))?;
    for (name, value) in entries {
        for (form, text) in [(names, Some(&**name)), (values, value.as_str())] {
            if !text.is_some_and(form.allows) {
                return Err(format!("a table of {of} with {}", form.allowed));
            }
        }
    }
    Ok(Some(Value::clone(value)))
}

/// Whether a text has only ASCII letters, digits and `others`, and is not empty.
fn is_of(others: &str, text: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || others.contains(c);
    !text.is_empty() && text.chars().all(good)
}

/// Whether this is a complete http address without a part that may contain a secret.
pub(super) fn is_url(text: &str) -> bool {
    let rest = text.strip_prefix("https://");
    let rest = rest.or_else(|| text.strip_prefix("http://"));
    let good = |c: char| c.is_ascii_graphic() && !"@?#\\\"'<>`{}|^".contains(c);
    let is_whole = |rest: &str| !rest.starts_with('/') && rest.chars().all(good);
    rest.is_some_and(is_whole) && Url::parse(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::sections::ALIASES;

    #[test]
    fn unknown_key_suggests_the_nearest_or_lists_the_section() {
        for (section, wrong, says) in [
            ("oracle", "max_turn", "did you mean `oracle.max_turns`?"),
            ("budget", "max_turns", "did you mean `oracle.max_turns`?"),
            ("", "max_turns", "did you mean `oracle.max_turns`?"),
            (
                "prompt",
                "folder",
                "`[prompt]` has dir, context, instructions, token_budget",
            ),
            ("prompt", "dirs", "did you mean `prompt.dir`?"),
            ("data", "dirs", "did you mean `data.dir`?"),
            ("", "bugdet", "did you mean `[budget]`?"),
            ("", "modle", "did you mean `[model]`?"),
        ] {
            let of = ROOT.of(section).unwrap_or(ROOT);
            assert_eq!(remedy(of, section, wrong), says, "{section} {wrong}");
        }
    }

    #[test]
    fn times_need_a_unit_and_whole_milliseconds() {
        for (text, written) in [
            ("0ms", Some("0s")),
            ("250ms", Some("250ms")),
            ("1000ms", Some("1s")),
            ("90s", Some("1m 30s")),
            ("900s", Some("15m")),
            ("24h", Some("24h")),
            ("", None),
            ("30", None),
            ("-1s", None),
            ("1us", None),
            ("25h", None),
            ("9999999999999999999h", None),
        ] {
            let read = Time(0, 24 * 3_600_000).read(&text.into(), None).ok();
            assert_eq!(read, written.map(Value::from), "{text}");
        }
    }

    #[test]
    fn aliases_map_model_names_to_profiles() {
        for (text, fits) in [
            ("'gpt-4o' = 'oracle'", true),
            ("'openai/gpt-4o' = 'p'", true),
            ("'a b' = 'oracle'", false),
            ("'' = 'oracle'", false),
            ("a = 'no profile'", false),
            ("a = 1", false),
        ] {
            let table = Value::Table(toml::from_str(text).unwrap());
            assert_eq!(ALIASES.read(&table, None).is_ok(), fits, "{text}");
        }
        assert!(ALIASES.read(&"a".into(), None).is_err());
    }

    #[test]
    fn invalid_tenant_limits_name_the_allowed_ones() {
        for (text, allowed) in [
            ("named = 1", "tables of limits"),
            (
                "named.acme = 1",
                "a table for `acme` with requests_per_minute, ",
            ),
            ("named.acme.queue = 1", "only requests_per_minute, "),
            (
                "named.acme.max_queued = 0",
                "`acme.max_queued` to be a whole number from 1 to 10000000",
            ),
            ("named.'a b'.max_queued = 1", "valid tenant names; "),
            ("keys = 1", "tables of budgets"),
            ("keys.ci.max_queued = 1", "only tokens_per_day, "),
            (
                "keys.ci.cost_usd_per_day = 0",
                "`ci.cost_usd_per_day` to be a positive amount of US dollars",
            ),
            ("keys.local.tokens_per_day = 1", "valid key names; "),
        ] {
            let table: Table = toml::from_str(text).unwrap();
            let (key, value) = table.iter().next().unwrap();
            let rule = ROOT.of("tenants").and_then(|of| of.of(key)).unwrap();
            let refused = rule.read(value, None).unwrap_err();
            assert!(refused.starts_with(allowed), "{text}: {refused}");
        }
    }

    #[test]
    fn urls_must_be_complete_and_without_secrets() {
        for (text, good) in [
            ("https://api.openai.com/v1", true),
            ("http://127.0.0.1:11434/v1", true),
            ("http://[::1]:8080", true),
            ("http://[::1]", true),
            ("https://host", true),
            ("https://host/", true),
            ("", false),
            ("api.openai.com", false),
            ("ftp://host", false),
            ("https://", false),
            ("https:///v1", false),
            ("https://:80", false),
            ("https://host:port", false),
            ("http://::1/v1", false),
            ("http://::1:80", false),
            ("https://host:99999", false),
            ("https://me:secret@host", false),
            ("https://host/v1?key=secret", false),
            ("https://host/#x", false),
            ("https://ho st", false),
        ] {
            assert_eq!(is_url(text), good, "{text}");
        }
    }

    #[test]
    fn names_follow_the_form_of_their_kind() {
        for (text, wanted) in [
            ("openai", [true, true, false, true]),
            ("my-server_2", [true, true, false, false]),
            ("offline", [false, true, false, true]),
            ("meta/llama:8b", [false, true, false, false]),
            ("OPENAI_API_KEY", [false, true, true, false]),
            ("9LIVES", [false, true, false, true]),
            ("X-Title", [false, true, false, true]),
            ("sk-abcDEF", [false, true, false, true]),
            ("a b", [false; 4]),
            ("a,b", [false; 4]),
            ("", [false; 4]),
        ] {
            let forms = [PROVIDER, MODEL, VARIABLE, HEADER];
            assert_eq!(forms.map(|form| (form.allows)(text)), wanted, "{text}");
        }
    }
}
