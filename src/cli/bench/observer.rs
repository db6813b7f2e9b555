//! Observes the process and the disk while the load runs.

use std::{fs::File, io::Write as _, path::Path, time::Duration};

use tokio::{
    task::spawn_blocking,
    time::{Instant, sleep_until},
};

use super::{
    load::{Target, Window},
    tally::Times,
};
use crate::{
    actor::ProcessUsage,
    cli::{CliError, CliResult},
};

/// Pause between two writes that measure the disk.
const PAUSE: Duration = Duration::from_millis(100);

/// What was observed within the measurement.
pub(super) struct Observed {
    /// Processor time of the target's process, if it could be read.
    pub(super) cpu: Option<Duration>,
    /// Its resident memory at the end, in bytes.
    pub(super) resident: Option<u64>,
    /// Durations of an fsync of 4 KiB at the end of a file beside the journal.
    pub(super) fsync: Option<Times>,
}

pub(super) async fn observe(
    target: &Target,
    window: Window,
    directory: Option<&Path>,
) -> CliResult<Observed> {
    sleep_until(window.from).await;
    let before = usage(target).await;
    let mut fsync = None;
    if let Some(directory) = directory {
        let mut times = Times::new()?;
        let path = directory.join("fsync");
        let file = File::create(&path).map_err(CliError::failed)?;
        while Instant::now() + PAUSE < window.to {
            let next = Instant::now() + PAUSE;
            let file = file.try_clone().map_err(CliError::failed)?;
            let synced = spawn_blocking(move || synced(file)).await;
            let synced = synced.map_err(CliError::failed)?;
            times.add(synced.map_err(CliError::failed)?);
            sleep_until(next).await;
        }
        fsync = Some(times);
    }
    sleep_until(window.to).await;
    let after = usage(target).await;
    let spent = before.zip(after);
    let spent = spent.map(|(before, after)| after.cpu.saturating_sub(before.cpu));
    Ok(Observed {
        cpu: spent,
        resident: after.and_then(|usage| usage.resident),
        fsync,
    })
}

fn synced(mut file: File) -> std::io::Result<Duration> {
    let before = Instant::now();
    file.write_all(&[b'x'; 4096])?;
    file.sync_data()?;
    Ok(before.elapsed())
}

async fn usage(target: &Target) -> Option<ProcessUsage> {
    match target {
        Target::System { .. } => Some(ProcessUsage::now()),
        Target::Server(client) => {
            let text = client.metrics().await.ok()?;
            let cpu = metric(&text, "process_cpu_seconds_total")?;
            Some(ProcessUsage {
                cpu: Duration::try_from_secs_f64(cpu).ok()?,
                resident: metric(&text, "process_resident_memory_bytes").map(|bytes| bytes as u64),
                descriptors: None,
            })
        }
    }
}

fn metric(text: &str, name: &str) -> Option<f64> {
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.find_map(|(metric, value)| (metric == name).then(|| value.parse().ok())?)
}
