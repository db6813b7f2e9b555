//! Model calls: a ticket to the gateway, and its result as a report.

use std::{sync::Arc, time::Duration};

use ractor::ActorRef;
use tokio_util::sync::DropGuard;

use super::{
    state::{OfferedTools, SessionShell},
    work::{ModelCall, Work},
};
use crate::{
    actor::{
        mailbox::RETRY_AFTER,
        outcome::Failed,
        pool::Pool,
        protocol::{Caller, Failover, GatewayMsg, SessionMsg, Ticket},
        services::Gateways,
        usage_log::MeteredCall,
    },
    kernel::{CallToken, Query, Report, Session},
    llm::{Request, ToolChoice},
    model::{ClientToolChoice, Fault, FaultCode, Message, Reply, Role, record::TurnMode},
    prompt::ComposedPrompt,
};

/// How long a finished answer waits for its missing signal.
const SIGNAL_WITHIN: Duration = Duration::from_secs(30);

impl SessionShell {
    pub(super) fn call_model(
        &mut self,
        me: &ActorRef<SessionMsg>,
        ModelCall { token, model, mode }: ModelCall,
        prompt: Result<Arc<ComposedPrompt>, Fault>,
    ) -> Option<Work> {
        let query = self.session.query()?;
        let (policy, options) = (self.session.policy(), query.shared_options());
        let last = self.offered.take().filter(|last| {
            let is_same = |options| Arc::ptr_eq(&last.options, options);
            Arc::ptr_eq(&last.own, &policy.tools) && options.is_some_and(is_same)
        });
        // The same list for all turns, so that it is serialized once.
        let tools = last.map_or_else(|| query.tools(&policy.tools), |last| last.offered);
        self.offered = options.map(|options| OfferedTools {
            own: Arc::clone(&policy.tools),
            options: Arc::clone(options),
            offered: Arc::clone(&tools),
        });
        let first = policy.models.first().map(|first| &first.name);
        let request = Request {
            model: name_of(&model),
            system: Arc::default(),
            messages: Arc::clone(self.session.transcript().messages()),
            tools,
            tool_choice: choice(query, mode, policy.caches_choice(&model)),
            options: query.shared_options().cloned(),
            instead_of: first.filter(|first| **first != model).cloned(),
        };
        let is_task = query.options().is_task;
        let estimate = query.estimate;
        let report = move |answer: Result<Reply, Failed>| match answer {
            Ok(reply) => Report::ModelReplied { token, reply },
            Err(Failed { fault, usage }) => Report::ModelFailed {
                token,
                fault,
                usage,
            },
        };
        let (mut ticket, call) = self.ticket(me, token, model, estimate, request, report)?;
        if mode == TurnMode::Signal {
            // The answer is complete, so its signal is worth no wait in the queue, and its text is
            // not shown.
            (ticket.patience, ticket.outage) = (Duration::ZERO, Duration::ZERO);
            ticket.within = SIGNAL_WITHIN;
        } else {
            ticket.publish_text_on(&self.services.router.bus);
        }
        let instructions = self.session.all_instructions();
        if is_task {
            ticket.request.system = instructions.unwrap_or_default();
            send(ticket, &self.services.gateways);
            return Some(Work::Call { _guard: call });
        }
        match prompt {
            Ok(prompt) => {
                ticket.request.system = Session::system(&prompt.content, instructions.as_deref());
                send(ticket, &self.services.gateways);
            }
            Err(fault) => ticket.refuse(fault),
        }
        Some(Work::Call { _guard: call })
    }

    /// Requests a summary, whose text is not shown.
    pub(super) fn compact(
        &mut self,
        me: &ActorRef<SessionMsg>,
        token: CallToken,
        model: Arc<str>,
        (instruction, text): (&'static str, &str),
        within: Duration,
    ) -> Option<Work> {
        let report = move |answer: Result<Reply, Failed>| match answer {
            Ok(reply) => Report::Compacted { token, reply },
            Err(Failed { fault, usage }) => Report::CompactionFailed {
                token,
                fault,
                usage,
            },
        };
        let tokens = ((instruction.len() + text.len()) / 4) as u64;
        let request = Request {
            model: name_of(&model),
            system: instruction.into(),
            messages: Arc::new(vec![Arc::new(Message::text(Role::User, text))]),
            tools: Arc::default(),
            tool_choice: ToolChoice::None,
            options: None,
            instead_of: None,
        };
        let (mut ticket, call) = self.ticket(me, token, model, tokens, request, report)?;
        (ticket.outage, ticket.within) = (ticket.outage.min(within), within);
        send(ticket, &self.services.gateways);
        Some(Work::Call { _guard: call })
    }

    /// Creates a call, whose end is reported unless the guard is dropped first.
    fn ticket(
        &mut self,
        me: &ActorRef<SessionMsg>,
        token: CallToken,
        model: Arc<str>,
        tokens: u64,
        request: Request,
        report: impl FnOnce(Result<Reply, Failed>) -> Report + Send + 'static,
    ) -> Option<(Box<Ticket>, DropGuard)> {
        let session = me.clone();
        let (mut caller, call) = Caller::new(&self.services.meter, move |answer| {
            let _ = session.cast(SessionMsg::Report(report(answer)));
        });
        let sid = self.claim?.sid;
        // An earlier call of this session may have been queued; this one is not yet.
        let now = self.services.clock.monotonic_millis();
        self.live.set_queued(false, now);
        let key = self.key.clone();
        caller.span = self.trace_of(token.query, None).call(token, &model);
        let policy = &self.profile.policy;
        let wall = self.services.clock.now();
        let waited = |outage| self.session.waited(wall, outage);
        let leaves_nothing = self.key.name.is_ephemeral();
        let by = self.session.payer();
        let budgets = || self.services.tenants.budgets(&self.key.tenant, &by);
        let metered = leaves_nothing.then(|| MeteredCall {
            session: self.key.clone(),
            is_limited: !budgets().is_empty(),
            by: by.clone(),
            at: wall,
            token,
            model: Arc::clone(&model),
            tokens,
            price: policy.price(&model).cloned(),
        });
        let ticket = Ticket {
            sid,
            key,
            token,
            patience: policy.longest_wait(&model).saturating_sub(waited(false)),
            outage: policy.retry.outage.saturating_sub(waited(true)),
            within: Duration::MAX,
            failover: match policy.after(&model) {
                Some(_) => Failover::Possible,
                None => Failover::Impossible,
            },
            session: Some(me.clone()),
            model,
            request,
            caller,
            show: None,
            metered,
            live: Arc::clone(&self.live),
            call_progress: self.live.begin_call(tokens),
        };
        Some((Box::new(ticket), call))
    }
}

/// Sends a call to its gateway. A gateway that is being replaced drops it, which is reported.
fn send(ticket: Box<Ticket>, gateways: &Gateways) {
    let provider = ticket.model.split_once('/').map_or("", |(name, _)| name);
    let Some(gateway) = gateways.get(provider).and_then(Pool::any) else {
        let detail = format!("unknown model `{}`: check `model.chain`", ticket.model);
        return ticket.refuse(Fault::permanent(FaultCode::NoModel, detail));
    };
    if let Err((waiting, GatewayMsg::Call(ticket))) = gateway.offer(GatewayMsg::Call(ticket)) {
        let detail = format!("{waiting} messages are pending at this model");
        ticket.refuse_until(FaultCode::QueueFull, RETRY_AFTER, detail);
    }
}

fn choice(query: &Query, mode: TurnMode, choice_is_cached: bool) -> ToolChoice {
    match &query.options().tool_choice {
        _ if query.forbids_calls(mode, choice_is_cached) => ToolChoice::None,
        // Guidance says that no tools may be used.
        _ if !query.offers_tools(mode) => ToolChoice::Auto,
        ClientToolChoice::Auto => ToolChoice::Auto,
        ClientToolChoice::Required => ToolChoice::Required,
        ClientToolChoice::Named(name) => ToolChoice::Named(name.as_str().into()),
    }
}

fn name_of(model: &Arc<str>) -> Arc<str> {
    let name = model.split_once('/').map(|(_, name)| name.into());
    name.unwrap_or_else(|| Arc::clone(model))
}
