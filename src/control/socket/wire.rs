//! What goes over the socket.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio_util::codec::LinesCodec;

use crate::control::{
    Answer, MAX_REQUEST, Refused, Seen, Verb, Watching,
    verb::{invalid, invalid_watch},
};

/// What is asked.
pub(super) enum Request {
    /// Carry this out.
    Do(Verb),
    /// Follow what is recorded.
    Watch(Watching),
}

/// A request to follow.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Watch {
    pub watch: Watching,
}

impl Request {
    pub(super) fn read(line: &str) -> Result<Self, Refused> {
        // Only to tell the two apart; a struct would be read from a list too.
        let fields: HashMap<String, &RawValue> =
            serde_json::from_str(line).map_err(|error| invalid(&error))?;
        if !fields.contains_key("watch") {
            return Ok(Self::Do(Verb::from_json(line.as_bytes())?));
        }
        let Watch { watch } = serde_json::from_str(line).map_err(|error| invalid_watch(&error))?;
        Ok(Self::Watch(watch))
    }
}

/// What is answered.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    /// It was carried out.
    Ok(Answer),
    /// It was not.
    Refused(Refused),
    /// What is recorded from now on follows.
    Watching {},
    /// Something to see.
    Seen(Seen),
}

/// Lines of what is asked.
pub(super) fn requests() -> LinesCodec {
    LinesCodec::new_with_max_length(MAX_REQUEST)
}

/// Lines of what is answered, which may be long: a page of events. Whoever reads them has asked for them.
pub(super) fn answers() -> LinesCodec {
    LinesCodec::new()
}
