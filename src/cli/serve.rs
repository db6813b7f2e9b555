//! `oracle serve`: serves conversations over HTTP.

use std::{net::SocketAddr, path::Path};

use super::{ctl::output, terminal::Terminal};
#[cfg(feature = "page")]
use crate::access::KeyFile;
use crate::{
    actor::{Changes, ReloadError},
    config::Setting,
};

/// `oracle serve`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct ServeArgs {
    /// Address to listen on, or a port of this machine alone; port 0 picks a free port [default:
    /// 127.0.0.1:7770]
    #[arg(long, value_name = "[IP:]PORT")]
    pub listen: Option<String>,
}

impl ServeArgs {
    /// The configuration keys that the command line sets.
    pub fn settings(&self) -> Vec<Setting> {
        let listen = self.listen.as_ref().map(|value| {
            let address = match value.rsplit_once(':') {
                None if value.parse::<u16>().is_ok() => format!("127.0.0.1:{value}"),
                Some(("" | "localhost", port)) => format!("127.0.0.1:{port}"),
                _ => value.clone(),
            };
            Setting::new("--listen", "server.listen", &address)
        });
        listen.into_iter().collect()
    }
}

/// Prints a started server's addresses, its models and why they were chosen, and its data
/// directory.
pub fn started(
    address: SocketAddr,
    (models, because): (&[String], &str),
    data: &Path,
    needs_keys: bool,
    terminal: &mut Terminal,
) {
    let (models, data) = (models.join(", then "), data.display());
    let err = &mut terminal.err;
    err.say(format_args!("listening on http://{address}"));
    err.say(format_args!("using {models}, {because}"));
    err.say(format_args!("data directory: {data}"));
    err.say(match needs_keys {
        true => "every request needs a key",
        false => "requests need no key; run `oracle keys create` to require keys",
    });
}

/// Prints where the supervision page is. Only a terminal gets the link that signs in, because logs
/// are kept.
#[cfg(feature = "page")]
pub fn announce_page(
    address: SocketAddr,
    keys: &KeyFile,
    needs_keys: bool,
    terminal: &mut Terminal,
) {
    let key = match needs_keys {
        true => None,
        false => keys.admin_key().ok(),
    };
    let page = format!("supervision page: http://{address}/");
    match key {
        None => terminal.err.say(page),
        Some(key) if terminal.err_is_terminal() => {
            terminal
                .err
                .say(format_args!("{page}#key={}", key.reveal()));
        }
        Some(_) => {
            let says = "sign in with the key in admin.key in the data directory";
            terminal.err.say(format_args!("{page}; {says}"));
        }
    }
}

/// Prints the result of a reload.
pub fn report_reload(reloaded: &Result<Changes, ReloadError>, terminal: &mut Terminal) {
    match reloaded {
        Ok(Changes { changed, waiting }) => {
            let text = output::reloaded(changed, waiting);
            let text = format!("reloaded the configuration: {text}");
            terminal.err.say(text);
        }
        Err(error) => terminal.err.say(error),
    }
}
