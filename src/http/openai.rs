//! OpenAI's chat completions, so that existing clients work unchanged.
//!
//! A model is a profile. A session in memory answers a request and ends with it, unless the request
//! names a session or needs a durable one (`completions`). Responses are OpenAI's objects; anything
//! beyond them is in headers and in one more object, `oracle`. docs/openai.md lists the supported
//! features.
//!
//! **Invariant:** the text of a stream that ends without an error ends with the answer. These clients
//! cannot show a retraction, so a stream whose text would need one ends with an error.

mod answering;
mod asked;
mod completions;
mod continuations;
mod fields;
mod models;
mod request;
mod responses;
mod stream;

use utoipa_axum::routes;

use super::{Begins, Route, RouteGroup};
pub(super) use continuations::Continuations;
pub(super) use responses::delete_old_responses;

pub(super) fn routes() -> Vec<Route> {
    let chat = routes!(completions::create);
    let mut routes = responses::routes();
    routes.push(Route::post(RouteGroup::Messages, Begins::Session, chat));
    let read = [routes!(models::list), routes!(models::show)];
    routes.extend(read.map(|methods| Route::without_post(RouteGroup::Others, methods)));
    routes
}

#[cfg(any(test, feature = "testkit"))]
pub(super) fn accepts(body: &[u8]) -> bool {
    asked::Asked::of_chat(body).is_ok() || responses::accepts(body)
}
