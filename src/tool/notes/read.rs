//! The tool `note_read`.

use std::{fmt::Write as _, sync::Arc};

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{
    Notes,
    find::{MOST_NAMED, find, headings, section, section_of_link, with_those_below},
    index::Index,
    kind::Kind,
    report, store, write,
};
use crate::model::tool::{ToolNeed, ToolSpec};
use crate::tool::{
    Tool, ToolContext, ToolError, ToolOutput, arguments,
    blocking::Blocking,
    text::{clipped, counted, on_one_line, quoted},
};

/// The tool `note_read`.
#[derive(Debug)]
pub struct NoteRead {
    spec: ToolSpec,
    notes: Arc<Notes>,
    blocking: Blocking,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The note: its path, its name, its title or an alias.
    note: String,
    /// Only the section below this heading, with its sub-sections.
    #[serde(default)]
    #[schemars(with = "String")]
    section: Option<String>,
    /// First line to show, from 1, to go on in a long note. Default: the first one.
    #[serde(default)]
    #[schemars(with = "u32", range(min = 1))]
    start_line: Option<u32>,
}

impl NoteRead {
    /// A tool over these notes.
    #[must_use]
    pub fn new(notes: Arc<Notes>) -> Self {
        let settings = notes.settings;
        let description = format!(
            "Reads a note by its path, name, title or alias, whole or one section of it. Gives at most \
             {} lines with their numbers, then its title, date, status, tags, headings and the notes \
             that link to it.",
            settings.max_lines
        );
        let spec = arguments::reading::<Arguments>("note_read", description, ToolNeed::Vault);
        let blocking = Blocking::new(settings.concurrent, settings.deadline);
        Self {
            spec,
            notes,
            blocking,
        }
    }
}

impl Tool for NoteRead {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(
        &self,
        arguments: Value,
        context: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let (notes, blocking) = (Arc::clone(&self.notes), self.blocking.clone());
        Box::pin(async move {
            let wanted: Arguments = arguments::arguments(arguments)?;
            blocking
                .run(context, move |stop| {
                    read(&notes, &wanted, stop).map(ToolOutput::from)
                })
                .await
        })
    }
}

fn read(notes: &Notes, wanted: &Arguments, stop: &CancellationToken) -> Result<String, ToolError> {
    if wanted.start_line == Some(0) {
        return Err(ToolError::tell("`start_line` is 0, but lines count from 1"));
    }
    let index = notes.fresh(stop);
    let (at, linked) = find(notes, &index, &wanted.note)?;
    let page = &index.pages[at];
    let path = index.shown(at);
    let asked = wanted.section.as_deref().map(str::trim);
    let asked = asked.filter(|name| !name.is_empty());
    let at_section = match asked {
        Some(name) => Some(section(&path, &page.note, name)?),
        None => linked.and_then(|heading| section_of_link(&page.note, heading)),
    };
    let (first, last) = at_section.map_or((1, page.note.lines), |section| {
        with_those_below(&page.note, section)
    });
    let start = wanted.start_line.unwrap_or(first).max(first);
    if start > last && last > 0 {
        return Err(ToolError::Tell(format!(
            "`{path}` has no line {start} there: it ends with line {last}"
        )));
    }
    let text = notes
        .text_of(page)
        .ok_or_else(|| ToolError::Tell(format!("`{path}` changed while it was read: try again")))?;
    let lines = store::lines(&text);
    let mut shown = shown(notes, &index, at, &lines, (start, last));
    if let Some(heading) = linked.filter(|_| at_section.is_none()) {
        // A link may be older than the note, or lead to a block.
        let _ = write!(shown, "\n  it has no section {}", quoted(heading));
    }
    if notes.writable.is_some() {
        // For who wants to replace it.
        let _ = write!(shown, "\n  version: {}", write::version(&text));
    }
    Ok(shown)
}

/// The lines with their numbers, and what is known of the note.
fn shown(
    notes: &Notes,
    index: &Index,
    at: usize,
    lines: &[String],
    (start, last): (u32, u32),
) -> String {
    let caps = notes.settings;
    let page = &index.pages[at];
    let about = about(index, at);
    let mut body = String::new();
    let mut next = start;
    let wanted = lines.iter().take(last as usize).skip(start as usize - 1);
    for line in wanted.take(caps.max_lines) {
        let (piece, cut) = clipped(line.trim_end_matches('\r'), caps.max_line_chars);
        let tail = if cut { "… (line cut)" } else { "" };
        // What is known of the note, and how to go on, are left room.
        if !body.is_empty() && body.len() + piece.len() + about.len() + 600 > caps.max_output_bytes
        {
            break;
        }
        let _ = writeln!(body, "{next}: {piece}{tail}");
        next += 1;
    }
    if body.is_empty() {
        return format!("{} (empty)\n{about}", index.shown(at))
            .trim_end()
            .to_owned();
    }
    let mut text = format!(
        "{} (lines {start}–{} of {})\n{body}",
        index.shown(at),
        next - 1,
        page.note.lines
    );
    if next <= last {
        let more = counted(u64::from(last - next + 1), "more line", "more lines");
        let _ = writeln!(text, "… {more}; go on with start_line={next}");
    }
    text.push_str(&about);
    text.trim_end().to_owned()
}

fn about(index: &Index, at: usize) -> String {
    let page = &index.pages[at];
    let mut parts = vec![format!("title: {}", on_one_line(page.title()))];
    if page.kind != Kind::Note {
        parts.push(page.kind.name().to_owned());
    }
    parts.extend(page.status.clone());
    parts.extend(page.date.map(|day| day.to_string()));
    if !page.note.tags.is_empty() {
        let tags: Vec<String> = page
            .note
            .tags
            .iter()
            .take(MOST_NAMED)
            .map(|tag| format!("#{tag}"))
            .collect();
        parts.push(tags.join(" "));
    }
    let mut text = format!("  {}\n", parts.join(" · "));
    if let Some(headings) = headings(&page.note) {
        let _ = writeln!(text, "  {headings}");
    }
    report::links(&mut text, index, at);
    text
}
