//! The end of a model call.

use crate::model::{Fault, Usage};

/// A model call that brought no reply.
#[derive(Debug)]
pub(super) struct Failed {
    pub fault: Fault,
    /// Usage, as far as the provider reported it.
    pub usage: Usage,
}

impl From<Fault> for Failed {
    fn from(fault: Fault) -> Self {
        let usage = Usage::default();
        Self { fault, usage }
    }
}
