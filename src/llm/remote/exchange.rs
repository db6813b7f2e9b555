//! One call: send the request, read the answer, end. All waiting happens in the stream, so dropping
//! it ends the call.
//!
//! **Invariant:** the stream ends after the first fault and after the one `Done`.

use std::{collections::VecDeque, mem, sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};
use reqwest::{Response, Url, Version, header::CONTENT_ENCODING};
use tokio::time::timeout;

use super::Shared;
use crate::{
    llm::{
        Delta, DeltaStream, Request,
        decode::Flow,
        estimate_usage, fault,
        forms::Forms,
        pieces::DeltaResult,
        reading::{Bounds, Reading, is_content},
    },
    model::{Fault, FaultClass, FaultCode},
};

/// How often a call is sent in another form. Each refusal teaches one.
const MOST_FORMS: u8 = 5;

/// Limit on the bytes of an error body.
const ERROR_BODY: usize = 64 << 10;

/// Deadline for an error body. Status and headers matter most, and must not be lost to a caller's
/// deadline.
const WORDS: Duration = Duration::from_secs(5);

/// Deadline for the last bytes after the reply is complete, so that the connection can be reused.
const LINGER: Duration = Duration::from_millis(20);

struct Exchange {
    shared: Arc<Shared>,
    ready: VecDeque<DeltaResult>,
    phase: Phase,
    /// What was sent, until the reply begins.
    sent: Option<(Request, Forms)>,
    /// How often the call may be sent in another form.
    forms_left: u8,
}

enum Phase {
    Asking(Request),
    Reading(Box<Answer>),
    Over,
}

struct Answer {
    response: Response,
    reading: Reading,
}

pub(super) fn stream(shared: Arc<Shared>, request: Request) -> DeltaStream {
    let exchange = Exchange {
        shared,
        ready: VecDeque::new(),
        phase: Phase::Asking(request),
        sent: None,
        forms_left: MOST_FORMS,
    };
    stream::unfold(Box::new(exchange), |mut exchange| async move {
        let item = exchange.next().await?;
        Some((item, exchange))
    })
    .boxed()
}

impl Exchange {
    async fn next(&mut self) -> Option<DeltaResult> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                self.sent.take_if(|_| item.as_ref().is_ok_and(is_content));
                return Some(item);
            }
            let stepped = match mem::replace(&mut self.phase, Phase::Over) {
                Phase::Asking(request) => self.ask(request).await,
                Phase::Reading(answer) => self.read(answer).await,
                Phase::Over => return None,
            };
            match stepped {
                Ok(phase) => self.phase = phase,
                Err(fault) => {
                    let fault = self.shared.connection.secrets.clean_fault(fault);
                    match self.in_another_form(&fault) {
                        Some(request) => self.phase = Phase::Asking(request),
                        None => self.ready.push_back(Err(fault)),
                    }
                }
            }
        }
    }

    /// The call to be sent again, if its refusal, by status or in a body, taught another form.
    fn in_another_form(&mut self, fault: &Fault) -> Option<Request> {
        let has_begun = self.ready.iter().flatten().any(is_content);
        let (request, forms) = self.sent.take().filter(|_| !has_begun)?;
        let (shared, model) = (&self.shared, &request.model);
        let has_other = shared.other.is_some();
        let other = shared.learned.learn(model, forms, fault, has_other)?;
        self.forms_left = self.forms_left.checked_sub(1)?;
        let (provider, detail) = (&shared.name, &fault.detail);
        if other.no_tools && !forms.no_tools {
            tracing::warn!(
                "{provider}/{model} takes no tools: answered without the project's tools"
            );
        }
        tracing::info!(%provider, %model, forms = ?other, %detail, "call sent in another form");
        Some(request)
    }

    async fn ask(&mut self, request: Request) -> Result<Phase, Fault> {
        let shared = &self.shared;
        // Another call may learn of another form meanwhile.
        let forms = shared.learned.of(&request.model);
        self.sent = Some((request.clone(), forms));
        let asked = shared.ask(&request, forms).map_err(|error| Fault {
            class: FaultClass::Bug,
            code: FaultCode::BadRequest,
            detail: format!("cannot serialize the request: {error}"),
        })?;
        let connection = &shared.connection;
        let asked = connection.client.execute(asked);
        let answered = if shared.streams {
            timeout(shared.patience, asked).await.map_err(|_| {
                fault::headers_late(&connection.place, shared.patience, shared.local)
            })?
        } else {
            // The headers come with the reply, whose deadline is the gateway's.
            asked.await
        };
        let response = answered.map_err(|error| fault::of_send(&error, &connection.place))?;
        let limits = fault::limits(response.headers());
        self.ready.extend(limits.map(Delta::Limits).map(Ok));
        if !response.status().is_success() {
            // The sum of what is sent and received; other vendors' headers limit each by itself.
            let limit = response.headers().get("x-ratelimit-limit-tokens");
            let limit = limit.and_then(|told| told.to_str().ok()?.parse::<u64>().ok());
            let mut fault = refusal(response, shared).await;
            let input = estimate_usage(&request, &[]).input_tokens;
            if fault.code == FaultCode::RateLimited
                && let Some(limit) = limit.filter(|limit| *limit < input)
            {
                (fault.code, fault.class) = (FaultCode::Context, FaultClass::Permanent);
                fault.detail += &format!("; it has {input} tokens, more than the limit of {limit}");
            }
            if fault.code == FaultCode::ModelNotFound {
                fault.detail += &near_models(shared, &request.model).await;
            }
            return Err(fault);
        }
        // The client has decoded the encodings that it knows.
        let encoding = response.headers().get(CONTENT_ENCODING);
        if let Some(encoding) = encoding.filter(|encoding| *encoding != "identity") {
            let encoding = String::from_utf8_lossy(encoding.as_bytes());
            return Err(fault::encoded(&encoding));
        }
        let reading = Reading::new(shared.decoder(request, forms), Bounds::default());
        Ok(Phase::Reading(Box::new(Answer { response, reading })))
    }

    async fn read(&mut self, mut answer: Box<Answer>) -> Result<Phase, Fault> {
        let mut deltas = Vec::new();
        let read = answer.response.chunk().await;
        let reading = &mut answer.reading;
        let ended = match &read {
            Ok(Some(chunk)) => match reading.feed(chunk, &mut deltas) {
                Ok(Flow::More) => {
                    if deltas.is_empty() {
                        deltas.push(Delta::Alive);
                    }
                    self.ready.extend(deltas.into_iter().map(Ok));
                    return Ok(Phase::Reading(answer));
                }
                Ok(Flow::End) => reading.end(Flow::End, &mut deltas),
                Err(fault) => Err(fault),
            },
            Ok(None) => reading.end(Flow::More, &mut deltas),
            Err(error) => {
                let ended = reading.end(Flow::More, &mut deltas);
                ended.map_err(|fault| match fault.code {
                    FaultCode::Cut => fault::of_body(error),
                    _ => fault,
                })
            }
        };
        self.ready.extend(deltas.into_iter().map(Ok));
        let reply = ended?;
        if matches!(read, Ok(Some(_))) {
            linger(answer.response).await;
        }
        self.ready.push_back(Ok(Delta::Done(reply)));
        Ok(Phase::Over)
    }
}

/// Names listed models that resemble one that the server does not have.
async fn near_models(shared: &Shared, model: &str) -> String {
    let Ok(Ok(listed)) = timeout(WORDS, super::listing::list(shared)).await else {
        return String::new();
    };
    let names: Vec<&str> = listed.iter().map(|listed| &*listed.name).collect();
    match &*super::nearest(&names, model) {
        [] => String::new(),
        near => format!("; the server lists {}", near.join(", ")),
    }
}

pub(super) async fn refusal(mut response: Response, shared: &Shared) -> Fault {
    let mut body = Vec::new();
    let read = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            body.extend_from_slice(&chunk);
            if body.len() >= ERROR_BODY {
                break;
            }
        }
    };
    // A partial body will do.
    let _ = timeout(shared.patience.min(WORDS), read).await;
    body.truncate(ERROR_BODY);
    let status = response.status().as_u16();
    let mut fault = fault::of_answer(status, response.headers(), &body);
    fault.detail = fault.detail.replacen("the provider", &shared.name, 1);
    if status == 404 && lacks_version(response.url()) {
        fault.detail += "; the base URL has no `/v1`, which most servers need: add it";
    }
    fault
}

/// Whether a URL of OpenAI's dialect has no version, as most servers want one.
fn lacks_version(url: &Url) -> bool {
    let mut bases = ["/chat/completions", "/responses"].iter();
    let base = bases.find_map(|route| url.path().strip_suffix(route));
    base.is_some_and(|base| !base.contains("/v1"))
}

async fn linger(mut response: Response) {
    if response.version() > Version::HTTP_11 {
        return;
    }
    let rest = async { while let Ok(Some(_)) = response.chunk().await {} };
    let _ = timeout(LINGER, rest).await;
}
