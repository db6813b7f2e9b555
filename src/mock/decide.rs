//! Decides how to answer a request, without I/O.

use std::time::{Duration, SystemTime};

use axum::http::HeaderMap;
use bytes::Bytes;
use tokio::time::Instant;

use super::{
    damage::{self, Step},
    dialect::MockDialect,
    fault::{self, Fault, FaultKind, Problem, Salt},
    reply::{EventKind, Reply, event_text},
    request::{self, Breach, ParsedRequest, Rule},
    server::{HOLD, Server},
    voice::{self, PlannedReply},
};
use crate::model::StopReason;

const JSON: &str = "application/json";
const STREAM: &str = "text/event-stream";
const HTML: &str = "text/html";
const PROXY_PAGE: &str = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n\
                          <center><h1>502 Bad Gateway</h1></center>\r\n</body>\r\n</html>\r\n";
/// A request asks for a fault with this header.
pub(super) const FAULT: &str = "x-mock-fault";

#[derive(Debug)]
pub(super) struct Answer {
    /// Delay before the answer's headers.
    pub(super) wait: Duration,
    pub(super) status: u16,
    pub(super) kind: &'static str,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Sent,
    pub(super) fault: Option<Fault>,
    pub(super) breaches: Vec<Breach>,
}

#[derive(Debug)]
pub(super) enum Sent {
    Whole(Bytes),
    Steps(Vec<Step>),
}

impl Answer {
    pub(super) fn is_stream(&self) -> bool {
        self.kind == STREAM
    }

    /// Whether the connection closes before the answer begins.
    pub(super) fn never_begins(&self) -> bool {
        matches!(&self.body, Sent::Steps(steps) if steps.first() == Some(&Step::Cut))
    }

    fn new(status: u16, kind: &'static str, body: Sent) -> Self {
        Self {
            wait: Duration::ZERO,
            status,
            kind,
            headers: Vec::new(),
            body,
            fault: None,
            breaches: Vec::new(),
        }
    }
}

pub(super) struct MockRequest<'a> {
    pub(super) dialect: &'static dyn MockDialect,
    pub(super) number: u64,
    /// Requests in flight, including this one.
    pub(super) in_flight: u64,
    pub(super) headers: &'a HeaderMap,
    pub(super) body: &'a Bytes,
    pub(super) now: Instant,
    pub(super) date: SystemTime,
}

impl MockRequest<'_> {
    pub(super) fn decide(&self, server: &Server) -> Answer {
        let mut breaches = Vec::new();
        let reply = self.reply(server, &mut breaches);
        let mut answer = reply.unwrap_or_else(|problem| self.refusal(&problem));
        answer.breaches = breaches;
        let settings = &server.settings;
        if answer.wait.is_zero() {
            let chance = fault::chance(settings.seed, self.number, Salt::Latency);
            answer.wait = settings.latency.at(chance);
        }
        let limits = server.limits.lock();
        let headers = limits.headers(self.dialect, self.now, self.date);
        answer.headers.extend(headers);
        answer
    }

    fn reply(&self, server: &Server, breaches: &mut Vec<Breach>) -> Result<Answer, Problem> {
        let settings = &server.settings;
        if !server.has_key(self.headers) {
            breaches.push(Rule::Key.broken("the key is missing or wrong"));
            return Err(Problem::new(401, "incorrect API key provided"));
        }
        let fault = match self.headers.get(FAULT) {
            Some(name) => {
                let fault = String::from_utf8_lossy(name.as_bytes()).parse::<Fault>();
                Some(fault.map_err(|error| Problem::new(400, error.to_string()))?)
            }
            None => fault::choose(&settings.faults, settings.seed, self.number),
        };
        let mut asked = request::read(self.dialect, self.body).map_err(|error| {
            let what = format!("invalid body: {error}");
            breaches.push(Rule::Form.broken(&*what));
            Problem::new(400, what)
        })?;
        breaches.append(&mut asked.breaches);
        if let (true, Some(breach)) = (settings.strict, breaches.first()) {
            return Err(Problem::new(400, &*breach.what));
        }
        if settings.strict {
            asked.bound = self.dialect.strict(&asked.body, self.headers)?;
            asked.cached = Some(self.dialect.cached(&mut server.cache.lock(), &asked.body));
        }
        let (models, model) = (&settings.models, asked.model());
        if !models.is_empty() && !models.iter().any(|name| name == model) {
            let what = format!("the model `{model}` does not exist");
            return Err(Problem::new(404, what));
        }
        let planned = server.voice.say(&asked);
        let said = planned.as_ref().map_or(0, |reply| reply.said.tokens());
        self.within_limits(server, asked.tokens + said, breaches)?;
        let planned = planned?;
        let fault = planned.fault.or(fault);
        let mut answer = self.damaged(server, &asked, &planned, fault);
        answer.fault = fault;
        answer.wait = answer.wait.max(planned.delay);
        Ok(answer)
    }

    fn within_limits(
        &self,
        server: &Server,
        tokens: u64,
        breaches: &mut Vec<Breach>,
    ) -> Result<(), Problem> {
        let most = server.settings.concurrency;
        let most = most.map_or(u64::MAX, |most| most.get().into());
        if self.in_flight > most {
            let what = format!("{most} concurrent requests");
            breaches.push(Rule::Limits.broken(format!("more than {what}")));
            return Err(Problem::new(429, format!("at most {what}")));
        }
        let taken = server.limits.lock().take(tokens, self.now);
        taken.map_err(|wait| {
            let wait = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX) + 1;
            let what = format!("the limit per minute is reached for {wait} ms");
            breaches.push(Rule::Limits.broken(&*what));
            Problem::new(429, what)
                .with("retry-after", wait.div_ceil(1_000))
                .with("retry-after-ms", wait)
        })
    }

    fn damaged(
        &self,
        server: &Server,
        asked: &ParsedRequest,
        utterance: &PlannedReply,
        fault: Option<Fault>,
    ) -> Answer {
        let mut said = utterance.said.clone();
        if let Some(fault) = fault {
            if let Some(answer) = self.fault_answer(asked, fault) {
                return answer;
            }
            said = voice::apply_fault(said, fault, asked);
        }
        let kind = fault.map(|fault| fault.kind);
        if asked.bound.is_some() && kind != Some(FaultKind::EmptyChoices) {
            said.reasoning.get_or_insert("reasoning");
        }
        if said.stop == StopReason::ContentFilter && self.dialect.facts().filter_refuses {
            let what = "output blocked by content filtering policy";
            return self.refusal(&Problem::new(400, what));
        }
        let reply = Reply {
            asked,
            said: &said,
            fault: kind,
        };
        if !asked.is_stream() || kind == Some(FaultKind::Json) {
            let body = Bytes::from(self.dialect.whole(&reply).to_string());
            let sent = match fault {
                None => Sent::Whole(body),
                Some(fault) => Sent::Steps(damage::of_body(body, fault)),
            };
            return Answer::new(200, JSON, sent);
        }
        let events = self.dialect.events(&reply).into_iter();
        let events = events.map(|(holds, data)| (event_text(&data), holds));
        let (seed, gap) = (server.settings.seed, server.settings.gap);
        if fault.is_none() && gap.is_zero() && utterance.gap.is_zero() {
            let whole: String = events.map(|(text, _)| text).collect();
            return Answer::new(200, STREAM, Sent::Steps(vec![Step::Send(whole.into())]));
        }
        let mut nth = self.number << 16;
        let gap = || {
            nth += 1;
            match utterance.gap {
                Duration::ZERO => gap.at(fault::chance(seed, nth, Salt::Gap)),
                gap => gap,
            }
        };
        let what = "mock fault: the server failed in the middle of the reply";
        let problem = Problem::new(500, what);
        let error = |number| {
            let data = self.dialect.error_event(&problem, &reply, number);
            (event_text(&data), EventKind::Frame)
        };
        let steps = damage::of_stream(events.collect(), fault, error, gap);
        Answer::new(200, STREAM, Sent::Steps(steps))
    }

    /// The answer of a fault that replaces the reply.
    fn fault_answer(&self, asked: &ParsedRequest, fault: Fault) -> Option<Answer> {
        let cut = || Answer::new(200, JSON, Sent::Steps(vec![Step::Cut]));
        match fault.kind {
            FaultKind::Html => Some(Answer::new(502, HTML, Sent::Whole(PROXY_PAGE.into()))),
            FaultKind::HangUp => Some(cut()),
            FaultKind::StallHeaders => Some(Answer {
                wait: HOLD,
                ..cut()
            }),
            // Without a stream, an error after the status can only be the body.
            FaultKind::ErrorFirst | FaultKind::ErrorLate if !asked.is_stream() => {
                Some(self.refusal(&Problem::of_fault(FaultKind::ErrorOk.into(), self.date)?))
            }
            _ => Some(self.refusal(&Problem::of_fault(fault, self.date)?)),
        }
    }

    pub(super) fn refusal(&self, problem: &Problem) -> Answer {
        let status = self.dialect.status(problem);
        let body = self.dialect.error(problem).to_string();
        let mut answer = Answer::new(status, JSON, Sent::Whole(body.into()));
        answer.headers.clone_from(&problem.headers);
        answer
    }
}

#[cfg(test)]
mod tests;
