//! The supervision page at `/`: static files that are compiled in. Anyone may load them; what they
//! show comes from the API, with the key of the person who signs in. The content security policy
//! lets the page talk to this server alone.

use std::borrow::Cow;

use axum::{
    Router,
    extract::{OriginalUri, Path},
    http::{HeaderName, HeaderValue, Uri, header},
    response::{Html, IntoResponse, Response},
    routing::get,
};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, json};
use tower::ServiceBuilder;
use tower_http::{compression::CompressionLayer, set_header::SetResponseHeaderLayer};

use super::{Host, problem};
use crate::model::{Event, SessionName};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

macro_rules! files {
    ($($name:literal)+) => {
        &[$(($name, include_bytes!(concat!("page/", $name)))),+]
    };
}

type File = (&'static str, &'static [u8]);

/// The modules of a report.
const REPORT: &[File] = files! {
    "api.js"
    "format.js"
    "markdown.js"
    "session-body.js"
    "timeline.js"
    "ui.js"
    "why.js"
    "vendor/hooks.js"
    "vendor/htm.js"
    "vendor/marked.js"
    "vendor/preact.js"
};

/// What only a server's page needs.
const OTHERS: &[File] = files! {
    "actions.js"
    "chart.js"
    "chat.css"
    "chat.js"
    "icon.svg"
    "main.js"
    "metrics.js"
    "overview.css"
    "overview.js"
    "session.css"
    "session.js"
    "sessions.js"
    "style.css"
    "vendor/LICENSES.md"
    "vendor/uplot.css"
    "vendor/uplot.js"
};

pub(super) fn routes() -> Router<Host> {
    let header = |name: HeaderName, value| {
        SetResponseHeaderLayer::overriding(name, HeaderValue::from_static(value))
    };
    let isolated = |name| header(HeaderName::from_static(name), "same-origin");
    let layers = ServiceBuilder::new()
        .layer(header(header::CONTENT_SECURITY_POLICY, POLICY))
        .layer(header(header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        // A foreign page cannot move a tab of this one to a link with another key, nor tell that
        // there is a server by loading its files.
        .layer(isolated("cross-origin-opener-policy"))
        .layer(isolated("cross-origin-resource-policy"))
        .layer(header(header::REFERRER_POLICY, "no-referrer"))
        // A new version of the server has new files.
        .layer(header(header::CACHE_CONTROL, "no-cache"))
        .layer(CompressionLayer::new());
    Router::new()
        .route("/", get(index))
        .route("/page/{*name}", get(file))
        .method_not_allowed_fallback(problem::no_such_method)
        .layer(layers)
}

/// The page. Its links are relative, because a reverse proxy or the host's router may serve it under
/// a prefix: at `/oracle` they become `oracle/page/…`.
async fn index(OriginalUri(uri): OriginalUri) -> Html<String> {
    let page = include_str!("page/index.html");
    Html(match uri.path().rsplit('/').next() {
        None | Some("") => page.to_owned(),
        Some(last) => {
            let last = last.replace('"', "%22");
            page.replace("=\"page/", &format!("=\"{last}/page/"))
        }
    })
}

async fn file(Path(name): Path<String>, uri: Uri) -> Response {
    let Some(bytes) = bytes(&name) else {
        return problem::no_such_route(uri).await.into_response();
    };
    let content_type = match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "text/plain; charset=utf-8",
    };
    ([(header::CONTENT_TYPE, content_type)], bytes).into_response()
}

fn bytes(name: &str) -> Option<&'static [u8]> {
    let mut files = REPORT.iter().chain(OTHERS);
    files.find_map(|(known, bytes)| (*known == name).then_some(*bytes))
}

fn text(name: &str) -> Cow<'static, str> {
    String::from_utf8_lossy(bytes(name).unwrap_or_default())
}

/// A conversation with its timeline as one page that makes no request: its modules are data URLs.
///
/// # Errors
/// If an event cannot be written as JSON, which does not happen to one from a journal.
pub fn report(session: &SessionName, events: &[Event]) -> serde_json::Result<String> {
    // Within data URLs, modules find each other by the bare names of an import map.
    let import = |(name, _): &File| {
        let code = text(name)
            .replace("\"./vendor/", "\"")
            .replace("\"./", "\"");
        let url = utf8_percent_encode(&code, NON_ALPHANUMERIC);
        let bare = name.trim_start_matches("vendor/").to_owned();
        (bare, format!("data:text/javascript,{url}").into())
    };
    let imports: Map<_, _> = REPORT.iter().map(import).collect();
    let styles = ["style.css", "session.css", "chat.css"].map(text).concat();
    let data = serde_json::to_string(&json!({ "session": session, "events": events }))?;
    Ok(include_str!("page/report.html")
        .replace("{STYLES}", &styles)
        .replace("{IMPORTS}", &json!({ "imports": imports }).to_string())
        // Escaped, so that no text can close the script element.
        .replace("{DATA}", &data.replace('<', "\\u003c")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_the_modules_that_it_imports() {
        let report = include_str!("page/report.html");
        let of_report = report.split(" from \"").skip(1);
        let mut imported: Vec<_> = of_report.map(str::to_owned).collect();
        assert!(!imported.is_empty());
        for (name, _) in REPORT {
            let folder = if name.starts_with("vendor/") {
                "vendor/"
            } else {
                ""
            };
            let code = text(name);
            assert!(!code.is_empty(), "{name}");
            let imports = code.split("\"./").skip(1);
            imported.extend(imports.map(|import| format!("{folder}{import}")));
        }
        for import in imported {
            let (path, _) = import.split_once('"').unwrap();
            assert!(REPORT.iter().any(|(name, _)| *name == path), "{path}");
        }
    }
}
