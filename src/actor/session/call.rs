//! A model call as the session sees it: to the gateway, back piece by piece.

use std::{sync::Arc, time::Duration};

use ractor::ActorRef;
use tokio::{sync::mpsc, time::timeout};

use super::{SessionMsg, state::SessionState};
use crate::{
    actor::{
        bus::Frame,
        ephemeral::Metered,
        gateway::{DELTA_BUFFER, Failover, GatewayMsg, Ticket},
        pool::Pool,
        profile::Voice,
        pulse::Place,
        services::{Gateways, Services},
        task::Task,
    },
    kernel::{CallToken, InFlight, Report, Session},
    llm::{Delta, Request, ToolChoice},
    model::{Fault, Message, Price, QueryType, Reply, Role, Usage, record::TurnMode},
    prompt::ComposedPrompt,
    signal::Stripper,
};

/// How long a finished answer waits for the signal that it lacks.
const SIGNAL_WITHIN: Duration = Duration::from_secs(30);

/// A call that is about to be made.
pub(super) struct Call {
    pub(super) ticket: Box<Ticket>,
    pieces: mpsc::Receiver<Result<Delta, Fault>>,
    price: Option<Price>,
    services: Services,
}

/// A try that failed.
pub(super) struct Failed {
    pub(super) fault: Fault,
    /// What it used, as far as the provider said.
    pub(super) usage: Usage,
}

impl From<Fault> for Failed {
    fn from(fault: Fault) -> Self {
        let usage = Usage::default();
        Self { fault, usage }
    }
}

/// The query's prompt, or what it takes to compose it again after a restart.
enum Prompt {
    Ready(Arc<ComposedPrompt>),
    Again(Voice, QueryType),
}

impl SessionState {
    pub(super) fn call_model(
        &mut self,
        me: &ActorRef<SessionMsg>,
        token: CallToken,
        model: Arc<str>,
        mode: TurnMode,
    ) -> Option<Task> {
        let query = self.session.query()?;
        let prompt = match &self.prompt {
            Some(prompt) => Prompt::Ready(Arc::clone(prompt)),
            None => {
                let query_type = query.query_type().unwrap_or(QueryType::Conversational);
                Prompt::Again(self.profile.voice(), query_type)
            }
        };
        let request = Request {
            model: name_of(&model),
            system: Arc::default(),
            messages: Arc::clone(self.session.transcript().messages()),
            tools: Arc::clone(&self.session.policy().tools),
            tool_choice: match mode {
                TurnMode::Normal => ToolChoice::Auto,
                _ => ToolChoice::None,
            },
        };
        let instructions = self.session.told();
        let estimate = query.token_estimate();
        let mut call = self.call(me, token, model, estimate, request)?;
        if mode == TurnMode::Signal {
            // The answer is there: its signal is not waited for.
            (call.ticket.patience, call.ticket.outage) = (Duration::ZERO, Duration::ZERO);
        }
        let me = me.clone();
        Some(Task::spawn(async move {
            let report = match call.turn(prompt, instructions, mode).await {
                Ok(reply) => Report::ModelReplied { token, reply },
                Err(Failed { fault, usage }) => Report::ModelFailed {
                    token,
                    fault,
                    usage,
                },
            };
            let _ = me.cast(SessionMsg::Report(report));
        }))
    }

    /// A call for a summary goes the same way; nobody sees its text.
    pub(super) fn compact(
        &mut self,
        me: &ActorRef<SessionMsg>,
        token: CallToken,
        model: Arc<str>,
        instruction: &'static str,
        text: &str,
    ) -> Option<Task> {
        let call = self.call_aside(me, token, model, instruction, text)?;
        let me = me.clone();
        Some(Task::spawn(async move {
            let report = match call.answer(None, |_| {}).await {
                Ok(reply) => Report::Compacted { token, reply },
                Err(Failed { fault, usage }) => Report::CompactionFailed {
                    token,
                    fault,
                    usage,
                },
            };
            let _ = me.cast(SessionMsg::Report(report));
        }))
    }

    /// A call beside the conversation: an instruction and a text.
    pub(super) fn call_aside(
        &mut self,
        me: &ActorRef<SessionMsg>,
        token: CallToken,
        model: Arc<str>,
        instruction: &'static str,
        text: &str,
    ) -> Option<Call> {
        let tokens = ((instruction.len() + text.len()) / 4) as u64;
        let question = Arc::new(Message::text(Role::User, text));
        let request = Request {
            model: name_of(&model),
            system: instruction.into(),
            messages: Arc::new(vec![question]),
            tools: Arc::default(),
            tool_choice: ToolChoice::None,
        };
        self.call(me, token, model, tokens, request)
    }

    fn call(
        &mut self,
        me: &ActorRef<SessionMsg>,
        token: CallToken,
        model: Arc<str>,
        tokens: u64,
        request: Request,
    ) -> Option<Call> {
        let sid = self.claim?.sid;
        // An earlier call of this session may be queued, this one is not.
        let now = self.services.clock.monotonic_millis();
        self.pulse.queue(Place::Left, now);
        self.pulse.sent(self.services.clock.monotonic_micros());
        let policy = &self.profile.policy;
        let price = policy.price(&model);
        let wall = self.services.clock.now();
        let waited = |outage| self.session.waited(wall, outage);
        let (deltas, pieces) = mpsc::channel(DELTA_BUFFER);
        let ticket = Box::new(Ticket {
            sid,
            key: self.key.clone(),
            token,
            patience: policy.longest_wait(&model).saturating_sub(waited(false)),
            outage: policy.retry.outage.saturating_sub(waited(true)),
            failover: match policy.after(&model) {
                Some(_) => Failover::Possible,
                None => Failover::Impossible,
            },
            session: Some(me.clone()),
            model,
            request,
            deltas,
            pulse: Arc::clone(&self.pulse),
            flight: self.pulse.take_off(tokens),
        });
        Some(Call {
            ticket,
            pieces,
            price,
            services: self.services.clone(),
        })
    }
}

impl Call {
    async fn turn(
        mut self,
        prompt: Prompt,
        instructions: Option<Arc<str>>,
        mode: TurnMode,
    ) -> Result<Reply, Failed> {
        let prompt = match prompt {
            Prompt::Ready(prompt) => prompt,
            Prompt::Again(voice, query_type) => {
                let within = self.services.timeouts.prepare;
                SessionState::compose(&self.services, voice, query_type, within).await?
            }
        };
        self.ticket.request.system = Session::system(&prompt.content, instructions.as_deref());
        if mode == TurnMode::Signal {
            return self.answer(Some(SIGNAL_WITHIN), |_| {}).await;
        }
        let (session, token) = (self.ticket.key.clone(), self.ticket.token);
        let bus = self.services.bus.clone();
        let mut stripper = Stripper::default();
        let mut end = 0;
        // The visible text, as it arrives.
        let mut show = |text: String| {
            let offset = end;
            end += text.len();
            if text.is_empty() || !bus.is_heard(&session) {
                return;
            }
            bus.show(Frame {
                session: session.clone(),
                query: token.query,
                turn: token.turn,
                attempt: token.attempt,
                offset,
                text,
            });
        };
        let reply = self.answer(None, |text| show(stripper.push(text))).await?;
        show(stripper.finish());
        Ok(reply)
    }

    /// The whole reply; `show` gets its text as it arrives.
    pub(super) async fn answer(
        self,
        within: Option<Duration>,
        show: impl FnMut(&str),
    ) -> Result<Reply, Failed> {
        let (ticket, usage) = (self.ticket, &self.services.usage);
        let flight = Arc::clone(&ticket.flight);
        let call = Metered {
            session: ticket.key.clone(),
            token: ticket.token,
            model: Arc::clone(&ticket.model),
            tokens: flight.tokens(),
            price: self.price,
        };
        let metered = usage.begin(call).await?;
        send(ticket, &self.services.gateways);
        let whole = whole(self.pieces, show);
        let late = |_| Err(Fault::retryable("total_timeout", "no signal came in time").into());
        let answered = match within {
            Some(within) => timeout(within, whole).await.unwrap_or_else(late),
            None => whole.await,
        };
        let used = match &answered {
            Ok(reply) => reply.usage,
            Err(failed) => failed.usage,
        };
        // The estimate stands where nobody knows better.
        if !used.is_none() || flight.read() == InFlight::Unsent {
            usage.end(metered, used).await;
        }
        answered
    }
}

/// Hands a call to its gateway. One that is being replaced loses it: the channel closes without an end.
fn send(ticket: Box<Ticket>, gateways: &Gateways) {
    let provider = ticket.model.split_once('/').map_or("", |(name, _)| name);
    let Some(gateway) = gateways.get(provider).and_then(Pool::any) else {
        let detail = format!("there is no model `{}`: check `model.chain`", ticket.model);
        return ticket.refuse(Fault::permanent("no_model", detail));
    };
    if let Err((full, GatewayMsg::Call(ticket))) = gateway.offer(GatewayMsg::Call(ticket)) {
        ticket.refuse_for_now(full);
    }
}

/// The name of a model at its provider.
fn name_of(model: &Arc<str>) -> Arc<str> {
    let name = model.split_once('/').map(|(_, name)| name.into());
    name.unwrap_or_else(|| Arc::clone(model))
}

/// A channel that closes without an end is a fault too.
async fn whole(
    mut pieces: mpsc::Receiver<Result<Delta, Fault>>,
    mut show: impl FnMut(&str),
) -> Result<Reply, Failed> {
    let mut usage = Usage::default();
    while let Some(piece) = pieces.recv().await {
        match piece {
            Ok(Delta::Text(text)) => show(&text),
            Ok(Delta::Used(used)) => usage = used,
            Ok(Delta::Done(reply)) => return Ok(reply),
            Ok(_) => {}
            Err(fault) => return Err(Failed { fault, usage }),
        }
    }
    let detail = "the call was lost on its way; it is made anew";
    let fault = Fault::retryable("gateway", detail);
    Err(Failed { fault, usage })
}
