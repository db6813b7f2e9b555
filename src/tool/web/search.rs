//! `web_search`, by one of three services.

use std::{fmt::Write as _, time::Duration};

use reqwest::{
    Client, Method, Request, Response, Url,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{MAX_URL, SearchService, body, cause, header, markdown, spec};
use crate::tool::{
    FnTool, ToolError, ToolOutput,
    text::{on_one_line, quoted, shortened},
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
#[must_use]
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
            let (mut text, results) = (String::new(), settings.service.shown(answer));
            for (at, result) in results.iter().enumerate() {
                let [title, url, excerpt] = result;
                let _ = write!(text, "{}. {title}\n   {url}\n   {excerpt}\n\n", at + 1);
            }
            if results.is_empty() {
                text = format!("no results for {}: use other words", quoted(query));
            }
            let results = results.iter().map(
                |[title, url, excerpt]| json!({ "title": title, "url": url, "excerpt": excerpt }),
            );
            let data = json!({ "results": results.collect::<Vec<Value>>() });
            Ok(ToolOutput::new(text.trim_end(), &data))
        }
    })
}

impl SearchService {
    /// Title, URL and excerpt of the results to show.
    fn shown(self, answer: Answer) -> Vec<[String; 3]> {
        let line = |text: Option<String>, most| {
            let mut text = text.unwrap_or_default();
            // Brave's texts are HTML.
            if self == Self::Brave
                && let Ok(base) = Url::parse("https://search.brave.com")
            {
                let page = markdown::page(&text, &base, &CancellationToken::new());
                text = page.unwrap_or_default().text;
            }
            let words: Vec<&str> = text.split_whitespace().collect();
            on_one_line(&shortened(&words.join(" "), most)).into_owned()
        };
        let hits = answer.web.map_or(answer.results, |web| web.results);
        let pages = hits.into_iter().filter(|hit| {
            hit.url.len() <= MAX_URL && Url::parse(&hit.url).is_ok_and(|url| url.has_host())
        });
        let shown = pages.take(RESULTS).map(|hit| {
            let excerpt = hit.content.or(hit.description);
            let (title, url) = (
                line(hit.title, MAX_TITLE),
                on_one_line(&hit.url).into_owned(),
            );
            [title, url, line(excerpt, MAX_EXCERPT)]
        });
        shown.collect()
    }
}

async fn search(
    client: &Client,
    settings: &SearchSettings,
    query: &str,
) -> Result<Answer, ToolError> {
    let asked = client.execute(request(settings, query)).await;
    let response = asked.map_err(|error| failed(&cause(&error)))?;
    if !response.status().is_success() {
        return Err(refusal(settings.service, &response));
    }
    let read = body(response, MAX_ANSWER).await;
    let (bytes, _) = read.map_err(|error| failed(&cause(&error)))?;
    serde_json::from_slice(&bytes).map_err(|_| failed("sent no valid answer"))
}

fn request(settings: &SearchSettings, query: &str) -> Request {
    let count = RESULTS.to_string();
    let (method, path, pairs) = match settings.service {
        SearchService::Tavily => (Method::POST, &["search"][..], vec![]),
        SearchService::Brave => {
            let path = &["res", "v1", "web", "search"][..];
            let pairs = vec![
                ("q", query),
                ("count", &count),
                ("text_decorations", "false"),
            ];
            (Method::GET, path, pairs)
        }
        SearchService::Searxng => {
            let pairs = vec![("q", query), ("format", "json")];
            (Method::GET, &["search"][..], pairs)
        }
    };
    let mut url = settings.base_url.clone();
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.pop_if_empty().extend(path);
    }
    if !pairs.is_empty() {
        url.query_pairs_mut().extend_pairs(pairs);
    }
    let mut request = Request::new(method, url);
    let json = HeaderValue::from_static("application/json");
    request.headers_mut().insert(ACCEPT, json.clone());
    if settings.service == SearchService::Tavily {
        let asked = json!({ "query": query, "max_results": RESULTS });
        *request.body_mut() = Some(asked.to_string().into());
        request.headers_mut().insert(CONTENT_TYPE, json);
    }
    if let Some(key) = &settings.key {
        let name = match settings.service {
            SearchService::Brave => HeaderName::from_static("x-subscription-token"),
            SearchService::Tavily | SearchService::Searxng => AUTHORIZATION,
        };
        request.headers_mut().insert(name, key.clone());
    }
    request
}

fn failed(why: &str) -> ToolError {
    for_model!("the search service failed ({why}): try again once, or go on without it")
}

/// Explains a status, without the body, which may repeat the key.
fn refusal(service: SearchService, response: &Response) -> ToolError {
    let status = response.status();
    let why = match (service, status.as_u16()) {
        (SearchService::Searxng, 403) => {
            "does not answer in JSON: the operator has to add `json` to `search.formats` in its \
             settings.yml"
        }
        (_, 401 | 403) | (SearchService::Brave, 422) => {
            "refused the request or its key: the operator has to check the key"
        }
        // Tavily's are a plan's limits.
        (_, 429 | 432 | 433) => match header(response, RETRY_AFTER) {
            "" => "has reached its limit",
            secs => {
                return for_model!(
                    "the search service has reached its limit for {secs} s: go on without it"
                );
            }
        },
        _ => return failed(&status.to_string()),
    };
    for_model!("the search service {why} ({status}): go on without it")
}
