//! The runtimes that commands run on.

use super::{CliError, CliResult};

pub(super) fn on_runtime<T>(work: impl Future<Output = CliResult<T>>) -> CliResult<T> {
    on(tokio::runtime::Builder::new_multi_thread(), work)
}

pub(super) fn on<T>(
    mut runtime: tokio::runtime::Builder,
    work: impl Future<Output = CliResult<T>>,
) -> CliResult<T> {
    let runtime = runtime
        .enable_all()
        .build()
        .map_err(|error| CliError::failed(format_args!("cannot start the runtime: {error}")))?;
    let done = runtime.block_on(work);
    // A thread may be blocked on standard input, and nothing can wake it.
    runtime.shutdown_background();
    done
}
