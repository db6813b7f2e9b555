//! Providers with rate limits and outages, behind a gateway.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::{FutureExt, StreamExt, stream};
use oracle_agent::{
    llm::{Allowance, Backend, Delta, DeltaStream, RateLimits, Request},
    model::{Fault, FaultClass, Part, Reply, Role, StopReason, Usage},
    testkit::advance_time,
};
use tokio::time::Instant;

use super::{done, more};

mod circuits;
mod deadlines;
mod holds;
mod load;
mod waits;

const MINUTE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tells {
    Nothing,
    Limits,
}

/// A provider that counts the calls and tokens of the last minute and refuses the excess with 429.
/// Each conversation takes `turns` turns. Clones share their state.
#[derive(Clone)]
struct Metered {
    requests: u64,
    tokens: u64,
    tells: Tells,
    turns: usize,
    /// Delay before the headers, and again before the end.
    takes: Duration,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    taken: VecDeque<(Instant, u64)>,
    answered: Vec<(String, Instant)>,
    refused: Vec<(String, Instant)>,
}

const EACH: u64 = 1_000;

impl Metered {
    fn new(requests: u64) -> Self {
        Self {
            requests,
            tokens: u64::MAX,
            tells: Tells::Nothing,
            turns: 1,
            takes: Duration::from_millis(500),
            seen: Arc::default(),
        }
    }

    fn refused(&self) -> usize {
        self.seen.lock().unwrap().refused.len()
    }

    fn refused_within(&self, time: Duration) -> usize {
        let refused = &self.seen.lock().unwrap().refused;
        let Some((_, first)) = refused.first() else {
            return 0;
        };
        let soon = refused.iter().filter(|(_, at)| *at < *first + time);
        soon.count()
    }

    fn answered(&self) -> Vec<(String, Instant)> {
        self.seen.lock().unwrap().answered.clone()
    }

    /// Returns the calls of sessions that were never refused; a refused one has to wait.
    fn answered_at_once(&self) -> Vec<(String, Instant)> {
        let mut answered = self.answered();
        let refused = &self.seen.lock().unwrap().refused;
        let was_refused = |who: &str| refused.iter().any(|(refused, _)| refused == who);
        answered.retain(|(who, _)| !was_refused(who));
        answered
    }

    fn count(&self, who: &str) -> (Result<(), Fault>, RateLimits) {
        let now = Instant::now();
        let mut seen = self.seen.lock().unwrap();
        while seen
            .taken
            .front()
            .is_some_and(|(at, _)| now - *at >= MINUTE)
        {
            seen.taken.pop_front();
        }
        let calls = seen.taken.len() as u64;
        let tokens: u64 = seen.taken.iter().map(|(_, tokens)| tokens).sum();
        let fits = calls < self.requests && tokens.saturating_add(EACH) <= self.tokens;
        let oldest = seen
            .taken
            .front()
            .map_or(MINUTE, |(at, _)| MINUTE - (now - *at));
        if fits {
            seen.taken.push_back((now, EACH));
            seen.answered.push((who.to_owned(), now));
        } else {
            seen.refused.push((who.to_owned(), now));
        }
        let left = |limit: u64, used: u64| Allowance {
            limit: (limit < u64::MAX).then_some(limit),
            remaining: Some(limit.saturating_sub(used)),
            reset: Some(MINUTE),
        };
        let taken = u64::from(fits);
        let limits = RateLimits {
            requests: left(self.requests, calls + taken),
            tokens: left(self.tokens, tokens + taken * EACH),
        };
        let after_ms = u64::try_from(oldest.as_millis()).ok();
        let refusal = Fault {
            class: FaultClass::Unavailable { after_ms },
            code: "rate_limited".into(),
            detail: "too many".into(),
        };
        (if fits { Ok(()) } else { Err(refusal) }, limits)
    }
}

fn question(request: &Request) -> String {
    let parts = request.messages.iter().flat_map(|message| &message.parts);
    let text = parts.filter_map(|part| match part {
        Part::Text { text } => Some(text.to_string()),
        _ => None,
    });
    text.into_iter().next().unwrap_or_default()
}

fn reply(text: &str) -> Delta {
    Delta::Done(Reply {
        parts: vec![Part::text(text)],
        model: "test".to_owned(),
        stop: StopReason::EndTurn,
        usage: Usage {
            input_tokens: EACH / 2,
            output_tokens: EACH / 2,
            ..Usage::default()
        },
    })
}

impl Backend for Metered {
    fn provider(&self) -> &'static str {
        "metered"
    }

    fn call(&self, request: Request) -> DeltaStream {
        let provider = self.clone();
        let call = async move {
            let who = question(&request);
            let (counted, limits) = provider.count(&who);
            advance_time(provider.takes).await;
            let mut pieces = Vec::new();
            if provider.tells == Tells::Limits {
                pieces.push(Ok(Delta::Limits(limits)));
            }
            let said = request.messages.iter();
            let turn = said
                .filter(|message| message.role == Role::Assistant)
                .count()
                + 1;
            pieces.push(counted.map(|()| {
                reply(&if turn < provider.turns {
                    more("Looking.", &format!("step {turn} of many is done"))
                } else {
                    done("Fine.")
                })
            }));
            advance_time(provider.takes).await;
            stream::iter(pieces)
        };
        call.flatten_stream().boxed()
    }
}

/// Checks that service is even within a factor of two: at no time has one session been served more
/// than twice as often as another, or a second time before all have been served once.
fn is_even(served: &[(String, Instant)], turns: usize) -> Result<(), String> {
    let all: HashSet<&str> = served.iter().map(|(who, _)| who.as_str()).collect();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for (index, (who, _)) in served.iter().enumerate() {
        *counts.entry(who).or_default() += 1;
        let most = counts.values().copied().max().unwrap_or(0);
        let least = if counts.len() < all.len() {
            0
        } else {
            counts.values().copied().min().unwrap_or(0)
        };
        if most > (2 * least).max(1) {
            return Err(format!("{most} and {least} after {index} calls"));
        }
    }
    match counts.values().all(|count| *count == turns) {
        true => Ok(()),
        false => Err("not everybody was served to the end".to_owned()),
    }
}
