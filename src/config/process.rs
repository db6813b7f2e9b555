//! Sections of the running process: sessions, their supervisor, shared actors, data (spec 10, 13).

use std::{ffi::OsStr, path::PathBuf};

use serde::{Deserialize, Serialize};

use super::value::{Count, FilePath, SECOND, Span};

/// `[session]`: one conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Session {
    /// Most messages that wait while a query runs; more are refused.
    pub inbox_capacity: Count<1, 10_000>,
    /// Idle for this long, a session leaves memory; the journal keeps it.
    pub idle_timeout: Span<{ SECOND }, { 24 * 3_600 * SECOND }>,
    /// With more sessions in memory than this, the longest idle ones leave.
    pub max_live: Count<1, 10_000_000>,
}

impl Default for Session {
    fn default() -> Self {
        Self {
            inbox_capacity: Count::of::<32>(),
            idle_timeout: Span::of::<{ 300 * SECOND }>(),
            max_live: Count::of::<50_000>(),
        }
    }
}

/// `[supervisor]`: who watches over the conversations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Supervisor {
    /// A session without progress for this long is stuck. Longer than every model and tool deadline.
    pub stall_limit: Span<{ SECOND }, { 86_400 * SECOND }>,
    /// Crashes and stalls that fail a query.
    pub max_crashes: Count<1, 100>,
    /// Deaths of the process that fail a query.
    pub max_process_deaths: Count<1, 100>,
    /// After a start: queries that may run at a time while others are to be brought back.
    pub recovery_concurrency: Count<1, 10_000>,
    /// How many actors the sessions are spread over.
    pub shards: Count<1, 64>,
}

impl Default for Supervisor {
    fn default() -> Self {
        Self {
            stall_limit: Span::of::<{ 900 * SECOND }>(),
            max_crashes: Count::of::<3>(),
            max_process_deaths: Count::of::<10>(),
            recovery_concurrency: Count::of::<32>(),
            shards: Count::of::<16>(),
        }
    }
}

/// `[actors]`: those that all sessions share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Actors {
    /// How many classify queries.
    pub classifiers: Count<1, 64>,
    /// How many compose prompts.
    pub composers: Count<1, 64>,
    /// Most model calls of one provider at the same time.
    pub model_concurrency: Count<1, 10_000>,
    /// Most model calls of one provider that wait; more are refused with a hint when to retry.
    pub model_queue: Count<0, 1_000_000>,
}

impl Default for Actors {
    fn default() -> Self {
        Self {
            classifiers: Count::of::<2>(),
            composers: Count::of::<2>(),
            model_concurrency: Count::of::<64>(),
            model_queue: Count::of::<1_024>(),
        }
    }
}

/// `[data]`: where things are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Data {
    /// The folder of the journal and the notes; see [`Data::directory`] for where it is otherwise.
    pub dir: Option<FilePath>,
}

/// There is no place for data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no folder for data: neither `XDG_DATA_HOME` nor `HOME` is set, so set `data.dir`")]
pub struct NoDataDirectory;

impl Data {
    /// The folder that is set, else `oracle` in `$XDG_DATA_HOME`, else in `$HOME/.local/share`. As
    /// the XDG rules have it, an empty or relative `XDG_DATA_HOME` is as good as none.
    ///
    /// # Errors
    /// If nothing says where.
    pub fn directory(
        &self,
        xdg_data_home: Option<&OsStr>,
        home: Option<&OsStr>,
    ) -> Result<PathBuf, NoDataDirectory> {
        if let Some(dir) = &self.dir {
            return Ok(dir.as_path().to_path_buf());
        }
        let absolute = |path: &PathBuf| path.is_absolute();
        let data = xdg_data_home.map(PathBuf::from).filter(absolute);
        let in_home = || {
            home.map(PathBuf::from)
                .filter(absolute)
                .map(|home| home.join(".local/share"))
        };
        data.or_else(in_home)
            .map(|data| data.join("oracle"))
            .ok_or(NoDataDirectory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_lives_where_it_is_told_to() {
        let set = Data {
            dir: Some(FilePath::new("here").unwrap()),
        };
        for (name, data, xdg, home, want) in [
            ("set", &set, Some("/x"), Some("/h"), Some("here")),
            (
                "xdg",
                &Data::default(),
                Some("/x"),
                Some("/h"),
                Some("/x/oracle"),
            ),
            (
                "home",
                &Data::default(),
                None,
                Some("/h"),
                Some("/h/.local/share/oracle"),
            ),
            (
                "empty xdg",
                &Data::default(),
                Some(""),
                Some("/h"),
                Some("/h/.local/share/oracle"),
            ),
            ("relative xdg", &Data::default(), Some("x"), None, None),
            ("nothing", &Data::default(), None, Some(""), None),
        ] {
            let got = data.directory(xdg.map(OsStr::new), home.map(OsStr::new));
            assert_eq!(
                got,
                want.map(PathBuf::from).ok_or(NoDataDirectory),
                "{name}"
            );
        }
    }
}
