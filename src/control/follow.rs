//! Subscriptions to records.
//!
//! A subscription to one session has no gaps: it reads from the journal what the bus dropped. A
//! subscription to all sessions delivers what its bounded queue can hold, and marks every gap.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures_util::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};

use super::{Code, Refused, Update, Watching};
use crate::{
    actor::{
        self, AskError, Filter, Frames, Notice, Oracle, Progress, SessionRecord, Subscription,
    },
    model::{Principal, Seq, SessionKey, Severity, TenantId, record::Fact},
};

const AGAIN: Duration = Duration::from_millis(100);
/// Bound of the queue at each bus, in events.
const WAITING: usize = 64;

/// A subscription to the records of one session or of all sessions: a stream that ends after
/// [`Update::End`].
pub type Follow = BoxStream<'static, Update>;

struct Following {
    oracle: Oracle,
    source: Source,
    tenant: Option<TenantId>,
    selector: Arc<EventSelector>,
}

/// Selects events as clients name them.
#[derive(Debug, Default, PartialEq)]
pub struct EventSelector {
    /// Prefixes of the types to include; empty for all.
    pub types: Vec<String>,
    /// Least severity to include.
    pub severity: Option<Severity>,
}

impl EventSelector {
    /// Refuses prefixes that no type has.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), Refused> {
        let kinds = || Fact::KINDS.iter().copied().flatten();
        let is_known = |prefix: &String| kinds().any(|kind| kind.starts_with(prefix));
        let Some(unknown) = self.types.iter().find(|prefix| !is_known(prefix)) else {
            return Ok(());
        };
        let families: BTreeSet<&str> = kinds().filter_map(|kind| kind.split('.').next()).collect();
        let families: Vec<&str> = families.into_iter().collect();
        let why = format!(
            "no event type starts with `{unknown}`: use `{}.`, or a longer beginning of a type",
            families.join(".`, `")
        );
        Err(Refused::new(Code::UnknownType, why))
    }

    #[doc(hidden)]
    pub fn selects(&self, fact: &Fact) -> bool {
        let of_type = |wanted: &String| fact.kind().starts_with(wanted);
        (self.types.is_empty() || self.types.iter().any(of_type))
            && self.severity.is_none_or(|least| fact.severity() >= least)
    }
}

enum Source {
    One(actor::EventStream),
    All(Subscription),
}

pub(super) async fn follow(
    oracle: Oracle,
    who: &Principal,
    wanted: Watching,
) -> Result<Follow, Refused> {
    let tenant = wanted.tenant;
    let selector = EventSelector {
        types: wanted.types,
        severity: wanted.severity,
    };
    selector.check()?;
    let selector = Arc::new(selector);
    let source = match (wanted.session, wanted.after) {
        (Some(session), after) => {
            let key = session.of(tenant.as_ref().unwrap_or(&who.tenant));
            one(&oracle, key, after).await?
        }
        (None, None) => Source::All(subscribe(&oracle, &selector)),
        (None, Some(_)) => {
            let why = "`after` is an event number of a single session: name the session too";
            return Err(Refused::new(Code::InvalidValue, why));
        }
    };
    let following = Following {
        oracle,
        source,
        tenant,
        selector,
    };
    let updates = stream::unfold(Some(following), |following| async {
        let mut following = following?;
        let update = following.next().await;
        let is_last = matches!(update, Update::End { .. });
        Some((update, (!is_last).then_some(following)))
    });
    Ok(updates.fuse().boxed())
}

impl Following {
    async fn next(&mut self) -> Update {
        loop {
            let seen = match &mut self.source {
                Source::One(follow) => match follow.try_next().await {
                    Ok(Some(Progress::Record(record))) => self.update(record),
                    Ok(Some(_)) => None,
                    Ok(None) | Err(AskError::Stopped) => Some(ended()),
                    Err(AskError::Deleted(name)) => Some(Update::End {
                        why: format!("session `{name}` was deleted"),
                    }),
                    Err(error) => Some(Update::End {
                        why: error.to_string(),
                    }),
                },
                Source::All(events) => match events.next().await {
                    Some(notice) => self.of_all(notice),
                    None => self.resubscribe().await,
                },
            };
            if let Some(update) = seen {
                return update;
            }
        }
    }

    fn update(&self, record: Arc<SessionRecord>) -> Option<Update> {
        let wanted = self.selector.selects(&record.fact);
        wanted.then_some(Update::Record(record))
    }

    fn is_of(&self, tenant: &TenantId) -> bool {
        self.tenant.as_ref().is_none_or(|wanted| wanted == tenant)
    }

    fn of_all(&self, notice: Notice) -> Option<Update> {
        match notice {
            Notice::Record(record) if self.is_of(&record.session.tenant) => self.update(record),
            Notice::Gap { session, from } if self.is_of(&session.tenant) => {
                Some(Update::Gap { session, from })
            }
            _ => None,
        }
    }

    /// Subscribes again after a bus was replaced, unless the system has ended.
    async fn resubscribe(&mut self) -> Option<Update> {
        tokio::time::sleep(AGAIN).await;
        if self.oracle.has_ended() {
            return Some(ended());
        }
        self.source = Source::All(subscribe(&self.oracle, &self.selector));
        Some(Update::Lost)
    }
}

fn subscribe(oracle: &Oracle, selector: &Arc<EventSelector>) -> Subscription {
    let selector = Arc::clone(selector);
    oracle.subscribe(Filter {
        capacity: Some(WAITING),
        ..Filter::facts(move |fact| selector.selects(fact))
    })
}

fn ended() -> Update {
    let why = "the server has shut down".to_owned();
    Update::End { why }
}

async fn one(oracle: &Oracle, key: SessionKey, after: Option<Seq>) -> Result<Source, Refused> {
    let session = oracle.session_by_key(key);
    let Some(last) = session.last().await? else {
        return Err(AskError::NoSession(session.key().clone()).into());
    };
    let follow = session.follow(after.unwrap_or(last), Frames::No).await?;
    check_after(after.unwrap_or(last), follow.end())?;
    Ok(Source::One(follow))
}

/// Refuses a number beyond a session's last event.
pub(super) fn check_after(after: Seq, end: Seq) -> Result<(), Refused> {
    if after <= end {
        return Ok(());
    }
    let why = format!("`after` is {after}: use at most {end}, the session's last event");
    Err(Refused::new(Code::InvalidValue, why))
}
