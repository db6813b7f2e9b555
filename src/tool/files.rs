//! `file_read`: reads a window of lines, or a symbol, of one project file. It ignores `.gitignore`,
//! because the caller names the file.
//!
//! **Invariant:** limits bound the memory, whatever the file's size.

mod symbol;
#[cfg(test)]
mod tests;
pub(super) mod window;

use std::{fmt::Write as _, time::Duration};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{
    FnTool, ProjectRoot, ToolError, ToolOutput, arguments, blocking::BlockingRunner,
    guard::OpenedFile, text::counted,
};
use crate::model::tool::ToolNeed;

pub(super) use window::is_utf16;
use window::{Span, Total, Window, WindowError, WindowLimits};

/// Default number of lines before and after `around`.
const DEFAULT_RADIUS: u64 = 20;

/// Maximum number of concurrent calls.
const CONCURRENT: usize = 4;

/// Deadline of a call.
const DEADLINE: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy)]
struct FileReadSettings {
    default_lines: u64,
    max_lines: u64,
    limits: WindowLimits,
}

impl Default for FileReadSettings {
    fn default() -> Self {
        Self {
            default_lines: 200,
            max_lines: 400,
            limits: WindowLimits {
                bytes: 48 * 1024,
                line_chars: 1_000,
                count_bytes: 8 * 1024 * 1024,
            },
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FileReadArguments {
    /// The file.
    path: String,
    /// First line.
    #[schemars(range(min = 1))]
    start_line: Option<u64>,
    /// Last line.
    #[schemars(range(min = 1))]
    end_line: Option<u64>,
    /// The line in the middle, instead.
    #[schemars(range(min = 1))]
    around: Option<u64>,
    /// Lines before and after `around`.
    radius: Option<u64>,
    /// Instead: a function, type or heading, such as `Type::method`.
    symbol: Option<String>,
}

/// The tool `file_read` for one project.
pub fn file_read(root: ProjectRoot) -> FnTool {
    let settings = FileReadSettings::default();
    let description = format!(
        "Reads lines or a symbol of a project file: {} lines by default, at most {}.",
        settings.default_lines, settings.max_lines
    );
    let spec = arguments::spec::<FileReadArguments>("file_read", description, ToolNeed::Code);
    BlockingRunner::new(CONCURRENT, DEADLINE).tool(spec, move |wanted, stop| {
        read(&root, &wanted, &settings, stop)
    })
}

impl FileReadArguments {
    fn span(&self, settings: &FileReadSettings) -> Result<Span, ToolError> {
        let most = settings.max_lines;
        for (name, value) in [
            ("start_line", self.start_line),
            ("end_line", self.end_line),
            ("around", self.around),
        ] {
            if value == Some(0) {
                refuse!("`{name}` is 0, but lines count from 1");
            }
        }
        let lines = [self.start_line, self.end_line, self.around, self.radius];
        if self.symbol.is_some() && lines.iter().any(Option::is_some) {
            refuse!("give either `symbol` or lines (`start_line`, `end_line`, `around`), not both");
        }
        if let Some(middle) = self.around {
            if self.start_line.is_some() || self.end_line.is_some() {
                refuse!(
                    "give either `around` (with `radius`) or `start_line` and `end_line`, not both"
                );
            }
            let radius = self.radius.unwrap_or(DEFAULT_RADIUS);
            let radius = radius.min(most.saturating_sub(1) / 2);
            let start = middle.saturating_sub(radius).max(1);
            let end = middle.saturating_add(radius);
            return Ok(Span { start, end });
        }
        if self.radius.is_some() {
            refuse!("`radius` needs `around`, the line in the middle");
        }
        let start = self.start_line.unwrap_or(1);
        let lines = match self.end_line {
            Some(end) if end < start => {
                refuse!("`end_line` {end} is before `start_line` {start}: swap them");
            }
            Some(end) => (end - start).saturating_add(1).min(most),
            None => settings.default_lines.min(most),
        };
        let end = start.saturating_add(lines - 1);
        Ok(Span { start, end })
    }
}

fn read(
    root: &ProjectRoot,
    wanted: &FileReadArguments,
    settings: &FileReadSettings,
    stop: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let mut span = wanted.span(settings)?;
    let opened = root.open_file(&wanted.path)?;
    let shown = &opened.shown;
    let place = match &wanted.symbol {
        Some(name) => Some(symbol::find(&opened.file, shown, name)?),
        None => None,
    };
    if let Some(place) = &place {
        let Span { start, end } = place.span;
        let end = end.min(start.saturating_add(settings.max_lines - 1));
        span = Span { start, end };
    }
    let window = window::read(&opened.file, span, settings.limits, stop);
    let window = window.map_err(|error| unreadable(&opened, span.start, error))?;
    let last = (span.start + window.lines.len() as u64).saturating_sub(1);
    let mut text = render(shown, span, &window)?;
    // Unless the file was emptied meanwhile.
    if let Some(place) = place.filter(|_| !window.lines.is_empty()) {
        text += &symbol::note(&place, last);
    }
    let data = json!({ "path": shown, "start": span.start, "end": last });
    Ok(ToolOutput::new(text, &data))
}

fn unreadable(opened: &OpenedFile, start: u64, error: WindowError) -> ToolError {
    let shown = &opened.shown;
    match error {
        WindowError::Binary => {
            let bytes = counted(opened.size, "byte");
            for_model!("`{shown}` is a binary file of {bytes}: only text can be read")
        }
        WindowError::Utf16 => in_utf16(shown),
        WindowError::Stopped(line) => {
            for_model!("`{shown}` is too long to reach line {start} in time: it was at line {line}")
        }
        WindowError::Failed(kind) => for_model!("`{shown}` cannot be read: {kind}"),
    }
}

fn in_utf16(shown: &str) -> ToolError {
    for_model!("`{shown}` is UTF-16, which cannot be read: save it as UTF-8")
}

fn render(shown: &str, span: Span, window: &Window) -> Result<String, ToolError> {
    let (known, of) = match window.total {
        Total::Exactly(total) => (total, format!("of {total}")),
        Total::AtLeast(total) => (total, format!("of at least {total}")),
    };
    let Some(more) = (window.lines.len() as u64).checked_sub(1) else {
        if known == 0 {
            return Ok(format!("{shown} (empty file)"));
        }
        let (lines, start) = (counted(known, "line"), span.start);
        refuse!("`{shown}` has {lines}, so there is no line {start}");
    };
    let last = span.start + more;
    let mut text = format!("{shown} (lines {}–{last} {of})\n", span.start);
    for (number, line) in (span.start..).zip(&window.lines) {
        let tail = if line.cut { "… (line cut)" } else { "" };
        let _ = writeln!(text, "{number}: {}{tail}", line.text);
    }
    if known != last {
        let more = match window.total {
            Total::Exactly(_) => counted(known - last, "more line"),
            Total::AtLeast(_) => "more lines follow".to_owned(),
        };
        let next = last + 1;
        let _ = writeln!(text, "… {more}; continue with start_line={next}");
    }
    text.pop();
    Ok(text)
}
