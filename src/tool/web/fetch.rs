//! `web_fetch`: a page as Markdown.

use std::{str, sync::Arc, time::Duration};

use reqwest::{
    Client, ClientBuilder, Response, Url,
    dns::Resolve,
    header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, LOCATION},
    redirect,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::{sync::Semaphore, task::spawn_blocking, time::timeout};
use tokio_util::sync::CancellationToken;

use super::{
    MAX_URL, body, cause,
    guard::{self, Allows, Guarded, System, is_public},
    header,
    markdown::{self, Page},
    spec,
};
use crate::tool::{
    FnTool, ToolError, ToolOutput,
    text::{is_one_of, on_one_line, quoted, shortened},
};

/// Maximum pages that are fetched at a time, by all sessions.
const MAX_FETCHES: usize = 64;
/// Maximum pages that are converted at a time, each on a thread.
const MAX_CONVERSIONS: usize = 4;
/// Maximum characters of a result.
const MAX_TEXT: usize = 20_000;
const MAX_TITLE: usize = 200;
/// Deadline for connecting, and between two pieces of a response.
const IDLE: Duration = Duration::from_secs(10);
const ACCEPTED: &str =
    "text/html, application/xhtml+xml, text/*;q=0.9, application/json;q=0.8, */*;q=0.5";

/// Bounds of `web_fetch`.
#[derive(Debug, Clone)]
pub struct FetchSettings {
    /// Maximum bytes of a page; the rest is not read.
    pub max_page_bytes: usize,
    /// Maximum redirects of a page.
    pub max_redirects: usize,
    /// Deadline of a call.
    pub deadline: Duration,
    /// If set, the only hosts; each with its subdomains.
    pub allow_hosts: Option<Vec<String>>,
    /// Hosts that are refused, each with its subdomains.
    pub deny_hosts: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FetchArguments {
    /// Its http or https address.
    url: String,
    /// Character to begin at.
    start: Option<u64>,
}

/// The tool `web_fetch`. Its client gets TLS from `builder`, and uses no proxy, which would connect
/// unguarded.
///
/// # Errors
/// When the client cannot be built.
pub fn web_fetch(
    builder: ClientBuilder,
    settings: FetchSettings,
) -> Result<FnTool, reqwest::Error> {
    guarded(builder, settings, Arc::new(System), is_public)
}

/// A [`web_fetch`] that reads from this machine alone.
#[cfg(any(test, feature = "testkit"))]
pub fn local_web_fetch(
    builder: ClientBuilder,
    settings: FetchSettings,
) -> Result<FnTool, reqwest::Error> {
    guarded(builder, settings, Arc::new(System), |ip| ip.is_loopback())
}

pub(super) fn guarded(
    builder: ClientBuilder,
    settings: FetchSettings,
    inner: Arc<dyn Resolve>,
    allows: Allows,
) -> Result<FnTool, reqwest::Error> {
    let client = builder
        .no_proxy()
        .no_gzip()
        .no_deflate()
        .redirect(redirect::Policy::none())
        .referer(false)
        .dns_resolver(Arc::new(Guarded { inner, allows }))
        .connect_timeout(IDLE)
        .read_timeout(IDLE)
        .pool_max_idle_per_host(0)
        .build()?;
    let fetcher = Arc::new(Fetcher {
        client,
        settings,
        allows,
        fetches: Semaphore::new(MAX_FETCHES),
        conversions: Arc::new(Semaphore::new(MAX_CONVERSIONS)),
    });
    let spec = spec::<FetchArguments>("web_fetch", "Reads a web page or text file.");
    Ok(FnTool::new(spec, move |wanted: FetchArguments, _| {
        let fetcher = Arc::clone(&fetcher);
        async move {
            let answer = timeout(fetcher.settings.deadline, fetcher.answer(&wanted)).await;
            answer.map_err(|_| {
                let url = quoted(&wanted.url);
                for_model!("{url} was not read in time: try another page, or go on without it")
            })?
        }
    }))
}

struct Fetcher {
    client: Client,
    settings: FetchSettings,
    allows: Allows,
    fetches: Semaphore,
    conversions: Arc<Semaphore>,
}

impl Fetcher {
    async fn answer(&self, wanted: &FetchArguments) -> Result<ToolOutput, ToolError> {
        let url = Url::parse(&wanted.url).ok();
        let Some(url) = url.filter(|url| url.as_str().len() <= MAX_URL) else {
            refuse!("`url` must be a complete address, such as https://example.org/page");
        };
        let _slot = self.fetches.acquire().await;
        let response = self.response(url).await?;
        let mut url = response.url().clone();
        url.set_fragment(None);
        let content_type = header(&response, CONTENT_TYPE).to_owned();
        let is_html = is_html(&url, &content_type)?;
        if !matches!(header(&response, CONTENT_ENCODING), "" | "identity") {
            let url = quoted(url.as_str());
            refuse!("{url} sends compressed data without being asked: try another page");
        }
        let read = body(response, self.settings.max_page_bytes).await;
        let (bytes, is_cut) = read.map_err(|error| unread(&url, error))?;
        let text = decoded(&bytes, is_cut);
        let mut page = match is_html {
            true => self.converted(text, url.clone()).await?,
            false => Page {
                text,
                ..Page::default()
            },
        };
        page.text
            .retain(|c| !c.is_control() || matches!(c, '\n' | '\t'));
        page.is_cut |= is_cut;
        window(&page, &url, wanted.start.unwrap_or_default())
    }

    /// Follows redirects, each to an address that is checked like the first.
    async fn response(&self, mut url: Url) -> Result<Response, ToolError> {
        let most = self.settings.max_redirects;
        for _ in 0..=most {
            guard::check(&url, self.allows, &self.settings)?;
            let request = self.client.get(url.clone()).header(ACCEPT, ACCEPTED);
            let response = request.header(ACCEPT_ENCODING, "identity").send().await;
            let response = response.map_err(|error| unread(&url, error))?;
            let (status, location) = (response.status(), header(&response, LOCATION));
            if status.is_success() {
                return Ok(response);
            }
            let target = url.join(location);
            let (true, false, Ok(target)) = (status.is_redirection(), location.is_empty(), target)
            else {
                refuse!("{} answered {status}", quoted(url.as_str()));
            };
            // Nobody on the way can imitate the host that the model named.
            if url.scheme() == "https" && target.scheme() == "http" {
                let (from, to) = (quoted(url.as_str()), quoted(target.as_str()));
                refuse!(
                    "{from} redirects to {to}, which is not encrypted: read that if you want it"
                );
            }
            url = target;
        }
        let last = quoted(url.as_str());
        refuse!("there are more than {most} redirects, the last to {last}")
    }

    async fn converted(&self, html: String, url: Url) -> Result<Page, ToolError> {
        let permit = Arc::clone(&self.conversions).acquire_owned().await;
        let stop = CancellationToken::new();
        let _stops_when_dropped = stop.clone().drop_guard();
        let converted = spawn_blocking(move || {
            let _permit = permit;
            markdown::page(&html, &url, &stop)
        });
        let page = converted.await.ok().flatten();
        page.ok_or_else(|| for_model!("the page cannot be converted to Markdown"))
    }
}

fn unread(url: &Url, error: reqwest::Error) -> ToolError {
    for_model!("cannot read {}: {}", quoted(url.as_str()), cause(error))
}

/// Whether this is a page; an error if it is neither that nor text.
fn is_html(url: &Url, content_type: &str) -> Result<bool, ToolError> {
    let kind = content_type.split(';').next().unwrap_or_default().trim();
    let kind = kind.to_ascii_lowercase();
    let format = kind.rsplit(['/', '+']).next().unwrap_or_default();
    if matches!(&*kind, "text/html" | "application/xhtml+xml") {
        return Ok(true);
    }
    let is_text = is_one_of("javascript json toml x-ndjson x-yaml xml yaml", format);
    if kind.is_empty() || kind.starts_with("text/") || is_text {
        return Ok(false);
    }
    let (url, kind) = (quoted(url.as_str()), quoted(&kind));
    refuse!("{url} is {kind}, and only pages and text can be read")
}

/// Decodes a text as UTF-8, which may be cut within a character, or else as Latin-1.
fn decoded(bytes: &[u8], is_cut: bool) -> String {
    match str::from_utf8(bytes) {
        Err(error) if error.error_len().is_some() || !is_cut => {
            bytes.iter().copied().map(char::from).collect()
        }
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// The part of a page from this character on.
fn window(page: &Page, url: &Url, start: u64) -> Result<ToolOutput, ToolError> {
    let total = page.text.chars().count();
    let first = usize::try_from(start).unwrap_or(usize::MAX);
    if first > 0 && first >= total {
        refuse!("`start` is {start}, but the page has only {total} characters");
    }
    let end = total.min(first + MAX_TEXT);
    let part: String = page.text.chars().skip(first).take(MAX_TEXT).collect();
    let title = on_one_line(&shortened(&page.title, MAX_TITLE)).into_owned();
    let part = if total == 0 { "(no text)" } else { part.trim() };
    let mut text = format!("Title: {title}\nURL: {url}\n\n{part}");
    if end < total {
        let more = total - end;
        text += &format!("\n\n[{more} more characters: go on with `start` {end}]");
    } else if page.is_cut {
        text += "\n\n[the page is too long: its end is missing]";
    }
    let data =
        json!({ "url": url.as_str(), "title": title, "start": first, "end": end, "total": total });
    Ok(ToolOutput::new(text, &data))
}
