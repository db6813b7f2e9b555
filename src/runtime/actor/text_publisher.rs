//! The text of a reply, shown to listeners while it arrives.

use std::sync::Arc;

use super::bus::{BusHandle, Frame, Notice};
use crate::{
    kernel::CallToken,
    llm::Request,
    model::SessionKey,
    signal::{Stripper, TextLimit},
};

/// Bytes to collect without a listener.
const MAX_UNREAD: usize = 64 << 10;

/// Publishes the visible text of a reply as it arrives. Without a listener on the session's bus, it only
/// collects the pieces; the next listener gets what was not sent yet, with the next piece.
pub(super) struct TextPublisher {
    bus: BusHandle,
    session: SessionKey,
    token: CallToken,
    stripper: Stripper,
    limit: TextLimit,
    unread: String,
    shown: usize,
}

impl TextPublisher {
    pub(super) fn new(
        bus: BusHandle,
        session: SessionKey,
        token: CallToken,
        request: &Request,
    ) -> Self {
        let options = request.options.as_deref();
        let is_text = options.is_none_or(|options| options.format.is_text());
        let limit = options.map(TextLimit::new).unwrap_or_default();
        Self {
            bus,
            session,
            token,
            stripper: Stripper::for_tools(Arc::clone(&request.tools), is_text),
            limit,
            unread: String::new(),
            shown: 0,
        }
    }

    pub(super) fn push(&mut self, text: &str) {
        self.unread.push_str(text);
        if self.unread.len() > MAX_UNREAD || self.bus.has_subscribers(&self.session) {
            let text = self.read();
            self.show(text);
        }
    }

    pub(super) fn finish(mut self) {
        if self.bus.has_subscribers(&self.session) {
            let mut text = self.read();
            text += &self.limit.push(std::mem::take(&mut self.stripper).finish());
            text += &self.limit.finish();
            self.show(text);
        }
    }

    fn read(&mut self) -> String {
        let text = self.stripper.push(&self.unread);
        self.unread.clear();
        self.limit.push(text)
    }

    fn show(&mut self, text: String) {
        let offset = self.shown;
        self.shown += text.len();
        if text.is_empty() {
            return;
        }
        let frame = Frame {
            session: self.session.clone(),
            query: self.token.query,
            turn: self.token.turn,
            attempt: self.token.attempt,
            offset,
            text,
        };
        self.bus.show(&self.session, Notice::Frame(Arc::new(frame)));
    }
}
