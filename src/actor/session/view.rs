//! How a session stands, for whoever asks.

use ractor::RpcReplyPort;

use super::{Viewed, state::SessionState};
use crate::actor::view::SessionView;

impl SessionState {
    /// How it stands.
    pub(super) fn view(&self, reply: RpcReplyPort<Viewed>) {
        let view = match &self.away {
            Some(away) => Err(away.clone()),
            None => {
                let key = self.key.clone();
                Ok(Some(SessionView::of(key, &self.session, self.last)))
            }
        };
        // The caller may have given up; that is its right.
        let _ = reply.send(view);
    }
}
