//! Admission, dispatch and the ends of calls.
//!
//! **Invariant:** every event that may let a queued call start (an end, a limit, an abandoned call,
//! the time) leads to [`GatewayState::dispatch`], which starts all calls that may run and sets one
//! alarm for the next.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use ractor::ActorRef;
use tokio::time::Instant;
use tracing::Instrument as _;

use super::{
    GatewayArgs,
    breaker::{self, Breaker, BreakerPermit, Change, Health, Voice},
    call_task::CallTask,
    limits::{InFlightLoad, RateLimiter, Refused},
    queue::FairQueue,
    tokens_of,
    waiting::{refuse_at_open_circuit, refuse_held},
};
use crate::{
    actor::{
        live_session::ChargeResult,
        mailbox::{Counted, Mailbox},
        protocol::{CallEnd, Failover, GatewayMsg, ShardMsg, Ticket},
        task::Task,
    },
    kernel::{CallToken, Report},
    llm::RateLimits,
    model::{Fault, FaultCode, Usage},
};

const REPLY: u64 = 500;
const LONGEST: u64 = 1_000_000;

pub(in crate::actor) struct GatewayState {
    pub(super) args: Arc<GatewayArgs>,
    pub(super) me: Mailbox<GatewayMsg>,
    start: Instant,
    next: u64,
    running: HashMap<u64, RunningCall>,
    pub(super) model_queues: Vec<ModelQueue>,
    round: VecDeque<usize>,
    pub(super) limiter: RateLimiter,
    pub(super) breaker: Breaker,
    alarm: Option<(Duration, Task)>,
}

impl GatewayState {
    pub(super) fn new(me: ActorRef<Counted<GatewayMsg>>, args: GatewayArgs) -> Self {
        let settings = &args.settings;
        let state = Self {
            me: Mailbox::new(me, args.depth.clone()),
            start: Instant::now(),
            next: 0,
            running: HashMap::new(),
            model_queues: Vec::new(),
            round: VecDeque::new(),
            limiter: RateLimiter::configured(settings),
            breaker: Breaker::new(settings.breaker),
            alarm: None,
            args: Arc::new(args),
        };
        state.publish();
        state.count();
        state
    }

    pub(super) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    pub(super) fn admit(&mut self, ticket: Box<Ticket>) {
        let CallToken { query, turn, .. } = ticket.token;
        match ticket.live.charge(query, turn) {
            ChargeResult::Allowed => {}
            ChargeResult::NotLive => {
                let detail = "no such query runs in a live session";
                return ticket.refuse(Fault::permanent(FaultCode::NotLive, detail));
            }
            ChargeResult::Violated { started, limit } => {
                let key = ticket.key.clone();
                let violated = ShardMsg::Violated {
                    ticket,
                    started,
                    limit,
                };
                return self.args.shards.cast(&key, violated);
            }
        }
        let now = self.now();
        self.share_limits();
        let model = self.know(&ticket.model);
        let closed = self.circuit(model, now, ticket.early());
        if let (Err(after), Failover::Possible) = (closed, ticket.failover) {
            return refuse_at_open_circuit(*ticket, after);
        }
        let model_queue = &self.model_queues[model];
        let held = model_queue.limiter.held_for(now);
        if held > ticket.patience.min(self.args.settings.queue_deadline) {
            return refuse_held(*ticket, held, &model_queue.trouble);
        }
        let tokens = tokens_of(&ticket.request).saturating_add(model_queue.reply);
        let free = closed.is_ok() && model_queue.queue.is_empty() && self.has_capacity();
        let free = free && model_queue.limiter.aimd.allows(model_queue.running);
        let at_once =
            free && self.ready_at(model_queue, tokens) <= now && !self.waits_for_the_provider(now);
        if !at_once && self.waiting() >= self.args.settings.queue {
            let (waiting, after) = (self.waiting(), self.hint(model, now));
            let detail = format!("the queue of this provider is full: {waiting} calls are pending");
            return ticket.refuse_until(FaultCode::QueueFull, after, detail);
        }
        if at_once {
            self.begin(ticket, model, tokens, now);
        } else {
            let call = self.wait(ticket, model, tokens);
            // A call that waits only for time needs the alarm.
            self.dispatch();
            self.report_waiting(model, call, now, false);
        }
    }

    pub(super) fn reported(&mut self, call: u64, limits: &RateLimits) {
        let now = self.now();
        let Some(run) = self.running.get_mut(&call) else {
            return;
        };
        run.counted = true;
        let model = run.model;
        let mut in_flight = InFlightLoad::default();
        for run in self.running.values() {
            if !run.counted && run.model == model {
                in_flight.requests += 1;
                in_flight.tokens = in_flight.tokens.saturating_add(run.tokens);
            }
        }
        let model_queue = &mut self.model_queues[model];
        let state = |limiter: &RateLimiter| (limiter.limits(), limiter.held_for(now));
        let before = state(&model_queue.limiter);
        model_queue.limiter.reported(now, limits, in_flight);
        if before != state(&model_queue.limiter) {
            self.publish();
        }
        self.dispatch();
    }

    pub(super) fn ended(&mut self, call: u64, end: &CallEnd) {
        let now = self.now();
        let Some(run) = self.running.remove(&call) else {
            return;
        };
        let model_queue = &mut self.model_queues[run.model];
        let running = model_queue.running;
        model_queue.running = running.saturating_sub(1);
        let mut grew = false;
        let used = match end {
            CallEnd::Answered(usage) => {
                self.args.status.answered();
                grew = model_queue.answered(run.started, usage);
                usage.total_tokens()
            }
            _ if breaker::cost_nothing(end) => 0,
            _ => run.tokens,
        };
        // Not every server reports usage.
        if used > 0 || breaker::cost_nothing(end) {
            model_queue.limiter.settle(run.tokens, used);
            self.limiter.settle(run.tokens, used);
        }
        if let CallEnd::Failed(fault) = end
            && fault.code == FaultCode::RateLimited
        {
            let refused = Refused {
                started: run.started,
                after: fault.class.after(),
                running,
                entropy: self.args.clock.moment().entropy,
            };
            model_queue.trouble.clone_from(&fault.detail);
            if let Some(hold) = model_queue.limiter.refused(now, refused) {
                let most = model_queue.limiter.aimd.limit();
                self.args.log_rate_limited(&model_queue.model, hold, most);
            }
            self.reject_held(run.model, now);
            self.publish();
        }
        if grew {
            self.publish();
        }
        self.learn(&run, end, now);
        self.dispatch();
    }

    pub(super) fn dispatch(&mut self) {
        let now = self.now();
        self.share_limits();
        self.lift_limits(now);
        let mut next = None;
        while self.has_capacity() {
            match self.choose(now) {
                Ok(model) => self.begin_first(model, now),
                Err(at) => {
                    next = at;
                    break;
                }
            }
        }
        let model_queues = self.model_queues.iter();
        let lifted = model_queues.filter_map(|one| one.limiter.aimd.lifted_at());
        self.set_alarm(next.into_iter().chain(lifted).min(), now);
        self.count();
    }

    fn share_limits(&mut self) {
        let nodes = self.args.nodes.load(Ordering::Relaxed);
        self.limiter.divide(&self.args.settings, nodes);
    }

    fn lift_limits(&mut self, now: Duration) {
        let mut lifted = false;
        for model_queue in &mut self.model_queues {
            if model_queue.limiter.aimd.lift(now) {
                self.args.log_rate_limit_cleared(&model_queue.model);
                lifted = true;
            }
        }
        if lifted {
            self.publish();
        }
    }

    /// Chooses the model whose first call may start now, or else returns when one may.
    fn choose(&mut self, now: Duration) -> Result<usize, Option<Duration>> {
        let mut soonest: Option<Duration> = None;
        for turn in 0..self.round.len() {
            let model = self.round[turn];
            let model_queue = &self.model_queues[model];
            let Some(waiter) = model_queue.queue.front() else {
                continue;
            };
            let tokens = waiter.tokens;
            if let Err(after) = self.circuit(model, now, waiter.ticket.early()) {
                soonest = Some(soonest.map_or(now + after, |soonest| soonest.min(now + after)));
                continue;
            }
            // The end of one of its calls dispatches again.
            if !model_queue.limiter.aimd.allows(model_queue.running) {
                continue;
            }
            let at = self.ready_at(model_queue, tokens);
            if at <= now {
                let _ = self.round.remove(turn);
                self.round.push_back(model);
                return Ok(model);
            }
            soonest = Some(soonest.map_or(at, |soonest| soonest.min(at)));
            if model_queue.limiter.ready_at(tokens) <= now {
                // Otherwise smaller calls of other models would take the shared rate and starve
                // this one.
                break;
            }
        }
        Err(soonest)
    }

    /// Whether a call that its own model admits waits for the provider's shared rate.
    fn waits_for_the_provider(&mut self, now: Duration) -> bool {
        let all = &self.limiter;
        self.model_queues.iter().any(|model_queue| {
            let Some(tokens) = model_queue.queue.front().map(|waiter| waiter.tokens) else {
                return false;
            };
            let free = model_queue.limiter.aimd.allows(model_queue.running)
                && model_queue.limiter.ready_at(tokens) <= now;
            free && all.ready_at(tokens) > now
        })
    }

    fn begin_first(&mut self, model: usize, now: Duration) {
        let Some(mut waiter) = self.model_queues[model].queue.pop() else {
            return;
        };
        self.record_dequeue(&waiter.ticket);
        if !waiter.ticket.caller.gave_up.is_cancelled() {
            let waited = now.saturating_sub(waiter.since);
            waiter.ticket.within = waiter.ticket.within.saturating_sub(waited);
            if waiter.reported {
                let token = waiter.ticket.token;
                waiter.ticket.report(Report::CallAdmitted { token, waited });
            }
            self.begin(waiter.ticket, model, waiter.tokens, now);
        }
    }

    fn begin(&mut self, ticket: Box<Ticket>, model: usize, tokens: u64, now: Duration) {
        let call = self.number();
        let model_queue = &mut self.model_queues[model];
        model_queue.limiter.take(now, tokens);
        model_queue.running += 1;
        self.limiter.take(now, tokens);
        let passes = [self.breaker.enter(now), model_queue.breaker.enter(now)];
        let probes = passes != [BreakerPermit::Free; 2];
        let task = CallTask {
            args: Arc::clone(&self.args),
            gateway: self.me.clone(),
            call,
            probes,
            end: CallEnd::Lost,
        };
        // Progress is due from here on.
        let millis = self.args.clock.monotonic_millis();
        ticket.live.beat(millis);
        ticket.call_progress.mark_sent();
        let (span, voice) = (ticket.caller.span.clone(), ticket.voice());
        let run = RunningCall {
            _task: Task::spawn(task.run(ticket).instrument(span)),
            model,
            voice,
            started: now,
            tokens,
            counted: false,
            passes,
        };
        self.running.insert(call, run);
        if probes {
            self.publish();
        }
        self.count();
    }

    pub(super) fn circuit(
        &self,
        of: usize,
        now: Duration,
        by: Option<Voice>,
    ) -> Result<(), Duration> {
        self.breaker.check(now, by)?;
        self.model_queues[of].breaker.check(now, by)
    }

    pub(super) fn reached(&mut self, call: u64) {
        let now = self.now();
        let Some(run) = self.running.get_mut(&call) else {
            return;
        };
        let of = (run.model, run.voice);
        let passes = std::mem::replace(&mut run.passes, [BreakerPermit::Free; 2]);
        self.judge(of, passes, (Health::Fine, Health::Fine), None, now);
        self.dispatch();
    }

    fn learn(&mut self, run: &RunningCall, end: &CallEnd, now: Duration) {
        let healths = breaker::judge(end);
        let mut why = None;
        if let CallEnd::Failed(fault) = end {
            why = Some(&fault.code);
            if [healths.0, healths.1].contains(&Health::Failed) {
                let trouble = &mut self.model_queues[run.model].trouble;
                trouble.clone_from(&fault.detail);
            }
        }
        self.judge((run.model, run.voice), run.passes, healths, why, now);
    }

    fn judge(
        &mut self,
        (of, voice): (usize, Voice),
        passes: [BreakerPermit; 2],
        healths: (Health, Health),
        why: Option<&FaultCode>,
        now: Duration,
    ) {
        let of_provider = self.breaker.ended(now, passes[0], voice, healths.0);
        let breaker = &mut self.model_queues[of].breaker;
        let of_model = breaker.ended(now, passes[1], voice, healths.1);
        for (model, change) in [(None, of_provider), (Some(of), of_model)] {
            let Some(change) = change else { continue };
            let name = model.map(|model| &self.model_queues[model].model);
            self.args.log_circuit(name, change, why);
            let models = model.map_or(0..self.model_queues.len(), |one| one..one + 1);
            for model in models {
                if let Change::Opened(after) = change {
                    self.reject_waiting(model, after, now);
                }
                let ModelQueue { queue, breaker, .. } = &mut self.model_queues[model];
                let defers = |voice| self.breaker.defers(voice) || breaker.defers(voice);
                queue.set_aside(|waiter| defers(waiter.ticket.voice()));
            }
        }
        if of_provider.or(of_model).is_some() || passes != [BreakerPermit::Free; 2] {
            self.publish();
        }
    }

    fn ready_at(&self, model_queue: &ModelQueue, tokens: u64) -> Duration {
        let ready = model_queue.limiter.ready_at(tokens);
        ready.max(self.limiter.ready_at(tokens))
    }

    fn has_capacity(&self) -> bool {
        let share = self.args.settings.concurrency / self.args.nodes.load(Ordering::Relaxed);
        self.running.len() < share.max(1)
    }

    pub(super) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn know(&mut self, model: &Arc<str>) -> usize {
        let mut all = self.model_queues.iter();
        let known = all.position(|one| one.model == *model);
        known.unwrap_or_else(|| {
            self.round.push_back(self.model_queues.len());
            self.model_queues.push(ModelQueue {
                model: Arc::clone(model),
                queue: FairQueue::default(),
                limiter: RateLimiter::default(),
                breaker: Breaker::new(self.args.settings.breaker),
                running: 0,
                trouble: String::new(),
                reply: REPLY,
            });
            self.publish();
            self.model_queues.len() - 1
        })
    }

    fn set_alarm(&mut self, at: Option<Duration>, now: Duration) {
        let set = self.alarm.as_ref().map(|(set, _)| *set);
        if at.is_some() && at == set && at > Some(now) {
            return;
        }
        self.alarm = None;
        let Some(at) = at else { return };
        let (me, due) = (self.me.clone(), self.start + at);
        let task = Task::spawn(async move {
            tokio::time::sleep_until(due).await;
            me.cast(GatewayMsg::Due);
        });
        self.alarm = Some((at, task));
    }

    fn count(&self) {
        self.args.status.count(self.running.len(), self.waiting());
    }
}

pub(super) struct ModelQueue {
    pub model: Arc<str>,
    pub queue: FairQueue<Waiter>,
    pub limiter: RateLimiter,
    pub breaker: Breaker,
    pub running: usize,
    /// Detail of the last fault since a reply that counted against a circuit or was a 429.
    pub trouble: String,
    reply: u64,
}

pub(super) struct Waiter {
    pub ticket: Box<Ticket>,
    pub tokens: u64,
    pub since: Duration,
    /// Whether the session has recorded the wait.
    pub reported: bool,
    pub _watch: Task,
}

pub(super) struct RunningCall {
    pub _task: Task,
    pub model: usize,
    pub voice: Voice,
    pub started: Duration,
    pub tokens: u64,
    /// Whether the limits that the provider last announced include this call.
    pub counted: bool,
    /// By the circuits of the provider and of the model.
    pub passes: [BreakerPermit; 2],
}

impl ModelQueue {
    pub(super) fn answered(&mut self, started: Duration, usage: &Usage) -> bool {
        let before = self.limiter.aimd.limit();
        self.limiter.answered(started);
        self.trouble.clear();
        self.reply = (self.reply * 7 + usage.output_tokens.min(LONGEST)) / 8;
        before != self.limiter.aimd.limit()
    }
}
