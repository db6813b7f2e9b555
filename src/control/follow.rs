//! Following what is recorded, as it is recorded.
//!
//! One session is followed without holes: what the bus had to drop is read from the journal. All sessions
//! are followed as far as whoever listens keeps up, and every hole is marked. Nothing piles up here: the
//! bus's queue is bounded, and a page of the journal is read when the one before it was taken.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use super::{Code, Refused, Seen, Watching};
use crate::{
    actor::{AskError, Filter, Notice, Oracle, SessionHandle, Subscription},
    model::{Event, Principal, Seq, SessionKey, Severity, TenantId},
};

/// How long the bus may say nothing before the journal is looked at: another process may have the session.
const LOOK: Duration = Duration::from_secs(2);
/// Pause before a bus that was replaced is listened to again.
const AGAIN: Duration = Duration::from_millis(100);
/// Events read at a time.
const PAGE: usize = 256;

/// What somebody gets to see who watches.
pub struct Follow {
    oracle: Oracle,
    filter: Filter,
    wanted: Wanted,
    /// The one session that is followed.
    one: Option<One>,
    events: Subscription,
    over: bool,
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
}

/// A session that is followed, and how far.
struct One {
    session: SessionHandle,
    seen: Seq,
    /// Read from the journal, and still to be seen.
    backlog: VecDeque<Arc<Event>>,
    /// Whether the journal may have more.
    behind: bool,
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
        let filter = match &session {
            // Whole, or its holes could not be told from what is not wanted.
            Some(session) => Filter {
                session: Some(session.of(tenant.as_ref().unwrap_or(&who.tenant))),
                ..Filter::default()
            },
            None => Filter {
                kinds: types.clone(),
                severity,
                ..Filter::default()
            },
        };
        // Before the journal is asked, so that nothing is between the two.
        let events = oracle.subscribe(filter.clone());
        let one = match (&filter.session, after) {
            (Some(key), after) => Some(One::begin(oracle.session(key.clone()), after).await?),
            (None, None) => None,
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
            filter,
            wanted,
            one,
            events,
            over: false,
        })
    }

    /// What is seen next; none after [`Seen::End`]. A call that is dropped loses nothing.
    pub async fn next(&mut self) -> Option<Seen> {
        while !self.over {
            let seen = match self.one.as_mut().filter(|one| one.is_behind()) {
                Some(one) => {
                    let tenant = one.session.key().tenant.clone();
                    match one.catch_up().await {
                        Ok(Some(event)) => self.event(&tenant, event),
                        Ok(None) => None,
                        Err(error) => Some(self.end(error.to_string())),
                    }
                }
                None => self.listen().await,
            };
            if seen.is_some() {
                return seen;
            }
        }
        None
    }

    /// What the bus says next, if that is to be seen.
    async fn listen(&mut self) -> Option<Seen> {
        let Ok(told) = tokio::time::timeout(LOOK, self.events.next_of_any()).await else {
            if let Some(one) = &mut self.one {
                one.behind = true;
            }
            return None;
        };
        let Some((key, notice)) = told else {
            return self.listen_again().await;
        };
        match (notice, &mut self.one) {
            (Notice::Frame(_), _) => None,
            (Notice::Event(event), Some(one)) => {
                let event = one.take(event)?;
                self.event(&key.tenant, event)
            }
            (Notice::Gap { .. }, Some(one)) => {
                one.behind = true;
                None
            }
            (Notice::Event(event), None) => self.event(&key.tenant, event),
            (Notice::Gap { session, from }, None) => self.gap(session, from),
        }
    }

    /// The bus was replaced, the session was deleted, or the system is gone.
    async fn listen_again(&mut self) -> Option<Seen> {
        tokio::time::sleep(AGAIN).await;
        if self.oracle.has_ended() {
            return Some(self.end("the system has ended".to_owned()));
        }
        self.events = self.oracle.subscribe(self.filter.clone());
        match &mut self.one {
            Some(one) => {
                one.behind = true;
                None
            }
            None => Some(Seen::Lost {}),
        }
    }

    fn event(&self, tenant: &TenantId, event: Arc<Event>) -> Option<Seen> {
        let wanted = self.is_of(tenant) && self.wanted.wants(&event);
        let tenant = tenant.clone();
        wanted.then_some(Seen::Event { tenant, event })
    }

    fn gap(&self, session: SessionKey, from: Seq) -> Option<Seen> {
        let session = self.is_of(&session.tenant).then(|| session.into());
        session.map(|session| Seen::Gap { session, from })
    }

    /// Whether a tenant's sessions are wanted; the one session that is named is, whosever it is.
    fn is_of(&self, tenant: &TenantId) -> bool {
        let wanted = self.wanted.tenant.as_ref();
        self.one.is_some() || wanted.is_none_or(|wanted| wanted == tenant)
    }

    fn end(&mut self, why: String) -> Seen {
        self.over = true;
        Seen::End { why }
    }
}

impl One {
    async fn begin(session: SessionHandle, after: Option<Seq>) -> Result<Self, Refused> {
        let Some(last) = session.last().await? else {
            let name = session.key().name.clone();
            return Err(AskError::NoSession { name }.into());
        };
        Ok(Self {
            session,
            seen: after.unwrap_or(last),
            backlog: VecDeque::new(),
            behind: after.is_some(),
        })
    }

    fn is_behind(&self) -> bool {
        self.behind || !self.backlog.is_empty()
    }

    /// An event from the bus, if it is the next one.
    fn take(&mut self, event: Arc<Event>) -> Option<Arc<Event>> {
        if event.seq <= self.seen {
            return None;
        }
        if event.seq > self.seen.next() {
            self.behind = true;
            return None;
        }
        self.seen = event.seq;
        Some(event)
    }

    /// The next event from the journal, if there is one.
    async fn catch_up(&mut self) -> Result<Option<Arc<Event>>, AskError> {
        if self.backlog.is_empty() {
            let page = self.session.some_events(self.seen, PAGE).await?;
            // Less than a page is all that there was.
            self.behind = page.len() == PAGE;
            self.backlog.extend(page.into_iter().map(Arc::new));
        }
        let event = self.backlog.pop_front();
        if let Some(event) = &event {
            self.seen = event.seq;
        }
        Ok(event)
    }
}
