//! A model call as the session sees it: to the gateway, back piece by piece.

use std::{sync::Arc, time::Duration};

use ractor::ActorRef;
use tokio::{sync::mpsc, time::timeout};

use super::{SessionMsg, state::SessionState};
use crate::{
    actor::{
        bus::{BusHandle, Frame},
        ephemeral::{Metered, UsageLog},
        flight::Flight,
        gateway::{DELTA_BUFFER, Failover, GatewayMsg, Ticket},
        pool::Pool,
        profile::Voice,
        pulse::{Place, Pulse},
        services::Services,
        task::Task,
    },
    kernel::{CallToken, InFlight, Report, Session},
    llm::{Delta, Request, ToolChoice},
    model::{
        Fault, Message, Price, QueryType, Reply, Role, SessionKey, Sid, Usage, record::TurnMode,
    },
    prompt::ComposedPrompt,
    signal::Stripper,
};

/// How long a finished answer waits for the signal that it lacks.
const SIGNAL_WITHIN: Duration = Duration::from_secs(30);

/// Everything that a call's task needs.
pub(super) struct Call {
    sid: Sid,
    key: SessionKey,
    token: CallToken,
    model: Arc<str>,
    /// How long it waits for a model that is held.
    pub(super) patience: Duration,
    /// How long it waits for a model that is away.
    pub(super) outage: Duration,
    failover: Failover,
    /// Records what becomes of a call that waits.
    pub(super) session: Option<ActorRef<SessionMsg>>,
    pulse: Arc<Pulse>,
    flight: Arc<Flight>,
    price: Option<Price>,
    services: Services,
}

/// Notes what a call has used, where its session is ephemeral.
struct Metering {
    call: Option<Metered>,
    flight: Arc<Flight>,
    usage: Arc<UsageLog>,
}

impl Metering {
    /// The estimate stands where nobody knows better.
    async fn end(self, answered: &Result<Reply, Failed>) {
        let used = match answered {
            Ok(reply) => reply.usage,
            Err(Failed { usage, .. }) => *usage,
        };
        if !used.is_none() || self.flight.read() == InFlight::Unsent {
            self.usage.end(self.call, used).await;
        }
    }
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
        let mut call = self.call(me, token, model, estimate)?;
        if mode == TurnMode::Signal {
            // The answer is there: its signal is not waited for.
            (call.patience, call.outage) = (Duration::ZERO, Duration::ZERO);
        }
        let me = me.clone();
        Some(Task::spawn(async move {
            let answered = call.turn(request, prompt, instructions, mode).await;
            let report = match answered {
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
        (instruction, text): (&'static str, Arc<str>),
    ) -> Option<Task> {
        let call = self.call(me, token, model, aside_tokens(instruction, &text))?;
        let me = me.clone();
        Some(Task::spawn(async move {
            let report = match call.aside(instruction, &text).await {
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

    pub(super) fn call(
        &mut self,
        me: &ActorRef<SessionMsg>,
        token: CallToken,
        model: Arc<str>,
        tokens: u64,
    ) -> Option<Call> {
        let sid = self.claim?.sid;
        // Whatever an earlier call of this session waits for, this one does not.
        let now = self.services.clock.monotonic_millis();
        self.pulse.queue(Place::Left, now);
        self.pulse.sent(self.services.clock.monotonic_micros());
        let policy = &self.profile.policy;
        let price = policy.price(&model);
        let wall = self.services.clock.now();
        let waited = |outage| self.session.waited(wall, outage);
        Some(Call {
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
            pulse: Arc::clone(&self.pulse),
            flight: self.pulse.take_off(tokens),
            price,
            services: self.services.clone(),
        })
    }
}

impl Call {
    async fn turn(
        self,
        mut request: Request,
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
        request.system = Session::system(&prompt.content, instructions.as_deref());
        let (key, token, bus) = (self.key.clone(), self.token, self.services.bus.clone());
        let (pieces, metering) = self.send(request).await?;
        let answered = if mode == TurnMode::Signal {
            let late = |_| Err(Fault::retryable("total_timeout", "no signal came in time").into());
            let whole = timeout(SIGNAL_WITHIN, whole(pieces, |_| {})).await;
            whole.unwrap_or_else(late)
        } else {
            follow(pieces, key, token, &bus).await
        };
        metering.end(&answered).await;
        answered
    }

    /// A call beside the conversation: an instruction and a text.
    pub(super) async fn aside(
        self,
        instruction: &'static str,
        text: &str,
    ) -> Result<Reply, Failed> {
        let question = Arc::new(Message::text(Role::User, text));
        let request = Request {
            model: name_of(&self.model),
            system: instruction.into(),
            messages: Arc::new(vec![question]),
            tools: Arc::default(),
            tool_choice: ToolChoice::None,
        };
        let (pieces, metering) = self.send(request).await?;
        let answered = whole(pieces, |_| {}).await;
        metering.end(&answered).await;
        answered
    }

    /// Hands the call to its gateway; the reply comes by the channel. A gateway that is being replaced loses it:
    /// the channel closes without an end.
    async fn send(
        self,
        request: Request,
    ) -> Result<(mpsc::Receiver<Result<Delta, Fault>>, Metering), Fault> {
        let call = Metered {
            session: self.key.clone(),
            token: self.token,
            model: Arc::clone(&self.model),
            tokens: self.flight.tokens(),
            price: self.price,
        };
        let metering = Metering {
            call: self.services.usage.begin(call).await?,
            flight: Arc::clone(&self.flight),
            usage: Arc::clone(&self.services.usage),
        };
        let (deltas, pieces) = mpsc::channel(DELTA_BUFFER);
        let ticket = Ticket {
            sid: self.sid,
            key: self.key,
            token: self.token,
            model: self.model,
            patience: self.patience,
            outage: self.outage,
            failover: self.failover,
            session: self.session,
            request,
            deltas,
            pulse: self.pulse,
            flight: self.flight,
        };
        let provider = ticket.model.split_once('/').map_or("", |(name, _)| name);
        match self.services.gateways.get(provider).and_then(Pool::any) {
            Some(gateway) => {
                let call = GatewayMsg::Call(Box::new(ticket));
                if let Err((full, GatewayMsg::Call(ticket))) = gateway.offer(call) {
                    ticket.refuse_for_now(full);
                }
            }
            None => {
                let detail = format!("there is no model `{}`: check `model.chain`", ticket.model);
                ticket.refuse(Fault::permanent("no_model", detail));
            }
        }
        Ok((pieces, metering))
    }
}

fn lost() -> Fault {
    Fault::retryable("gateway", "the call was lost on its way; it is made anew")
}

/// About how many tokens a call beside the conversation sends.
pub(super) const fn aside_tokens(instruction: &str, text: &str) -> u64 {
    ((instruction.len() + text.len()) / 4) as u64
}

/// The name of a model at its provider.
fn name_of(model: &Arc<str>) -> Arc<str> {
    let name = model.split_once('/').map(|(_, name)| name.into());
    name.unwrap_or_else(|| Arc::clone(model))
}

/// The whole reply; `show` gets its text as it arrives. A channel that closes without an end is a fault too.
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
    let fault = lost();
    Err(Failed { fault, usage })
}

/// Shows the visible text as it arrives.
async fn follow(
    pieces: mpsc::Receiver<Result<Delta, Fault>>,
    session: SessionKey,
    token: CallToken,
    bus: &BusHandle,
) -> Result<Reply, Failed> {
    let mut stripper = Stripper::default();
    let mut end = 0;
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
    let reply = whole(pieces, |text| show(stripper.push(text))).await?;
    show(stripper.finish());
    Ok(reply)
}
