//! `oracle sessions search`: who said these words.

use std::io::Write as _;

use serde_json::json;

use super::{Stop, Terminal, tenant};
use crate::journal::Journal;

/// Places shown unless somebody says otherwise.
const LIMIT: usize = 20;

/// `oracle sessions search`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct SearchArgs {
    /// Words that must all be there, whole, in either case
    #[arg(required = true)]
    pub words: Vec<String>,
    /// Show at most so many places
    #[arg(long, value_name = "N", default_value_t = LIMIT)]
    pub limit: usize,
}

/// Prints where the words were said.
///
/// # Errors
/// When the journal cannot be read or standard output cannot be written.
pub async fn search(
    journal: &dyn Journal,
    args: &SearchArgs,
    json: bool,
    terminal: &mut Terminal,
) -> Result<(), Stop> {
    let words = args.words.join(" ");
    let hits = journal.search(tenant(), words, args.limit).await?;
    for hit in &hits {
        let session = &hit.key.name;
        if json {
            let (seq, at) = (hit.seq, hit.at);
            let (query, excerpt) = (hit.query, &hit.excerpt);
            let hit = json!({
                "session": session, "seq": seq, "at": at, "query": query, "excerpt": excerpt,
            });
            terminal.out.json(&hit)?;
        } else {
            // An excerpt is one line, without what cannot be seen.
            writeln!(
                terminal.out,
                "{session}:{}\t{}\t{}",
                hit.seq, hit.at, hit.excerpt
            )?;
        }
    }
    if hits.is_empty() && !json {
        terminal.err.say("nobody has said that");
    }
    Ok(())
}
