//! Bodies of responses.

use axum::body::Body;
use http_body_util::BodyExt as _;

/// A body with a guard that is dropped once it is sent.
pub(super) fn with_guard<T: Send + 'static>(body: Body, guard: T) -> Body {
    // Other combinators lose the length.
    Body::new(body.map_err(move |error| {
        let _held = &guard;
        error
    }))
}
