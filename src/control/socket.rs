//! The control socket of a data directory. It accepts the process's own user and root as
//! administrators, and speaks HTTP.

use std::{
    fs::{self, File, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::process::geteuid;
use tokio::net::{UnixListener, UnixStream};

use crate::disk;

/// The socket's file name in a data directory.
pub const NAME: &str = "control.sock";

/// Maximum number of servers with a socket in one data directory.
const SERVERS: usize = 16;

/// Length of a socket address, in bytes, that every system accepts.
const LONGEST: usize = 100;

/// Why the socket cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Another process listens on it.
    #[error("another process uses the control channel `{path}`: use another data directory")]
    Taken {
        /// The socket's path.
        path: PathBuf,
    },
    /// The operating system reports an error.
    #[error("cannot open the control channel at `{path}`: {source}; check the data directory")]
    Io {
        /// The socket's path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// A bound socket, whose file is removed on drop.
#[derive(Debug)]
pub struct Socket {
    path: PathBuf,
    /// Device and inode, so that a file which replaced the socket is not removed.
    file: Option<(u64, u64)>,
    listener: UnixListener,
    user: u32,
    _lock: File,
}

impl Socket {
    /// Binds the first free socket of a data directory: `control.sock`, or `control-2.sock` and so
    /// on beside other servers.
    ///
    /// # Errors
    /// As for [`bind`](Self::bind).
    pub async fn within(directory: &Path) -> Result<Self, SocketError> {
        let mut bound = Self::bind(&directory.join(NAME)).await;
        for number in 2..=SERVERS {
            let Err(SocketError::Taken { .. }) = bound else {
                break;
            };
            bound = Self::bind(&directory.join(format!("control-{number}.sock"))).await;
        }
        bound
    }

    /// The path of the socket's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Binds `path`, replacing a socket that a dead process left there.
    ///
    /// # Errors
    /// [`SocketError::Taken`] if another process listens there, [`SocketError::Io`] if the socket
    /// cannot be created.
    pub async fn bind(path: &Path) -> Result<Self, SocketError> {
        let path = path.to_path_buf();
        // Only one of two starting processes replaces the socket.
        let lock = match disk::lock(&path.with_extension("lock"), Duration::ZERO) {
            Ok(lock) => lock,
            Err(TryLockError::WouldBlock) => return Err(SocketError::Taken { path }),
            Err(TryLockError::Error(source)) => return Err(SocketError::Io { path, source }),
        };
        if let Ok(address) = Address::of(&path)
            && UnixStream::connect(&address.path).await.is_ok()
        {
            return Err(SocketError::Taken { path });
        }
        match listen(&path) {
            Ok(listener) => Ok(Self {
                file: file_at(&path),
                path,
                listener,
                user: geteuid().as_raw(),
                _lock: lock,
            }),
            Err(source) => Err(SocketError::Io { path, source }),
        }
    }

    /// Accepts the next connection of this user or of root; closes those of others.
    ///
    /// # Errors
    /// If the system cannot accept a connection.
    pub async fn accept(&self) -> io::Result<UnixStream> {
        loop {
            let (stream, _) = self.listener.accept().await?;
            let peer = stream.peer_cred().map(|peer| peer.uid());
            if peer.is_ok_and(|peer| is_allowed(self.user, peer)) {
                return Ok(stream);
            }
            tracing::warn!("rejected a connection of another user to the control channel");
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.file.is_some() && file_at(&self.path) == self.file {
            let _ = fs::remove_file(&self.path);
        }
    }
}

const fn is_allowed(user: u32, peer: u32) -> bool {
    peer == user || peer == 0
}

fn file_at(path: &Path) -> Option<(u64, u64)> {
    let file = fs::symlink_metadata(path).ok()?;
    Some((file.dev(), file.ino()))
}

/// Creates the socket in a private folder and renames it once its mode is 0600, so that other users
/// never reach it.
fn listen(path: &Path) -> io::Result<UnixListener> {
    let folder = path.with_extension("new");
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    fs::DirBuilder::new().mode(0o700).create(&folder)?;
    let made = folder.join("s");
    let listener = UnixListener::bind(Address::of(&made)?.path)?;
    fs::set_permissions(&made, fs::Permissions::from_mode(0o600))?;
    fs::rename(&made, path)?;
    fs::remove_dir(&folder)?;
    Ok(listener)
}

/// A path short enough for the system calls, valid as long as this lives.
#[derive(Debug)]
pub(super) struct Address {
    pub(super) path: PathBuf,
    /// Keeps the descriptor open that a shortened path refers to.
    _folder: Option<File>,
}

impl Address {
    pub(super) fn of(socket: &Path) -> io::Result<Self> {
        if socket.as_os_str().len() <= LONGEST {
            return Ok(Self {
                path: socket.to_path_buf(),
                _folder: None,
            });
        }
        Self::through_the_folder(socket)
    }

    #[cfg(target_os = "linux")]
    fn through_the_folder(socket: &Path) -> io::Result<Self> {
        use std::os::fd::AsRawFd as _;
        let parts = socket.parent().zip(socket.file_name());
        let (folder, name) = parts.ok_or(io::ErrorKind::InvalidInput)?;
        let folder = File::open(folder)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name);
        Ok(Self {
            path,
            _folder: Some(folder),
        })
    }

    #[cfg(not(target_os = "linux"))]
    fn through_the_folder(_: &Path) -> io::Result<Self> {
        let why = format!("its path is longer than {LONGEST} bytes");
        Err(io::Error::new(io::ErrorKind::InvalidInput, why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn socket_admits_only_its_owner_and_root() {
        let user = geteuid().as_raw();
        for (peer, may) in [(user, true), (0, true), (user + 1, false)] {
            assert_eq!(is_allowed(user, peer), may, "{peer}");
        }
    }
}
