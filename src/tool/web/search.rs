//! `web_search`, by one of three services.

use std::{fmt::Write as _, time::Duration};

use reqwest::{
    Client, Method, Request, StatusCode, Url,
    header::{ACCEPT, CONTENT_TYPE, HeaderValue},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::timeout;

use super::{MAX_URL, SearchService, body, cause, spec};
use crate::tool::{
    FnTool, ToolError, ToolOutput,
    text::{joined, on_one_line, quoted, shortened},
};

/// Number of results.
const RESULTS: usize = 8;
/// Longest query, in characters; Brave takes no longer one.
const MAX_QUERY: usize = 400;
const MAX_TITLE: usize = 200;
const MAX_EXCERPT: usize = 400;
/// Maximum bytes of a service's answer.
const MAX_ANSWER: usize = 1 << 20;

/// Where to search.
#[derive(Debug, Clone)]
pub struct SearchSettings {
    /// The service.
    pub service: SearchService,
    /// The base URL of its API.
    pub base_url: Url,
    /// Its key, marked as sensitive.
    pub key: Option<HeaderValue>,
    /// Deadline of a search.
    pub deadline: Duration,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchArguments {
    /// Words to search for.
    query: String,
}

/// Results, which Brave has below `web`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Answer {
    results: Vec<Hit>,
    web: Option<Box<Self>>,
}

/// A result. Brave calls its excerpt `description`, the others `content`.
#[derive(Deserialize)]
struct Hit {
    url: String,
    title: Option<String>,
    content: Option<String>,
    description: Option<String>,
}

/// The tool `web_search`, which calls a service by this client.
pub fn web_search(client: Client, settings: SearchSettings) -> FnTool {
    let spec = spec::<SearchArguments>("web_search", "Searches the web.");
    FnTool::new(spec, move |wanted: SearchArguments, _| {
        let (client, settings) = (client.clone(), settings.clone());
        async move {
            let query = wanted.query.trim();
            if query.is_empty() || query.chars().count() > MAX_QUERY {
                refuse!("`query` must have 1 to {MAX_QUERY} characters");
            }
            let searched = timeout(settings.deadline, search(&client, &settings, query)).await;
            let answer = searched.map_err(|_| failed("did not answer in time"))??;
            let (mut text, results) = (String::new(), shown(answer));
            for (at, result) in results.iter().enumerate() {
                let (title, url) = (&result.title, &result.url);
                let _ = write!(
                    text,
                    "{}. {title}\n   {url}\n   {}\n\n",
                    at + 1,
                    result.excerpt
                );
            }
            if results.is_empty() {
                text = format!("no results for {}: use other words", quoted(query));
            }
            let data = json!({ "results": results });
            Ok(ToolOutput::new(text.trim_end(), &data))
        }
    })
}

#[derive(Serialize)]
struct Shown {
    title: String,
    url: String,
    excerpt: String,
}

fn shown(answer: Answer) -> Vec<Shown> {
    let line = |text: Option<String>, most| {
        let text = joined(text.unwrap_or_default().split_whitespace(), " ");
        on_one_line(&shortened(&text, most)).into_owned()
    };
    let hits = answer.web.map_or(answer.results, |web| web.results);
    let pages = hits.into_iter().filter(|hit| {
        hit.url.len() <= MAX_URL && Url::parse(&hit.url).is_ok_and(|url| url.has_host())
    });
    let shown = pages.take(RESULTS).map(|hit| Shown {
        title: line(hit.title, MAX_TITLE),
        url: on_one_line(&hit.url).into_owned(),
        excerpt: line(hit.content.or(hit.description), MAX_EXCERPT),
    });
    shown.collect()
}

async fn search(
    client: &Client,
    settings: &SearchSettings,
    query: &str,
) -> Result<Answer, ToolError> {
    let asked = client.execute(request(settings, query)).await;
    let response = asked.map_err(|error| failed(&cause(error)))?;
    if !response.status().is_success() {
        return Err(refusal(settings.service, response.status()));
    }
    let read = body(response, MAX_ANSWER).await;
    let (bytes, _) = read.map_err(|error| failed(&cause(error)))?;
    let bounded = crate::model::json::check(&bytes);
    let read = bounded.and_then(|()| serde_json::from_slice(&bytes));
    read.map_err(|_| failed("sent no valid answer"))
}

fn request(settings: &SearchSettings, query: &str) -> Request {
    let count = RESULTS.to_string();
    let (path, key_header, pairs) = match settings.service {
        SearchService::Tavily => ("search", "authorization", vec![]),
        SearchService::Brave => {
            let plain = ("text_decorations", "false");
            let pairs = vec![("q", query), ("count", &count), plain];
            ("res/v1/web/search", "x-subscription-token", pairs)
        }
        SearchService::Searxng => {
            let pairs = vec![("q", query), ("format", "json")];
            ("search", "authorization", pairs)
        }
    };
    let mut url = settings.base_url.clone();
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.pop_if_empty().extend(path.split('/'));
    }
    if !pairs.is_empty() {
        url.query_pairs_mut().extend_pairs(pairs);
    }
    let mut request = Request::new(Method::GET, url);
    let json = HeaderValue::from_static("application/json");
    request.headers_mut().insert(ACCEPT, json.clone());
    if settings.service == SearchService::Tavily {
        let asked = json!({ "query": query, "max_results": RESULTS });
        *request.method_mut() = Method::POST;
        *request.body_mut() = Some(asked.to_string().into());
        request.headers_mut().insert(CONTENT_TYPE, json);
    }
    if let Some(key) = &settings.key {
        request.headers_mut().insert(key_header, key.clone());
    }
    request
}

fn failed(why: &str) -> ToolError {
    for_model!("the search service failed ({why}): try again once, or go on without it")
}

/// Explains a status, without the body, which may repeat the key.
fn refusal(service: SearchService, status: StatusCode) -> ToolError {
    let why = match (service, status.as_u16()) {
        (SearchService::Searxng, 403) => {
            "does not answer in JSON: the operator has to add `json` to `search.formats` in its \
             settings.yml"
        }
        (_, 401 | 403) | (SearchService::Brave, 422) => {
            "refused the request or its key: the operator has to check the key"
        }
        // Tavily's are a plan's limits.
        (_, 429 | 432 | 433) => "has reached its limit",
        _ => return failed(&status.to_string()),
    };
    for_model!("the search service {why} ({status}): go on without it")
}
