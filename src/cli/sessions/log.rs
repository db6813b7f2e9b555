//! `oracle sessions events` and `oracle sessions export`: a session's log, page by page.

use super::{One, Stop, Terminal, known};
use crate::{
    journal::{Entry, Journal, Known},
    model::{Event, Record, Seq, SessionName},
};

/// Records read at a time.
const PAGE: usize = 256;

/// `oracle sessions events`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct EventsArgs {
    /// The session
    #[arg(value_name = "ID")]
    pub id: SessionName,
    /// Only events after this number
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub after: u64,
    /// Only events whose type begins like this, such as `tool.`
    #[arg(
        long = "type",
        value_name = "PREFIX",
        default_value = "",
        hide_default_value = true
    )]
    pub kind: String,
}

/// Prints events as `ask --events` does.
///
/// # Errors
/// When there is no such session, the journal cannot be read, or standard output cannot be written.
pub async fn events(
    journal: &dyn Journal,
    args: &EventsArgs,
    terminal: &mut Terminal,
) -> Result<(), Stop> {
    let log = Log::of(journal, &args.id, Seq(args.after)).await?;
    let prefix = args.kind.as_str();
    log.print(prefix, Event::of, terminal).await
}

/// Prints all events, with whole texts: an export has to do without the journal.
///
/// # Errors
/// As for [`events`].
pub async fn export(
    journal: &dyn Journal,
    One { id }: &One,
    terminal: &mut Terminal,
) -> Result<(), Stop> {
    let log = Log::of(journal, id, Seq(0)).await?;
    log.print("", Event::with_whole_texts, terminal).await
}

/// What stands in a session's log now.
pub(super) struct Log<'a> {
    journal: &'a dyn Journal,
    known: Known,
    after: Seq,
}

impl<'a> Log<'a> {
    pub(super) async fn of(
        journal: &'a dyn Journal,
        name: &SessionName,
        after: Seq,
    ) -> Result<Self, Stop> {
        let known = known(journal, name).await?;
        Ok(Self {
            journal,
            known,
            after,
        })
    }

    /// The next records; none at the end.
    pub(super) async fn page(&mut self) -> Result<Vec<Entry>, Stop> {
        let (sid, end) = (self.known.sid, self.known.last);
        if self.after >= end {
            return Ok(Vec::new());
        }
        let page = self.journal.read(sid, self.after, PAGE).await?;
        self.after = page.last().map_or(end, |entry| entry.seq);
        Ok(page)
    }

    async fn print(
        mut self,
        prefix: &str,
        projection: fn(&SessionName, Seq, &Record) -> Event,
        terminal: &mut Terminal,
    ) -> Result<(), Stop> {
        loop {
            let page = self.page().await?;
            if page.is_empty() {
                return Ok(());
            }
            for entry in &page {
                if entry.record.fact.kind().starts_with(prefix) {
                    let name = &self.known.key.name;
                    let event = projection(name, entry.seq, &entry.record);
                    terminal.out.json(&event)?;
                }
            }
        }
    }
}
