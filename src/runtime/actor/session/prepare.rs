//! Preparation of a query: its type and its prompt, which shared actors find.
//!
//! A message that begins a query is prepared before it is recorded, so that its acceptance, its type
//! and its first turn are one append. Until then the session holds the decision, which nothing
//! outdates: an idle session decides nothing by itself, and further commands wait. Only the budgets
//! of its tenant and key are read again at the end, because others may spend them meanwhile. A query
//! from the inbox is prepared once the query before it has ended.

use std::sync::Arc;

use ractor::{ActorProcessingErr, ActorRef, RpcReplyPort};
use tokio::time::Instant;

use super::{
    state::SessionShell,
    work::{ModelCall, Work},
};
use crate::{
    actor::{
        classifier::builtin,
        error::AskError,
        protocol::{
            Acknowledged, Asker, ClassifierMsg, Compose, Composed, Question, SessionMsg, Wanted,
        },
        trace::Origin,
    },
    kernel::{BegunQuery, Decision, Report},
    model::{Fault, QueryClassification, QueryType, record::Classified},
    prompt::{ComposeInput, ComposedPrompt, segment},
};

/// A query that waits for its type, then for its prompt.
pub(super) struct Preparation {
    token: u64,
    begun: BegunQuery,
    /// The type, and whether the built-in classifier had to find it.
    found: Option<(QueryClassification, bool)>,
    held: Option<HeldDecision>,
}

/// A decision that is not recorded yet, and the command that it answers.
pub(super) struct HeldDecision {
    pub decision: Decision,
    pub origin: Origin,
    pub reply: RpcReplyPort<Acknowledged>,
}

impl SessionShell {
    pub(super) fn prepare(
        &mut self,
        me: &ActorRef<SessionMsg>,
        begun: BegunQuery,
        held: Option<HeldDecision>,
    ) {
        let token = self.next_token();
        let found = match begun.is_task {
            true => {
                let _ = me.cast(SessionMsg::Composed(token, Some(Ok(Composed::default()))));
                let kind = QueryClassification::new(QueryType::Conversational, 1.0, Vec::new());
                Some((kind, false))
            }
            false => {
                let asker = Asker::new(me, token, SessionMsg::Classified);
                let question = Question {
                    text: Arc::clone(&begun.text),
                    previous: begun.previous.clone(),
                    since: Instant::now(),
                    asker,
                };
                self.services
                    .classifier
                    .cast(&self.key, ClassifierMsg::Classify(question));
                None
            }
        };
        self.preparation = Some(Box::new(Preparation {
            token,
            begun,
            found,
            held,
        }));
        // A crash from here on counts for the query, once that is recorded.
        self.show(self.services.clock.monotonic_millis());
    }

    /// Whether a decision is held, and commands have to wait.
    pub(super) fn holds(&self) -> bool {
        self.preparation
            .as_ref()
            .is_some_and(|one| one.held.is_some())
    }

    /// Whether nothing is in flight.
    pub(super) fn may_passivate(&self) -> bool {
        !self.holds() && self.session.may_passivate()
    }

    pub(super) async fn classified(
        &mut self,
        me: &ActorRef<SessionMsg>,
        token: u64,
        found: Option<QueryClassification>,
    ) -> Result<(), ActorProcessingErr> {
        let current = self.preparation.as_mut().filter(|one| one.token == token);
        let Some(preparation) = current else {
            return Ok(());
        };
        let found = preparation.found.insert(match found {
            Some(found) => (found, false),
            None => (stand_in(&preparation.begun), true),
        });
        let query_type = found.0.query_type;
        let wanted = self.wanted(query_type);
        match self.head().filter(|_| wanted.segment.is_none()) {
            Some(prompt) => {
                let known = Composed {
                    prompt,
                    segment: None,
                };
                self.composed(me, token, Some(Ok(known))).await
            }
            None => {
                let token = self.ask_composer(me, wanted);
                if let Some(preparation) = &mut self.preparation {
                    preparation.token = token;
                }
                Ok(())
            }
        }
    }

    pub(super) async fn composed(
        &mut self,
        me: &ActorRef<SessionMsg>,
        token: u64,
        made: Option<Result<Composed, Fault>>,
    ) -> Result<(), ActorProcessingErr> {
        if let Some(preparation) = self.preparation.take_if(|one| one.token == token) {
            return self.begin(me, *preparation, made).await;
        }
        if let Some(Work::Prompt { call, .. }) = self.work.take_if(|work| work.awaits(token)) {
            let made = made.unwrap_or_else(|| self.compose(&self.wanted(self.query_type())));
            let prompt = made.map(|made| made.prompt);
            if let Ok(prompt) = &prompt {
                self.head = Some(Arc::clone(prompt));
                // The files of the prompt may have changed since the head was composed.
                if self.session.head_prompt() != Some(&prompt.hash) {
                    let (query, prompt) = (call.token.query, prompt.hash.clone());
                    self.report(me, Report::Composed { query, prompt }).await?;
                }
            }
            self.work = self.call_model(me, call, prompt);
        }
        Ok(())
    }

    /// Calls the model, once the prompt is known: a restart loses it.
    pub(super) fn call(&mut self, me: &ActorRef<SessionMsg>, call: ModelCall) {
        let query = self.session.query();
        let is_task = query.is_some_and(|query| query.options().is_task);
        let prompt = match is_task {
            true => Some(Arc::default()),
            false => self.head(),
        };
        self.work = match prompt {
            Some(prompt) => self.call_model(me, call, Ok(prompt)),
            None => {
                let wanted = self.wanted(self.query_type());
                let asked = self.ask_composer(me, wanted);
                Some(Work::Prompt { asked, call })
            }
        };
    }

    /// Prepares a held query without the shared actors, because a command must not wait for them.
    pub(super) async fn hurry(
        &mut self,
        me: &ActorRef<SessionMsg>,
    ) -> Result<(), ActorProcessingErr> {
        match self.preparation.take_if(|one| one.held.is_some()) {
            Some(preparation) => self.begin(me, *preparation, None).await,
            None => Ok(()),
        }
    }

    async fn begin(
        &mut self,
        me: &ActorRef<SessionMsg>,
        preparation: Preparation,
        made: Option<Result<Composed, Fault>>,
    ) -> Result<(), ActorProcessingErr> {
        let Preparation {
            begun, found, held, ..
        } = preparation;
        let found = found.unwrap_or_else(|| (stand_in(&begun), true));
        let (classification, fallback) = found;
        let query_type = classification.query_type;
        let made = made.unwrap_or_else(|| match begun.is_task {
            true => Ok(Composed::default()),
            false => self.compose(&self.wanted(query_type)),
        });
        let result = made.map(|Composed { prompt, segment }| {
            let summary = prompt.summary();
            if !begun.is_task {
                self.head = Some(prompt);
            }
            Classified {
                classification,
                prompt: summary,
                fallback,
                segment,
                formatted: false,
            }
        });
        let query = begun.query;
        let report = Report::Prepared { query, result };
        let Some(HeldDecision {
            decision,
            origin,
            reply,
        }) = held
        else {
            return self.report(me, report).await;
        };
        let begun = match reply.is_closed() {
            // An unacknowledged message must not run after its caller has given up.
            true => Err(AskError::Stopped),
            false => self.begun(decision, report).await,
        };
        match begun {
            Ok(decision) => self.commit(me, decision, (origin, reply)).await,
            Err(error) => {
                let _ = reply.send(Err(error));
                self.show(self.services.clock.monotonic_millis());
                Ok(())
            }
        }
    }

    /// Adds the first turn to a decision that begins a query, unless a budget is spent by now.
    async fn begun(&self, decision: Decision, report: Report) -> Result<Decision, AskError> {
        let (then, reply) = (self.session.after(&decision), decision.reply);
        let now = self.moment_with_budgets(&then.payer()).await?;
        now.check_budgets()?;
        let decision = decision.and(then.observe(report, now));
        Ok(Decision { reply, ..decision })
    }

    fn query_type(&self) -> QueryType {
        let query = self.session.query();
        let found = query.and_then(|query| query.query_type);
        found.unwrap_or(QueryType::Conversational)
    }

    /// The prompt of the session's head, if it is at hand.
    fn head(&self) -> Option<Arc<ComposedPrompt>> {
        let head = self.head.as_ref()?;
        let is_it = self.session.head_prompt() == Some(&head.hash);
        is_it.then(|| Arc::clone(head))
    }

    fn ask_composer(&mut self, me: &ActorRef<SessionMsg>, wanted: Wanted) -> u64 {
        let token = self.next_token();
        let asker = Asker::new(me, token, SessionMsg::Composed);
        let order = Compose { wanted, asker };
        self.services.composer.cast(&self.key, order);
        token
    }

    /// Composes without the composer, which gave no answer.
    fn compose(&self, wanted: &Wanted) -> Result<Composed, Fault> {
        wanted.made(|input| wanted.composer.compose(input).map(Arc::new))
    }

    /// The head that the session has, or that of a query of this type, and the segment of that type
    /// unless the conversation has it.
    fn wanted(&self, query_type: QueryType) -> Wanted {
        let mut told = self.session.told_types();
        let of_head = told.next().unwrap_or(query_type);
        let is_told = |told| segment::is_same_for(told, query_type);
        let known = is_told(of_head) || told.any(is_told);
        Wanted {
            composer: Arc::clone(&self.profile.composer),
            head: ComposeInput::new(Arc::clone(&self.profile.prompt), of_head),
            segment: (!known).then_some(query_type),
        }
    }

    const fn next_token(&mut self) -> u64 {
        self.asked += 1;
        self.asked
    }
}

/// What the built-in classifier finds, in place of a host's.
fn stand_in(begun: &BegunQuery) -> QueryClassification {
    builtin(&begun.text, begun.previous.as_deref().into())
}
