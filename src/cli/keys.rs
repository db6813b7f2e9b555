//! `oracle keys`: manages the keys of a server.
//!
//! A new key is printed once; only its hash is stored. A running server notices changes within a
//! second or two.

use std::{io::Write as _, time::Duration};

use clap::Subcommand;
use jiff::{SpanRelativeTo, fmt::friendly::SpanParser};
use serde_json::{Value, json};

use super::{CliError, CliResult, context::CommandContext, terminal::Terminal};
use crate::{
    access::{FileError, Key, KeyFile, KeyName, KeySetError, NewKey, StoredKey},
    actor::Clock,
    model::{ProfileName, TenantId, Timestamp, access::Role},
};

/// A subcommand of `oracle keys`.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum KeysCommand {
    /// Create a key and print it; it cannot be shown again
    Create(CreateArgs),
    /// List the keys without their secrets
    List,
    /// Permanently revoke a key
    Revoke {
        /// Name or id of the key
        #[arg(value_name = "NAME|ID")]
        key: String,
    },
}

/// `oracle keys create`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct CreateArgs {
    /// Name of the key, as shown in logs and events
    #[arg(long, value_name = "NAME")]
    pub name: KeyName,
    /// Tenant whose sessions the key gives access to
    #[arg(long, value_name = "TENANT", default_value = "default")]
    pub tenant: TenantId,
    /// Access of the key: `user` to the sessions of its tenant, `admin` to all sessions and the
    /// server itself
    #[arg(long, value_name = "ROLE", default_value = "user")]
    pub role: Role,
    /// Profile that the key may use; may be given several times [default: all profiles]
    #[arg(long = "profile", value_name = "PROFILE")]
    pub profiles: Vec<ProfileName>,
    /// Lifetime of the key, such as 12h, 30d or 52w [default: no expiry]
    #[arg(long, value_name = "SPAN", value_parser = lifetime)]
    pub expires: Option<Duration>,
}

/// Shortest and longest lifetime of a key.
const SHORTEST: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(100 * 366 * 86_400);

fn lifetime(text: &str) -> Result<Duration, &'static str> {
    let span = SpanParser::new().parse_span(text).ok();
    let span = span.and_then(|span| span.to_duration(SpanRelativeTo::days_are_24_hours()).ok());
    let span = span.and_then(|span| Duration::try_from(span).ok());
    let span = span.filter(|span| (SHORTEST..=LONGEST).contains(span));
    span.ok_or("a duration from 1m to 100 years, such as 90m, 12h, 30d or 52w")
}

/// The public properties of a key.
fn public_properties(entry: &StoredKey, now: Timestamp) -> Value {
    json!({
        "id": entry.id,
        "name": entry.name,
        "tenant": entry.tenant,
        "role": entry.role,
        "profiles": entry.profiles,
        "state": entry.state(now).as_str(),
        "created": entry.created,
        "expires": entry.expires,
        "revoked": entry.revoked,
    })
}

pub(super) fn run(command: &KeysCommand, context: CommandContext<'_>) -> CliResult {
    let file = &KeyFile::within(&context.directory()?);
    let (now, terminal) = (Clock::system().now(), context.terminal);
    match command {
        KeysCommand::Create(args) => create(args, file, now, terminal),
        KeysCommand::List => list(file, now, terminal),
        KeysCommand::Revoke { key } => revoke(key, file, now, terminal),
    }
}

fn create(args: &CreateArgs, file: &KeyFile, now: Timestamp, terminal: &mut Terminal) -> CliResult {
    let key = Key::generate().map_err(CliError::failed)?;
    let new = NewKey {
        name: args.name.clone(),
        tenant: args.tenant.clone(),
        role: args.role,
        profiles: args.profiles.clone(),
        expires: args.expires.map(|span| now.plus(span)),
    };
    let entry = file.change(|book| book.add(&key, new, now).map_err(CliError::failed))?;
    if terminal.json {
        let mut made = public_properties(&entry, now);
        made["key"] = key.reveal().into();
        return terminal.out.json(&made);
    }
    writeln!(terminal.out, "{}", key.reveal())?;
    let until = entry.expires.map(|at| at.to_string());
    let until = until.as_deref().unwrap_or("revoked");
    let (id, name, tenant, role) = (&entry.id, &entry.name, &entry.tenant, entry.role);
    terminal.say(format_args!(
        "created key `{name}` ({id}) with role {role} for tenant `{tenant}`, valid until {until}; \
         it is not shown again"
    ));
    Ok(())
}

fn list(file: &KeyFile, now: Timestamp, terminal: &mut Terminal) -> CliResult {
    let book = file.read()?.unwrap_or_default();
    if terminal.json {
        let mut keys = book.keys().iter();
        return keys.try_for_each(|entry| terminal.out.json(&public_properties(entry, now)));
    }
    let rows = book.keys().iter().map(|entry| {
        let expires = entry.expires.map(|at| at.to_string());
        [
            entry.id.to_string(),
            entry.name.to_string(),
            entry.tenant.to_string(),
            entry.role.to_string(),
            profiles(entry),
            entry.state(now).as_str().to_owned(),
            entry.created.to_string(),
            expires.unwrap_or_else(|| "-".to_owned()),
        ]
    });
    let rows: Vec<[String; 8]> = rows.collect();
    if rows.is_empty() {
        terminal.say("no keys yet: run `oracle keys create` to create one");
    }
    let head = [
        "ID", "NAME", "TENANT", "ROLE", "PROFILES", "STATE", "CREATED", "EXPIRES",
    ];
    Ok(terminal.table(head, 8, &rows)?)
}

fn profiles(entry: &StoredKey) -> String {
    let names: Vec<&str> = entry.profiles.iter().map(ProfileName::as_str).collect();
    match names.as_slice() {
        [] => "all".to_owned(),
        names => names.join(","),
    }
}

fn revoke(key: &str, file: &KeyFile, now: Timestamp, terminal: &mut Terminal) -> CliResult {
    let entry = match file.read()? {
        Some(_) => file.change(|book| book.revoke(key, now).map_err(CliError::failed))?,
        // Looking for a key must not create the file.
        None => return Err(CliError::failed(KeySetError::Unknown(key.to_owned()))),
    };
    let StoredKey { id, name, .. } = &entry;
    let text = format!(
        "revoked key `{name}` ({id}); servers reject it and cancel its queries within seconds"
    );
    terminal.result(&public_properties(&entry, now), &text)
}

impl From<FileError> for CliError {
    fn from(error: FileError) -> Self {
        Self::failed(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetimes_are_durations_within_bounds() {
        for (text, seconds) in [
            ("1m", Some(60)),
            ("12h", Some(43_200)),
            ("30d", Some(2_592_000)),
            ("52w", Some(31_449_600)),
            ("0d", None),
            ("", None),
            ("30", None),
            ("d", None),
            ("30 d", Some(2_592_000)),
            ("1h 30m", Some(5_400)),
            ("59s", None),
            ("-1d", None),
            ("1y", None),
            ("99999w", None),
            ("99999999999999999999d", None),
        ] {
            let got = lifetime(text).ok();
            let want = seconds.map(Duration::from_secs);
            assert_eq!(got, want, "{text:?}");
        }
    }
}
