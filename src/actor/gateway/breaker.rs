//! Circuit breaker: a server that keeps failing gets no calls for a cool-down, and then a probe.
//! Pure.
//!
//! Consecutive failures open a closed circuit. After the cool-down it is half open: one call, the
//! probe, is let through and decides. **Invariant:** there is at most one probe, and its end, of
//! whatever kind, frees its place.

use std::time::Duration;

use super::{BreakerSettings, CircuitState, call_task::CallEnd};
use crate::model::{FaultCode as Code, Timestamp};

#[derive(Debug)]
pub(super) struct Breaker {
    settings: BreakerSettings,
    failures: u32,
    away_since: Option<Duration>,
    state: BreakerState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BreakerState {
    Closed,
    Open {
        until: Duration,
        cool_down: Duration,
    },
    HalfOpen {
        cool_down: Duration,
        probing: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BreakerPermit {
    Free,
    /// A call whose end decides about the circuit.
    Probe,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Health {
    Fine,
    Failed,
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// The circuit opened for this long.
    Opened(Duration),
    Closed,
}

impl Breaker {
    pub(super) const fn new(settings: BreakerSettings) -> Self {
        Self {
            settings,
            failures: 0,
            away_since: None,
            state: BreakerState::Closed,
        }
    }

    pub(super) fn check(&self, now: Duration) -> Result<(), Duration> {
        match self.state {
            BreakerState::Open { until, .. } if now < until => Err(until - now),
            BreakerState::HalfOpen {
                cool_down,
                probing: true,
            } => Err(cool_down.min(self.settings.cool_down)),
            BreakerState::Closed | BreakerState::Open { .. } | BreakerState::HalfOpen { .. } => {
                Ok(())
            }
        }
    }

    pub(super) fn enter(&mut self) -> BreakerPermit {
        match self.state {
            BreakerState::Closed => BreakerPermit::Free,
            BreakerState::Open { cool_down, .. } | BreakerState::HalfOpen { cool_down, .. } => {
                self.state = BreakerState::HalfOpen {
                    cool_down,
                    probing: true,
                };
                BreakerPermit::Probe
            }
        }
    }

    /// Takes in the end of a call. A call from before the circuit opened no longer changes
    /// anything.
    pub(super) fn ended(
        &mut self,
        now: Duration,
        pass: BreakerPermit,
        health: Health,
    ) -> Option<Change> {
        match (self.state, pass) {
            (BreakerState::Closed, _) => self.counted(now, health),
            (BreakerState::HalfOpen { cool_down, .. }, BreakerPermit::Probe) => {
                self.probed(now, cool_down, health)
            }
            (BreakerState::Open { .. }, _)
            | (BreakerState::HalfOpen { .. }, BreakerPermit::Free) => None,
        }
    }

    pub(super) const fn away_since(&self) -> Option<Duration> {
        self.away_since
    }

    pub(super) fn state(&self, at: impl Fn(Duration) -> Timestamp) -> CircuitState {
        match self.state {
            BreakerState::Closed => CircuitState::Closed,
            BreakerState::Open { until, .. } => CircuitState::Open { until: at(until) },
            BreakerState::HalfOpen { .. } => CircuitState::HalfOpen,
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
                (self.state, self.failures, self.away_since) = (BreakerState::Closed, 0, None);
                Some(Change::Closed)
            }
            Health::Failed => {
                let longer = cool_down.saturating_mul(2).min(self.settings.cool_down_cap);
                Some(self.open(now, longer))
            }
            Health::Unknown => {
                let probing = false;
                self.state = BreakerState::HalfOpen { cool_down, probing };
                None
            }
        }
    }

    fn open(&mut self, now: Duration, cool_down: Duration) -> Change {
        let until = now + cool_down;
        self.away_since.get_or_insert(now);
        self.state = BreakerState::Open { until, cool_down };
        Change::Opened(cool_down)
    }
}

/// Judges the provider as a whole and the model by the end of a call. For the provider, only
/// connection faults are outages. Client errors (4xx), rate limits (429), broken streams and our own
/// deadlines are not.
pub(super) fn judge(end: &CallEnd) -> (Health, Health) {
    use Health::{Failed, Fine, Unknown};
    let fault = match end {
        CallEnd::Answered(_) => return (Fine, Fine),
        CallEnd::GaveUp | CallEnd::Lost => return (Unknown, Unknown),
        CallEnd::Failed(fault) => fault,
    };
    match fault.code {
        Code::Connect | Code::Dns | Code::Tls | Code::HungUp => (Failed, Unknown),
        Code::ServerError | Code::Overloaded => (Fine, Failed),
        Code::Stall | Code::HeadersTimeout => (Unknown, Failed),
        // The server answered.
        Code::BadRequest
        | Code::Unauthorized
        | Code::Forbidden
        | Code::ModelNotFound
        | Code::RequestTimeout
        | Code::Conflict
        | Code::TooLarge
        | Code::RateLimited
        | Code::Context
        | Code::Quota
        | Code::ThinkingRefused
        | Code::WrongRoute
        | Code::ToolsUnsupported => (Fine, Unknown),
        _ => (Unknown, Unknown),
    }
}

pub(super) fn cost_nothing(end: &CallEnd) -> bool {
    let CallEnd::Failed(fault) = end else {
        return false;
    };
    matches!(
        fault.code,
        Code::Connect
            | Code::Dns
            | Code::Tls
            | Code::RateLimited
            | Code::Overloaded
            | Code::Unauthorized
            | Code::Quota
            // The call was never sent.
            | Code::Journal
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Fault, Usage};

    const SETTINGS: BreakerSettings = BreakerSettings {
        failures: 3,
        cool_down: Duration::from_secs(4),
        cool_down_cap: Duration::from_secs(10),
    };

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn wall(time: Duration) -> Timestamp {
        Timestamp::default().plus(time)
    }

    fn open(until: u64) -> CircuitState {
        let until = wall(at(until));
        CircuitState::Open { until }
    }

    fn after(ends: &[Health]) -> Breaker {
        let mut breaker = Breaker::new(SETTINGS);
        for (second, health) in (0..).zip(ends) {
            let pass = breaker.enter();
            breaker.ended(at(second), pass, *health);
        }
        breaker
    }

    #[test]
    fn consecutive_failures_open_the_breaker() {
        use Health::{Failed, Fine, Unknown};
        for (name, ends, standing) in [
            ("nothing happened", vec![], CircuitState::Closed),
            ("too few", vec![Failed, Failed], CircuitState::Closed),
            ("enough", vec![Failed, Failed, Failed], open(6)),
            (
                "an answer in between",
                vec![Failed, Failed, Fine, Failed, Failed],
                CircuitState::Closed,
            ),
            (
                "what says nothing in between",
                vec![Failed, Unknown, Failed, Unknown, Failed],
                open(8),
            ),
            (
                "all went well before",
                vec![Fine, Fine, Fine, Fine, Failed, Failed, Failed],
                open(10),
            ),
        ] {
            assert_eq!(after(&ends).state(wall), standing, "{name}");
        }
    }

    #[test]
    fn half_open_breaker_admits_one_probe_at_a_time() {
        let mut breaker = after(&[Health::Failed; 3]);
        assert_eq!(breaker.check(at(3)), Err(at(3)));
        assert_eq!(breaker.check(at(6)), Ok(()));
        assert_eq!(breaker.enter(), BreakerPermit::Probe);
        assert_eq!(breaker.check(at(7)), Err(at(4)), "one at a time");
        assert_eq!(
            breaker.ended(at(7), BreakerPermit::Free, Health::Fine),
            None,
            "a straggler"
        );
        assert_eq!(breaker.check(at(7)), Err(at(4)));
        assert_eq!(
            breaker.ended(at(8), BreakerPermit::Probe, Health::Unknown),
            None
        );
        assert_eq!(breaker.check(at(8)), Ok(()), "it was taken back");
        for (opened, cool_down) in [(8, 8), (16, 10), (26, 10)] {
            assert_eq!(breaker.check(at(opened)), Ok(()));
            assert_eq!(breaker.enter(), BreakerPermit::Probe);
            let change = breaker.ended(at(opened), BreakerPermit::Probe, Health::Failed);
            assert_eq!(change, Some(Change::Opened(at(cool_down))));
            assert_eq!(breaker.check(at(opened)), Err(at(cool_down)));
        }
        assert_eq!(breaker.enter(), BreakerPermit::Probe);
        let change = breaker.ended(at(40), BreakerPermit::Probe, Health::Fine);
        assert_eq!(change, Some(Change::Closed));
        assert_eq!(
            (breaker.enter(), breaker.check(at(40))),
            (BreakerPermit::Free, Ok(()))
        );
        // Failures from before the outage no longer count.
        assert_eq!(
            breaker.ended(at(40), BreakerPermit::Free, Health::Failed),
            None
        );
    }

    #[test]
    fn failures_are_attributed_to_provider_or_model() {
        use Health::{Failed, Fine, Unknown};
        let failed = |code: &str| CallEnd::Failed(Fault::retryable(code, "it did not work"));
        for (end, provider, model) in [
            (CallEnd::Answered(Usage::default()), Fine, Fine),
            (CallEnd::GaveUp, Unknown, Unknown),
            (CallEnd::Lost, Unknown, Unknown),
            (failed("connect"), Failed, Unknown),
            (failed("dns"), Failed, Unknown),
            (failed("hung_up"), Failed, Unknown),
            (failed("tls"), Failed, Unknown),
            (failed("server_error"), Fine, Failed),
            (failed("overloaded"), Fine, Failed),
            (failed("stall"), Unknown, Failed),
            (failed("headers_timeout"), Unknown, Failed),
            (failed("bad_request"), Fine, Unknown),
            (failed("unauthorized"), Fine, Unknown),
            (failed("rate_limited"), Fine, Unknown),
            (failed("cut"), Unknown, Unknown),
            (failed("bad_stream"), Unknown, Unknown),
        ] {
            assert_eq!(judge(&end), (provider, model), "{end:?}");
        }
    }
}
