//! What commands read: a whole text, lines of it, lines of JSON, a question.
//!
//! **Invariant:** text is UTF-8 or refused with the place where it is not, but for `classify`, to which any
//! text will do; nothing is replaced or dropped but a byte order mark at the beginning, the ends of lines, and in JSON the escape of half a
//! character, which no text can hold.

use std::{
    fmt::Display,
    fs::File,
    io::{BufRead, BufReader, Read},
    path::Path,
};

use serde::de::DeserializeOwned;

use super::{Stop, terminal::Input};
use crate::{
    actor::AskError, llm::surrogates::mended as half_characters_replaced,
    model::command::MAX_QUESTION,
};

const BOM: &[u8] = "\u{feff}".as_bytes();

const STANDARD: &str = "standard input";

/// The longest end of a line, which is no part of a question, in bytes.
const LINE_END: u64 = 2;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Beginning,
    Later,
}

/// A text to read, and what people know it by.
pub struct Source<'a> {
    name: String,
    reader: Box<dyn BufRead + 'a>,
    /// Lines read so far.
    lines: usize,
}

impl<'a> Source<'a> {
    /// A file, or standard input where the file is `-` or missing.
    pub fn open(file: Option<&Path>, input: &'a mut Input) -> Result<Self, Stop> {
        match file {
            None => Ok(Self::standard(input)),
            Some(path) if path.as_os_str() == "-" => Ok(Self::standard(input)),
            Some(path) => {
                let name = format!("`{}`", path.display());
                let file = File::open(path).map_err(|error| unreadable(&name, &error))?;
                Ok(Self::new(name, BufReader::new(file)))
            }
        }
    }

    /// Standard input.
    #[must_use]
    pub fn standard(input: &'a mut Input) -> Self {
        Self::new(STANDARD.to_owned(), &mut input.reader)
    }

    fn new(name: String, reader: impl BufRead + 'a) -> Self {
        Self {
            name,
            reader: Box::new(reader),
            lines: 0,
        }
    }

    /// All of it.
    pub fn whole(self) -> Result<String, Stop> {
        let Self {
            name, mut reader, ..
        } = self;
        let mut bytes = Vec::new();
        reader
            .read_to_end(&mut bytes)
            .map_err(|error| unreadable(&name, &error))?;
        text(bytes, Place::Beginning, &name)
    }

    /// The next line, without its end; none after the last.
    pub fn line(&mut self) -> Result<Option<String>, Stop> {
        let Some(bytes) = self.bytes()? else {
            return Ok(None);
        };
        let name = format!("line {} of {}", self.lines, self.name);
        text(bytes, self.place(), &name).map(Some)
    }

    /// The next line with a sign in the place of what is not UTF-8, for those to whom any text will do.
    pub fn any_line(&mut self) -> Result<Option<String>, Stop> {
        let Some(mut bytes) = self.bytes()? else {
            return Ok(None);
        };
        if self.place() == Place::Beginning && bytes.starts_with(BOM) {
            bytes.drain(..BOM.len());
        }
        Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
    }

    fn place(&self) -> Place {
        match self.lines {
            1 => Place::Beginning,
            _ => Place::Later,
        }
    }

    fn bytes(&mut self) -> Result<Option<Vec<u8>>, Stop> {
        let mut bytes = Vec::new();
        let read = self.reader.read_until(b'\n', &mut bytes);
        if read.map_err(|error| unreadable(&self.name, &error))? == 0 {
            return Ok(None);
        }
        self.lines += 1;
        if bytes.ends_with(b"\n") {
            bytes.pop();
            if bytes.ends_with(b"\r") {
                bytes.pop();
            }
        }
        Ok(Some(bytes))
    }

    /// The next line as JSON: an object, a string for the field that an object must have, or
    /// blank, which is like an empty string.
    pub fn record<T: DeserializeOwned + From<String>>(&mut self) -> Result<Option<T>, Stop> {
        let Some(line) = self.line()? else {
            return Ok(None);
        };
        self.parsed(&line).map(Some)
    }

    /// The next line as JSON where it is an object or a string, else as it stands.
    pub fn record_or_text<T: DeserializeOwned + From<String>>(
        &mut self,
    ) -> Result<Option<T>, Stop> {
        let Some(line) = self.any_line()? else {
            return Ok(None);
        };
        if line.trim_start().starts_with(['{', '"']) {
            self.parsed(&line).map(Some)
        } else {
            Ok(Some(T::from(line)))
        }
    }

    /// The next line that is not blank, as JSON, with its number.
    pub fn item<T: DeserializeOwned + From<String>>(&mut self) -> Result<Option<(usize, T)>, Stop> {
        while let Some(line) = self.line()? {
            if !line.trim().is_empty() {
                let item = self.parsed(&line)?;
                return Ok(Some((self.lines, item)));
            }
        }
        Ok(None)
    }

    /// Something is wrong with the line that was read last.
    pub fn bad_line(&self, why: impl Display) -> Stop {
        let (line, name) = (self.lines, &self.name);
        Stop::usage(format_args!("line {line} of {name}: {why}"))
    }

    fn parsed<T: DeserializeOwned + From<String>>(&self, line: &str) -> Result<T, Stop> {
        let line = &*half_characters_replaced(line);
        let record = match line.trim_start().chars().next() {
            None => Ok(T::from(String::new())),
            Some('"') => serde_json::from_str(line).map(|text: String| T::from(text)),
            // A struct would be read from an array too, but what is meant by one nobody knows.
            Some('[') => Err(serde::de::Error::custom("an array")),
            Some(_) => serde_json::from_str(line),
        };
        record.map_err(|error| self.bad_record(&error))
    }

    fn bad_record(&self, error: &serde_json::Error) -> Stop {
        // The parser saw one line and calls it the first.
        let place = format!(" at line {} column {}", error.line(), error.column());
        let what = error.to_string().replace(&place, "");
        self.bad_line(format_args!(
            "{what}: with `--jsonl` every line is a JSON object or string, see `--help`"
        ))
    }
}

fn text(mut bytes: Vec<u8>, place: Place, name: &str) -> Result<String, Stop> {
    let mut cut = 0;
    if place == Place::Beginning && bytes.starts_with(BOM) {
        cut = BOM.len();
        bytes.drain(..cut);
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = cut + error.utf8_error().valid_up_to();
        Stop::usage(format_args!(
            "{name} is not UTF-8 at byte offset {at}: convert it to UTF-8"
        ))
    })
}

fn unreadable(name: &str, error: &std::io::Error) -> Stop {
    Stop::usage(format_args!(
        "{name} cannot be read ({error}): use a file that exists and that you may read"
    ))
}

/// The question of `oracle ask`: the argument, or standard input where it is `-` or missing. Reads
/// hardly more than a question may have.
pub fn question(argument: Option<&str>, input: &mut Input) -> Result<String, Stop> {
    let question = match argument {
        Some(question) if question != "-" => question.to_owned(),
        None if input.is_terminal() => {
            return Err(Stop::usage(
                "there is no question: write it behind `ask`, or `-` to type it on standard input",
            ));
        }
        Some(_) | None => piped_question(input)?,
    };
    checked(&question)?;
    Ok(question)
}

/// Whether a question can be asked.
pub fn checked(question: &str) -> Result<(), AskError> {
    if question.trim().is_empty() {
        return Err(AskError::EmptyQuestion);
    }
    match question.len() {
        bytes if bytes > MAX_QUESTION => Err(AskError::QuestionTooLong { bytes }),
        _ => Ok(()),
    }
}

fn piped_question(input: &mut Input) -> Result<String, Stop> {
    let mut bytes = Vec::new();
    let limited = (&mut input.reader).take(MAX_QUESTION as u64 + LINE_END + 1);
    let read = BufReader::new(limited).read_to_end(&mut bytes);
    read.map_err(|error| unreadable(STANDARD, &error))?;
    // What was cut off may be cut within a character, so the length is looked at first.
    if bytes.len() as u64 > MAX_QUESTION as u64 + LINE_END {
        return Err(Stop::usage(format_args!(
            "the question on {STANDARD} has more than {MAX_QUESTION} bytes, which is the most: \
             put the text into a file of the project and ask about that"
        )));
    }
    let mut question = text(bytes, Place::Beginning, STANDARD)?;
    question.truncate(question.trim_end_matches(['\n', '\r']).len());
    Ok(question)
}

#[cfg(test)]
mod tests;
