//! What this process uses of the machine, under Prometheus' usual names.

use std::{fmt, fs, time::Duration};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric as _, NoLabelSet},
    metrics::{MetricType, gauge::ConstGauge},
    registry::Unit,
};
use rustix::time::{ClockId, clock_gettime};

/// What this process uses of the machine. As a [`Collector`], it reads the figures when it is
/// encoded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessUsage {
    /// Processor time since its start, in the kernel too.
    pub cpu: Duration,
    /// Resident memory in bytes; known on Linux.
    pub resident: Option<u64>,
    /// Open file descriptors; known on Linux.
    pub descriptors: Option<u64>,
}

impl ProcessUsage {
    /// Reads the figures of this moment.
    pub fn now() -> Self {
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        let descriptors = fs::read_dir("/proc/self/fd");
        Self {
            cpu: cpu.try_into().unwrap_or_default(),
            resident: resident(),
            // The one that reads the directory does not count.
            descriptors: descriptors
                .ok()
                .map(|all| all.count().saturating_sub(1) as u64),
        }
    }
}

fn resident() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let mut lines = status.lines();
    let line = lines.find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes * 1024)
}

impl Collector for ProcessUsage {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let now = Self::now();
        let (name, help) = ("process_cpu", "Processor time of the process");
        encoder
            .encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Counter)?
            .encode_counter::<NoLabelSet, f64, f64>(&now.cpu.as_secs_f64(), None)?;
        let memory = (
            "process_resident_memory",
            "Resident memory",
            Some(&Unit::Bytes),
        );
        let descriptors = ("process_open_fds", "Open file descriptors", None);
        for ((name, help, unit), figure) in [(memory, now.resident), (descriptors, now.descriptors)]
        {
            if let Some(figure) = figure {
                let gauge = ConstGauge::new(figure);
                gauge.encode(encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?)?;
            }
        }
        Ok(())
    }
}
