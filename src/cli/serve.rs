//! `oracle serve`: conversations over HTTP, until somebody ends it.

use std::{net::SocketAddr, path::Path};

use super::{ctl::tell, terminal::Terminal};
use crate::{
    actor::{Changes, ReloadError},
    config::Setting,
};

/// `oracle serve`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct ServeArgs {
    /// Where to listen [default: 127.0.0.1:7770]; port 0 takes a free one
    #[arg(long, value_name = "IP:PORT")]
    pub listen: Option<String>,
}

impl ServeArgs {
    /// What the command line sets of the configuration.
    #[must_use]
    pub fn settings(&self) -> Vec<Setting> {
        let listen = self.listen.clone().map(|value| Setting {
            option: "--listen".to_owned(),
            key: "server.listen".to_owned(),
            value,
        });
        listen.into_iter().collect()
    }
}

/// Tells where a server that has started listens, which models it asks and why these, and where data are.
pub fn started(
    address: SocketAddr,
    (models, because): (&[String], &str),
    data: &Path,
    needs_keys: bool,
    terminal: &mut Terminal,
) {
    let (models, data) = (models.join(", then "), data.display());
    let err = &mut terminal.err;
    err.say(format_args!("listens on http://{address}"));
    err.say(format_args!("asks {models}, {because}"));
    err.say(format_args!("keeps conversations in {data}"));
    err.say(match needs_keys {
        true => "asks everybody for a key",
        false => "asks nobody for a key: `oracle keys create` makes one",
    });
}

/// Tells what a reload came to.
pub fn tell_reloaded(reloaded: &Result<Changes, ReloadError>, terminal: &mut Terminal) {
    match reloaded {
        Ok(Changes { changed, waiting }) => {
            let text = tell::reloaded(changed, waiting);
            terminal
                .err
                .say(format_args!("read the configuration: {text}"));
        }
        Err(error) => terminal.err.say(error),
    }
}
