//! Types that all modules share: ids, messages, records, events and outcomes.
//!
//! Data and small total functions. No decisions, no I/O, no clock.

/// Declares an enum whose variants are words, the same in JSON, messages and options.
#[doc(hidden)]
#[macro_export]
macro_rules! words {
    (
        $(#[$doc:meta])*
        $vis:vis enum $name:ident {
            $( $(#[$vdoc:meta])* $variant:ident = $word:literal, )+
        }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        $vis enum $name {
            $( $(#[$vdoc])* #[serde(rename = $word)] $variant, )+
        }

        impl $name {
            /// All variants.
            $vis const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// The word.
            $vis const fn as_str(self) -> &'static str {
                match self {
                    $( Self::$variant => $word, )+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
#[doc(hidden)]
pub use words;

/// Whether a field has its default value, which is not written.
#[doc(hidden)]
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Bytes as hexadecimal digits in lower case.
#[doc(hidden)]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The step between two states of SplitMix64, a generator of pseudo-random numbers.
#[doc(hidden)]
pub const SPLITMIX_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The number that SplitMix64 yields in a state.
#[doc(hidden)]
pub const fn splitmix(state: u64) -> u64 {
    let mixed = state.wrapping_add(SPLITMIX_STEP);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

pub mod access;
#[cfg(feature = "cli")]
mod arguments;
pub mod budget;
pub mod classification;
pub mod command;
pub mod decimal;
pub mod event;
pub mod fault;
pub mod id;
#[doc(hidden)]
pub mod json;
pub mod limits;
pub mod message;
pub mod options;
pub mod outcome;
pub mod price;
pub mod record;
pub mod reply;
#[cfg(feature = "openapi")]
#[doc(hidden)]
pub mod schemas;
pub mod signal;
pub mod state;
#[doc(hidden)]
pub mod surrogates;
pub mod time;
pub mod tool;
pub mod usage;
pub mod visible;

pub use access::{By, Principal};
pub use budget::{Allowance, BudgetUnit, Charge, Day, DayUsage, Payer, Period, PeriodBudget};
pub use classification::{Needs, QueryClassification, QueryType};
pub use command::{BusyPolicy, ForkPoint, Import, ImportedMessage, Speaker, Submission};
pub use event::{Event, Severity, Source};
pub use fault::{Fault, FaultClass, FaultCode};
pub use id::{
    Attempt, CallId, Epoch, IdError, Owner, ProfileName, QueryId, Seq, SessionKey, SessionName,
    Sid, TenantId, Turn,
};
pub use limits::{Limits, LimitsRequest, PartialLimits};
pub use message::{Message, OpaquePart, Part, Role};
pub use options::{
    AnswerFormat, AnswerOptions, Capabilities, ClientToolChoice, Cut, Image, Parameter,
};
pub use outcome::{ForcedBy, Outcome};
pub use price::{Price, Retirement};
pub use record::{Record, Utterance};
pub use reply::{Reply, StopReason};
pub use signal::{Rejection, Signal, SignalFields, SignalType};
pub use state::{SessionState, StateFilter};
pub use time::{Span, Timestamp};
pub use tool::{
    ApprovalToken, ToolApproval, ToolCall, ToolEffect, ToolNeed, ToolRepeat, ToolResult, ToolSpec,
    ToolStatus, ToolTrust,
};
pub use usage::{NanoUsd, Usage};
