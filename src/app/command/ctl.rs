//! `oracle ctl`: finds the way to the server, and hands over.

use std::{fs, io, path::Path};

use secrecy::SecretString;

use super::{Call, kept, run::on_runtime};
use crate::{
    cli::{
        Environment, Stop,
        ctl::{self, CtlArgs},
        exit,
    },
    config::Config,
    control::{Client, socket},
};

const KEY: &str = "ORACLE_API_KEY";

pub(super) fn ctl(
    ctl: &CtlArgs,
    config: &Config,
    (args, environment, terminal): Call<'_>,
) -> Result<u8, Stop> {
    let far = match &ctl.url {
        Some(url) => Some(Client::http(
            url,
            key(ctl.key_file.as_deref(), environment)?,
        )?),
        None => None,
    };
    let folder = kept::directory(config, environment)?;
    on_runtime(Box::pin(async {
        let server = match far {
            Some(server) => server,
            None => server_of(&folder).await?,
        };
        let done = ctl::run(&ctl.command, server, args.options.json, terminal).await;
        done.map(|()| exit::DONE)
    }))
}

async fn server_of(folder: &Path) -> Result<Client, Stop> {
    let path = folder.join(socket::NAME);
    let connected = Client::unix(&path).await;
    connected.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Stop::failed(format_args!(
            "no server runs over {}: start one with `oracle serve`, or name one with --url",
            folder.display()
        )),
        _ => Stop::failed(format_args!("{} cannot be used: {error}", path.display())),
    })
}

fn key(file: Option<&Path>, environment: &Environment) -> Result<Option<SecretString>, Stop> {
    let Some(path) = file else {
        let key = environment.get(KEY).and_then(|key| key.to_str());
        return Ok(key.map(|key| key.trim().into()));
    };
    let read = fs::read_to_string(path);
    let key = read.map_err(|error| {
        Stop::usage(format_args!(
            "the key file {} cannot be read: {error}",
            path.display()
        ))
    })?;
    Ok(Some(key.trim().into()))
}
