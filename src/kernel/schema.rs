//! Checks JSON against a schema: arguments of tools, and answers in a format.
//!
//! A schema may come from a caller, and validation can take exponential time, so the work is bounded;
//! published validators have no such bound.

use std::collections::{HashMap, HashSet};

use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};

use super::guidance::quote;

/// Maximum steps of one check: one for each subschema applied to a value and each `enum` value
/// compared, and [`PATTERN_STEPS`] for each pattern compiled.
const MAX_STEPS: usize = 300_000;
const PATTERN_STEPS: usize = 1_000;
/// Maximum size of a compiled pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 1 << 20;
/// Maximum number of patterns in a schema.
const MAX_PATTERNS: usize = 100;
/// Maximum steps to mend arguments, and of the parts that a schema consists of.
const MOST_MENDED: usize = 10_000;
const MOST_PARTS: usize = 100;
/// Maximum nesting of subschemas, references included.
const MAX_DEPTH: usize = 300;

const TYPES: [&str; 7] = [
    "object", "array", "string", "boolean", "null", "number", "integer",
];
/// Keywords whose value is a schema.
const ONE: [&str; 3] = ["additionalProperties", "items", "not"];
/// Keywords whose value is a list of schemas.
const LIST: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
/// Keywords whose value has a schema in each field.
const EACH: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];
/// Keywords that restrict a value and are not implemented.
const UNSUPPORTED: &str = "$dynamicRef $recursiveRef contains dependencies dependentRequired \
                           dependentSchemas else if maxContains minContains propertyNames then \
                           unevaluatedItems unevaluatedProperties";

/// Checks that a schema can be used.
///
/// # Errors
/// A description of what is wrong with it.
pub fn check_schema(schema: &Value) -> Result<(), String> {
    check_part(schema, schema, &mut 0)
}

fn check_part(root: &Value, schema: &Value, number: &mut usize) -> Result<(), String> {
    let fields = match schema {
        Value::Bool(_) => return Ok(()),
        Value::Object(fields) => fields,
        other => return Err(format!("{other} is not a schema")),
    };
    let mut unsupported = UNSUPPORTED.split_ascii_whitespace();
    if let Some(name) = unsupported.find(|name| fields.contains_key(*name)) {
        return Err(format!("the keyword `{name}` is not supported"));
    }
    if let Some(unknown) = types(schema).into_iter().find(|name| !TYPES.contains(name)) {
        return Err(format!("unknown type {}", quote(unknown)));
    }
    let target = |reference: &Value| resolved(root, reference.as_str()?);
    if let Some(reference) = fields.get("$ref")
        && target(reference).is_none()
    {
        return Err(format!(
            "the reference {reference} does not resolve within the schema"
        ));
    }
    let patterns = fields.get("patternProperties").and_then(Value::as_object);
    let patterns = patterns.into_iter().flat_map(Map::keys).map(String::as_str);
    for pattern in patterns.chain(fields.get("pattern").and_then(Value::as_str)) {
        *number += 1;
        if *number > MAX_PATTERNS {
            return Err(format!("the schema has more than {MAX_PATTERNS} patterns"));
        }
        compiled(pattern)
            .ok_or_else(|| format!("{} is not a valid pattern, or is too large", quote(pattern)))?;
    }
    let mut parts = fields.iter().flat_map(|(name, value)| match value {
        Value::Array(list) if LIST.contains(&name.as_str()) => list.iter().collect(),
        Value::Object(each) if EACH.contains(&name.as_str()) => each.values().collect(),
        value if ONE.contains(&name.as_str()) => vec![value],
        _ => Vec::new(),
    });
    parts.try_for_each(|part| check_part(root, part, number))
}

/// Describes the first problem of a call's arguments. An optional or `nullable` argument may be
/// null, because models often send null for an omitted one.
pub(super) fn problem_of_arguments(schema: &Value, arguments: &Value) -> Option<String> {
    Checker::new(schema, "argument", true).problem(arguments)
}

/// Describes the first problem of an answer.
pub(super) fn problem_of_answer(schema: &Value, answer: &Value) -> Option<String> {
    Checker::new(schema, "field", false).problem(answer)
}

/// Turns values that are right but odd, such as `"5"` or `5.0` for an integer, into those that the
/// schema asks for.
pub(super) fn mend(schema: &Value, arguments: &mut Value) {
    mend_part(schema, schema, arguments, &mut MOST_MENDED.clone());
}

fn mend_part(root: &Value, schema: &Value, value: &mut Value, steps: &mut usize) {
    let Some(left) = steps.checked_sub(1) else {
        return;
    };
    *steps = left;
    // The schema and those that it consists of.
    let mut parts = vec![schema];
    let mut next = 0;
    while let Some(part) = parts.get(next).filter(|_| parts.len() < MOST_PARTS) {
        let target = part["$ref"].as_str().and_then(|name| resolved(root, name));
        let all = ["allOf", "anyOf", "oneOf"].into_iter();
        let all = all.flat_map(|keyword| list(part, keyword)).chain(target);
        parts.append(&mut all.collect());
        next += 1;
    }
    let types: Vec<&str> = parts.iter().flat_map(|part| types(part)).collect();
    let fits = |value: &Value| types.iter().any(|name| is_of_type(value, name));
    if let Value::String(text) = &*value
        && !types.is_empty()
        && !fits(value)
        // `True` is Python's.
        && let text = text.trim()
        && let word = ["true", "false"].iter().find(|word| word.eq_ignore_ascii_case(text))
        && let Ok(meant) = serde_json::from_str(word.map_or(text, |word| *word))
        && fits(&meant)
    {
        *value = meant;
    }
    if types.contains(&"integer")
        && !types.contains(&"number")
        && let Some(number) = value.as_f64().filter(|_| value.is_f64() && fits(value))
        && let Ok(whole) = format!("{number:.0}").parse::<i64>()
    {
        *value = whole.into();
    }
    for part in parts {
        let (fields, items) = (&part["properties"], list(part, "prefixItems"));
        let (others, further) = (part.get("additionalProperties"), part.get("items"));
        match value {
            Value::Object(values) => values.iter_mut().for_each(|(name, value)| {
                if let Some(part) = fields.get(name).or(others) {
                    mend_part(root, part, value, steps);
                }
            }),
            Value::Array(values) => values.iter_mut().enumerate().for_each(|(at, value)| {
                if let Some(part) = items.get(at).or(further) {
                    mend_part(root, part, value, steps);
                }
            }),
            _ => {}
        }
    }
}

enum Failure {
    Problem(String),
    TooComplex,
}

type Checked = Result<(), Failure>;

struct Checker<'a> {
    root: &'a Value,
    noun: &'static str,
    allows_null: bool,
    steps: usize,
    patterns: HashMap<String, Option<Regex>>,
}

impl<'a> Checker<'a> {
    fn new(root: &'a Value, noun: &'static str, allows_null: bool) -> Self {
        Self {
            root,
            noun,
            allows_null,
            steps: MAX_STEPS,
            patterns: HashMap::new(),
        }
    }

    fn problem(mut self, given: &Value) -> Option<String> {
        match self.check(self.root, given, "", 0) {
            Ok(()) => None,
            Err(Failure::Problem(problem)) => Some(problem),
            Err(Failure::TooComplex) => Some("the schema is too complex to check".to_owned()),
        }
    }

    fn spend(&mut self, steps: usize) -> Checked {
        self.steps = self.steps.checked_sub(steps).ok_or(Failure::TooComplex)?;
        Ok(())
    }

    fn require(&self, fits: bool, at: &str, what: impl FnOnce() -> String) -> Checked {
        if fits {
            return Ok(());
        }
        let subject = match at {
            "" if self.allows_null => "the arguments".to_owned(),
            "" => "the answer".to_owned(),
            at => format!("the {} {}", self.noun, quote(at)),
        };
        Err(Failure::Problem(format!("{subject} {}", what())))
    }

    fn check(&mut self, schema: &Value, given: &Value, at: &str, depth: usize) -> Checked {
        self.spend(1)?;
        if depth > MAX_DEPTH {
            return Err(Failure::TooComplex);
        }
        self.require(*schema != Value::Bool(false), at, || {
            "is not allowed".into()
        })?;
        if self.allows_null && given.is_null() && schema["nullable"] == true {
            return Ok(());
        }
        if let Some(reference) = schema["$ref"].as_str()
            && let Some(target) = resolved(self.root, reference)
        {
            self.check(target, given, at, depth + 1)?;
        }
        let types = types(schema);
        let has_type = types.is_empty() || types.iter().any(|name| is_of_type(given, name));
        self.require(has_type, at, || {
            format!("must be of type {}", types.join(" or "))
        })?;
        if let Some(value) = schema.get("const") {
            self.require(is_equal(value, given), at, || format!("must be {value}"))?;
        }
        if let Value::Array(values) = &schema["enum"] {
            self.spend(values.len())?;
            let is_one = values.iter().any(|value| is_equal(value, given));
            self.require(is_one, at, || {
                let values: Vec<String> = values.iter().map(Value::to_string).collect();
                format!("must be one of {}", values.join(", "))
            })?;
        }
        self.combined(schema, given, at, depth)?;
        match given {
            Value::String(text) => self.text(schema, text, at),
            Value::Number(number) => self.number(schema, number.as_f64().unwrap_or_default(), at),
            Value::Array(items) => self.items(schema, items, at, depth),
            Value::Object(fields) => self.fields(schema, fields, at, depth),
            Value::Null | Value::Bool(_) => Ok(()),
        }
    }

    fn combined(&mut self, schema: &Value, given: &Value, at: &str, depth: usize) -> Checked {
        for part in list(schema, "allOf") {
            self.check(part, given, at, depth + 1)?;
        }
        for (keyword, most, says) in [("anyOf", usize::MAX, "at least"), ("oneOf", 1, "exactly")] {
            let parts = list(schema, keyword);
            let (mut fitting, mut first) = (0, None);
            for part in parts {
                match self.check(part, given, at, depth + 1) {
                    Ok(()) => fitting += 1,
                    Err(Failure::TooComplex) => return Err(Failure::TooComplex),
                    Err(failure) => drop(first.get_or_insert(failure)),
                }
                if fitting > 0 && most > 1 {
                    break;
                }
            }
            match first {
                Some(failure) if fitting == 0 && parts.len() == 1 => return Err(failure),
                _ if parts.is_empty() => {}
                _ => self.require((1..=most).contains(&fitting), at, || {
                    format!("must match {says} one of the schemas in `{keyword}`")
                })?,
            }
        }
        if let Some(part) = schema.get("not") {
            let fits = match self.check(part, given, at, depth + 1) {
                Err(Failure::TooComplex) => return Err(Failure::TooComplex),
                checked => checked.is_ok(),
            };
            self.require(!fits, at, || "must not match the schema in `not`".into())?;
        }
        Ok(())
    }

    fn text(&mut self, schema: &Value, text: &str, at: &str) -> Checked {
        self.size(schema, at, ["minLength", "maxLength"], "characters", || {
            text.chars().count()
        })?;
        let Some(pattern) = schema["pattern"].as_str() else {
            return Ok(());
        };
        let fits = self.matches(pattern, text)?;
        self.require(fits, at, || {
            format!("must match the pattern {}", quote(pattern))
        })
    }

    fn matches(&mut self, pattern: &str, text: &str) -> Result<bool, Failure> {
        if !self.patterns.contains_key(pattern) {
            self.spend(PATTERN_STEPS)?;
            self.patterns.insert(pattern.to_owned(), compiled(pattern));
        }
        // Only a schema that `check_schema` did not see has an invalid pattern: that of a tool.
        let pattern = self.patterns.get(pattern).and_then(Option::as_ref);
        Ok(pattern.is_some_and(|pattern| pattern.is_match(text)))
    }

    fn number(&self, schema: &Value, number: f64, at: &str) -> Checked {
        type Fits = fn(&f64, &f64) -> bool;
        let bounds = [
            ("minimum", "at least", f64::ge as Fits),
            ("maximum", "at most", f64::le),
            ("exclusiveMinimum", "more than", f64::gt),
            ("exclusiveMaximum", "less than", f64::lt),
        ];
        for (name, says, fits) in bounds {
            let bound = schema[name].as_f64();
            let fits = bound.is_none_or(|bound| fits(&number, &bound));
            self.require(fits, at, || format!("must be {says} {}", schema[name]))?;
        }
        let Some(step) = schema["multipleOf"].as_f64().filter(|step| *step > 0.0) else {
            return Ok(());
        };
        let quotient = number / step;
        let is_multiple = (quotient - quotient.round()).abs() < 1e-9;
        self.require(is_multiple, at, || format!("must be a multiple of {step}"))
    }

    fn items(&mut self, schema: &Value, items: &[Value], at: &str, depth: usize) -> Checked {
        self.size(schema, at, ["minItems", "maxItems"], "items", || {
            items.len()
        })?;
        if schema["uniqueItems"] == true {
            let texts: HashSet<String> = items.iter().map(Value::to_string).collect();
            self.require(texts.len() == items.len(), at, || {
                "must not have duplicate items".into()
            })?;
        }
        let first = list(schema, "prefixItems");
        for (index, item) in items.iter().enumerate() {
            let Some(part) = first.get(index).or_else(|| schema.get("items")) else {
                continue;
            };
            self.check(part, item, &format!("{at}[{index}]"), depth + 1)?;
        }
        Ok(())
    }

    fn fields(
        &mut self,
        schema: &Value,
        fields: &Map<String, Value>,
        at: &str,
        depth: usize,
    ) -> Checked {
        let path = |name: &str| match at {
            "" => name.to_owned(),
            at => format!("{at}.{name}"),
        };
        self.size(
            schema,
            at,
            ["minProperties", "maxProperties"],
            "fields",
            || fields.len(),
        )?;
        let required = list(schema, "required").iter();
        let required: Vec<&str> = required.filter_map(Value::as_str).collect();
        if let Some(missing) = required.iter().find(|name| !fields.contains_key(**name)) {
            self.require(false, &path(missing), || "is missing".into())?;
        }
        let patterns = schema["patternProperties"].as_object();
        for (name, value) in fields {
            let mut is_known = false;
            for (pattern, part) in patterns.into_iter().flatten() {
                if self.matches(pattern, name)? {
                    is_known = true;
                    self.check(part, value, &path(name), depth + 1)?;
                }
            }
            let omitted = self.allows_null && value.is_null() && !required.contains(&name.as_str());
            let others = &schema["additionalProperties"];
            match (schema["properties"].get(name), others) {
                (Some(_), _) if omitted => {}
                (Some(part), _) => self.check(part, value, &path(name), depth + 1)?,
                (None, Value::Bool(false)) if !is_known => {
                    let noun = self.noun;
                    let problem = format!("there is no {noun} {}", quote(&path(name)));
                    return Err(Failure::Problem(problem));
                }
                (None, part @ Value::Object(_)) if !is_known => {
                    self.check(part, value, &path(name), depth + 1)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn size(
        &self,
        schema: &Value,
        at: &str,
        [least, most]: [&str; 2],
        what: &str,
        size: impl FnOnce() -> usize,
    ) -> Checked {
        let (least, most) = (schema[least].as_u64(), schema[most].as_u64());
        if least.is_none() && most.is_none() {
            return Ok(());
        }
        let size = size() as u64;
        let (least, most) = (least.unwrap_or(0), most.unwrap_or(u64::MAX));
        self.require(size >= least, at, || {
            format!("must have at least {least} {what}")
        })?;
        self.require(size <= most, at, || {
            format!("must have at most {most} {what}")
        })
    }
}

fn compiled(pattern: &str) -> Option<Regex> {
    RegexBuilder::new(pattern)
        .size_limit(MAX_PATTERN_BYTES)
        .build()
        .ok()
}

fn types(schema: &Value) -> Vec<&str> {
    let types = match &schema["type"] {
        Value::Array(types) => types.as_slice(),
        Value::Null => &[],
        one => std::slice::from_ref(one),
    };
    types.iter().filter_map(Value::as_str).collect()
}

fn list<'a>(schema: &'a Value, keyword: &str) -> &'a [Value] {
    schema[keyword].as_array().map_or(&[], Vec::as_slice)
}

fn resolved<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    root.pointer(reference.strip_prefix('#')?)
}

/// Compares numbers by value: 1 and 1.0 are equal.
fn is_equal(one: &Value, other: &Value) -> bool {
    one == other || one.is_number() && one.as_f64() == other.as_f64()
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        _ => true,
    }
}

#[cfg(test)]
mod tests;
