//! How many files and sockets the process may have open, and whether they are enough.

const OTHERS: u64 = 64;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooFew {
    needed: u64,
    allowed: u64,
}

impl std::fmt::Display for TooFew {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { needed, allowed } = self;
        write!(
            f,
            "warning: {needed} file descriptors may be needed (`server.max_connections`, and a \
             connection for each model call that may run), and the limit is {allowed}: connections \
             beyond it wait; raise it by `ulimit -n {needed}`, or lower `server.max_connections`"
        )
    }
}

pub(super) fn needed(connections: usize, calls: usize) -> u64 {
    let sum = connections.saturating_add(calls);
    u64::try_from(sum)
        .unwrap_or(u64::MAX)
        .saturating_add(OTHERS)
}

#[cfg(unix)]
pub(super) fn raise(needed: u64) -> Result<(), TooFew> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let current = limit.current.unwrap_or(u64::MAX);
    let wanted = wanted(current, limit.maximum.unwrap_or(u64::MAX), needed);
    let raised = rustix::process::Rlimit {
        current: Some(wanted),
        maximum: limit.maximum,
    };
    let allowed = match wanted > current && setrlimit(Resource::Nofile, raised).is_ok() {
        true => wanted,
        false => current,
    };
    if allowed < needed {
        return Err(TooFew { needed, allowed });
    }
    Ok(())
}

#[cfg(not(unix))]
pub(super) fn raise(_: u64) -> Result<(), TooFew> {
    Ok(())
}

/// The limit as it should be: as much as is needed, if that is allowed, and never less than now.
#[cfg(unix)]
fn wanted(current: u64, most: u64, needed: u64) -> u64 {
    needed.min(most).max(current)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_limit_is_raised_as_far_as_it_may_and_never_lowered() {
        for (name, current, most, needed, want) in [
            ("enough", 10_000, 20_000, 5_000, 10_000),
            ("raised", 1_024, 20_000, 5_000, 5_000),
            ("as far as may be", 1_024, 2_000, 5_000, 2_000),
            ("no limit", u64::MAX, u64::MAX, 5_000, u64::MAX),
        ] {
            assert_eq!(wanted(current, most, needed), want, "{name}");
        }
    }

    #[test]
    fn what_is_needed_and_what_is_allowed_are_told() {
        let few = TooFew {
            needed: needed(10_000, 64),
            allowed: 1_024,
        };
        let text = few.to_string();
        assert!(text.contains("10128") && text.contains("1024"), "{text}");
        assert_eq!(needed(usize::MAX, 1), u64::MAX);
    }
}
