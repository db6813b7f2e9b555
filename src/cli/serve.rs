//! `oracle serve`: conversations over HTTP, until somebody ends it.

use std::{net::SocketAddr, path::Path};

use super::{Stop, ctl::tell, interrupts::Interrupts, terminal::Terminal};
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

/// What is told of a server that has started.
#[derive(Debug)]
pub struct Started<'a> {
    /// Where it listens.
    pub address: SocketAddr,
    /// The models that are asked, the first choice first.
    pub models: &'a [String],
    /// Why these.
    pub because: &'a str,
    /// Where data are.
    pub data: &'a Path,
    /// Whether whoever asks needs a key.
    pub needs_keys: bool,
}

impl Started<'_> {
    /// Tells it.
    pub fn tell(&self, terminal: &mut Terminal) {
        let Self {
            address,
            models,
            because,
            data,
            needs_keys,
        } = self;
        terminal
            .err
            .say(format_args!("listens on http://{address}"));
        let models = models.join(", then ");
        terminal.err.say(format_args!("asks {models}, {because}"));
        let data = data.display();
        terminal
            .err
            .say(format_args!("keeps conversations in {data}"));
        terminal.err.say(match needs_keys {
            true => "asks everybody for a key",
            false => "asks nobody for a key: `oracle keys create` makes one",
        });
    }
}

/// The signal by which a server is told to read its configuration again: SIGHUP, where there is such a thing.
pub struct Hangups {
    #[cfg(unix)]
    signal: Option<tokio::signal::unix::Signal>,
}

impl Hangups {
    /// Listens for it from now on; before, it would have ended the process.
    #[must_use]
    pub fn listen() -> Self {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let signal = signal(SignalKind::hangup()).ok();
            Self { signal }
        }
        #[cfg(not(unix))]
        Self {}
    }

    /// Returns when it comes.
    pub async fn told(&mut self) {
        #[cfg(unix)]
        if let Some(signal) = &mut self.signal
            && signal.recv().await.is_some()
        {
            return;
        }
        std::future::pending::<()>().await;
    }
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

/// The signals by which a server is ended.
pub struct Ends(Interrupts);

impl Ends {
    /// Listens for them from now on.
    #[must_use]
    pub fn listen() -> Self {
        Self(Interrupts::listen_to_machine())
    }

    /// Returns when it is to end.
    pub async fn told(&mut self) {
        self.0.pressed().await;
    }

    /// Lets an orderly end come to its own end, unless a second signal breaks it off.
    pub async fn unless_again(&mut self, end: impl Future<Output = ()>) -> Result<(), Stop> {
        tokio::select! {
            () = end => Ok(()),
            () = self.0.pressed() => Err(Stop::Interrupted),
        }
    }
}
