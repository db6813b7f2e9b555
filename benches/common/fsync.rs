//! What a disk takes to make something durable, without which no figure of a journal says anything.

use std::{
    fs::File,
    io::{self, Seek, Write},
    path::Path,
    time::Duration,
};

use tokio::time::Instant;

/// Where a file is written: at its end, or, as a log that is used again and again, over what stands there.
/// Some disks take twenty times as long for the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Block {
    Appended,
    Overwritten,
}

/// What a write and its fsync take.
pub(crate) fn fsync(directory: &Path, block: Block) -> io::Result<Times> {
    const BLOCKS: usize = 500;
    const BYTES: [u8; 4_096] = [b'x'; 4_096];
    let mut file = File::create(directory.join("fsync"))?;
    if block == Block::Overwritten {
        file.write_all(&BYTES.repeat(BLOCKS))?;
        file.sync_all()?;
        file.rewind()?;
    }
    let mut times = Times::default();
    for _ in 0..BLOCKS {
        let before = Instant::now();
        file.write_all(&BYTES)?;
        file.sync_all()?;
        times.add(before.elapsed());
    }
    Ok(times)
}

/// Durations of single operations.
#[derive(Default)]
pub(crate) struct Times(pub(crate) Vec<Duration>);

impl Times {
    pub(crate) fn add(&mut self, time: Duration) {
        self.0.push(time);
    }

    pub(crate) fn at(&self, percent: usize) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let index = sorted.len() * percent / 100;
        sorted
            .get(index.min(sorted.len().saturating_sub(1)))
            .copied()
            .unwrap_or_default()
    }
}

impl std::fmt::Display for Times {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [middle, late, last] = [50, 99, 100].map(|percent| self.at(percent));
        write!(f, "p50 {middle:.2?}, p99 {late:.2?}, at most {last:.2?}")
    }
}
