//! A PostgreSQL server for tests: a cluster of its own in a temporary directory, which ends with the
//! test's process.

use std::{
    fs,
    io::{self, BufRead as _, BufReader},
    os::unix::fs::chown,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

use tempfile::TempDir;

use crate::journal::postgres::{OpenError, Postgres, Settings};
use oracle_ports::testkit::require;

/// The script that runs a cluster in directory `$1`, with options `$2`, until its input closes. A new
/// one is a standby of the server whose socket is in `$3`, if that is given.
/// PostgreSQL refuses to run as root, so root becomes another user.
const RUN: &str = r#"
set -e
PATH=$PATH:$(printf '%s:' /usr/lib/postgresql/*/bin)
command -v initdb >/dev/null || { echo "initdb is not installed"; exit; }
[ -f "$1/data/PG_VERSION" ] || if [ -n "$3" ]; then
    pg_basebackup --pgdata "$1/data" --host "$3" --username oracle --checkpoint fast \
        --write-recovery-conf
else
    initdb --pgdata "$1/data" --username oracle --auth trust --encoding UTF8 --no-locale
fi >"$1/log"
# Processes of a server that was killed may still be ending.
for _ in 1 2 3 4 5 6 7 8 9 10; do
    pg_ctl start --wait --silent --pgdata "$1/data" --log "$1/log" --options \
        "-c listen_addresses= -c unix_socket_directories=$1 -c max_connections=200 $2" \
        </dev/null >>"$1/log" 2>&1 && break
    sleep 1
done
pg_ctl status --pgdata "$1/data" >/dev/null || { echo "the server does not start"; exit; }
echo ready
read -r _ || true
pg_ctl stop --silent --mode immediate --timeout 5 --pgdata "$1/data"
"#;

/// A running cluster.
#[derive(Debug)]
pub struct Cluster {
    directory: TempDir,
    options: String,
    user: Option<(u32, u32)>,
    run: Child,
    schemas: AtomicU32,
}

impl Cluster {
    /// The cluster that all tests of the process share. `None` where PostgreSQL is not installed,
    /// which is printed.
    ///
    /// # Panics
    /// If `ORACLE_REQUIRE` names `postgres` and it does not start.
    pub fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<io::Result<Cluster>> = OnceLock::new();
        // Nothing here outlives a crash of the machine.
        let start = || Self::start("-c fsync=off -c shared_buffers=64MB");
        require("postgres", SHARED.get_or_init(start).as_ref())
    }

    /// Starts a cluster with further options for the server, such as `-c NAME=VALUE`.
    ///
    /// # Errors
    /// If PostgreSQL is not installed or does not start.
    pub fn start(options: &str) -> io::Result<Self> {
        Self::start_after(options, "")
    }

    /// Starts a standby of this cluster.
    ///
    /// # Errors
    /// If it does not start.
    pub fn standby(&self) -> io::Result<Self> {
        Self::start_after("", &self.directory.path().to_string_lossy())
    }

    fn start_after(options: &str, primary: &str) -> io::Result<Self> {
        let directory = tempfile::tempdir()?;
        let user = user_instead_of_root()?;
        if let Some((uid, gid)) = user {
            chown(directory.path(), Some(uid), Some(gid))?;
        }
        let run = run(directory.path(), [options, primary], user)?;
        Ok(Self {
            directory,
            options: options.to_owned(),
            user,
            run,
            schemas: AtomicU32::new(0),
        })
    }

    /// Stops the server as a crash would.
    ///
    /// # Errors
    /// If it cannot be waited for.
    pub fn stop(&mut self) -> io::Result<()> {
        drop(self.run.stdin.take());
        self.run.wait()?;
        Ok(())
    }

    /// Starts the server again, after it was stopped or killed.
    ///
    /// # Errors
    /// If it does not start.
    pub fn restart(&mut self) -> io::Result<()> {
        self.stop()?;
        self.run = run(self.directory.path(), [&self.options, ""], self.user)?;
        Ok(())
    }

    /// Makes a standby a server that can be written to, which it is soon after.
    ///
    /// # Errors
    /// If it does not run.
    pub fn promote(&self) -> io::Result<()> {
        let pid = self.pid()?.to_string();
        fs::write(self.directory.path().join("data/promote"), "")?;
        Command::new("kill").args(["-USR1", &pid]).status()?;
        Ok(())
    }

    /// The process id of the server.
    ///
    /// # Errors
    /// If the server does not run.
    pub fn pid(&self) -> io::Result<u32> {
        let text = fs::read_to_string(self.directory.path().join("data/postmaster.pid"))?;
        let pid = text.lines().next().and_then(|pid| pid.parse().ok());
        pid.ok_or_else(|| io::Error::other("postmaster.pid has no process id"))
    }

    /// The URL of a schema of the database `postgres`.
    pub fn url(&self, schema: &str) -> String {
        let folder = self.directory.path().display();
        format!("postgresql:///postgres?host={folder}&user=oracle&options=-csearch_path%3D{schema}")
    }

    /// Creates an empty schema and returns its URL.
    ///
    /// # Errors
    /// If the database refuses it.
    pub async fn schema(&self) -> Result<String, OpenError> {
        let number = self.schemas.fetch_add(1, Ordering::Relaxed);
        let schema = format!("test_{number}");
        let url = self.url(&schema);
        let create = format!("CREATE SCHEMA {schema}");
        Postgres::execute(&Settings::new(url.clone()), &create).await?;
        Ok(url)
    }

    /// Settings of a new, empty schema.
    ///
    /// # Errors
    /// If the database refuses it.
    pub async fn fresh(&self) -> Result<Settings, OpenError> {
        Ok(Settings::new(self.schema().await?))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

/// The user `postgres` if this one is root, or else `nobody`.
fn user_instead_of_root() -> io::Result<Option<(u32, u32)>> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd")?;
    let ids = |name: &str| {
        let mut fields = users.lines().map(|line| line.split(':'));
        let mut user = fields.find_map(|mut user| (user.next()? == name).then_some(user))?;
        let (_password, uid, gid) = (user.next()?, user.next()?, user.next()?);
        Some((uid.parse().ok()?, gid.parse().ok()?))
    };
    match ids("postgres").or_else(|| ids("nobody")) {
        None => Err(io::Error::other("there is no user besides root")),
        found => Ok(found),
    }
}

fn run(directory: &Path, options: [&str; 2], user: Option<(u32, u32)>) -> io::Result<Child> {
    use std::os::unix::process::CommandExt as _;
    let mut command = Command::new("sh");
    command
        .args(["-c", RUN, "sh"])
        .arg(directory)
        .args(options)
        .current_dir(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit());
    if let Some((uid, gid)) = user {
        command.uid(uid).gid(gid);
    }
    let mut child = command.spawn()?;
    let output = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let mut said = String::new();
    BufReader::new(output).read_line(&mut said)?;
    if said.trim() == "ready" {
        return Ok(child);
    }
    let _ = child.wait();
    let log = fs::read_to_string(directory.join("log")).unwrap_or_default();
    Err(io::Error::other(format!("{said}{log}")))
}
