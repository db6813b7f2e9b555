//! The declarations of tools that are known, in a file that processes share.
//!
//! The first sight of a tool pins it. Afterwards only an operator changes its pin; a tool that
//! disappears keeps it, so that it cannot return as another.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::Declared;
use crate::disk;

/// The file of pins in a data directory.
pub const PINS: &str = "mcp-tools.json";
/// Most pins of a server.
const MAX_PINS: usize = 1_024;

/// A tool with its known declaration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[doc(hidden)]
pub struct KnownTool {
    pub tool: Declared,
    /// Whether the server no longer offers it.
    pub(super) gone: bool,
    /// What the server declares instead.
    #[serde(skip)]
    pub changed: Option<Declared>,
}

/// By server, in order of discovery.
type ByServer = BTreeMap<String, Vec<KnownTool>>;

/// The known declarations.
pub struct Pins {
    /// `None` keeps them in memory.
    path: Option<PathBuf>,
    known: Mutex<ByServer>,
}

impl Pins {
    /// Reads the pins of a data directory.
    ///
    /// # Errors
    /// When the file exists and cannot be read.
    pub fn open(directory: Option<&Path>) -> io::Result<Self> {
        let path = directory.map(|directory| directory.join(PINS));
        let known = path.as_deref().map(read).transpose()?;
        let known = Mutex::new(known.unwrap_or_default());
        Ok(Self { path, known })
    }

    pub(super) fn of(&self, server: &str) -> Vec<KnownTool> {
        self.known.lock().get(server).cloned().unwrap_or_default()
    }

    /// Pins new tools, marks those that are gone or changed, and returns all tools of the server.
    /// Blocks.
    pub(super) fn reconcile(&self, server: &str, offered: Vec<Declared>) -> Vec<KnownTool> {
        self.update(|known| {
            let pins = known.entry(server.to_owned()).or_default();
            pins.iter_mut().for_each(|pin| pin.gone = true);
            for tool in offered.clone() {
                let is_full = pins.len() >= MAX_PINS;
                match pins.iter_mut().find(|pin| pin.tool.name == tool.name) {
                    Some(pin) => {
                        pin.gone = false;
                        pin.changed = Some(tool).filter(|tool| *tool != pin.tool);
                    }
                    None if !is_full => pins.push(KnownTool {
                        tool,
                        gone: false,
                        changed: None,
                    }),
                    None => tracing::warn!(server, tool = %tool.name, "too many tools are known"),
                }
            }
        });
        self.of(server)
    }

    /// Replaces a pin. Blocks.
    pub(super) fn approve(&self, server: &str, approved: &KnownTool) {
        self.update(|known| {
            let mut pins = known.get_mut(server).into_iter().flatten();
            if let Some(pin) = pins.find(|pin| pin.tool.name == approved.tool.name) {
                pin.clone_from(approved);
            }
        });
    }

    /// Changes the pins as the file has them now. If it cannot be used, they stay in memory.
    /// `change` may be applied twice.
    fn update(&self, change: impl Fn(&mut ByServer)) {
        let mut known = self.known.lock();
        let Some(path) = &self.path else {
            return change(&mut known);
        };
        if let Err(error) = in_file(path, &mut known, &change) {
            tracing::warn!(%error, "cannot update {PINS} in the data directory");
            change(&mut known);
        }
    }
}

fn in_file(path: &Path, known: &mut ByServer, change: impl Fn(&mut ByServer)) -> io::Result<()> {
    let lock = File::create(path.with_extension("lock"))?;
    lock.lock()?;
    let before = read(path)?;
    known.clone_from(&before);
    change(known);
    if before == *known {
        return Ok(());
    }
    disk::replace(path, &serde_json::to_vec_pretty(known)?)
}

fn read(path: &Path) -> io::Result<ByServer> {
    match fs::read(path) {
        Ok(text) => Ok(serde_json::from_slice(&text)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(ByServer::new()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str, description: &str) -> Declared {
        let tool = json!({
            "name": name, "description": description, "inputSchema": {"type": "object"}
        });
        Declared::new(serde_json::from_value(tool).unwrap()).unwrap()
    }

    fn known(tool: Declared) -> KnownTool {
        KnownTool {
            tool,
            gone: false,
            changed: None,
        }
    }

    fn shown(pins: &[KnownTool]) -> Vec<(&str, &str, bool)> {
        pins.iter()
            .map(|pin| (&*pin.tool.name, &*pin.tool.description, pin.gone))
            .collect()
    }

    #[test]
    fn first_sight_pins_a_tool_for_every_process_until_an_operator_approves_another() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = [(); 2].map(|()| Pins::open(Some(folder.path())).unwrap());
        one.reconcile("s", vec![tool("a", "1"), tool("b", "1")]);
        // Another process, which knew nothing, sees them changed.
        let pins = other.reconcile("s", vec![tool("a", "2"), tool("c", "1")]);
        let expected = [("a", "1", false), ("b", "1", true), ("c", "1", false)];
        assert_eq!(shown(&pins), expected);
        other.approve("s", &known(tool("a", "2")));
        let pins = one.reconcile("s", vec![tool("a", "2"), tool("b", "3")]);
        let expected = [("a", "2", false), ("b", "1", false), ("c", "1", true)];
        assert_eq!(shown(&pins), expected, "one that returns keeps its pin");
        assert_eq!(pins[1].changed, Some(tool("b", "3")));
        let stored = Pins::open(Some(folder.path())).unwrap().of("s");
        assert_eq!(shown(&stored), expected);
        assert!(one.of("t").is_empty());
    }

    #[test]
    fn broken_file_is_reported_and_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(PINS);
        fs::write(&path, "{").unwrap();
        assert!(Pins::open(Some(folder.path())).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"{");
    }
}
