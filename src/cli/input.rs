//! Input of commands: whole texts, lines, JSON lines, questions.
//!
//! **Invariant:** text that is not UTF-8 is refused with its position, except by `classify`, which
//! accepts any text. Only a leading byte order mark, line ends, and JSON escapes of lone surrogates
//! are dropped or replaced.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    path::Path,
};

use serde::de::DeserializeOwned;

use super::{CliError, CliResult, terminal::Input};
use crate::{
    actor::AskError, model::command::MAX_QUESTION,
    model::surrogates::mended as half_characters_replaced,
};

const BOM: char = '\u{feff}';

const STANDARD: &str = "standard input";

/// Longest line end after a question, in bytes.
const LINE_END: u64 = 2;

/// An input and its name for messages.
pub(super) struct Source<'a> {
    name: String,
    reader: Box<dyn BufRead + 'a>,
    /// Number of lines read.
    lines: usize,
}

impl<'a> Source<'a> {
    /// Opens a file, or standard input if the file is `-` or missing.
    pub(super) fn open(file: Option<&Path>, input: &'a mut Input) -> CliResult<Self> {
        let Some(path) = file.filter(|path| path.as_os_str() != "-") else {
            return Ok(Self::standard(input));
        };
        let name = format!("`{}`", path.display());
        let file = File::open(path).map_err(|error| unreadable(&name, &error))?;
        Ok(Self::new(name, BufReader::new(file)))
    }

    /// Reads standard input.
    pub(super) fn standard(input: &'a mut Input) -> Self {
        Self::new(STANDARD.to_owned(), &mut input.reader)
    }

    fn new(name: String, reader: impl BufRead + 'a) -> Self {
        Self {
            name,
            reader: Box::new(reader),
            lines: 0,
        }
    }

    /// Reads the whole text.
    pub(super) fn whole(mut self) -> CliResult<String> {
        let mut bytes = Vec::new();
        let read = self.reader.read_to_end(&mut bytes);
        read.map_err(|error| unreadable(&self.name, &error))?;
        Ok(without_mark(text(bytes, &self.name)?))
    }

    /// Reads the next line, without its end.
    pub(super) fn line(&mut self) -> CliResult<Option<String>> {
        let Some(bytes) = self.bytes()? else {
            return Ok(None);
        };
        let name = format!("line {} of {}", self.lines, self.name);
        Ok(Some(self.line_of(text(bytes, &name)?)))
    }

    /// Reads the next line, replacing bytes that are not UTF-8.
    pub(super) fn any_line(&mut self) -> CliResult<Option<String>> {
        let bytes = self.bytes()?;
        let text = bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        Ok(text.map(|text| self.line_of(text)))
    }

    fn line_of(&self, text: String) -> String {
        match self.lines {
            1 => without_mark(text),
            _ => text,
        }
    }

    fn bytes(&mut self) -> CliResult<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        let read = self.reader.read_until(b'\n', &mut bytes);
        if read.map_err(|error| unreadable(&self.name, &error))? == 0 {
            return Ok(None);
        }
        self.lines += 1;
        if bytes.pop_if(|last| *last == b'\n').is_some() {
            bytes.pop_if(|last| *last == b'\r');
        }
        Ok(Some(bytes))
    }

    /// Reads the next line as JSON: an object, or a string for its required field. A blank line
    /// counts as an empty string.
    pub(super) fn record<T: DeserializeOwned + From<String>>(&mut self) -> CliResult<Option<T>> {
        let line = self.line()?;
        line.map(|line| self.parsed(&line)).transpose()
    }

    /// Reads the next line as JSON if it is an object or a string, else as text.
    pub(super) fn record_or_text<T: DeserializeOwned + From<String>>(
        &mut self,
    ) -> CliResult<Option<T>> {
        let line = self.any_line()?;
        let record = line.map(|line| match line.trim_start().starts_with(['{', '"']) {
            true => self.parsed(&line),
            false => Ok(T::from(line)),
        });
        record.transpose()
    }

    fn parsed<T: DeserializeOwned + From<String>>(&self, line: &str) -> CliResult<T> {
        let line = &*half_characters_replaced(line);
        let record = match line.trim_start().chars().next() {
            None => Ok(T::from(String::new())),
            Some('"') => serde_json::from_str(line).map(|text: String| T::from(text)),
            // serde would also read a struct from an array, whose meaning is unclear.
            Some('[') => Err(serde::de::Error::custom("an array")),
            Some(_) => serde_json::from_str(line),
        };
        record.map_err(|error| {
            // The parser saw a single line, so its line number means nothing.
            let place = format!(" at line {} column {}", error.line(), error.column());
            let what = error.to_string().replace(&place, "");
            let (line, name) = (self.lines, &self.name);
            CliError::usage(format_args!(
                "line {line} of {name}: {what}: with `--jsonl`, every line must be a JSON object or \
                 string; see `--help`"
            ))
        })
    }
}

/// The text without a byte order mark at its beginning.
fn without_mark(text: String) -> String {
    text.strip_prefix(BOM).map(str::to_owned).unwrap_or(text)
}

fn text(bytes: Vec<u8>, name: &str) -> CliResult<String> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        CliError::usage(format_args!(
            "{name} is not UTF-8 at byte offset {at}: convert it to UTF-8"
        ))
    })
}

fn unreadable(name: &str, error: &std::io::Error) -> CliError {
    CliError::usage(format_args!(
        "cannot read {name} ({error}): use a readable file"
    ))
}

/// The question of `oracle ask`: the argument, or standard input if it is `-` or missing. Reads
/// little more than a question's maximum.
pub(super) fn question(argument: Option<&str>, input: &mut Input) -> CliResult<String> {
    let question = match argument {
        Some(question) if question != "-" => question.to_owned(),
        None if input.is_terminal() => {
            return Err(CliError::usage(
                "missing question: write it after `ask`, or `-` to read it from standard input",
            ));
        }
        Some(_) | None => piped_question(input)?,
    };
    AskError::check_question(&question)?;
    Ok(question)
}

fn piped_question(input: &mut Input) -> CliResult<String> {
    let mut bytes = Vec::new();
    let limited = (&mut input.reader).take(MAX_QUESTION as u64 + LINE_END + 1);
    let read = BufReader::new(limited).read_to_end(&mut bytes);
    read.map_err(|error| unreadable(STANDARD, &error))?;
    // Checks the length before UTF-8, because the cut may split a character.
    if bytes.len() as u64 > MAX_QUESTION as u64 + LINE_END {
        return Err(CliError::usage(format_args!(
            "the question on {STANDARD} exceeds the maximum of {MAX_QUESTION} bytes: put the text \
             into a file of the project and ask about the file"
        )));
    }
    let mut question = without_mark(text(bytes, STANDARD)?);
    question.truncate(question.trim_end_matches(['\n', '\r']).len());
    Ok(question)
}

#[cfg(test)]
mod tests;
