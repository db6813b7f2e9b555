//! Sockets in a data directory, for its owner alone.
//!
//! The system calls take paths of about a hundred bytes, and data directories have longer ones.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
};

use tokio::net::{UnixListener, UnixStream};

/// What fits into a socket's address on every system, in bytes.
const LONGEST: usize = 100;

/// A path that the system calls take; it leads there for as long as this lives.
#[derive(Debug)]
struct Address {
    path: PathBuf,
    /// The folder, where the path leads through it.
    _folder: Option<File>,
}

impl Address {
    /// Of a socket that is there, or is to be.
    fn of(socket: &Path) -> io::Result<Self> {
        if socket.as_os_str().len() <= LONGEST {
            let path = socket.to_path_buf();
            return Ok(Self {
                path,
                _folder: None,
            });
        }
        Self::through_the_folder(socket)
    }

    fn path(&self) -> &Path {
        &self.path
    }

    /// An open folder has a short name too.
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

/// Listens on this path, which nobody but the owner of the process may connect to. What is left there of a
/// process that died is replaced: whoever calls this has made sure that no other is alive.
///
/// Made in a folder of its own, which nobody else may enter, and put in its place when its mode is its
/// own: others can never reach it, whoever may enter the directory.
///
/// # Errors
/// When the socket cannot be made.
pub(crate) fn bind(path: &Path) -> io::Result<UnixListener> {
    let folder = path.with_extension("new");
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    fs::DirBuilder::new().mode(0o700).create(&folder)?;
    let made = folder.join("s");
    let listener = UnixListener::bind(Address::of(&made)?.path())?;
    fs::set_permissions(&made, fs::Permissions::from_mode(0o600))?;
    fs::rename(&made, path)?;
    fs::remove_dir(&folder)?;
    Ok(listener)
}

/// Connects to whoever listens on this path.
///
/// # Errors
/// When nobody does.
pub(crate) async fn connect(path: &Path) -> io::Result<UnixStream> {
    UnixStream::connect(Address::of(path)?.path()).await
}

/// Whose a socket is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Owner(u32);

impl Owner {
    /// Whom this process runs as: the far end of its own line.
    ///
    /// # Errors
    /// When that is not to be had.
    pub(crate) fn this_process() -> io::Result<Self> {
        let (line, _end) = UnixStream::pair()?;
        Ok(Self(line.peer_cred()?.uid()))
    }

    /// Whether it is they who have connected, or the system's administrator, who can do so anyway.
    pub(crate) fn lets_in(self, stream: &UnixStream) -> bool {
        let user = stream.peer_cred().map(|peer| peer.uid());
        user.is_ok_and(|user| self.is_let_in(user))
    }

    const fn is_let_in(self, user: u32) -> bool {
        user == self.0 || user == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_socket_is_for_its_owner_and_the_administrator() {
        let owner = Owner::this_process().unwrap();
        for (user, may) in [(owner.0, true), (0, true), (owner.0 + 1, false)] {
            assert_eq!(owner.is_let_in(user), may, "{user}");
        }
        let (line, _end) = UnixStream::pair().unwrap();
        assert!(owner.lets_in(&line));
    }
}
