//! Which environment variables are configuration (spec 13).
//!
//! `ORACLE_<SECTION>__<KEY>`, and for the keys of `[oracle]` `ORACLE_<KEY>` (T031). All other names
//! that begin with `ORACLE_` belong to somebody else: they are not looked at.

use std::ffi::OsString;

use super::{
    keys::{self, Section},
    load::{Entry, Given},
    problem::{Origin, Problem, shown, shown_unless_secret},
};

/// The section whose keys have short names.
const SHORT: &str = "oracle";

/// What the environment sets, in the order of the names.
pub(super) fn entries(variables: &[(OsString, OsString)]) -> Vec<Result<Entry, Problem>> {
    let mut named: Vec<(&str, &OsString)> = variables
        .iter()
        .filter_map(|(name, value)| Some((name.to_str()?, value)))
        .collect();
    named.sort_unstable();
    named
        .into_iter()
        .filter_map(|(name, value)| entry(name, value))
        .collect()
}

fn entry(name: &str, value: &OsString) -> Option<Result<Entry, Problem>> {
    let (section, key) = target(name)?;
    let origin = Origin::Environment(name.to_owned());
    let long_for_short = section.name == SHORT && name.contains("__");
    if long_for_short && section.keys.contains(&key.as_str()) {
        let remedy = format!("the variable is ORACLE_{}", key.to_ascii_uppercase());
        let value = shown_unless_secret(&key, &value.to_string_lossy());
        return Some(Err(Problem::UnknownKey {
            origin,
            key: format!("{SHORT}.{key}"),
            value,
            remedy,
        }));
    }
    let Some(text) = value.to_str() else {
        let (key, value) = (
            format!("{}.{key}", section.name),
            shown(&value.to_string_lossy()),
        );
        let allowed = "only text in UTF-8".to_owned();
        return Some(Err(Problem::NotAllowed {
            origin,
            key,
            value,
            allowed,
        }));
    };
    Some(Ok(Entry {
        section: section.name.to_owned(),
        key,
        shown: text.to_owned(),
        given: Given::Text(text.to_owned()),
        origin,
    }))
}

/// The section and key that a name stands for; the key may not exist. None if it is not ours.
fn target(name: &str) -> Option<(Section, String)> {
    let rest = name.strip_prefix("ORACLE_")?;
    let lower = |text: &str| (!text.chars().any(char::is_lowercase)).then(|| text.to_lowercase());
    if let Some((section, key)) = rest.split_once("__") {
        return Some((keys::section(&lower(section)?)?, lower(key)?));
    }
    let (section, key) = (keys::section(SHORT)?, lower(rest)?);
    section
        .keys
        .contains(&key.as_str())
        .then_some((section, key))
}
