//! Faults by name, their schedule, and the refusals that they cause.
//!
//! The command's help, the documentation's test and the header `x-mock-fault` use this list.

use std::{
    fmt,
    ops::RangeInclusive,
    str::FromStr,
    time::{Duration, SystemTime},
};

use crate::model::{FaultCode, SPLITMIX_STEP, splitmix};

/// As the number of a fault: after all content.
pub(super) const AFTER_CONTENT: u64 = u64::MAX;
/// In seconds. Bounds dates, because HTTP dates have years of four digits.
const CENTURY: u64 = 100 * 365 * 86_400;

macro_rules! faults {
    ($($variant:ident $name:literal $(= $number:literal)?: $what:literal;)+) => {
        /// A kind of fault.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum FaultKind {
            $(#[doc = $what] $variant,)+
        }

        impl FaultKind {
            /// All kinds, in display order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Names, effects, and the meanings of their numbers.
            const TEXTS: &'static [(&'static str, &'static str, &'static [&'static str])] =
                &[$(($name, $what, &[$($number)?])),+];
        }
    };
}

impl FaultKind {
    /// Name in a schedule.
    pub const fn name(self) -> &'static str {
        Self::TEXTS[self as usize].0
    }

    /// Description of the effect.
    pub const fn what(self) -> &'static str {
        Self::TEXTS[self as usize].1
    }

    /// Meaning of the number after `=`; `None` if the fault takes none.
    pub fn number(self) -> Option<&'static str> {
        Self::TEXTS[self as usize].2.first().copied()
    }
}

faults! {
    BadRequest "400": "bad request";
    Unauthorized "401": "invalid key";
    Forbidden "403": "the key lacks a permission";
    NotFound "404": "unknown model";
    RequestTimeout "408": "request timeout";
    Conflict "409": "conflict";
    TooLarge "413": "request too large";
    Unprocessable "422": "unprocessable request";
    RateLimited "429": "rate limit without a retry hint";
    ServerError "500": "internal server error";
    BadGateway "502": "bad gateway";
    Unavailable "503": "server unavailable";
    GatewayTimeout "504": "gateway timeout";
    Overloaded "529": "server overloaded";
    RetrySeconds "retry-seconds" = "seconds (1)": "429 with `retry-after` in seconds";
    RetryDate "retry-date" = "seconds (2)": "429 with `retry-after` as a date";
    RetryMs "retry-ms" = "milliseconds (250)": "429 with `retry-after-ms`";
    ShouldRetry "should-retry": "400 with `x-should-retry: true`";
    ShouldNotRetry "should-not-retry": "500 with `x-should-retry: false`";
    Quota "quota": "the account has no credit left (429, 402 from Anthropic)";
    Context "context": "the conversation exceeds the model's context window";
    Html "html": "502 with an HTML page, as proxies send it";
    ErrorOk "error-200": "a JSON error with status 200";
    StallHeaders "stall-headers": "no response";
    HangUp "hang-up": "the connection closes before the response begins";
    ErrorFirst "error-first": "an error event before any content of a stream";
    ErrorLate "error-late" = "events before it (half of the content)": "an error event in the middle of a stream";
    Cut "cut" = "events before it (half of the content)": "the connection breaks in the middle of the response";
    Stall "stall" = "events before it (half of the content)": "the response stalls in the middle";
    NoMark "no-mark": "a stream that ends with a stop reason, but without its end marker";
    NoEnd "no-end": "a stream that ends without a stop reason and end marker";
    CommentsOnly "comments-only" = "milliseconds between (1000)": "a stream of comments only";
    Comments "comments": "comments between the events of a stream";
    Slow "slow" = "milliseconds per byte (1000)": "the response arrives byte by byte";
    Duplicate "duplicate" = "number of the event, from 1 (the first with content)": "an event is sent twice";
    OutOfOrder "out-of-order" = "number of the event, from 1 (the last with content)": "an event is sent after its successor";
    Bom "bom": "a byte order mark at the start";
    Crlf "crlf": "CRLF line ends in a stream";
    Split "split" = "bytes per piece (5)": "pieces that split lines and multi-byte characters";
    Json "json": "a whole JSON reply although a stream was requested";
    HugeLine "huge-line" = "bytes (16777216)": "an extremely long line";
    EmptyChoices "empty-choices": "a reply without choices or content";
    EmptyText "empty-text": "a reply with an empty text";
    Reasoning "reasoning": "a reply with reasoning before its text";
    ReasoningContent "reasoning-content": "the same in `reasoning_content`, the name that some \
                                           servers use";
    ReasoningOnly "reasoning-only": "a reply of reasoning only";
    Refusal "refusal": "the model refuses";
    ContentFilter "content-filter": "a content filter removes the rest of the reply (400 from \
                                     Anthropic)";
    Length "length": "the output limit cuts the reply off";
    NoUsage "no-usage": "a reply without usage";
    FinishEmpty "finish-empty": "an empty stop reason";
    FinishMissing "finish-missing": "no stop reason";
    FinishStop "finish-stop": "two tool calls with a stop reason for plain text";
    FinishWithLast "finish-with-last": "the stop reason in the event of the last content";
    Calls "calls": "two valid tool calls";
    CallCut "call-cut": "a tool call with truncated arguments";
    CallNoIndex "call-no-index": "two tool calls without `index`";
    CallSameIndex "call-same-index": "two tool calls with the same `index`";
    CallObject "call-object": "a tool call with an object instead of a string as arguments";
    CallUnknown "call-unknown": "a call of a tool that was not offered";
}

/// A fault with its optional number, such as `cut=3`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Kind of fault.
    pub kind: FaultKind,
    /// The number after `=`.
    pub number: Option<u64>,
}

impl Fault {
    pub(super) fn number_or(self, default: u64) -> u64 {
        self.number.unwrap_or(default)
    }
}

impl From<FaultKind> for Fault {
    fn from(kind: FaultKind) -> Self {
        Self { kind, number: None }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        let number = self.number;
        number.map_or(Ok(()), |number| write!(f, "={number}"))
    }
}

/// A text that is not a valid fault, schedule or duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseError(pub(super) String);

impl FromStr for Fault {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (name, number) = text.split_once('=').unzip();
        let name = name.unwrap_or(text);
        let kind = FaultKind::ALL.iter().find(|kind| kind.name() == name);
        let &kind = kind.ok_or_else(|| {
            ParseError(format!(
                "unknown fault `{name}`: run `oracle dev mock-model --list-faults` for a list"
            ))
        })?;
        let Some(number) = number else {
            return Ok(kind.into());
        };
        let Some(what) = kind.number() else {
            let what = format!("the fault `{name}` takes no number: remove `=`");
            return Err(ParseError(what));
        };
        match number.parse().ok() {
            None | Some(AFTER_CONTENT) => Err(ParseError(format!(
                "invalid number `{number}`: write `{name}=N`, where N is: {what}"
            ))),
            number => Ok(Self { kind, number }),
        }
    }
}

const WHOLE: u32 = 1_000_000;

/// A fault and its schedule: `429:0.05`, `500@3`, `cut=2@7,9..12,20..`, `bom`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// The fault to apply.
    pub fault: Fault,
    /// Affected requests.
    pub when: When,
}

/// A choice of requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum When {
    /// All requests.
    Always,
    /// A random share, in millionths.
    Share(u32),
    /// Requests with these numbers, from 1.
    At(Vec<RangeInclusive<u64>>),
}

impl FromStr for Planned {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (fault, when) = if let Some((fault, share)) = text.split_once(':') {
            (fault, When::Share(millionths(share)?))
        } else if let Some((fault, numbers)) = text.split_once('@') {
            let ranges = numbers.split(',').map(range).collect::<Result<_, _>>()?;
            (fault, When::At(ranges))
        } else {
            (text, When::Always)
        };
        let fault = fault.parse()?;
        Ok(Self { fault, when })
    }
}

fn millionths(text: &str) -> Result<u32, ParseError> {
    // Of a second, whose millionths are exact.
    let share = text.parse().ok().map(Duration::try_from_secs_f64);
    let share = share.and_then(|share| u32::try_from(share.ok()?.as_micros()).ok());
    share.filter(|share| *share <= WHOLE).ok_or_else(|| {
        ParseError(format!(
            "invalid share of requests `{text}`: write a number from 0 to 1, as in `429:0.05`"
        ))
    })
}

fn range(text: &str) -> Result<RangeInclusive<u64>, ParseError> {
    let number = |text: &str| text.parse().ok().filter(|number| *number > 0);
    let range = match text.split_once("..") {
        None => number(text).map(|at| at..=at),
        Some((from, "")) => number(from).map(|from| from..=u64::MAX),
        Some((from, to)) => number(from).zip(number(to)).map(|(from, to)| from..=to),
    };
    range.filter(|range| !range.is_empty()).ok_or_else(|| {
        ParseError(format!(
            "invalid list of requests `{text}`: write numbers from 1 or ranges, separated by \
             commas, as in `500@3,7..9,20..`"
        ))
    })
}

/// The fault of a request: the first that names its number, else a random one with a share.
pub(super) fn choose(faults: &[Planned], seed: u64, number: u64) -> Option<Fault> {
    let names = |planned: &&Planned| match &planned.when {
        When::Always => true,
        When::At(ranges) => ranges.iter().any(|range| range.contains(&number)),
        When::Share(_) => false,
    };
    if let Some(planned) = faults.iter().find(names) {
        return Some(planned.fault);
    }
    let mut left = chance(seed, number, Salt::Fault) % u64::from(WHOLE);
    for planned in faults {
        if let When::Share(share) = planned.when {
            match left.checked_sub(share.into()) {
                None => return Some(planned.fault),
                Some(rest) => left = rest,
            }
        }
    }
    None
}

/// Makes random choices independent of each other.
#[derive(Debug, Clone, Copy)]
pub(super) enum Salt {
    Fault,
    Latency,
    Gap,
}

/// A pseudo-random number that depends only on the arguments (splitmix64).
pub(super) const fn chance(seed: u64, number: u64, salt: Salt) -> u64 {
    let seed = seed ^ (salt as u64).wrapping_mul(0xd6e8_feb8_6659_fd93);
    splitmix(seed.wrapping_add(number.wrapping_mul(SPLITMIX_STEP)))
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) status: u16,
    pub(super) message: String,
    /// A parameter that OpenAI's dialects name.
    pub(super) parameter: Option<String>,
    /// A code of OpenAI's dialects.
    pub(super) code: Option<&'static str>,
    pub(super) headers: Vec<(String, String)>,
}

/// The code of a conversation that exceeds the context window.
pub(super) const CONTEXT: &str = "context_length_exceeded";
/// The code of an account without credit.
pub(super) const QUOTA: &str = "insufficient_quota";

impl Problem {
    pub(super) fn new(status: u16, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            ..Self::default()
        }
    }

    /// A refusal of OpenAI's that names a parameter, and a code.
    pub(super) fn about(
        parameter: &str,
        code: Option<&'static str>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            parameter: Some(parameter.to_owned()),
            code,
            ..Self::new(400, message)
        }
    }

    /// Adds a header.
    pub(super) fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.headers.push((name.to_owned(), value.to_string()));
        self
    }

    /// The refusal by this fault at a time; `None` if it does not refuse.
    pub(super) fn of_fault(fault: Fault, now: SystemTime) -> Option<Self> {
        let of = |status| Self::new(status, format!("mock fault {fault}: {}", fault.kind.what()));
        Some(match fault.kind {
            FaultKind::Context => of(400).coded(CONTEXT),
            FaultKind::Quota => of(429).coded(QUOTA),
            FaultKind::RetrySeconds => of(429).with("retry-after", fault.number_or(1)),
            FaultKind::RetryDate => {
                let date = now + Duration::from_secs(fault.number_or(2).min(CENTURY));
                of(429).with("retry-after", httpdate::fmt_http_date(date))
            }
            FaultKind::RetryMs => of(429).with("retry-after-ms", fault.number_or(250)),
            FaultKind::ShouldRetry => of(400).with("x-should-retry", true),
            FaultKind::ShouldNotRetry => of(500).with("x-should-retry", false),
            FaultKind::ErrorOk => of(200),
            kind => of(kind.name().parse().ok()?),
        })
    }

    fn coded(self, code: &'static str) -> Self {
        Self {
            code: Some(code),
            ..self
        }
    }

    /// The refusal for a script's fault, by its code.
    pub(super) fn of_code(
        code: &FaultCode,
        detail: &str,
        permanent: bool,
        after_ms: Option<u64>,
    ) -> Self {
        let status = match code {
            FaultCode::Unauthorized => 401,
            FaultCode::Forbidden => 403,
            FaultCode::ModelNotFound => 404,
            FaultCode::RequestTimeout => 408,
            FaultCode::Conflict => 409,
            FaultCode::TooLarge => 413,
            FaultCode::RateLimited | FaultCode::Quota => 429,
            FaultCode::Overloaded => 529,
            FaultCode::BadRequest | FaultCode::Context => 400,
            _ if permanent => 400,
            _ => 500,
        };
        let mut problem = Self::new(status, format!("{code}: {detail}"));
        problem.code = match code {
            FaultCode::Quota => Some(QUOTA),
            FaultCode::Context => Some(CONTEXT),
            _ => None,
        };
        match after_ms {
            Some(millis) => problem.with("retry-after-ms", millis),
            None => problem,
        }
    }
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_parses_from_its_name() {
        for &kind in FaultKind::ALL {
            assert_eq!(kind.name().parse(), Ok(Fault::from(kind)));
            let with_number = format!("{}=3", kind.name()).parse::<Fault>();
            match kind.number() {
                Some(_) => assert_eq!(
                    with_number.unwrap().to_string(),
                    format!("{}=3", kind.name())
                ),
                None => assert!(with_number.unwrap_err().0.contains("takes no number")),
            }
        }
    }

    #[test]
    fn unknown_fault_is_refused_with_a_remedy() {
        for (text, want) in [
            (
                "cuts",
                "unknown fault `cuts`: run `oracle dev mock-model --list-faults` for a list",
            ),
            ("429=3", "the fault `429` takes no number: remove `=`"),
            (
                "cut=x",
                "invalid number `x`: write `cut=N`, where N is: events before it (half of the \
                 content)",
            ),
            (
                "slow=",
                "invalid number ``: write `slow=N`, where N is: milliseconds per byte (1000)",
            ),
        ] {
            let error = text.parse::<Fault>().unwrap_err();
            assert_eq!(error.to_string(), want);
        }
    }

    fn plan(texts: &[&str]) -> Vec<Planned> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn fault_plan_round_trips() {
        for (text, fault, when) in [
            ("429:0.05", "429", When::Share(50_000)),
            ("500@3", "500", When::At(vec![3..=3])),
            (
                "cut=2@7,9..12,20..",
                "cut=2",
                When::At(vec![7..=7, 9..=12, 20..=u64::MAX]),
            ),
            ("bom", "bom", When::Always),
            ("slow=10:1", "slow=10", When::Share(1_000_000)),
            ("401:0", "401", When::Share(0)),
        ] {
            let fault = fault.parse().unwrap();
            assert_eq!(text.parse(), Ok(Planned { fault, when }), "{text}");
        }
    }

    #[test]
    fn invalid_fault_plan_is_refused() {
        for (text, want) in [
            ("429:1.5", "invalid share of requests `1.5`"),
            ("429:x", "invalid share of requests `x`"),
            ("429:NaN", "invalid share of requests `NaN`"),
            ("429@0", "invalid list of requests `0`"),
            ("429@", "invalid list of requests ``"),
            ("429@5..3", "invalid list of requests `5..3`"),
            ("430", "unknown fault `430`"),
        ] {
            let error = text.parse::<Planned>().unwrap_err().to_string();
            assert!(error.starts_with(want), "{text}: {error}");
        }
    }

    #[test]
    fn faults_apply_to_numbered_requests() {
        let faults = plan(&["500@3", "cut@3,5..6", "401@9.."]);
        let kinds: Vec<_> = (1..=10)
            .map(|number| choose(&faults, 1, number).map(|fault| fault.kind.name()))
            .collect();
        let (none, cut, key) = (None, Some("cut"), Some("401"));
        let want = [
            none,
            none,
            Some("500"),
            none,
            cut,
            cut,
            none,
            none,
            key,
            key,
        ];
        assert_eq!(kinds, want);
    }

    #[test]
    fn shares_are_met_and_follow_from_the_seed() {
        let faults = plan(&["429:0.05", "500:0.10"]);
        let of_seed = |seed| {
            (1..=10_000).map(move |number| choose(&plan(&["429:0.05", "500:0.10"]), seed, number))
        };
        let count = |kind| {
            (1..=10_000)
                .filter(|number| {
                    choose(&faults, 7, *number).is_some_and(|fault| fault.kind == kind)
                })
                .count()
        };
        assert!((400..600).contains(&count(FaultKind::RateLimited)));
        assert!((900..1100).contains(&count(FaultKind::ServerError)));
        assert!(of_seed(7).eq(of_seed(7)));
        assert!(!of_seed(7).eq(of_seed(8)));
    }
}
