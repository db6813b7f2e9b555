//! Limits of the process: open file descriptors and core dumps.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const OTHERS: u64 = 64;

/// Turns core dumps off: one would hold keys and conversations.
pub(super) fn forbid_core_dumps() {
    let maximum = getrlimit(Resource::Core).maximum;
    let current = Some(0);
    let _ = setrlimit(Resource::Core, Rlimit { current, maximum });
}

/// Raises the limit on descriptors for this many connections and model calls; returns a warning if
/// it stays too low.
pub(super) fn raise_descriptors(connections: usize, calls: usize) -> Option<String> {
    let needed = needed(connections, calls);
    let limit = getrlimit(Resource::Nofile);
    let current = limit.current.unwrap_or(u64::MAX);
    let wanted = wanted(current, limit.maximum.unwrap_or(u64::MAX), needed);
    let raised = Rlimit {
        current: Some(wanted),
        maximum: limit.maximum,
    };
    let allowed = match wanted > current && setrlimit(Resource::Nofile, raised).is_ok() {
        true => wanted,
        false => current,
    };
    (allowed < needed).then(|| warning(needed, allowed))
}

fn needed(connections: usize, calls: usize) -> u64 {
    (connections as u64)
        .saturating_add(calls as u64)
        .saturating_add(OTHERS)
}

fn warning(needed: u64, allowed: u64) -> String {
    format!(
        "warning: the limit of {allowed} file descriptors is below the {needed} that \
         `server.max_connections` and concurrent model calls may need; connections beyond it must \
         wait; raise it with `ulimit -n {needed}`, or lower `server.max_connections`"
    )
}

/// The limit to set: `needed` as far as `most` allows, and never below `current`.
fn wanted(current: u64, most: u64, needed: u64) -> u64 {
    needed.min(most).max(current)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptor_limit_is_raised_up_to_the_maximum_and_never_lowered() {
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
    fn warning_names_needed_and_allowed_descriptors() {
        let text = warning(needed(10_000, 64), 1_024);
        assert!(text.contains("10128") && text.contains("1024"), "{text}");
        assert_eq!(needed(usize::MAX, 1), u64::MAX);
    }
}
