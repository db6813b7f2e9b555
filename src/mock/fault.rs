//! What goes wrong on purpose: the faults by name, and what each one does.
//!
//! The one list: the help, the documentation's test and the header `x-mock-fault` go by it.

use std::{fmt, str::FromStr};

use serde::Deserialize;

/// In place of the number of events after which a stream breaks: when all of its content has been sent.
pub(super) const AFTER_CONTENT: u64 = u64::MAX;

macro_rules! faults {
    ($($variant:ident $name:literal $(= $number:literal)?: $what:literal;)+) => {
        /// A kind of fault.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum FaultKind {
            $(#[doc = $what] $variant,)+
        }

        impl FaultKind {
            /// All of them, in the order in which people read them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// As it is written.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// What it does.
            #[must_use]
            pub const fn what(self) -> &'static str {
                match self {
                    $(Self::$variant => $what,)+
                }
            }

            /// What the number behind `=` is; `None` where it takes none.
            #[must_use]
            pub const fn number(self) -> Option<&'static str> {
                match self {
                    $(Self::$variant => faults!(@number $($number)?),)+
                }
            }
        }
    };
    (@number) => { None };
    (@number $number:literal) => { Some($number) };
}

faults! {
    BadRequest "400": "refused as a bad request";
    Unauthorized "401": "refused: the key is wrong";
    Forbidden "403": "refused: the key may not do that";
    NotFound "404": "refused: no such model";
    RequestTimeout "408": "refused: the request took too long";
    Conflict "409": "refused: a conflict";
    TooLarge "413": "refused: the request is too large";
    Unprocessable "422": "refused: the request means nothing";
    RateLimited "429": "refused by a rate limit that does not say for how long";
    ServerError "500": "an error of the server";
    BadGateway "502": "an error of a gateway before the server";
    Unavailable "503": "the server is not available";
    GatewayTimeout "504": "a gateway before the server gave up";
    Overloaded "529": "the server is overloaded";
    RetrySeconds "retry-seconds" = "seconds (1)": "429 with `retry-after` in seconds";
    RetryDate "retry-date" = "seconds (2)": "429 with `retry-after` as a date";
    RetryMs "retry-ms" = "milliseconds (250)": "429 with `retry-after-ms`";
    ShouldRetry "should-retry": "400 with `x-should-retry: true`";
    ShouldNotRetry "should-not-retry": "500 with `x-should-retry: false`";
    Quota "quota": "the account has no money left (429, 402 from Anthropic)";
    Context "context": "refused: the conversation does not fit the model's context";
    Html "html": "502 with a page of HTML, as a proxy sends it";
    ErrorOk "error-200": "an error as JSON, with status 200";
    StallHeaders "stall-headers": "no answer at all";
    HangUp "hang-up": "the connection is closed before the answer begins";
    ErrorFirst "error-first": "a stream that has an error before any content";
    ErrorLate "error-late" = "events before it (half of the content)": "a stream that has an error in its midst";
    Cut "cut" = "events before it (half of the content)": "the connection breaks in the midst of the answer";
    Stall "stall" = "events before it (half of the content)": "nothing more comes in the midst of the answer";
    NoMark "no-mark": "a stream that ends without its end mark; the reason for its end has come";
    NoEnd "no-end": "a stream that ends without a reason and without its end mark";
    CommentsOnly "comments-only" = "milliseconds between (1000)": "a stream of comments and nothing else";
    Comments "comments": "comments between the events";
    Slow "slow" = "milliseconds a byte (1000)": "the answer comes byte by byte";
    Duplicate "duplicate" = "which event, from 1 (the first with content)": "an event comes twice";
    OutOfOrder "out-of-order" = "which event, from 1 (the last with content)": "an event comes after the one that follows it";
    Bom "bom": "a byte order mark before everything";
    Crlf "crlf": "lines of a stream end in CR LF";
    Split "split" = "bytes a piece (5)": "pieces that cut lines and characters apart, and a text that has long ones";
    Json "json": "a whole reply as JSON where a stream was asked for";
    HugeLine "huge-line" = "bytes (16777216)": "a line of very many bytes";
    EmptyChoices "empty-choices": "a reply without choices, or without any content";
    EmptyText "empty-text": "a reply whose text is empty";
    Reasoning "reasoning": "a reply with reasoning before its text";
    ReasoningContent "reasoning-content": "the same as `reasoning_content`, as some servers call it";
    ReasoningOnly "reasoning-only": "a reply of reasoning alone";
    Refusal "refusal": "the model refuses";
    ContentFilter "content-filter": "a filter takes the rest of the reply (400 from Anthropic)";
    Length "length": "the reply is cut by the output limit";
    NoUsage "no-usage": "the reply does not say what it used";
    FinishEmpty "finish-empty": "the reason for the end is an empty text";
    FinishMissing "finish-missing": "no reason for the end";
    FinishStop "finish-stop": "two tool calls, and the reason for the end does not tell of them";
    FinishWithLast "finish-with-last": "the reason for the end comes with the last content";
    Calls "calls": "two tool calls, with nothing wrong";
    CallCut "call-cut": "a tool call whose arguments are cut";
    CallNoIndex "call-no-index": "two tool calls without `index`";
    CallSameIndex "call-same-index": "two tool calls with the same `index`";
    CallObject "call-object": "a tool call whose arguments are an object instead of a text";
    CallUnknown "call-unknown": "a call of a tool that is not in the list";
}

/// A fault, with its number where one was given: `cut=3`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Fault {
    /// Which.
    pub kind: FaultKind,
    /// What [`FaultKind::number`] says.
    pub number: Option<u64>,
}

impl Fault {
    /// The number, or what it is where none was given.
    pub(super) fn number_or(self, default: u64) -> u64 {
        self.number.unwrap_or(default)
    }

    /// The status that it answers with, where it is a refusal.
    pub(super) const fn status(self) -> Option<u16> {
        Some(match self.kind {
            FaultKind::BadRequest | FaultKind::Context | FaultKind::ShouldRetry => 400,
            FaultKind::Unauthorized => 401,
            FaultKind::Forbidden => 403,
            FaultKind::NotFound => 404,
            FaultKind::RequestTimeout => 408,
            FaultKind::Conflict => 409,
            FaultKind::TooLarge => 413,
            FaultKind::Unprocessable => 422,
            FaultKind::RateLimited
            | FaultKind::RetrySeconds
            | FaultKind::RetryDate
            | FaultKind::RetryMs
            | FaultKind::Quota => 429,
            FaultKind::ServerError | FaultKind::ShouldNotRetry => 500,
            FaultKind::BadGateway | FaultKind::Html => 502,
            FaultKind::Unavailable => 503,
            FaultKind::GatewayTimeout => 504,
            FaultKind::Overloaded => 529,
            FaultKind::ErrorOk => 200,
            _ => return None,
        })
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
        match self.number {
            Some(number) => write!(f, "={number}"),
            None => Ok(()),
        }
    }
}

/// A fault that is not written as one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// No fault has this name.
    #[error("no fault is named `{0}`: `oracle mock-model --list-faults` lists them")]
    Unknown(String),
    /// It takes no number.
    #[error("the fault `{0}` takes no number: leave `=` out")]
    NoNumber(&'static str),
    /// What stands behind `=` is no number.
    #[error("`{number}` is no number: write `{name}=N`, where N is: {what}")]
    Number {
        /// The fault.
        name: &'static str,
        /// What stands there.
        number: String,
        /// What it means.
        what: &'static str,
    },
}

impl FromStr for Fault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let (name, number) = match text.split_once('=') {
            Some((name, number)) => (name, Some(number)),
            None => (text, None),
        };
        let mut kinds = FaultKind::ALL.iter().copied();
        let kind = kinds
            .find(|kind| kind.name() == name)
            .ok_or_else(|| FaultError::Unknown(name.to_owned()))?;
        let Some(number) = number else {
            return Ok(kind.into());
        };
        let what = kind.number().ok_or(FaultError::NoNumber(kind.name()))?;
        let parsed = number.parse::<u64>().ok();
        let parsed = parsed.filter(|number| *number != AFTER_CONTENT);
        match parsed {
            Some(number) => Ok(Self {
                kind,
                number: Some(number),
            }),
            None => Err(FaultError::Number {
                name: kind.name(),
                number: number.to_owned(),
                what,
            }),
        }
    }
}

impl TryFrom<String> for Fault {
    type Error = FaultError;

    fn try_from(text: String) -> Result<Self, FaultError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_read_back_by_its_name() {
        for &kind in FaultKind::ALL {
            assert_eq!(kind.name().parse(), Ok(Fault::from(kind)));
            let with_number = format!("{}=3", kind.name()).parse::<Fault>();
            match kind.number() {
                Some(_) => assert_eq!(
                    with_number.unwrap().to_string(),
                    format!("{}=3", kind.name())
                ),
                None => assert_eq!(with_number, Err(FaultError::NoNumber(kind.name()))),
            }
        }
    }

    #[test]
    fn what_is_no_fault_is_refused_with_a_way_on() {
        for (text, want) in [
            (
                "cuts",
                "no fault is named `cuts`: `oracle mock-model --list-faults` lists them",
            ),
            ("429=3", "the fault `429` takes no number: leave `=` out"),
            (
                "cut=x",
                "`x` is no number: write `cut=N`, where N is: events before it (half of the content)",
            ),
            (
                "slow=",
                "`` is no number: write `slow=N`, where N is: milliseconds a byte (1000)",
            ),
        ] {
            let error = text.parse::<Fault>().unwrap_err();
            assert_eq!(error.to_string(), want);
        }
    }
}
