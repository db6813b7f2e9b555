//! Checks JSON against a schema: arguments of tools, and answers in a format.
//!
//! A schema may come from a caller, and a check can take exponential time. So what it costs is counted
//! as [`Work`], by the sizes of what is compared, matched, counted and written, and all checks of a
//! decision share a bound. The count depends on the input alone: a check that cannot be finished never
//! can, wherever it is repeated. Published validators have no such bound.

use std::{
    collections::{HashMap, HashSet},
    fmt, mem,
    sync::Arc,
};

use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};

use super::quoting::quote;
use crate::model::json;

/// Maximum work of compiling the patterns of a new schema.
const SCHEMA_WORK: usize = 20_000_000;
/// Work of applying a schema to a value, and of finding a field.
const APPLIED: usize = 400;
const FOUND: usize = 100;
/// Work of compiling a pattern, per byte of its text and of its program.
const PARSED: usize = 1_000;
const COMPILED: usize = 10;
/// Bytes of a program that match a byte of text in one unit.
const MATCHED: usize = 8;
/// Work of reading or writing a byte of JSON.
const WRITTEN: usize = 8;
/// Sizes up to which a pattern is compiled, in bytes: what a match costs depends on the first that
/// suffices.
const PROGRAMS: [usize; 5] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, 512 << 10];
/// Maximum length of a pattern, in bytes.
const LONGEST_PATTERN: usize = 4 << 10;
/// Maximum number of different patterns in a schema.
const MAX_PATTERNS: usize = 100;
/// Maximum number of the parts that a schema consists of, where arguments are mended.
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
    check_part(schema, schema, &mut Work::new(SCHEMA_WORK))
}

fn check_part(root: &Value, schema: &Value, work: &mut Work) -> Result<(), String> {
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
        if work.patterns.len() >= MAX_PATTERNS {
            return Err(format!("the schema has more than {MAX_PATTERNS} patterns"));
        }
        let program = work.program(pattern);
        let program = program.map_err(|_| "its patterns are too large together".to_owned())?;
        program
            .ok_or_else(|| format!("{} is not a valid pattern, or is too large", quote(pattern)))?;
    }
    let mut parts = fields.iter().flat_map(|(name, value)| match value {
        Value::Array(list) if LIST.contains(&name.as_str()) => list.iter().collect(),
        Value::Object(each) if EACH.contains(&name.as_str()) => each.values().collect(),
        value if ONE.contains(&name.as_str()) => vec![value],
        _ => Vec::new(),
    });
    parts.try_for_each(|part| check_part(root, part, work))
}

/// What a check finds, or else the first problem of the value; `None` if it cannot be checked,
/// because that takes too much work.
pub(super) type Checked<T = ()> = Result<T, Option<String>>;

/// What checks may still cost, in units of about a nanosecond, and the patterns that they compiled,
/// with the sizes of their programs.
#[derive(Clone, Default)]
pub(super) struct Work {
    left: usize,
    /// Whether something was not done for want of work.
    pub is_short: bool,
    patterns: HashMap<String, Option<(Arc<Regex>, usize)>>,
}

impl Work {
    pub(super) fn new(left: usize) -> Self {
        Self {
            left,
            ..Self::default()
        }
    }

    fn spend(&mut self, units: usize) -> Checked {
        let left = self.left.checked_sub(units);
        self.is_short |= left.is_none();
        // Nothing further is worth a try.
        self.left = left.unwrap_or_default();
        left.map(drop).ok_or(None)
    }

    /// Compiles a pattern, with the size of its program; `None` if it cannot be checked.
    fn program(&mut self, pattern: &str) -> Checked<Option<(Arc<Regex>, usize)>> {
        if let Some(known) = self.patterns.get(pattern) {
            return Ok(known.clone());
        }
        let (text, mut compiled) = (in_rust(pattern), None);
        let may_compile = text.len() <= LONGEST_PATTERN && !sets_flags(&text);
        for limit in PROGRAMS.into_iter().filter(|_| may_compile) {
            self.spend(PARSED * text.len() + COMPILED * limit)?;
            let built = RegexBuilder::new(&text).size_limit(limit).build();
            if !matches!(built, Err(regex::Error::CompiledTooBig(_))) {
                compiled = built.ok().map(|regex| (Arc::new(regex), limit));
                break;
            }
        }
        self.patterns.insert(pattern.to_owned(), compiled.clone());
        Ok(compiled)
    }

    /// Compares numbers by value: 1 and 1.0 are equal.
    fn is_equal(&mut self, one: &Value, other: &Value) -> Checked<bool> {
        self.spend(FOUND + size(one))?;
        Ok(one == other || one.is_number() && one.as_f64() == other.as_f64())
    }

    fn resolved<'a>(&mut self, root: &'a Value, schema: &Value) -> Checked<Option<&'a Value>> {
        let reference = schema["$ref"].as_str().unwrap_or_default();
        self.spend(FOUND * reference.len() / 2)?;
        Ok(resolved(root, reference))
    }
}

/// Checks a call's arguments. An optional or `nullable` argument may be null, because models often
/// send null for an omitted one.
pub(super) fn check_arguments(schema: &Value, arguments: &Value, work: &mut Work) -> Checked {
    Checker::new(schema, "argument", true, work).check(schema, arguments, &Place::Whole)
}

pub(super) fn check_answer(schema: &Value, answer: &Value, work: &mut Work) -> Checked {
    Checker::new(schema, "field", false, work).check(schema, answer, &Place::Whole)
}

/// Turns values that are right but odd, such as `"5"` or `5.0` for an integer, into those that the
/// schema asks for, as far as the work lasts.
pub(super) fn mend(schema: &Value, arguments: &mut Value, work: &mut Work) {
    let _ = mend_part(schema, schema, arguments, work);
}

fn mend_part(root: &Value, schema: &Value, value: &mut Value, work: &mut Work) -> Checked {
    // The schema and those that it consists of.
    let mut parts = vec![schema];
    let mut next = 0;
    while let Some(part) = parts.get(next).filter(|_| parts.len() < MOST_PARTS) {
        let target = work.resolved(root, part)?;
        let all = ["allOf", "anyOf", "oneOf"].into_iter();
        let all = all.flat_map(|keyword| list(part, keyword)).chain(target);
        parts.append(&mut all.collect());
        next += 1;
    }
    let lists: usize = parts.iter().map(|part| list(part, "type").len()).sum();
    let text = value.as_str().map_or(0, str::len);
    work.spend(parts.len() * APPLIED + lists * FOUND + WRITTEN * text)?;
    let types: Vec<&str> = parts.iter().flat_map(|part| types(part)).collect();
    let fits = |value: &Value| types.iter().any(|name| is_of_type(value, name));
    if let Value::String(text) = &*value
        && !types.is_empty()
        && !fits(value)
        // `True` is Python's.
        && let text = text.trim()
        && let word = ["true", "false"].iter().find(|word| word.eq_ignore_ascii_case(text))
        && let Ok(meant) = json::read(word.map_or(text, |word| *word))
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
            Value::Object(values) => {
                for (name, value) in values {
                    work.spend(FOUND + name.len())?;
                    if let Some(part) = fields.get(name).or(others) {
                        mend_part(root, part, value, work)?;
                    }
                }
            }
            Value::Array(values) => {
                for (at, value) in values.iter_mut().enumerate() {
                    work.spend(FOUND)?;
                    if let Some(part) = items.get(at).or(further) {
                        mend_part(root, part, value, work)?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Where a value is.
enum Place<'p> {
    Whole,
    Field(&'p Self, &'p str),
    Item(&'p Self, usize),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => Ok(()),
            Self::Field(Self::Whole, name) => f.write_str(name),
            Self::Field(above, name) => write!(f, "{above}.{name}"),
            Self::Item(above, index) => write!(f, "{above}[{index}]"),
        }
    }
}

struct Checker<'a> {
    root: &'a Value,
    noun: &'static str,
    allows_null: bool,
    work: &'a mut Work,
    /// Which texts match which patterns.
    matches: HashMap<(&'a str, &'a str), bool>,
    /// Patterns that could not be checked.
    skipped: usize,
    /// Nesting of subschemas, where every one so far has fitted.
    depth: usize,
    /// Whether no problem is described, because none is shown.
    is_silent: bool,
}

impl<'a> Checker<'a> {
    fn new(root: &'a Value, noun: &'static str, allows_null: bool, work: &'a mut Work) -> Self {
        Self {
            root,
            noun,
            allows_null,
            work,
            matches: HashMap::new(),
            skipped: 0,
            depth: 0,
            is_silent: false,
        }
    }

    fn refuse(&mut self, problem: impl FnOnce() -> String) -> Checked {
        let problem = (!self.is_silent).then(problem).unwrap_or_default();
        self.work.spend(problem.len())?;
        Err(Some(problem))
    }

    fn require(&mut self, fits: bool, at: &Place<'_>, what: impl FnOnce() -> String) -> Checked {
        if fits {
            return Ok(());
        }
        let (noun, allows_null) = (self.noun, self.allows_null);
        self.refuse(|| match at {
            Place::Whole if allows_null => format!("the arguments {}", what()),
            Place::Whole => format!("the answer {}", what()),
            at => format!("the {noun} {} {}", quote(&at.to_string()), what()),
        })
    }

    /// Whether a value fits, without a description of its problem.
    fn fits(&mut self, schema: &'a Value, given: &'a Value) -> Checked<bool> {
        let (depth, was_silent) = (self.depth, mem::replace(&mut self.is_silent, true));
        let checked = self.check(schema, given, &Place::Whole);
        (self.depth, self.is_silent) = (depth, was_silent);
        match checked {
            Err(None) => Err(None),
            checked => Ok(checked.is_ok()),
        }
    }

    fn check(&mut self, schema: &'a Value, given: &'a Value, at: &Place<'_>) -> Checked {
        self.work
            .spend(APPLIED + FOUND * list(schema, "type").len())?;
        let types = types(schema);
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(None);
        }
        self.require(*schema != Value::Bool(false), at, || {
            "is not allowed".into()
        })?;
        if self.allows_null && given.is_null() && schema["nullable"] == true {
            self.depth -= 1;
            return Ok(());
        }
        if let Some(target) = self.work.resolved(self.root, schema)? {
            self.check(target, given, at)?;
        }
        let has_type = types.is_empty() || types.iter().any(|name| is_of_type(given, name));
        self.require(has_type, at, || {
            format!("must be of type {}", types.join(" or "))
        })?;
        if let Some(value) = schema.get("const") {
            let is_it = self.work.is_equal(value, given)?;
            self.require(is_it, at, || format!("must be {value}"))?;
        }
        if let Value::Array(values) = &schema["enum"] {
            let mut is_one = false;
            for value in values {
                is_one = is_one || self.work.is_equal(value, given)?;
            }
            self.require(is_one, at, || {
                let values: Vec<String> = values.iter().map(Value::to_string).collect();
                format!("must be one of {}", values.join(", "))
            })?;
        }
        self.combined(schema, given, at)?;
        match given {
            Value::String(text) => self.text(schema, text, at),
            Value::Number(number) => self.number(schema, number.as_f64().unwrap_or_default(), at),
            Value::Array(items) => self.items(schema, items, at),
            Value::Object(fields) => self.fields(schema, fields, at),
            Value::Null | Value::Bool(_) => Ok(()),
        }?;
        self.depth -= 1;
        Ok(())
    }

    fn combined(&mut self, schema: &'a Value, given: &'a Value, at: &Place<'_>) -> Checked {
        for part in list(schema, "allOf") {
            self.check(part, given, at)?;
        }
        let skipped = self.skipped;
        for (keyword, most, says) in [("anyOf", usize::MAX, "at least"), ("oneOf", 1, "exactly")] {
            let parts = list(schema, keyword);
            if let [only] = parts {
                self.check(only, given, at)?;
                continue;
            }
            let mut fitting = 0;
            for part in parts {
                fitting += usize::from(self.fits(part, given)?);
                if fitting > 0 && most > 1 {
                    break;
                }
            }
            // More may fit only because a pattern was not checked.
            let fits = fitting > 0 && (fitting <= most || self.skipped > skipped);
            self.require(fits || parts.is_empty(), at, || {
                format!("must match {says} one of the schemas in `{keyword}`")
            })?;
        }
        if let Some(part) = schema.get("not") {
            let fits = self.fits(part, given)? && self.skipped == skipped;
            self.require(!fits, at, || "must not match the schema in `not`".into())?;
        }
        Ok(())
    }

    fn text(&mut self, schema: &'a Value, text: &'a str, at: &Place<'_>) -> Checked {
        self.work.spend(text.len())?;
        let size = text.chars().count();
        self.size(schema, at, ["minLength", "maxLength"], "characters", size)?;
        let Some(pattern) = schema["pattern"].as_str() else {
            return Ok(());
        };
        let fits = self.matches(pattern, text)?.unwrap_or(true);
        self.require(fits, at, || {
            format!("must match the pattern {}", quote(pattern))
        })
    }

    /// Whether a text matches a pattern; `None` if the pattern cannot be checked.
    fn matches(&mut self, pattern: &'a str, text: &'a str) -> Checked<Option<bool>> {
        self.work.spend(FOUND + pattern.len() + text.len())?;
        if let Some(known) = self.matches.get(&(pattern, text)) {
            return Ok(Some(*known));
        }
        let Some((regex, size)) = self.work.program(pattern)? else {
            self.skipped += 1;
            return Ok(None);
        };
        self.work.spend(size.saturating_mul(text.len()) / MATCHED)?;
        let fits = regex.is_match(text);
        self.matches.insert((pattern, text), fits);
        Ok(Some(fits))
    }

    fn number(&mut self, schema: &Value, number: f64, at: &Place<'_>) -> Checked {
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

    fn items(&mut self, schema: &'a Value, items: &'a [Value], at: &Place<'_>) -> Checked {
        self.size(schema, at, ["minItems", "maxItems"], "items", items.len())?;
        if schema["uniqueItems"] == true {
            let sizes = items.iter().map(size);
            self.work.spend(WRITTEN * sizes.sum::<usize>())?;
            let texts: HashSet<String> = items.iter().map(Value::to_string).collect();
            self.require(texts.len() == items.len(), at, || {
                "must not have duplicate items".into()
            })?;
        }
        self.work.spend(items.len() * FOUND)?;
        let first = list(schema, "prefixItems");
        for (index, item) in items.iter().enumerate() {
            let Some(part) = first.get(index).or_else(|| schema.get("items")) else {
                continue;
            };
            self.check(part, item, &Place::Item(at, index))?;
        }
        Ok(())
    }

    fn fields(
        &mut self,
        schema: &'a Value,
        fields: &'a Map<String, Value>,
        at: &Place<'_>,
    ) -> Checked {
        let bounds = ["minProperties", "maxProperties"];
        self.size(schema, at, bounds, "fields", fields.len())?;
        let required = list(schema, "required");
        self.work.spend(FOUND * required.len())?;
        let required: Vec<&str> = required.iter().filter_map(Value::as_str).collect();
        for name in &required {
            self.work.spend(name.len())?;
            let has_it = fields.contains_key(*name);
            self.require(has_it, &Place::Field(at, name), || "is missing".into())?;
        }
        let patterns = schema["patternProperties"].as_object();
        for (name, value) in fields {
            let here = &Place::Field(at, name);
            self.work.spend(FOUND + name.len())?;
            let mut is_known = false;
            for (pattern, part) in patterns.into_iter().flatten() {
                let fits = self.matches(pattern, name)?;
                is_known |= fits != Some(false);
                if fits == Some(true) {
                    self.check(part, value, here)?;
                }
            }
            if value.is_null() {
                self.work.spend(required.len())?;
            }
            let omitted = self.allows_null && value.is_null() && !required.contains(&name.as_str());
            let others = &schema["additionalProperties"];
            match (schema["properties"].get(name), others) {
                (Some(_), _) if omitted => {}
                (Some(part), _) => self.check(part, value, here)?,
                (None, Value::Bool(false)) if !is_known => {
                    let noun = self.noun;
                    let path = || quote(&here.to_string());
                    return self.refuse(|| format!("there is no {noun} {}", path()));
                }
                (None, part @ Value::Object(_)) if !is_known => self.check(part, value, here)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn size(
        &mut self,
        schema: &Value,
        at: &Place<'_>,
        [least, most]: [&str; 2],
        what: &str,
        size: usize,
    ) -> Checked {
        let (least, most) = (schema[least].as_u64(), schema[most].as_u64());
        let (least, most, size) = (least.unwrap_or(0), most.unwrap_or(u64::MAX), size as u64);
        self.require(size >= least, at, || {
            format!("must have at least {least} {what}")
        })?;
        self.require(size <= most, at, || {
            format!("must have at most {most} {what}")
        })
    }
}

/// Writes an ECMA pattern as Rust's `regex` reads it: the classes of letters and digits are ASCII.
/// Those of Unicode would also make programs large.
fn in_rust(pattern: &str) -> String {
    pattern
        .replace(r"\\", r"\x5C")
        .replace(r"\w", "[0-9A-Za-z_]")
        .replace(r"\W", "[^0-9A-Za-z_]")
        .replace(r"\d", "[0-9]")
        .replace(r"\D", "[^0-9]")
}

/// Whether a pattern sets flags, as ECMA-262 cannot: to ignore case takes very long to compile.
fn sets_flags(pattern: &str) -> bool {
    let pattern = pattern.replace(r"\(", "");
    let mut groups = pattern.split("(?").skip(1);
    groups.any(|group| group.starts_with(|c| "imsRUux-".contains(c)))
}

/// What is compared or written of a value, in bytes.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => FOUND + text.len(),
        Value::Array(items) => FOUND + items.iter().map(size).sum::<usize>(),
        Value::Object(fields) => {
            let fields = fields.iter();
            let sizes = fields.map(|(name, value)| FOUND + name.len() + size(value));
            FOUND + sizes.sum::<usize>()
        }
        _ => FOUND,
    }
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
