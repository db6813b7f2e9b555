//! Measures the disk's own fsync, the baseline for every figure of a journal.

use std::{
    fs::File,
    io::{self, Seek, Write},
    path::Path,
    time::Duration,
};

use tokio::time::Instant;

/// The end of a file, or existing blocks, as in a log that is reused. Some disks take twenty times
/// as long for the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Block {
    Appended,
    Overwritten,
}

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
