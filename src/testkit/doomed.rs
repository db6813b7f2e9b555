//! A journal that crashes at a chosen append: before it lands, or after it and before its reply.
//!
//! Nothing becomes durable between two appends, so no other points matter.

use std::{
    fmt, process,
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use futures_util::{FutureExt, future::BoxFuture};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::{
    Panics,
    around::{Around, Call, Operation},
};
use crate::{
    journal::{Error, Journal},
    model::{Record, Sid},
};

/// When to crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Before the append lands.
    Before,
    /// After it landed, before the reply.
    After,
}

/// A crash point, written as `after:turn.replied:3` (the third append with such a record), or with
/// `*` for any type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doom {
    /// When to crash.
    pub side: Side,
    /// Type of a record in the append; `None` for any append.
    pub kind: Option<String>,
    /// Number of the append over all sessions, from 1.
    pub number: u64,
}

impl Doom {
    /// Creates the point at the append with this number.
    #[must_use]
    pub const fn at(side: Side, number: u64) -> Self {
        let kind = None;
        Self { side, kind, number }
    }

    fn meets(&self, call: &Call) -> bool {
        let has = |kind: &String| {
            let mut records = call.records.iter();
            records.any(|record| record.fact.kind() == kind)
        };
        self.kind.as_ref().is_none_or(has)
    }
}

/// The error for an invalid crash point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a point is written as `before:KIND:NUMBER` or `after:KIND:NUMBER`, with `*` for any kind, or as \
     `during:stream:NUMBER` or `during:tool:NUMBER`"
)]
pub struct NoDoom;

impl FromStr for Doom {
    type Err = NoDoom;

    fn from_str(text: &str) -> Result<Self, NoDoom> {
        let mut parts = text.split(':');
        let (Some(side), Some(kind), Some(number), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(NoDoom);
        };
        let side = match side {
            "before" => Side::Before,
            "after" => Side::After,
            _ => return Err(NoDoom),
        };
        let number = number.parse().map_err(|_| NoDoom)?;
        let kind = (kind != "*").then(|| kind.to_owned());
        Ok(Self { side, kind, number })
    }
}

impl fmt::Display for Doom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = match self.side {
            Side::Before => "before",
            Side::After => "after",
        };
        let kind = self.kind.as_deref().unwrap_or("*");
        write!(f, "{side}:{kind}:{}", self.number)
    }
}

/// What crashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Death {
    /// The system: all writes hang, and the test aborts it after [`Doomed::met`].
    System,
    /// The appending actor, once.
    Actor,
    /// The process.
    Process,
}

/// Session and record types of an append.
pub type Landed = (Sid, Vec<&'static str>);

/// A journal with a crash point. Clones share the counts.
#[derive(Clone)]
pub struct Doomed {
    inner: Arc<dyn Journal>,
    /// With `None`, the journal only counts.
    doom: Option<Doom>,
    death: Death,
    counted: Arc<AtomicU64>,
    met: Arc<watch::Sender<bool>>,
    landed: Arc<Mutex<Vec<Landed>>>,
}

impl Doomed {
    /// Wraps a journal.
    pub fn new(inner: Arc<dyn Journal>, doom: Option<Doom>, death: Death) -> Self {
        Self {
            inner,
            doom,
            death,
            counted: Arc::default(),
            met: Arc::new(watch::Sender::new(false)),
            landed: Arc::default(),
        }
    }

    /// Whether the crash point was reached.
    #[must_use]
    pub fn is_met(&self) -> bool {
        *self.met.borrow()
    }

    /// Waits for the crash point.
    pub async fn met(&self) {
        // Cannot close, because `self` holds the sender.
        let _ = self.met.subscribe().wait_for(|met| *met).await;
    }

    /// Appends that landed.
    #[must_use]
    pub fn landed(&self) -> Vec<Landed> {
        self.landed.lock().clone()
    }

    fn is_doomed(&self, call: &Call) -> Option<Side> {
        let doom = self.doom.as_ref().filter(|doom| doom.meets(call))?;
        let number = self.counted.fetch_add(1, Ordering::Relaxed) + 1;
        (number == doom.number).then_some(doom.side)
    }

    async fn die(&self) {
        self.met.send_replace(true);
        match self.death {
            Death::System => std::future::pending().await,
            Death::Actor => Panics::times(1).maybe(),
            Death::Process => process::abort(),
        }
    }
}

impl Around for Doomed {
    fn inner(&self) -> &dyn Journal {
        &*self.inner
    }

    fn around<'a, T: Send + 'a>(
        &'a self,
        call: Call,
        done: impl FnOnce() -> BoxFuture<'a, Result<T, Error>> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, Error>> {
        async move {
            let is_write = matches!(call.operation, Operation::Claim | Operation::Append);
            if is_write && self.death == Death::System && self.is_met() {
                std::future::pending::<()>().await;
            }
            if call.operation != Operation::Append {
                return done().await;
            }
            let doomed = self.is_doomed(&call);
            if doomed == Some(Side::Before) {
                self.die().await;
            }
            let answer = done().await?;
            if doomed == Some(Side::After) {
                self.die().await;
            }
            Ok(answer)
        }
        .boxed()
    }

    fn has_landed(&self, sid: Sid, records: &[Arc<Record>]) {
        let kinds = records.iter().map(|record| record.fact.kind());
        self.landed.lock().push((sid, kinds.collect()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crash_point_round_trips() {
        let turn = Doom {
            kind: Some("turn.replied".into()),
            ..Doom::at(Side::After, 3)
        };
        for (text, doom) in [
            ("after:turn.replied:3", turn),
            ("before:*:12", Doom::at(Side::Before, 12)),
        ] {
            assert_eq!(text.parse(), Ok(doom.clone()));
            assert_eq!(doom.to_string(), text);
        }
        for text in [
            "",
            "after:turn.replied",
            "during:*:1",
            "after:*:x",
            "after:*:1:2",
        ] {
            assert_eq!(text.parse::<Doom>(), Err(NoDoom), "{text}");
        }
    }
}
