//! Which sections and keys there are, what each may be set to, and which one was probably meant.

use std::time::Duration;

use jiff::fmt::friendly::{Designator, SpanParser, SpanPrinter};
use toml::{Table, Value};

use super::{
    text::{self, Form},
    value::{ModelChain, full_name, usd},
};
use crate::{kernel::BasisPoints, model::TenantId};

/// What a key may be set to.
#[derive(Debug, Clone, Copy)]
pub(super) enum Rule {
    Switch,
    /// A whole number within these bounds.
    Whole(u64, u64),
    /// A time within these bounds, in milliseconds.
    Time(u64, u64),
    /// A share, exact to a ten-thousandth.
    Share,
    /// US dollars, more than 0.
    Budget,
    /// US dollars, which may be 0.
    Rate,
    OneOf(&'static [&'static str]),
    Text(Form),
    /// Different texts, as a list or with commas between them; a form says in words what is allowed of all.
    Texts(Form),
    Models,
    Model,
    /// A table of texts: the forms of keys and values.
    Headers(Form, Form),
    /// Limits of single tenants.
    Tenants,
    /// Tables of a list.
    Tables(&'static List),
}

/// The name of a key and what it may be set to.
pub(super) type Key = (&'static str, Rule);

/// A section, its keys in the order in which they are shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Section {
    pub(super) name: &'static str,
    pub(super) keys: &'static [Key],
}

/// A list of tables.
#[derive(Debug)]
pub(super) struct List {
    /// What stands before a key in messages.
    pub(super) path: &'static str,
    /// As it stands in a file.
    pub(super) head: &'static str,
    /// Keys that must be there, with a value that stands for one that is refused.
    pub(super) required: &'static [(&'static str, &'static str)],
    pub(super) keys: &'static [Key],
    /// Whether a text that this key refuses is not shown: it may be a secret, or is long.
    pub(super) hides: fn(&str) -> bool,
}

use Rule::{
    Budget, Headers, Model, Models, OneOf, Rate, Share, Switch, Tables, Tenants, Text, Texts, Time,
    Whole,
};

const SECOND: u64 = 1_000;
const HOUR: u64 = 3_600 * SECOND;
const DAY: u64 = 24 * HOUR;
const TOKENS: Rule = Whole(1, 4_000_000_000);
const SILENT: Rule = OneOf(&["auto", "remind", "finish"]);
const PATH: Rule = Text(text::PATH);
const TOOLS: Rule = Texts(text::TOOLS);

const OF_TENANT: [Key; 6] = [
    ("requests_per_minute", Whole(1, 10_000_000)),
    ("max_requests", Whole(1, 1_000_000)),
    ("max_queries", Whole(1, 1_000_000)),
    ("tokens_per_minute", TOKENS),
    ("max_sessions", Whole(1, 100_000_000)),
    ("max_queued", Whole(1, 10_000_000)),
];

/// All sections.
pub(super) const SECTIONS: [Section; 16] = [
    Section {
        name: "oracle",
        keys: &[
            ("max_turns", Whole(1, 100)),
            ("iteration_warning_threshold", Share),
            ("token_warning_threshold", Share),
            ("context_warning_threshold", Share),
        ],
    },
    Section {
        name: "budget",
        keys: &[
            ("max_tokens", TOKENS),
            ("max_cost_usd", Budget),
            ("session_max_tokens", TOKENS),
            ("session_max_cost_usd", Budget),
            ("prices", PATH),
        ],
    },
    Section {
        name: "fallback",
        keys: &[("silence_turns", Whole(1, 100)), ("low_confidence", Share)],
    },
    Section {
        name: "turn",
        keys: &[("on_missing_signal", SILENT)],
    },
    Section {
        name: "delegation",
        keys: &[
            ("max_depth", Whole(0, 3)),
            ("max_children", Whole(1, 100)),
            ("default_tokens", Whole(100, 100_000)),
        ],
    },
    Section {
        name: "prompt",
        keys: &[
            ("dir", PATH),
            ("context", PATH),
            ("instructions", Text(text::INSTRUCTIONS)),
            ("token_budget", Whole(1, 1_000_000)),
        ],
    },
    Section {
        name: "query",
        keys: &[
            ("lexicon", PATH),
            ("lexicon_overlay", PATH),
            ("weights", PATH),
            ("second_opinion_below", Share),
            ("second_opinion_model", Model),
            ("second_opinion_deadline", Time(100, 60 * SECOND)),
        ],
    },
    Section {
        name: "tools",
        keys: &[
            ("call_deadline", Time(SECOND, HOUR)),
            ("search_deadline", Time(100, 600 * SECOND)),
            ("max_parallel", Whole(1, 64)),
            ("max_file_bytes", Whole(1_024, 67_108_864)),
            ("map_tokens", Whole(200, 16_000)),
            ("only", TOOLS),
            ("attachable", TOOLS),
        ],
    },
    Section {
        name: "notes",
        keys: &[
            ("dir", PATH),
            ("write", Switch),
            ("max_files", Whole(1, 200_000)),
            ("max_bytes", Whole(1_024, 1_073_741_824)),
        ],
    },
    Section {
        name: "model",
        keys: &[
            ("chain", Models),
            ("attempts", Whole(1, 10)),
            ("patience", Time(100, HOUR)),
            ("connect_deadline", Time(100, 300 * SECOND)),
            ("headers_deadline", Time(SECOND, HOUR)),
            ("first_token_deadline", Time(SECOND, HOUR)),
            ("idle_deadline", Time(SECOND, HOUR)),
            ("total_deadline", Time(SECOND, HOUR)),
        ],
    },
    Section {
        name: "session",
        keys: &[
            ("inbox_capacity", Whole(1, 10_000)),
            ("idle_timeout", Time(SECOND, DAY)),
            ("max_live", Whole(1, 10_000_000)),
        ],
    },
    Section {
        name: "supervisor",
        keys: &[
            ("stall_limit", Time(SECOND, DAY)),
            ("max_crashes", Whole(1, 100)),
            ("max_process_deaths", Whole(1, 100)),
            ("recovery_concurrency", Whole(1, 10_000)),
            ("shards", Whole(1, 64)),
        ],
    },
    Section {
        name: "actors",
        keys: &[
            ("classifiers", Whole(1, 64)),
            ("composers", Whole(1, 64)),
            ("model_concurrency", Whole(1, 10_000)),
            ("model_queue", Whole(0, 1_000_000)),
        ],
    },
    Section {
        name: "server",
        keys: &[
            ("listen", Text(text::ADDRESS)),
            ("drain_deadline", Time(SECOND, HOUR)),
            ("header_timeout", Time(100, 600 * SECOND)),
            ("body_timeout", Time(100, HOUR)),
            ("idle_timeout", Time(SECOND, DAY)),
            ("write_timeout", Time(100, HOUR)),
            ("max_connections", Whole(1, 1_000_000)),
            ("max_connections_per_address", Whole(1, 1_000_000)),
            ("max_requests", Whole(1, 1_000_000)),
            ("max_queries", Whole(1, 10_000_000)),
            ("max_backlog", Whole(1, 1_000_000)),
            ("max_body", Whole(1_024, 1_073_741_824)),
            ("require_keys", Switch),
            ("allowed_hosts", Texts(text::HOSTS)),
            ("allowed_origins", Texts(text::ORIGINS)),
            ("wrong_keys_per_minute", Whole(1, 1_000_000)),
            ("progress", Switch),
        ],
    },
    Section {
        name: "tenants",
        keys: &[
            OF_TENANT[0],
            OF_TENANT[1],
            OF_TENANT[2],
            OF_TENANT[3],
            OF_TENANT[4],
            OF_TENANT[5],
            ("named", Tenants),
        ],
    },
    Section {
        name: "data",
        keys: &[("dir", PATH)],
    },
];

/// Kinds of conversations.
pub(super) static PROFILES: List = List {
    path: "profiles",
    head: "[[profiles]]",
    required: &[("name", "x")],
    keys: &[
        ("name", Text(text::PROFILE)),
        ("description", Text(text::LINE)),
        ("instructions", Text(text::INSTRUCTIONS)),
        ("prompt_dir", PATH),
        ("prompt_context", PATH),
        ("chain", Models),
        ("max_turns", Whole(1, 100)),
        ("max_tokens", TOKENS),
        ("max_cost_usd", Budget),
        ("session_max_tokens", TOKENS),
        ("session_max_cost_usd", Budget),
        ("silence_turns", Whole(1, 100)),
        ("low_confidence", Share),
        ("on_missing_signal", SILENT),
        ("max_depth", Whole(0, 3)),
        ("max_children", Whole(1, 100)),
        ("tools", TOOLS),
        ("attachable", TOOLS),
    ],
    hides: |key| key == "instructions",
};

/// Servers of models.
pub(super) static PROVIDERS: List = List {
    path: "providers",
    head: "[[providers]]",
    required: &[
        ("name", "x"),
        ("dialect", "openai"),
        ("base_url", "http://x"),
    ],
    keys: &[
        ("name", Text(text::PROVIDER)),
        ("dialect", OneOf(&["openai", "anthropic"])),
        ("base_url", Text(text::URL)),
        ("key_env", Text(text::VARIABLE)),
        ("key_file", PATH),
        ("ca_file", PATH),
        ("stream", OneOf(&["always", "never"])),
        ("requests_per_minute", Whole(1, 10_000_000)),
        ("tokens_per_minute", TOKENS),
        ("concurrency", Whole(1, 10_000)),
        ("queue", Whole(0, 1_000_000)),
        ("headers", Headers(text::HEADER, text::HEADER_VALUE)),
        ("header_env", Headers(text::HEADER, text::VARIABLE)),
        (MODELS, Tables(&OF_PROVIDER)),
    ],
    hides: |key| !["name", "dialect", "base_url", "stream"].contains(&key),
};

/// The key of a provider's models.
pub(super) const MODELS: &str = "models";

/// Models of a provider.
pub(super) static OF_PROVIDER: List = List {
    path: "providers.models",
    head: "[[providers.models]]",
    required: &[("name", "x")],
    keys: &[
        ("name", Text(text::MODEL)),
        ("context_window", Whole(256, 100_000_000)),
        ("max_output_tokens", Whole(1, 10_000_000)),
        ("input", Rate),
        ("cached", Rate),
        ("cache_write", Rate),
        ("output", Rate),
    ],
    hides: |key| key != "name",
};

/// The lists beside the sections.
pub(super) static LISTS: [&List; 2] = [&PROFILES, &PROVIDERS];

/// A section by its name.
pub(super) fn section(name: &str) -> Option<&'static Section> {
    const ALL: &[Section] = &SECTIONS;
    ALL.iter().find(|section| section.name == name)
}

/// What a key may be set to; none where there is no such key.
pub(super) fn rule(keys: &[Key], name: &str) -> Option<Rule> {
    keys.iter()
        .find(|(known, _)| *known == name)
        .map(|key| key.1)
}

/// The names of keys, for people.
pub(super) fn names(keys: &[Key]) -> String {
    let names: Vec<&str> = keys.iter().map(|(name, _)| *name).collect();
    names.join(", ")
}

impl Rule {
    /// The value as it is kept. A decimal number comes with its digits, which say more than the float that is
    /// nearest to them.
    ///
    /// # Errors
    /// What is allowed.
    pub(super) fn read(self, value: &Value, digits: Option<&str>) -> Result<Value, String> {
        let text = value.as_str();
        let decimal = || match value {
            Value::String(text) => text.clone(),
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => digits.map_or_else(|| number.to_string(), str::to_owned),
            _ => String::new(),
        };
        let refused = || self.allowed();
        let kept = match self {
            Switch => value.is_bool().then(|| value.clone()),
            Whole(least, most) => {
                let number = value
                    .as_integer()
                    .and_then(|number| u64::try_from(number).ok());
                let fits = number.is_some_and(|number| (least..=most).contains(&number));
                fits.then(|| value.clone())
            }
            Time(least, most) => {
                let span = text.and_then(|text| {
                    let span = SpanParser::new().parse_unsigned_duration(text).ok()?;
                    let whole = span.subsec_nanos().is_multiple_of(1_000_000);
                    let millis = u64::try_from(span.as_millis()).ok()?;
                    (whole && (least..=most).contains(&millis)).then_some(span)
                });
                span.map(|span| shown_time(span).into())
            }
            Share => {
                let share = decimal().parse::<BasisPoints>().ok();
                share.map(|share| share.as_fraction().into())
            }
            Budget | Rate => {
                let money = usd::parse(&decimal());
                let money = money.filter(|money| matches!(self, Rate) || money.0 > 0);
                money.map(|money| usd::dollars(money).into())
            }
            OneOf(names) => text
                .filter(|text| names.contains(text))
                .map(|_| value.clone()),
            Text(form) => text
                .filter(|text| (form.allows)(text))
                .map(|_| value.clone()),
            Texts(form) => texts(value)
                .filter(|texts| {
                    let double = |at: usize| texts[..at].contains(&texts[at]);
                    texts.iter().all(|text| (form.allows)(text)) && !(0..texts.len()).any(double)
                })
                .map(Value::from),
            Models => {
                let names = texts(value).unwrap_or_default();
                let chain = ModelChain::new(names.iter().map(String::as_str)).ok();
                chain.map(|chain| chain.models().to_vec().into())
            }
            Model => text.and_then(full_name).map(Value::from),
            Headers(names, values) => {
                let table = value
                    .as_table()
                    .ok_or("a table of headers with their names and what they are set to")?;
                for (name, value) in table {
                    let allows = |form: Form, text: Option<&str>| {
                        let good = text.is_some_and(|text| (form.allows)(text));
                        let allowed = format!("a table of headers with {}", form.allowed);
                        good.then_some(()).ok_or(allowed)
                    };
                    allows(names, Some(name))?;
                    allows(values, value.as_str())?;
                }
                Some(value.clone())
            }
            Tenants => return limits(value),
            Tables(_) => value
                .as_array()
                .filter(|tables| tables.is_empty())
                .map(|_| value.clone()),
        };
        kept.ok_or_else(refused)
    }

    fn allowed(self) -> String {
        let quoted = |name: &&str| format!("\"{name}\"");
        match self {
            Switch => "true or false".to_owned(),
            Whole(least, most) => format!("a whole number from {least} to {most}"),
            Time(least, most) => {
                let [least, most] =
                    [least, most].map(|millis| shown_time(Duration::from_millis(millis)));
                format!("a time from {least} to {most}, written like 250ms, 30s, 10m or 1h")
            }
            Share => "a number from 0.0 to 1.0 with at most 4 decimals".to_owned(),
            Budget => {
                "US dollars, more than 0 and up to 1000000, with at most 6 decimals".to_owned()
            }
            Rate => "US dollars from 0 to 1000000, with at most 6 decimals".to_owned(),
            OneOf(names) => match names.split_last() {
                Some((last, others)) => {
                    let others: Vec<String> = others.iter().map(quoted).collect();
                    format!("{} or {}", others.join(", "), quoted(last))
                }
                None => String::new(),
            },
            Text(form) | Texts(form) | Headers(form, _) => form.allowed.to_owned(),
            Models => "1 to 8 different models, each written provider/model".to_owned(),
            Model => "a model, written provider/model".to_owned(),
            Tenants => "only tables of limits: the line `[tenants.named.NAME]` and keys below it"
                .to_owned(),
            Tables(list) => format!("only a list: the line `{}` and keys below it", list.head),
        }
    }
}

/// A time as it is written.
pub(super) fn shown_time(span: Duration) -> String {
    const PRINTER: SpanPrinter = SpanPrinter::new().designator(Designator::Compact);
    PRINTER.unsigned_duration_to_string(&span)
}

/// A list of texts, or one text with commas between them.
fn texts(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::Array(texts) => texts
            .iter()
            .map(|text| text.as_str().map(str::to_owned))
            .collect(),
        Value::String(texts) => Some(
            texts
                .split(',')
                .map(|text| text.trim().to_owned())
                .collect(),
        ),
        _ => None,
    }
}

/// Limits of tenants, by the tenant's name.
fn limits(value: &Value) -> Result<Value, String> {
    let tables = value.as_table().ok_or_else(|| Tenants.allowed())?;
    let known = names(&OF_TENANT);
    for (name, limits) in tables {
        TenantId::new(name).map_err(|error| format!("names of tenants; {error}"))?;
        let no_table = || format!("for `{name}` a table with {known}");
        let limits: &Table = limits.as_table().ok_or_else(no_table)?;
        for (key, value) in limits {
            let rule = rule(&OF_TENANT, key).ok_or_else(|| format!("for `{name}` only {known}"))?;
            let read = rule.read(value, None);
            read.map_err(|allowed| format!("for `{name}.{key}` {allowed}"))?;
        }
    }
    Ok(value.clone())
}

/// What to do about a section that does not exist.
pub(super) fn section_remedy(wrong: &str) -> String {
    let heads = SECTIONS.map(|section| (section.name, format!("[{}]", section.name)));
    let lists = LISTS.map(|list| (list.path, list.head.to_owned()));
    match nearest(wrong, heads.into_iter().chain(lists)) {
        Some(head) => format!("the nearest is `{head}`"),
        None => format!("{}, [[profiles]] and [[providers]]", section_names()),
    }
}

fn section_names() -> String {
    format!(
        "the sections are {}",
        SECTIONS.map(|section| section.name).join(", ")
    )
}

/// What to do about a key that does not exist in a table of a list.
pub(super) fn item_remedy(list: &List, wrong: &str) -> String {
    match nearest(wrong, list.keys.iter().map(|(key, _)| (*key, *key))) {
        Some(key) => format!("the nearest is `{}.{key}`", list.path),
        None => format!("`{}` has {}", list.head, names(list.keys)),
    }
}

/// What to do about a key that does not exist, in a section or outside of all.
pub(super) fn key_remedy(section_name: &str, wrong: &str) -> String {
    let here = section(section_name);
    // Of names equally near, the one in this section.
    let candidates = here.into_iter().chain(&SECTIONS).flat_map(|section| {
        let key = |(key, _): &Key| (*key, format!("{}.{key}", section.name));
        section.keys.iter().map(key)
    });
    match (nearest(wrong, candidates), here) {
        (Some(key), _) => format!("the nearest is `{key}`"),
        (None, Some(section)) => format!("`[{section_name}]` has {}", names(section.keys)),
        (None, None) => section_names(),
    }
}

/// The candidate whose name takes the fewest edits, if they are few for its length.
fn nearest<'a, T>(wrong: &str, candidates: impl Iterator<Item = (&'a str, T)>) -> Option<T> {
    let allowed = |name: &str| (name.len() / 3).max(1);
    candidates
        .map(|(name, candidate)| (strsim::levenshtein(wrong, name), name, candidate))
        .filter(|(edits, name, _)| *edits <= allowed(name))
        .min_by_key(|(edits, _, _)| *edits)
        .map(|(_, _, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn the_sections_are_those_of_the_struct() {
        // Unlike TOML, JSON shows optional keys that are not set.
        let json = serde_json::to_value(Config::default()).unwrap();
        let sorted = |mut names: Vec<&'static str>| {
            names.sort_unstable();
            names
        };
        let all = SECTIONS.map(|section| section.name).into_iter();
        let all = sorted(all.chain(LISTS.map(|list| list.path)).collect());
        let there: Vec<&String> = json.as_object().unwrap().keys().collect();
        assert_eq!(all, there);
        for Section { name, keys } in SECTIONS {
            let keys = sorted(keys.iter().map(|(key, _)| *key).collect());
            let there: Vec<&String> = json[name].as_object().unwrap().keys().collect();
            assert_eq!(keys, there, "{name}");
        }
    }

    #[test]
    fn the_nearest_key_is_named_or_else_what_there_is() {
        for (section, wrong, remedy) in [
            ("oracle", "max_turn", "the nearest is `oracle.max_turns`"),
            ("budget", "max_turns", "the nearest is `oracle.max_turns`"),
            ("", "max_turns", "the nearest is `oracle.max_turns`"),
            (
                "prompt",
                "dri",
                "`[prompt]` has dir, context, instructions, token_budget",
            ),
            ("prompt", "dirs", "the nearest is `prompt.dir`"),
            ("data", "dirs", "the nearest is `data.dir`"),
        ] {
            assert_eq!(key_remedy(section, wrong), remedy, "{section} {wrong}");
        }
        assert_eq!(section_remedy("bugdet"), "the nearest is `[budget]`");
    }

    #[test]
    fn times_have_a_unit_and_are_whole_milliseconds() {
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
            let read = Time(0, DAY).read(&text.into(), None).ok();
            assert_eq!(read, written.map(Value::from), "{text}");
        }
    }

    #[test]
    fn a_tenants_limits_are_refused_with_what_is_allowed() {
        for (text, allowed) in [
            ("named = 1", "only tables of limits"),
            (
                "named.acme = 1",
                "for `acme` a table with requests_per_minute, ",
            ),
            (
                "named.acme.queue = 1",
                "for `acme` only requests_per_minute, ",
            ),
            (
                "named.acme.max_queued = 0",
                "for `acme.max_queued` a whole number from 1 to 10000000",
            ),
            ("named.'a b'.max_queued = 1", "names of tenants; "),
        ] {
            let table: Table = toml::from_str(text).unwrap();
            let refused = Tenants.read(&table["named"], None).unwrap_err();
            assert!(refused.starts_with(allowed), "{text}: {refused}");
        }
    }
}
