//! Circuit breaker: a server that fails for many queries gets no further calls of these for a
//! cool-down, and then a probe. Pure.
//!
//! One query is one voice: its failures count once, however often it tries. The circuit opens when
//! enough queries, and at least half of those that were heard last, have failed. While it is open, a
//! query that has not failed may call at once, a few at a time; a failed one only as the probe that
//! follows the cool-down. **Invariants:** the end of a probe, of whatever kind, frees its place; any
//! success closes the circuit.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use super::CircuitState;
use crate::{
    actor::{protocol::CallEnd, settings::BreakerSettings},
    model::{FaultCode as Code, QueryId, Sid, Timestamp},
};

/// Time after which an end is forgotten, and a query that still fails counts again.
const WINDOW: Duration = Duration::from_secs(30);
/// Time for which a failed query is known. Longer than a call and the pause before the next.
const MEMORY: Duration = Duration::from_secs(1_200);
/// Most calls at an open circuit before the cool-down is over.
const EARLY: usize = 8;

/// A query.
pub(super) type Voice = (Sid, QueryId);

#[derive(Debug, Default)]
pub(super) struct Breaker {
    settings: BreakerSettings,
    /// The queries heard last: when, and whether they failed.
    recent: VecDeque<(Duration, Voice, bool)>,
    /// Queries whose last call failed, with the time at which that was counted.
    failing: HashMap<Voice, Duration>,
    swept: Duration,
    /// Present while the circuit is open.
    outage: Option<Outage>,
}

#[derive(Debug)]
struct Outage {
    since: Duration,
    /// When the next probe is due.
    until: Duration,
    cool_down: Duration,
    /// Calls in flight that began at the open circuit.
    probes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BreakerPermit {
    Free,
    /// A call that did not wait for the cool-down.
    Early,
    /// A call whose failure makes the cool-down longer.
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
    pub(super) fn new(settings: BreakerSettings) -> Self {
        Self {
            settings,
            ..Self::default()
        }
    }

    /// Whether a call may start, or else how long it has to wait. A call without a voice has no
    /// need to be early, because it can go elsewhere.
    pub(super) fn check(&self, now: Duration, voice: Option<Voice>) -> Result<(), Duration> {
        let Some(outage) = &self.outage else {
            return Ok(());
        };
        let is_fresh = voice.is_some_and(|voice| !self.failing.contains_key(&voice));
        match now >= outage.until {
            true if is_fresh || outage.probes == 0 => Ok(()),
            true => Err(outage.cool_down.min(self.settings.cool_down)),
            false if is_fresh && outage.probes < EARLY => Ok(()),
            false => Err(outage.until - now),
        }
    }

    /// Whether the query has to let others go first.
    pub(super) fn defers(&self, voice: Voice) -> bool {
        self.outage.is_some() && self.failing.contains_key(&voice)
    }

    pub(super) fn enter(&mut self, now: Duration) -> BreakerPermit {
        let Some(outage) = &mut self.outage else {
            return BreakerPermit::Free;
        };
        outage.probes += 1;
        if now < outage.until {
            return BreakerPermit::Early;
        }
        outage.until = now + outage.cool_down;
        BreakerPermit::Probe
    }

    /// Takes in the end of a call.
    pub(super) fn ended(
        &mut self,
        now: Duration,
        pass: BreakerPermit,
        voice: Voice,
        health: Health,
    ) -> Option<Change> {
        if let Some(outage) = &mut self.outage
            && pass != BreakerPermit::Free
        {
            outage.probes = outage.probes.saturating_sub(1);
            if (pass, health) == (BreakerPermit::Probe, Health::Unknown) {
                outage.until = now;
            }
        }
        match health {
            Health::Fine => {
                self.failing.remove(&voice);
                self.hear(now, voice, false);
                self.outage.take()?;
                self.recent.clear();
                Some(Change::Closed)
            }
            Health::Failed => self.failed(now, pass, voice),
            Health::Unknown => None,
        }
    }

    pub(super) fn away_since(&self) -> Option<Duration> {
        self.outage.as_ref().map(|outage| outage.since)
    }

    pub(super) fn state(&self, at: impl Fn(Duration) -> Timestamp) -> CircuitState {
        match &self.outage {
            None => CircuitState::Closed,
            Some(outage) if outage.probes > 0 => CircuitState::HalfOpen,
            Some(outage) => CircuitState::Open {
                until: at(outage.until),
            },
        }
    }

    fn failed(&mut self, now: Duration, pass: BreakerPermit, voice: Voice) -> Option<Change> {
        if now - self.swept >= MEMORY {
            self.swept = now;
            self.failing.retain(|_, at| now - *at < MEMORY);
        }
        let counted = self.failing.get(&voice);
        let is_news = counted.is_none_or(|at| now - *at >= WINDOW);
        if is_news {
            self.failing.insert(voice, now);
            self.hear(now, voice, true);
        }
        let failed = self.recent.iter().filter(|(_, _, failed)| *failed).count();
        let most_fail = failed >= self.settings.failures && failed * 2 >= self.recent.len();
        let (since, cool_down, probes) = match &self.outage {
            Some(outage) if pass == BreakerPermit::Probe => {
                let longer = outage.cool_down.saturating_mul(2);
                let longer = longer.min(self.settings.cool_down_cap);
                (outage.since, longer, outage.probes)
            }
            None if is_news && most_fail => (now, self.settings.cool_down, 0),
            _ => return None,
        };
        self.outage = Some(Outage {
            since,
            until: now + cool_down,
            cool_down,
            probes,
        });
        Some(Change::Opened(cool_down))
    }

    fn hear(&mut self, now: Duration, voice: Voice, failed: bool) {
        let recent = &mut self.recent;
        recent.retain(|(at, other, _)| *other != voice && now - *at < WINDOW);
        recent.push_back((now, voice, failed));
        if recent.len() > self.settings.failures * 4 {
            recent.pop_front();
        }
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

    const fn voice(number: u64) -> Voice {
        (Sid(number), QueryId(1))
    }

    /// After the ends of these queries' calls, one a second.
    fn after(ends: &[(u64, Health)]) -> Breaker {
        let mut breaker = Breaker::new(SETTINGS);
        for (second, (number, health)) in (0..).zip(ends) {
            let pass = breaker.enter(at(second));
            breaker.ended(at(second), pass, voice(*number), *health);
        }
        breaker
    }

    fn opened() -> Breaker {
        after(&[1, 2, 3].map(|number| (number, Health::Failed)))
    }

    #[test]
    fn circuit_opens_by_the_share_of_queries_that_fail() {
        use Health::{Failed, Fine, Unknown};
        let fine = |number| (number, Fine);
        let failed = |number| (number, Failed);
        for (name, ends, standing) in [
            ("nothing happened", vec![], CircuitState::Closed),
            ("too few", [1, 2].map(failed).to_vec(), CircuitState::Closed),
            ("enough", [1, 2, 3].map(failed).to_vec(), open(6)),
            (
                "one query, many times",
                [1; 50].map(failed).to_vec(),
                CircuitState::Closed,
            ),
            (
                "two queries, many times",
                [1, 2].repeat(30).into_iter().map(failed).collect(),
                CircuitState::Closed,
            ),
            (
                "fewer than half",
                [4, 5, 6, 7, 8]
                    .map(fine)
                    .into_iter()
                    .chain([1, 2, 3].map(failed))
                    .collect(),
                CircuitState::Closed,
            ),
            (
                "all since many successes",
                (10..100).map(fine).chain((1..7).map(failed)).collect(),
                open(99),
            ),
            (
                "what says nothing in between",
                vec![failed(1), (4, Unknown), failed(2), (5, Unknown), failed(3)],
                open(8),
            ),
            (
                "failures of another time",
                [failed(1), failed(2)]
                    .into_iter()
                    .chain([(4, Unknown); 30])
                    .chain([failed(3)])
                    .collect(),
                CircuitState::Closed,
            ),
        ] {
            assert_eq!(after(&ends).state(wall), standing, "{name}");
        }
    }

    #[test]
    fn failed_queries_probe_one_at_a_time_after_the_cool_down() {
        let mut breaker = opened();
        let one = Some(voice(1));
        let mut now = at(2);
        for cool_down in [4, 8, 10, 10] {
            assert_eq!(breaker.check(now, one), Err(at(cool_down)));
            now += at(cool_down);
            assert_eq!(breaker.check(now, one), Ok(()));
            assert_eq!(breaker.enter(now), BreakerPermit::Probe);
            assert!(breaker.check(now, one).is_err(), "one at a time");
            breaker.ended(now, BreakerPermit::Probe, voice(2), Health::Unknown);
            assert_eq!(breaker.check(now, one), Ok(()), "it was taken back");
            assert_eq!(breaker.enter(now), BreakerPermit::Probe);
            let change = breaker.ended(now, BreakerPermit::Probe, voice(2), Health::Failed);
            let longer = (cool_down * 2).min(10);
            assert_eq!(change, Some(Change::Opened(at(longer))));
        }
    }

    #[test]
    fn query_that_has_not_failed_does_not_wait_for_the_cool_down() {
        let mut breaker = opened();
        let (fresh, failed) = (Some(voice(9)), Some(voice(1)));
        for _ in 0..EARLY {
            assert_eq!(breaker.check(at(3), fresh), Ok(()));
            assert_eq!(breaker.check(at(3), failed), Err(at(3)));
            assert_eq!(
                breaker.check(at(3), None),
                Err(at(3)),
                "it can go elsewhere"
            );
            assert_eq!(breaker.enter(at(3)), BreakerPermit::Early);
        }
        assert_eq!(breaker.check(at(3), fresh), Err(at(3)), "enough at a time");
        // However long the others take, one more goes when a probe is due.
        assert_eq!(breaker.check(at(6), fresh), Ok(()));
        assert!(breaker.check(at(6), failed).is_err());
        assert_eq!(breaker.enter(at(6)), BreakerPermit::Probe);
        assert_eq!(breaker.check(at(6), fresh), Err(at(4)));
        let failed = breaker.ended(at(7), BreakerPermit::Early, voice(9), Health::Failed);
        assert_eq!(failed, None, "the cool-down remains");
        breaker.ended(at(7), BreakerPermit::Early, voice(8), Health::Unknown);
        assert_eq!(
            breaker.check(at(7), Some(voice(10))),
            Ok(()),
            "its place is free"
        );
        assert_eq!(breaker.check(at(7), fresh), Err(at(3)), "it has failed now");
    }

    #[test]
    fn success_in_flight_closes_the_circuit() {
        for pass in [
            BreakerPermit::Free,
            BreakerPermit::Early,
            BreakerPermit::Probe,
        ] {
            let mut breaker = opened();
            let change = breaker.ended(at(3), pass, voice(9), Health::Fine);
            assert_eq!(change, Some(Change::Closed));
            assert_eq!(breaker.check(at(3), Some(voice(1))), Ok(()));
            // What failed before says nothing new, until it has succeeded or some time has passed.
            for second in 4..30 {
                let number = voice(second % 3 + 1);
                let change = breaker.ended(at(second), BreakerPermit::Free, number, Health::Failed);
                assert_eq!(change, None);
            }
            let changes = [31, 32, 33].map(|second| {
                let number = voice(second % 3 + 1);
                breaker.ended(at(second), BreakerPermit::Free, number, Health::Failed)
            });
            assert_eq!(changes, [None, None, Some(Change::Opened(at(4)))]);
        }
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
