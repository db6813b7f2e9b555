//! The tool `note_search`.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use jiff::civil::Date;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{
    Notes, date,
    kind::Kind,
    links,
    question::Question,
    rank::{self, Filter},
    report,
    settings::MOST_RESULTS,
    task::Tasks,
    tasks,
};
use crate::model::tool::{ToolNeed, ToolSpec};
use crate::tool::{
    Tool, ToolContext, ToolError, ToolOutput, arguments, blocking::Blocking, text::quoted,
};

/// Longest query, in characters.
const MAX_QUERY: usize = 1_000;
/// What stands for links that lead nowhere.
const BROKEN: &str = "broken";

/// The tool `note_search`.
#[derive(Debug)]
pub struct NoteSearch {
    spec: ToolSpec,
    notes: Arc<Notes>,
    blocking: Blocking,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// A question or some words. Sections that have more of them, and rarer ones, come first; for
    /// "why" decisions do, for "since which version" change logs. Empty, with a filter, it lists the
    /// newest.
    query: String,
    /// Only notes with this tag.
    #[serde(default)]
    #[schemars(with = "String")]
    tag: Option<String>,
    /// Only this folder or file.
    #[serde(default)]
    #[schemars(with = "String")]
    path: Option<String>,
    /// Only what is dated on this day or later, such as `2026-03-01`; also a month or a year.
    #[serde(default)]
    #[schemars(with = "String")]
    from: Option<String>,
    /// Only what is dated on this day, month or year, or earlier.
    #[serde(default)]
    #[schemars(with = "String")]
    to: Option<String>,
    /// Only decisions (records of them, and such sections of meetings' notes), change logs, notes of
    /// meetings, or other notes.
    #[serde(default)]
    #[schemars(with = "Kind")]
    kind: Option<Kind>,
    /// Only notes whose status begins so, such as `proposed`.
    #[serde(default)]
    #[schemars(with = "String")]
    status: Option<String>,
    /// To-dos instead of sections: items such as `- [ ]` and lines with `TODO:` that have, with their
    /// headings and note, all words of the query, such as a name. It may be empty.
    #[serde(default)]
    #[schemars(with = "Tasks")]
    tasks: Option<Tasks>,
    /// The lines that link to this note, instead of sections; `broken`, unless a note is called so, for
    /// links that lead nowhere.
    #[serde(default)]
    #[schemars(with = "String")]
    links_to: Option<String>,
    /// Most sections to show.
    #[serde(default)]
    #[schemars(with = "u32", range(min = 1, max = 50))]
    max_results: Option<u32>,
}

impl NoteSearch {
    /// A tool over these notes.
    #[must_use]
    pub fn new(notes: Arc<Notes>) -> Self {
        let settings = notes.settings;
        let description = format!(
            "Finds sections of notes and documents (Markdown) that answer a question, the best first, \
             {} at most unless max_results says otherwise. Knows decision records, change logs and \
             notes of meetings, with date and status, to-dos, and who links to a note. Each place comes as `path:line: text`, with its \
             headings, its date, the words found, and the notes that it links to and is linked from: \
             read on with `note_read`.{}",
            settings.max_results,
            notes.whereabouts()
        );
        let spec = arguments::reading::<Arguments>("note_search", description, ToolNeed::Vault);
        let blocking = Blocking::new(settings.concurrent, settings.deadline);
        Self {
            spec,
            notes,
            blocking,
        }
    }
}

impl Tool for NoteSearch {
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
                    search(&notes, &wanted, stop).map(ToolOutput::from)
                })
                .await
        })
    }
}

fn search(
    notes: &Notes,
    wanted: &Arguments,
    stop: &CancellationToken,
) -> Result<String, ToolError> {
    if wanted.query.chars().nth(MAX_QUERY).is_some() {
        return Err(ToolError::Tell(format!(
            "`query` is longer than {MAX_QUERY} characters: ask for a part of it"
        )));
    }
    let lists = wanted.tasks.is_some() || wanted.links_to.is_some();
    let usual = if lists {
        MOST_RESULTS
    } else {
        notes.settings.max_results
    };
    let most = wanted.max_results.unwrap_or(usual);
    if !(1..=MOST_RESULTS).contains(&most) {
        return Err(ToolError::Tell(format!(
            "`max_results` is {most}, allowed is 1 to {MOST_RESULTS}: narrow the query instead"
        )));
    }
    let question = Question::of(&wanted.query);
    let filter = wanted.filter(notes)?;
    if question.words.is_empty() && filter.is_empty() && !lists {
        return Err(ToolError::tell(
            "`query` has no words, and there is no filter: say what to look for",
        ));
    }
    let index = notes.fresh(stop);
    if let Some(name) = wanted.links_to.as_deref().map(str::trim) {
        return match name == BROKEN && index.called(name).is_empty() {
            true => Ok(links::broken(notes, &index, most as usize)),
            false => links::to(notes, &index, name, most as usize),
        };
    }
    if let Some(tasks) = wanted.tasks {
        let asked = tasks::Asked {
            tasks,
            question: &question,
            query: &wanted.query,
            filter: &filter,
            most: most as usize,
        };
        return Ok(tasks::report(notes, &index, &asked, stop));
    }
    let ranked = rank::rank(&index, &question, &filter);
    Ok(report::report(
        notes,
        &index,
        &question,
        &wanted.query,
        &ranked,
        most as usize,
    ))
}

impl Arguments {
    fn filter(&self, notes: &Notes) -> Result<Filter, ToolError> {
        let given = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
        let tag = given(&self.tag).map(|tag| tag.trim().trim_matches(['#', '/']).to_lowercase());
        let place = given(&self.path)
            .map(|path| notes.place(path.trim()))
            .transpose()?;
        Ok(Filter {
            tag: tag.filter(|tag| !tag.is_empty()),
            place: place.filter(|place| !place.is_empty()),
            from: given(&self.from)
                .map(|from| days("from", &from))
                .transpose()?
                .map(|(first, _)| first),
            to: given(&self.to)
                .map(|to| days("to", &to))
                .transpose()?
                .map(|(_, last)| last),
            kind: self.kind,
            status: given(&self.status).map(|status| status.trim().to_lowercase()),
        })
    }
}

/// The first and the last day of what a day, a month or a year names.
fn days(name: &str, text: &str) -> Result<(Date, Date), ToolError> {
    date::days_of(text).ok_or_else(|| {
        ToolError::Tell(format!(
            "`{name}` is {}, but a day such as `2026-03-01` is wanted",
            quoted(text)
        ))
    })
}
