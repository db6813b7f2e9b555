//! `oracle bench`: a system in a temporary folder, or a running server.

use std::{fs, sync::Arc};

use super::{CommandContext, builder, ctl, run, stored};
use crate::{
    cli::{
        CliError,
        bench::{self, BenchArgs, BenchJournal, SimulatedModel, Target},
    },
    control::Client,
};

pub(super) fn bench(args: &BenchArgs, context: CommandContext<'_>) -> Result<(), CliError> {
    let (common, environment) = (context.args, context.environment);
    args.refuse_idle_options(&common.options)?;
    if let Some(url) = &args.url {
        let key = ctl::key(args.key_file.as_deref(), environment)?;
        let server = Target::Server(Arc::new(Client::http(url, key)?));
        return run::on_runtime(Box::pin(bench::run(args, server, None, context.terminal)));
    }
    let config = context.load()?.config;
    let is_simulated = common.options.model.is_none();
    let model = is_simulated.then(|| args.simulated_model());
    let builder = builder(&config, common, environment);
    let builder = match model {
        Some(model) => builder.backend(model).model(SimulatedModel::NAME),
        None => builder,
    };
    let (folder, storage) = match args.journal {
        BenchJournal::Memory => (None, None),
        BenchJournal::Sqlite => {
            let data = stored::directory(&config, environment)?;
            let folder = fs::create_dir_all(&data)
                .and_then(|()| tempfile::Builder::new().prefix("bench-").tempdir_in(&data));
            let folder = folder.map_err(|error| {
                CliError::failed(format_args!(
                    "cannot create a folder in `{}`: {error}; choose another one with --data-dir",
                    data.display()
                ))
            })?;
            let storage = stored::Storage::within(folder.path().to_owned());
            (Some(folder), Some(storage))
        }
        BenchJournal::Postgres if config.journal.url.is_none() => {
            let why = "`--journal postgres` needs a database: set `journal.url`";
            return Err(CliError::usage(why));
        }
        BenchJournal::Postgres => (None, Some(stored::Storage::of(&config, environment)?)),
    };
    run::with_system(builder, storage, async |oracle, _| {
        let oracle = oracle.clone();
        let system = Target::System { oracle, model };
        let directory = folder.as_ref().map(|folder| folder.path());
        bench::run(args, system, directory, context.terminal).await
    })
}
