//! `oracle serve` in a process of its own, and the system's figures for it.

use std::{
    error::Error,
    fs,
    io::{BufRead, BufReader},
    net::SocketAddr,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use tempfile::TempDir;

use super::load::{Client, request};

type BenchResult<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// A running server, killed on drop, whose data are removed too.
pub(crate) struct Served {
    process: Child,
    pub(crate) address: SocketAddr,
    data: TempDir,
}

impl Served {
    pub(crate) fn start(model: &str, config: &str) -> BenchResult<Self> {
        Self::with(model, config, "")
    }

    /// Starts a server with further configuration for the model's provider.
    pub(crate) fn with(model: &str, config: &str, provider: &str) -> BenchResult<Self> {
        Self::at("127.0.0.1:0", model, config, provider)
    }

    /// Starts a server that listens at this address.
    pub(crate) fn at(
        address: &str,
        model: &str,
        config: &str,
        provider: &str,
    ) -> BenchResult<Self> {
        let data = tempfile::tempdir()?;
        let file = data.path().join("oracle.toml");
        // A context window that fits all histories of these measurements.
        let provider = format!(
            "[[providers]]\nname = \"mock\"\ndialect = \"openai\"\nbase_url = \"{model}/v1\"\n{provider}\
             [[providers.models]]\nname = \"test\"\ncontext_window = 100000000\ninput = 1\noutput = 2\n"
        );
        fs::write(&file, format!("{config}\n{provider}"))?;
        let mut process = Command::new(env!("CARGO_BIN_EXE_oracle"))
            .args(["serve", "--listen", address, "--model", "mock/test"])
            .arg("--config")
            .arg(&file)
            .arg("--data-dir")
            .arg(data.path().join("data"))
            .current_dir(data.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let err = process.stderr.take().ok_or("it says nothing")?;
        let mut lines = BufReader::new(err).lines();
        let address = loop {
            let line = lines.next().ok_or("it did not start")??;
            match line.strip_prefix("oracle: listening on http://") {
                Some(address) => break address.parse()?,
                None => eprintln!("{line}"),
            }
        };
        // Further output is drained, so that the server never blocks on it.
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if line.contains("warning") || line.contains("ERROR") {
                    eprintln!("{line}");
                }
            }
        });
        Ok(Self {
            process,
            address,
            data,
        })
    }

    pub(crate) fn processor_time(&self) -> BenchResult<Duration> {
        processor_time(self.process.id())
    }

    /// Resident memory, in bytes.
    pub(crate) fn resident(&self) -> BenchResult<usize> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().next());
        Ok(number.ok_or("no VmRSS")?.parse::<usize>()? << 10)
    }

    /// Size of the journal's write-ahead log, in bytes.
    pub(crate) fn log_bytes(&self) -> BenchResult<u64> {
        let log = self.data.path().join("data/journal.db-wal");
        Ok(fs::metadata(log)?.len())
    }

    /// Returns one of the server's metrics; 0 while it is absent.
    pub(crate) async fn figure(&self, client: &Client, name: &str) -> BenchResult<u64> {
        let answer = client.send(&request("GET", "/metrics", "", "")).await?;
        let text = String::from_utf8(answer.body)?;
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        Ok(line.map_or(Ok(0), |number| number.trim().parse())?)
    }

    /// Waits until a metric has this value; fails after two minutes.
    pub(crate) async fn comes_to(
        &self,
        client: &Client,
        name: &str,
        wanted: u64,
    ) -> BenchResult<()> {
        const LOOK: Duration = Duration::from_millis(20);
        let mut seen = 0;
        for _ in 0..6_000 {
            seen = self.figure(client, name).await?;
            if seen == wanted {
                return Ok(());
            }
            tokio::time::sleep(LOOK).await;
        }
        Err(format!("{name} is {seen} and not {wanted}").into())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(crate) fn processor_time(process: u32) -> BenchResult<Duration> {
    // Linux reports hundredths of a second on every machine.
    const TICK: Duration = Duration::from_millis(10);
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The process name before the bracket may contain anything.
    let (_, fields) = stat.rsplit_once(')').ok_or("no times of the process")?;
    let times = fields.split_whitespace().skip(11).take(2);
    let ticks = times.map(str::parse::<u32>).sum::<Result<u32, _>>()?;
    Ok(TICK * ticks)
}

/// Memory of the machine's TCP sockets, in bytes.
pub(crate) fn socket_memory() -> BenchResult<usize> {
    const PAGE: usize = 4_096;
    let text = fs::read_to_string("/proc/net/sockstat")?;
    let line = text.lines().find_map(|line| line.strip_prefix("TCP:"));
    let mut words = line.ok_or("no TCP")?.split_whitespace();
    words.find(|word| *word == "mem");
    Ok(words.next().ok_or("no mem")?.parse::<usize>()? * PAGE)
}
