//! Templates: compiled, validated and rendered with minijinja.
//!
//! Loading finds syntax errors, unknown names even in rare branches, and, by rehearsal with sample
//! values, bad filters and attributes. Block tags on their own lines leave no blank line.
//!
//! **Invariants:** no auto-escape; no name besides [`NAMES`]; bounded work; errors name file and
//! line.

use std::path::Path;

use minijinja::{
    AutoEscape, Environment, ErrorKind, UndefinedBehavior, syntax::SyntaxConfig, value::Value,
};
use regex::Regex;

use super::{
    error::{BrokenFile, Error, FileFault},
    files::{self, PromptFile},
    segment::Presence,
    variables::{NAMES, sample_values},
};

/// Instruction limit; built-in templates take some ten per tool.
const FUEL: u64 = 100_000;

/// Validated files of all segments.
#[derive(Debug)]
pub struct Prompts {
    environment: Environment<'static>,
    files: Vec<PromptFile>,
}

impl Prompts {
    /// The built-in files.
    ///
    /// # Errors
    /// Never: a test excludes it.
    pub fn builtin() -> Result<Self, Error> {
        Self::check(files::builtin(), Vec::new())
    }

    /// The built-in files overlaid with a folder's. The folder may hold only files of the seven
    /// names; dot files are ignored.
    ///
    /// # Errors
    /// [`Error::Folder`] when it cannot be listed, [`Error::Files`] with all faults of its files.
    pub fn with_overlay(folder: &Path) -> Result<Self, Error> {
        let (files, problems) = files::overlaid(folder)?;
        Self::check(files, problems)
    }

    /// The files in prompt order.
    pub fn files(&self) -> &[PromptFile] {
        &self.files
    }

    fn check(files: Vec<PromptFile>, mut problems: Vec<BrokenFile>) -> Result<Self, Error> {
        let mut prompts = Self {
            environment: environment(),
            files: Vec::with_capacity(files.len()),
        };
        let samples = sample_values();
        for file in files {
            let added = prompts.add(&file);
            match added.and_then(|()| prompts.check_rendering(&file, &samples)) {
                Ok(()) => prompts.files.push(file),
                Err(found) => problems.extend(found),
            }
        }
        match problems.is_empty() {
            true => Ok(prompts),
            false => Err(Error::Files(problems)),
        }
    }

    fn add(&mut self, file: &PromptFile) -> Result<(), Vec<BrokenFile>> {
        let name = file.segment.file;
        let added = (self.environment).add_template_owned(name, file.text.clone());
        let template = added.and_then(|()| self.environment.get_template(name));
        let template = template.map_err(|error| vec![broken(file, &error)])?;
        let mut unknown: Vec<_> = template
            .undeclared_variables(false)
            .into_iter()
            .filter(|name| !NAMES.contains(&name.as_str()))
            .map(|name| (line_using(&file.text, &name), name))
            .collect();
        if unknown.is_empty() {
            return Ok(());
        }
        unknown.sort_unstable();
        let fault = |(line, name)| file.broken(line, FileFault::UnknownVariable(name));
        Err(unknown.into_iter().map(fault).collect())
    }

    fn check_rendering(&self, file: &PromptFile, samples: &[Value]) -> Result<(), Vec<BrokenFile>> {
        for sample in samples {
            let text = self.render(file, sample).map_err(|problem| vec![problem])?;
            if text.is_empty() && file.segment.presence == Presence::Required {
                return Err(vec![file.broken(None, FileFault::Blank)]);
            }
        }
        Ok(())
    }

    /// Renders without blank lines at the ends.
    pub(super) fn render(&self, file: &PromptFile, values: &Value) -> Result<String, BrokenFile> {
        let text = self
            .environment
            .get_template(file.segment.file)
            .and_then(|template| template.render(values.clone()))
            .map_err(|error| broken(file, &error))?;
        Ok(text.trim_start_matches('\n').trim_end().to_owned())
    }
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    let functions = environment.globals().map(|(name, _)| name.to_owned());
    for name in functions.collect::<Vec<_>>() {
        environment.remove_global(&name);
    }
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_fuel(Some(FUEL));
    let mut syntax = SyntaxConfig::builder();
    syntax.trim_blocks(true).lstrip_blocks(true);
    // Only clashing delimiters fail, and ours are the defaults.
    environment.set_syntax(syntax.build().unwrap_or_default());
    environment
}

fn broken(file: &PromptFile, error: &minijinja::Error) -> BrokenFile {
    let detail = error.detail().unwrap_or_default();
    let fault = match error.kind() {
        ErrorKind::SyntaxError => FileFault::Syntax(detail.to_owned()),
        ErrorKind::UndefinedError => FileFault::Undefined,
        ErrorKind::OutOfFuel => FileFault::OutOfFuel,
        kind if detail.is_empty() => FileFault::Failed(kind.to_string()),
        kind => FileFault::Failed(format!("{kind}: {detail}")),
    };
    file.broken(error.line(), fault)
}

/// Searches the tags, because the engine lists names without their places. A name follows neither
/// `.` nor `|`, as attributes and filters do, and no word, unless white space is between.
fn line_using(text: &str, name: &str) -> Option<usize> {
    let tags = Regex::new(r"(?s)\{#.*?#\}|\{\{.*?\}\}|\{%.*?%\}").ok()?;
    let name = Regex::new(&format!(r"(?:[^\w\s.|]|\w\s)\s*\b{name}\b")).ok()?;
    let tags = tags
        .find_iter(text)
        .filter(|tag| !tag.as_str().starts_with("{#"));
    let mut ends = tags.filter_map(|tag| Some(tag.start() + name.find(tag.as_str())?.end()));
    Some(1 + text[..ends.next()?].matches('\n').count())
}

#[cfg(test)]
mod tests;
