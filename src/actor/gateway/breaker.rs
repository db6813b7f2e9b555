//! A circuit breaker: a server that keeps failing gets no calls for a while, and then one. Pure.
//!
//! Closed until a few calls in a row fail; then open for a cool-down; then half open: one call, the probe,
//! is let through and decides. **Invariant:** there is at most one probe, and its place is free again
//! however it ends.

use std::time::Duration;

use super::settings::BreakerSettings;

/// See the module.
#[derive(Debug)]
pub(super) struct Breaker {
    settings: BreakerSettings,
    /// Failures in a row.
    failures: u32,
    /// When it opened for the first time since it was closed.
    away_since: Option<Duration>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Closed,
    Open {
        until: Duration,
        cool_down: Duration,
    },
    HalfOpen {
        cool_down: Duration,
        probe: Probe,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Probe {
    Free,
    Taken,
}

/// How a call went through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    /// As any other.
    Free,
    /// As the one that decides.
    Probe,
}

/// What a call's end says of whom it asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Health {
    /// It is well.
    Fine,
    /// It is not.
    Failed,
    /// Nothing.
    Unknown,
}

/// What a call's end changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// Nobody is let through for this long.
    Opened(Duration),
    /// Everybody is let through again.
    Closed,
}

/// How it stands, for those who look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    Closed,
    Open { until: Duration },
    HalfOpen,
}

impl Breaker {
    pub(super) const fn new(settings: BreakerSettings) -> Self {
        Self {
            settings,
            failures: 0,
            away_since: None,
            state: State::Closed,
        }
    }

    /// Whether a call would be let through; else when it is worth asking again.
    pub(super) fn check(&self, now: Duration) -> Result<(), Duration> {
        match self.state {
            State::Open { until, .. } if now < until => Err(until - now),
            State::HalfOpen {
                cool_down,
                probe: Probe::Taken,
            } => Err(cool_down.min(self.settings.cool_down)),
            State::Closed | State::Open { .. } | State::HalfOpen { .. } => Ok(()),
        }
    }

    /// A call that [`Self::check`] let through is made.
    pub(super) fn enter(&mut self) -> Pass {
        match self.state {
            State::Closed => Pass::Free,
            State::Open { cool_down, .. } | State::HalfOpen { cool_down, .. } => {
                self.state = State::HalfOpen {
                    cool_down,
                    probe: Probe::Taken,
                };
                Pass::Probe
            }
        }
    }

    /// The call ended. What was let through before the circuit opened changes nothing any more.
    pub(super) fn ended(&mut self, now: Duration, pass: Pass, health: Health) -> Option<Change> {
        match (self.state, pass) {
            (State::Closed, Pass::Free | Pass::Probe) => self.counted(now, health),
            (State::HalfOpen { cool_down, .. }, Pass::Probe) => self.probed(now, cool_down, health),
            (State::Open { .. }, Pass::Free | Pass::Probe)
            | (State::HalfOpen { .. }, Pass::Free) => None,
        }
    }

    /// Since when it has not been closed, if it is not.
    pub(super) const fn away_since(&self) -> Option<Duration> {
        self.away_since
    }

    /// How it stands.
    pub(super) const fn standing(&self) -> Standing {
        match self.state {
            State::Closed => Standing::Closed,
            State::Open { until, .. } => Standing::Open { until },
            State::HalfOpen { .. } => Standing::HalfOpen,
        }
    }

    fn counted(&mut self, now: Duration, health: Health) -> Option<Change> {
        match health {
            Health::Fine => self.failures = 0,
            Health::Failed => self.failures += 1,
            Health::Unknown => return None,
        }
        let out = self.failures >= self.settings.failures;
        out.then(|| self.open(now, self.settings.cool_down))
    }

    fn probed(&mut self, now: Duration, cool_down: Duration, health: Health) -> Option<Change> {
        match health {
            Health::Fine => {
                (self.state, self.failures, self.away_since) = (State::Closed, 0, None);
                Some(Change::Closed)
            }
            Health::Failed => {
                let longer = cool_down.saturating_mul(2).min(self.settings.cool_down_cap);
                Some(self.open(now, longer))
            }
            Health::Unknown => {
                let probe = Probe::Free;
                self.state = State::HalfOpen { cool_down, probe };
                None
            }
        }
    }

    fn open(&mut self, now: Duration, cool_down: Duration) -> Change {
        let until = now + cool_down;
        self.away_since.get_or_insert(now);
        self.state = State::Open { until, cool_down };
        Change::Opened(cool_down)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: BreakerSettings = BreakerSettings {
        failures: 3,
        cool_down: Duration::from_secs(4),
        cool_down_cap: Duration::from_secs(10),
    };

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Ends of calls, a second apart.
    fn after(ends: &[Health]) -> Breaker {
        let mut breaker = Breaker::new(SETTINGS);
        for (second, health) in (0..).zip(ends) {
            let pass = breaker.enter();
            breaker.ended(at(second), pass, *health);
        }
        breaker
    }

    #[test]
    fn enough_failures_in_a_row_open_it() {
        use Health::{Failed, Fine, Unknown};
        for (name, ends, standing) in [
            ("nothing happened", vec![], Standing::Closed),
            ("too few", vec![Failed, Failed], Standing::Closed),
            (
                "enough",
                vec![Failed, Failed, Failed],
                Standing::Open { until: at(6) },
            ),
            (
                "an answer in between",
                vec![Failed, Failed, Fine, Failed, Failed],
                Standing::Closed,
            ),
            (
                "what says nothing in between",
                vec![Failed, Unknown, Failed, Unknown, Failed],
                Standing::Open { until: at(8) },
            ),
            (
                "all went well before",
                vec![Fine, Fine, Fine, Fine, Failed, Failed, Failed],
                Standing::Open { until: at(10) },
            ),
        ] {
            assert_eq!(after(&ends).standing(), standing, "{name}");
        }
    }

    #[test]
    fn one_probe_decides_and_frees_its_place_however_it_ends() {
        let mut breaker = after(&[Health::Failed; 3]);
        assert_eq!(breaker.check(at(3)), Err(at(3)));
        assert_eq!(breaker.check(at(6)), Ok(()));
        assert_eq!(breaker.enter(), Pass::Probe);
        assert_eq!(breaker.check(at(7)), Err(at(4)), "one at a time");
        assert_eq!(
            breaker.ended(at(7), Pass::Free, Health::Fine),
            None,
            "a straggler"
        );
        assert_eq!(breaker.check(at(7)), Err(at(4)));
        assert_eq!(breaker.ended(at(8), Pass::Probe, Health::Unknown), None);
        assert_eq!(breaker.check(at(8)), Ok(()), "it was taken back");
        for (opened, cool_down) in [(8, 8), (16, 10), (26, 10)] {
            assert_eq!(breaker.check(at(opened)), Ok(()));
            assert_eq!(breaker.enter(), Pass::Probe);
            let change = breaker.ended(at(opened), Pass::Probe, Health::Failed);
            assert_eq!(change, Some(Change::Opened(at(cool_down))));
            assert_eq!(breaker.check(at(opened)), Err(at(cool_down)));
        }
        assert_eq!(breaker.enter(), Pass::Probe);
        let change = breaker.ended(at(40), Pass::Probe, Health::Fine);
        assert_eq!(change, Some(Change::Closed));
        assert_eq!(
            (breaker.enter(), breaker.check(at(40))),
            (Pass::Free, Ok(()))
        );
        // What had failed before is forgotten.
        assert_eq!(breaker.ended(at(40), Pass::Free, Health::Failed), None);
    }
}
