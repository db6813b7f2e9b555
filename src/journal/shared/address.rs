//! Where a socket is, for the system calls: they take about a hundred bytes, and data directories have
//! longer paths.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
};

/// What fits into a socket's address on every system, in bytes.
const LONGEST: usize = 100;

/// A path that the system calls take; it leads there for as long as this lives.
#[derive(Debug)]
pub(super) struct Address {
    path: PathBuf,
    /// The folder, where the path leads through it.
    _folder: Option<File>,
}

impl Address {
    /// Of a socket that is there, or is to be.
    pub(super) fn of(socket: &Path) -> io::Result<Self> {
        if socket.as_os_str().len() <= LONGEST {
            let path = socket.to_path_buf();
            return Ok(Self {
                path,
                _folder: None,
            });
        }
        Self::through_the_folder(socket)
    }

    pub(super) fn path(&self) -> &Path {
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
