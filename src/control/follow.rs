//! Following what is recorded, as it is recorded.
//!
//! One session is followed without holes: what the bus had to drop is read from the journal. All sessions
//! are followed as far as whoever listens keeps up, and every hole is marked. Nothing piles up here: the
//! bus's queue is bounded, and a page of the journal is read when the one before it was taken.

use std::{sync::Arc, time::Duration};

use super::{Code, Refused, Seen, Watching};
use crate::{
    actor::{self, AskError, Filter, Frames, Notice, Oracle, Progress, Subscription},
    model::{Event, Principal, Seq, SessionKey, Severity, TenantId},
};

/// Pause before a bus that was replaced is listened to again.
const AGAIN: Duration = Duration::from_millis(100);
/// Events of all sessions that may wait at each of the buses for one who watches.
const WAITING: usize = 64;

/// What somebody gets to see who watches.
pub struct Follow {
    oracle: Oracle,
    source: Source,
    wanted: Wanted,
    over: bool,
}

/// Where it comes from.
enum Source {
    /// One session.
    One {
        tenant: TenantId,
        follow: Box<actor::Follow>,
    },
    /// All of them.
    All {
        filter: Filter,
        events: Subscription,
    },
}

struct Wanted {
    tenant: Option<TenantId>,
    types: Vec<String>,
    severity: Option<Severity>,
}

impl Wanted {
    fn wants(&self, event: &Event) -> bool {
        let named = |prefix: &String| event.kind.starts_with(prefix.as_str());
        self.severity.is_none_or(|least| event.severity >= least)
            && (self.types.is_empty() || self.types.iter().any(named))
    }

    fn event(&self, tenant: &TenantId, event: Arc<Event>) -> Option<Seen> {
        let (wanted, tenant) = (self.wants(&event), tenant.clone());
        wanted.then_some(Seen::Event { tenant, event })
    }

    /// Whether a tenant's sessions are wanted.
    fn is_of(&self, tenant: &TenantId) -> bool {
        self.tenant.as_ref().is_none_or(|wanted| wanted == tenant)
    }
}

impl Follow {
    pub(super) async fn begin(
        oracle: Oracle,
        who: &Principal,
        wanted: Watching,
    ) -> Result<Self, Refused> {
        let Watching {
            session,
            tenant,
            after,
            types,
            severity,
        } = wanted;
        let source = match (session, after) {
            (Some(session), after) => {
                let key = session.of(tenant.as_ref().unwrap_or(&who.tenant));
                one(&oracle, key, after).await?
            }
            (None, None) => {
                let filter = Filter {
                    kinds: types.clone(),
                    severity,
                    ..Filter::default()
                };
                let events = oracle.subscribe_briefly(filter.clone(), WAITING);
                Source::All { filter, events }
            }
            (None, Some(_)) => {
                let why = "`after` is a number in one session's log: name the session too";
                return Err(Refused::new(Code::InvalidValue, why));
            }
        };
        let wanted = Wanted {
            tenant,
            types,
            severity,
        };
        Ok(Self {
            oracle,
            source,
            wanted,
            over: false,
        })
    }

    /// What is seen next; none after [`Seen::End`]. A call that is dropped loses nothing.
    pub async fn next(&mut self) -> Option<Seen> {
        while !self.over {
            let seen = match &mut self.source {
                Source::One { tenant, follow } => match follow.next().await {
                    Ok(Progress::Event(event)) => self.wanted.event(tenant, event),
                    Ok(Progress::Frame(_)) => None,
                    Err(error) => Some(self.end(why(&error))),
                },
                Source::All { events, .. } => match events.next_of_any().await {
                    Some((key, notice)) => self.of_all(key, notice),
                    None => self.listen_again().await,
                },
            };
            if seen.is_some() {
                return seen;
            }
        }
        None
    }

    fn of_all(&self, session: SessionKey, notice: Notice) -> Option<Seen> {
        if !self.wanted.is_of(&session.tenant) {
            return None;
        }
        match notice {
            Notice::Frame(_) => None,
            Notice::Event(event) => self.wanted.event(&session.tenant, event),
            Notice::Gap { from, .. } => Some(Seen::Gap {
                session: session.into(),
                from,
            }),
        }
    }

    /// A bus was replaced, or the system is gone.
    async fn listen_again(&mut self) -> Option<Seen> {
        tokio::time::sleep(AGAIN).await;
        if self.oracle.has_ended() {
            return Some(self.end(ENDED.to_owned()));
        }
        if let Source::All { filter, events } = &mut self.source {
            *events = self.oracle.subscribe_briefly(filter.clone(), WAITING);
        }
        Some(Seen::Lost {})
    }

    fn end(&mut self, why: String) -> Seen {
        self.over = true;
        Seen::End { why }
    }
}

const ENDED: &str = "the system has ended";

fn why(error: &AskError) -> String {
    match error {
        AskError::Stopped => ENDED.to_owned(),
        error => error.to_string(),
    }
}

/// One session, from behind this event, or from now on.
async fn one(oracle: &Oracle, key: SessionKey, after: Option<Seq>) -> Result<Source, Refused> {
    let session = oracle.session(key);
    let Some(last) = session.last().await? else {
        let name = session.key().name.clone();
        return Err(AskError::NoSession { name }.into());
    };
    let follow = session.follow(after.unwrap_or(last), Frames::No).await?;
    if let Some(after) = after.filter(|after| *after > follow.end()) {
        let why = format!(
            "`after` is {after}, and the session's last event has the number {}",
            follow.end()
        );
        return Err(Refused::new(Code::InvalidValue, why));
    }
    Ok(Source::One {
        tenant: session.key().tenant.clone(),
        follow: Box::new(follow),
    })
}
