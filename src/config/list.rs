//! Tables of a list: `[[profiles]]`, `[[providers]]` and the models in these.
//!
//! Every key is checked by itself, as in the sections: a value is kept only if it makes a whole table
//! together with a known good one, so each problem belongs to the one value that was refused. What may be
//! a secret that was put in the wrong place is not printed.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::{
    Origin, Problem, Profile, Provider, ProviderModel, keys,
    load::Given,
    problem::{plain, shown},
};

/// One table of a list, before it is checked.
pub(super) struct Item {
    /// Where it begins.
    pub(super) origin: Origin,
    /// Its keys, in order.
    pub(super) keys: Vec<ItemKey>,
}

/// A key of a table of a list.
pub(super) struct ItemKey {
    pub(super) name: String,
    /// As written.
    pub(super) raw: String,
    pub(super) value: ItemValue,
    pub(super) origin: Origin,
}

/// What a key of a table of a list is set to.
pub(super) enum ItemValue {
    One(Given),
    /// A list of tables itself.
    List(Vec<Item>),
}

/// A table of a list, checked.
pub(super) struct Checked<T> {
    /// The table as far as it is in order; what was refused or is missing has a value that means nothing.
    pub(super) table: Option<T>,
    /// By key; of a list in it by `list.number.key`.
    pub(super) origins: BTreeMap<String, Origin>,
    /// Keys that were refused or are missing, in the same form.
    pub(super) bad: Vec<String>,
    pub(super) problems: Vec<Problem>,
}

/// What the tables of a list have to be like.
struct Shape {
    /// As it stands in a file.
    head: &'static str,
    /// What stands before a key.
    path: &'static str,
    /// Keys that must be there, with a value that is good.
    required: &'static [(&'static str, &'static str)],
    /// Whether a refused value is shown; the name of the key and the value as it is written.
    shows: fn(&str, &str) -> bool,
}

const PROFILE: Shape = Shape {
    head: "[[profiles]]",
    path: "profiles",
    required: &[("name", "x")],
    // What a model is told is nobody's secret, but long.
    shows: |key, _| key != "instructions",
};

const PROVIDER: Shape = Shape {
    head: "[[providers]]",
    path: "providers",
    required: &[
        ("name", "x"),
        ("dialect", "openai"),
        ("base_url", "http://x"),
    ],
    shows: of_provider,
};

const MODEL: Shape = Shape {
    head: "[[providers.models]]",
    path: "providers.models",
    required: &[("name", "x")],
    shows: of_provider,
};

/// Keys whose texts are never secrets.
const OPEN: [&str; 3] = ["name", "dialect", "stream"];

/// Checks a profile.
pub(super) fn profile(item: Item) -> Checked<Profile> {
    check(&PROFILE, item)
}

/// Checks a provider and its models.
pub(super) fn provider(item: Item) -> Checked<Provider> {
    const MODELS: &str = "models";
    let (lists, keys): (Vec<_>, Vec<_>) = item
        .keys
        .into_iter()
        .partition(|key| key.name == MODELS && matches!(key.value, ItemValue::List(_)));
    let own = Item {
        origin: item.origin,
        keys,
    };
    let mut checked = check::<Provider>(&PROVIDER, own);
    let items = lists.into_iter().flat_map(|key| match key.value {
        ItemValue::List(items) => items,
        ItemValue::One(_) => Vec::new(),
    });
    let mut models = Vec::new();
    for (at, item) in items.enumerate() {
        let model = check::<ProviderModel>(&MODEL, item);
        let place = |key| format!("{MODELS}.{at}.{key}");
        let origins = model.origins.into_iter();
        let origins = origins.map(|(key, origin)| (place(key), origin));
        checked.origins.extend(origins);
        checked.bad.extend(model.bad.into_iter().map(place));
        checked.problems.extend(model.problems);
        models.extend(model.table);
    }
    if let Some(table) = &mut checked.table {
        table.models = models;
    }
    checked
}

fn check<T: DeserializeOwned>(shape: &Shape, item: Item) -> Checked<T> {
    let names = keys::fields_of::<T>();
    let good = shape.required.iter();
    let mut table: Table = good
        .map(|(key, value)| ((*key).to_owned(), Value::from(*value)))
        .collect();
    let mut origins = BTreeMap::new();
    let mut problems = Vec::new();
    let mut bad = Vec::new();
    for key in item.keys {
        let ItemKey {
            name,
            raw,
            value,
            origin,
        } = key;
        let path = format!("{}.{}", shape.path, shown(&name));
        if !names.contains(&name.as_str()) {
            problems.push(Problem::UnknownKey {
                origin,
                key: path,
                value: plain(&raw),
                remedy: keys::item_remedy(shape.path, shape.head, names, &name),
            });
            continue;
        }
        // Also one that is refused: it is there.
        origins.insert(name.clone(), origin.clone());
        let with = |value: Value| {
            let mut table = table.clone();
            table.insert(name.clone(), value);
            let whole = table.clone().try_into::<T>();
            whole
                .map(|_| table)
                .map_err(|error| error.message().to_owned())
        };
        let laid = match value {
            ItemValue::One(given) => given.fit(&with),
            ItemValue::List(_) => with(Value::Array(Vec::new())).and_then(|_| with(Value::from(0))),
        };
        match laid {
            Ok(with) => table = with,
            Err(allowed) => {
                problems.push(Problem::NotAllowed {
                    origin,
                    key: path,
                    value: match (shape.shows)(&name, &raw) {
                        true => shown(&raw),
                        false => plain(&raw),
                    },
                    allowed: allowed_for(&name, allowed),
                });
                bad.push(name);
            }
        }
    }
    for (key, _) in shape.required {
        if !origins.contains_key(*key) {
            problems.push(Problem::Missing {
                origin: item.origin.clone(),
                place: shape.head.to_owned(),
                key: (*key).to_owned(),
            });
            bad.push((*key).to_owned());
        }
    }
    Checked {
        table: table.try_into().ok(),
        origins,
        bad,
        problems,
    }
}

/// An address may hold a user's password.
fn of_provider(key: &str, raw: &str) -> bool {
    OPEN.contains(&key) || (key == "base_url" && !raw.contains(['@', '?', '#']))
}

/// Says of values with a structure what serde cannot know.
fn allowed_for(key: &str, allowed: String) -> String {
    match key {
        "headers" | "header_env" => format!("a table of headers with {allowed}"),
        "models" => format!("only a list: the line `{}` and keys below it", MODEL.head),
        _ => allowed,
    }
}
