//! What a gateway does with calls: refuses them, lets them wait, starts them, and learns from their ends.
//!
//! **Invariant:** whatever may let a waiting call start (an end, a limit told, a call that gives up, the
//! time) leads to [`GatewayState::dispatch`], which starts all that may and sets the one alarm for
//! the next.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use ractor::ActorRef;
use tokio::time::Instant;

use super::{
    GatewayArgs, GatewayMsg,
    breaker::{Breaker, Change, Health, Pass},
    health,
    lane::{Lane, News, Running},
    pace::{Pace, Refused},
    pump::{self, End, Teller},
    ticket::{Failover, Ticket},
    waiting::{refuse_at_open_circuit, refuse_held},
};
use crate::{
    actor::{
        mailbox::{Counted, Mailbox},
        task::Task,
    },
    llm::RateLimits,
    model::Fault,
};

pub(in crate::actor) struct GatewayState {
    pub(super) args: GatewayArgs,
    pub(super) me: Mailbox<GatewayMsg>,
    /// Where times are counted from.
    start: Instant,
    next: u64,
    running: HashMap<u64, Running>,
    pub(super) lanes: HashMap<Arc<str>, Lane>,
    /// The models, the one whose turn it is first.
    round: VecDeque<Arc<str>>,
    /// Of the provider as a whole, by the configuration.
    pub(super) pace: Pace,
    pub(super) breaker: Breaker,
    /// When the next waiting call may start, if it is time alone that it waits for, or a limit is lifted.
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
            lanes: HashMap::new(),
            round: VecDeque::new(),
            pace: Pace::configured(settings),
            breaker: Breaker::new(settings.breaker),
            alarm: None,
            args,
        };
        state.publish();
        state.count();
        state
    }

    pub(super) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// A call comes in.
    pub(super) fn admit(&mut self, ticket: Box<Ticket>) {
        if !self.args.ledger.is_live(ticket.sid, ticket.token.query) {
            let detail = "the supervisor knows of no such running query";
            return ticket.refuse(Fault::permanent("not_live", detail));
        }
        let (now, model) = (self.now(), Arc::clone(&ticket.model));
        self.know(&model);
        let closed = self.circuit(&model, now);
        if let (Err(after), Failover::Possible) = (closed, ticket.failover) {
            return refuse_at_open_circuit(*ticket, after);
        }
        let Some(lane) = self.lanes.get(&model) else {
            return;
        };
        let held = lane.pace.held_for(now);
        if held > self.patience(&ticket) {
            return refuse_held(*ticket, held);
        }
        let tokens = lane.weigh(&ticket.request);
        let free = closed.is_ok() && lane.queue.is_empty() && self.has_room();
        let free = free && lane.pace.aimd.allows(lane.running);
        let at_once =
            free && self.ready_at(lane, tokens) <= now && !self.waits_for_the_provider(now);
        if !at_once && self.waiting() >= self.args.settings.queue {
            let (waiting, after) = (self.waiting(), self.hint(&model, now));
            let detail = format!("{waiting} calls wait for this provider, and no more may");
            return ticket.refuse_until("queue_full", after, detail);
        }
        if at_once {
            self.begin(*ticket, &model, tokens, now);
        } else {
            self.wait(ticket, &model, tokens);
            // Where time alone is in its way, somebody has to look at the clock.
            self.dispatch();
        }
    }

    /// The provider tells its limits, on the way of a call.
    pub(super) fn told(&mut self, call: u64, limits: &RateLimits) {
        let now = self.now();
        let Some(run) = self.running.get_mut(&call) else {
            return;
        };
        let Some(lane) = self.lanes.get_mut(&run.model) else {
            return;
        };
        lane.heard(run);
        let before = (lane.pace.limits(), lane.pace.held_for(now));
        lane.pace.told(now, limits, lane.untold);
        if before != (lane.pace.limits(), lane.pace.held_for(now)) {
            self.publish();
        }
        self.dispatch();
    }

    /// A call is over.
    pub(super) fn ended(&mut self, call: u64, end: &End) {
        let now = self.now();
        let Some(mut run) = self.running.remove(&call) else {
            return;
        };
        let Some(lane) = self.lanes.get_mut(&run.model) else {
            return;
        };
        lane.heard(&mut run);
        let running = lane.running;
        lane.running = running.saturating_sub(1);
        let mut grew = false;
        let used = match end {
            End::Answered(usage) => {
                grew = lane.answered(run.started, usage);
                usage.total_tokens()
            }
            _ if health::cost_nothing(end) => 0,
            End::Failed(_) | End::GaveUp | End::Lost => run.tokens,
        };
        // Not every server counts.
        if used > 0 || health::cost_nothing(end) {
            lane.pace.settle(run.tokens, used);
            self.pace.settle(run.tokens, used);
        }
        if let End::Failed(fault) = end
            && fault.code == health::RATE_LIMITED
        {
            let refused = Refused {
                started: run.started,
                after: fault.class.after(),
                running,
                entropy: self.args.clock.moment().entropy,
            };
            if let Some(hold) = lane.pace.refused(now, refused) {
                let most = lane.pace.aimd.limit();
                self.args.tell_rate_limited(&run.model, hold, most);
            }
            self.send_away_held(&run.model, now);
            self.publish();
        }
        if grew {
            self.publish();
        }
        self.learn(&run, end, now);
        self.dispatch();
    }

    /// Starts all that may start now, and sets the alarm for the next.
    pub(super) fn dispatch(&mut self) {
        let now = self.now();
        self.lift_limits(now);
        let mut next = None;
        while self.has_room() {
            match self.choose(now) {
                Ok(model) => self.begin_first(&model, now),
                Err(at) => {
                    next = at;
                    break;
                }
            }
        }
        let lanes = self.lanes.values();
        let lifted = lanes.filter_map(|lane| lane.pace.aimd.lifted_at()).min();
        self.set_alarm(next.into_iter().chain(lifted).min(), now);
        self.count();
    }

    /// Lifts the concurrency limits that no 429 has confirmed for a while.
    fn lift_limits(&mut self, now: Duration) {
        let mut lifted = false;
        for (model, lane) in &mut self.lanes {
            if lane.pace.aimd.lift(now) {
                self.args.tell_rate_limit_cleared(model);
                lifted = true;
            }
        }
        if lifted {
            self.publish();
        }
    }

    /// The model whose first call may start now; else when one may.
    fn choose(&mut self, now: Duration) -> Result<Arc<str>, Option<Duration>> {
        let mut soonest: Option<Duration> = None;
        for turn in 0..self.round.len() {
            let model = Arc::clone(&self.round[turn]);
            let circuit = self.circuit(&model, now);
            let Some(lane) = self.lanes.get_mut(&model) else {
                continue;
            };
            let Some(tokens) = lane.queue.front().map(|waiter| waiter.tokens) else {
                continue;
            };
            if let Err(after) = circuit {
                soonest = Some(soonest.map_or(now + after, |soonest| soonest.min(now + after)));
                continue;
            }
            // The end of one of its calls leads here again.
            if !lane.pace.aimd.allows(lane.running) {
                continue;
            }
            let (of_model, of_all) = (lane.pace.ready_at(tokens), self.pace.ready_at(tokens));
            let at = of_model.max(of_all);
            if at <= now {
                let _ = self.round.remove(turn);
                self.round.push_back(Arc::clone(&model));
                return Ok(model);
            }
            soonest = Some(soonest.map_or(at, |soonest| soonest.min(at)));
            if of_model <= now {
                // It waits for what all models share. Smaller calls of others would take that as it is
                // refilled, and this one's turn would never come.
                break;
            }
        }
        Err(soonest)
    }

    /// Whether a call that its own model would take waits for what all models share.
    fn waits_for_the_provider(&mut self, now: Duration) -> bool {
        let all = &self.pace;
        self.lanes.values_mut().any(|lane| {
            let Some(tokens) = lane.queue.front().map(|waiter| waiter.tokens) else {
                return false;
            };
            let free = lane.pace.aimd.allows(lane.running) && lane.pace.ready_at(tokens) <= now;
            free && all.ready_at(tokens) > now
        })
    }

    fn begin_first(&mut self, model: &Arc<str>, now: Duration) {
        let waiter = self.lanes.get_mut(model).and_then(|lane| lane.queue.pop());
        let Some(waiter) = waiter else {
            return;
        };
        self.leaves_queue(&waiter.ticket);
        if !waiter.ticket.deltas.is_closed() {
            if waiter.told {
                waiter.ticket.admitted(now.saturating_sub(waiter.since));
            }
            self.begin(*waiter.ticket, model, waiter.tokens, now);
        }
    }

    fn begin(&mut self, ticket: Ticket, model: &Arc<str>, tokens: u64, now: Duration) {
        let call = self.number();
        let Some(lane) = self.lanes.get_mut(model) else {
            return;
        };
        let of_model = lane.begins(now, tokens);
        self.pace.take(now, tokens);
        let of_provider = self.breaker.enter();
        let probes = of_model == Pass::Probe || of_provider == Pass::Probe;
        let teller = Teller {
            gateway: self.me.clone(),
            call,
            probes,
            end: End::Lost,
        };
        let backend = Arc::clone(&self.args.backend);
        let (settings, clock) = (self.args.settings, self.args.clock.clone());
        // Its pulse starts to count from here.
        ticket.pulse.beat(clock.monotonic_millis());
        ticket.flight.leaves();
        let task = Task::spawn(async move {
            let end = pump::run(&*backend, ticket, settings, &clock, &teller).await;
            teller.over(end);
        });
        let run = Running {
            _task: task,
            model: Arc::clone(model),
            started: now,
            tokens,
            news: News::Awaited,
            of_provider,
            of_model,
        };
        self.running.insert(call, run);
        if probes {
            self.publish();
        }
        self.count();
    }

    /// Whether calls of a model are let through; else when it is worth asking again.
    pub(super) fn circuit(&self, model: &str, now: Duration) -> Result<(), Duration> {
        self.breaker.check(now)?;
        self.lanes
            .get(model)
            .map_or(Ok(()), |lane| lane.breaker.check(now))
    }

    /// The server of a probe has begun to answer: the circuit closes, and the call goes on like any other.
    pub(super) fn reached(&mut self, call: u64) {
        let now = self.now();
        let Some(run) = self.running.get_mut(&call) else {
            return;
        };
        let model = Arc::clone(&run.model);
        let passes = (run.of_provider, run.of_model);
        (run.of_provider, run.of_model) = (Pass::Free, Pass::Free);
        self.judge(&model, passes, (Health::Fine, Health::Fine), "", now);
        self.dispatch();
    }

    /// What the end of a call says of whom it asked.
    fn learn(&mut self, run: &Running, end: &End, now: Duration) {
        let healths = (health::of_provider(end), health::of_model(end));
        let passes = (run.of_provider, run.of_model);
        let why = match end {
            End::Failed(fault) => fault.code.as_str(),
            End::Answered(_) | End::GaveUp | End::Lost => "",
        };
        if let (End::Failed(fault), Some(lane)) = (end, self.lanes.get_mut(&run.model))
            && [healths.0, healths.1].contains(&Health::Failed)
        {
            lane.trouble.clone_from(&fault.detail);
        }
        self.judge(&run.model, passes, healths, why, now);
    }

    /// Tells both circuits how a call went, the provider's first.
    fn judge(
        &mut self,
        of: &Arc<str>,
        passes: (Pass, Pass),
        healths: (Health, Health),
        why: &str,
        now: Duration,
    ) {
        let of_provider = self.breaker.ended(now, passes.0, healths.0);
        let lane = self.lanes.get_mut(of);
        let of_model = lane.and_then(|lane| lane.breaker.ended(now, passes.1, healths.1));
        for (model, change) in [(None, of_provider), (Some(of), of_model)] {
            let Some(change) = change else { continue };
            self.args.tell_circuit(model, change, why);
            if let Change::Opened(after) = change {
                let models =
                    model.map_or_else(|| self.round.clone(), |one| [Arc::clone(one)].into());
                for model in models {
                    self.send_away(&model, after, now);
                }
            }
            self.publish();
        }
    }

    fn ready_at(&self, lane: &Lane, tokens: u64) -> Duration {
        lane.pace.ready_at(tokens).max(self.pace.ready_at(tokens))
    }

    fn has_room(&self) -> bool {
        self.running.len() < self.args.settings.concurrency
    }

    pub(super) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// A model comes into being with its first call.
    fn know(&mut self, model: &Arc<str>) {
        if !self.lanes.contains_key(model) {
            let lane = Lane::new(self.args.settings.breaker);
            self.lanes.insert(Arc::clone(model), lane);
            self.round.push_back(Arc::clone(model));
            self.publish();
        }
    }

    fn set_alarm(&mut self, at: Option<Duration>, now: Duration) {
        let Some(at) = at else {
            self.alarm = None;
            return;
        };
        if self
            .alarm
            .as_ref()
            .is_some_and(|(set, _)| *set == at && at > now)
        {
            return;
        }
        let (me, due) = (self.me.clone(), self.start + at);
        let task = Task::spawn(async move {
            tokio::time::sleep_until(due).await;
            let _ = me.cast(GatewayMsg::Due);
        });
        self.alarm = Some((at, task));
    }

    fn count(&self) {
        self.args.board.count(self.running.len(), self.waiting());
    }
}
