//! `web_search` and `web_fetch`: the web, for models.
//!
//! Both tools only read, and their results are untrusted ([`ToolTrust::Untrusted`]). The
//! address of the search service is the operator's; the addresses of pages are the model's, and so
//! pass a guard.
//!
//! **Invariants:** `web_fetch` connects to public addresses only, whatever a page, a redirect or a
//! name server says; time and memory of a call are bounded.
//!
//! [`ToolTrust::Untrusted`]: crate::model::tool::ToolTrust

mod fetch;
mod guard;
mod markdown;
mod search;
#[cfg(test)]
mod tests;

use reqwest::{Response, header::HeaderName};
use schemars::JsonSchema;

use super::{arguments, text::on_one_line};
use crate::model::{
    ToolSpec,
    tool::{ToolNeed, ToolTrust},
};

pub use super::SearchService;
#[cfg(any(test, feature = "testkit"))]
#[doc(hidden)]
pub use fetch::local_web_fetch;
pub use fetch::{FetchSettings, web_fetch};
pub use search::{SearchSettings, web_search};

/// Longest URL that is shown or followed, in bytes.
const MAX_URL: usize = 2_000;

fn spec<T: JsonSchema>(name: &str, description: &str) -> ToolSpec {
    ToolSpec {
        trust: ToolTrust::Untrusted,
        ..arguments::spec::<T>(name, description.to_owned(), ToolNeed::Web)
    }
}

/// A header; empty if it is missing or no text.
fn header(response: &Response, name: HeaderName) -> &str {
    let value = response.headers().get(name);
    let text = value.and_then(|value| value.to_str().ok());
    text.unwrap_or_default()
}

/// Reads at most `most` bytes of a body; the flag tells whether there are more.
async fn body(mut response: Response, most: usize) -> Result<(Vec<u8>, bool), reqwest::Error> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        let left = most - bytes.len();
        bytes.extend_from_slice(&chunk[..chunk.len().min(left)]);
        if chunk.len() > left {
            return Ok((bytes, true));
        }
    }
    Ok((bytes, false))
}

/// The innermost reason, without the URL.
fn cause(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut innermost: &dyn std::error::Error = &error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    on_one_line(&innermost.to_string()).into_owned()
}
