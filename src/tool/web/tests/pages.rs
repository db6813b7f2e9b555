//! Reading pages.

use futures_util::{StreamExt as _, stream};

use super::*;
use crate::{
    model::tool::{ToolEffect, ToolNeed, ToolTrust},
    testkit::tool_conformance::{Subject, conforms},
};

async fn site() -> String {
    let address = serve(|uri| {
        let text = [("content-type", "text/plain")];
        let typed = |kind, body: &'static str| response(200, &[("content-type", kind)], body);
        match uri.path() {
            "/long" => html(&format!(
                "<title>Long</title>{}",
                "<p>é12345678</p>".repeat(5_000)
            )),
            "/latin" => response(
                200,
                &[("content-type", "text/html")],
                &b"<meta charset='iso-8859-1'><p>caf\xe9"[..],
            ),
            "/unnamed" => response(200, &text, &b"caf\xe9 bar"[..]),
            "/controls" => response(200, &text, "a\u{1b}[2J\u{7}\u{9b}b\r\nc"),
            "/json" => typed("application/problem+json", "{\"a\": [1]}"),
            "/feed" => typed("application/rss+xml; charset=utf-8", "<rss>&amp;</rss>"),
            "/untyped" => response(200, &[], "plain"),
            "/pdf" => typed("Application/PDF", "%PDF"),
            "/gzip" => {
                let headers = [text[0], ("content-encoding", "gzip")];
                response(200, &headers, &b"\x1f\x8b\x08"[..])
            }
            "/empty" => html("<script>let page = app();</script>"),
            "/busy" => response(429, &text, "slow down"),
            "/endless" => {
                let pieces = stream::repeat("x".repeat(50_000)).map(Ok::<_, std::io::Error>);
                response(200, &text, Body::from_stream(pieces))
            }
            "/silent" => {
                let nothing = stream::pending::<Result<String, std::io::Error>>();
                response(200, &text, Body::from_stream(nothing))
            }
            "/broken" => {
                let broken = stream::iter([Ok("x"), Err(std::io::Error::other("boom"))]);
                response(
                    200,
                    &[text[0], ("content-length", "9")],
                    Body::from_stream(broken),
                )
            }
            _ => response(404, &text, "no"),
        }
    })
    .await;
    format!("http://site.example:{}", address.port())
}

#[tokio::test]
async fn pages_are_decoded_and_shown_by_their_type() {
    let (site, tool) = (site().await, fetch());
    for (path, expected) in [
        ("/latin", "café"),
        ("/unnamed", "café bar"),
        ("/controls", "a[2Jb\nc"),
        ("/json", "{\"a\": [1]}"),
        ("/feed", "<rss>&amp;</rss>"),
        ("/untyped", "plain"),
        ("/empty", "(no text)"),
    ] {
        let url = format!("{site}{path}");
        let text = read(&tool, &url).await.unwrap();
        assert_eq!(text, format!("Title: \nURL: {url}\n\n{expected}"));
    }
}

#[tokio::test]
async fn unreadable_pages_say_why() {
    let site = site().await;
    let hasty = FetchSettings {
        deadline: Duration::from_millis(500),
        ..settings()
    };
    let hasty = fetch_with(hasty, Names::new([&[PUBLIC]]));
    for (tool, path, why) in [
        (
            &fetch(),
            "/pdf",
            " is `application/pdf`, and only pages and text can be read",
        ),
        (
            &fetch(),
            "/gzip",
            " sends compressed data without being asked: try another page",
        ),
        (&fetch(), "/missing", " answered 404 Not Found"),
        (&fetch(), "/busy", " answered 429 Too Many Requests"),
        (
            &hasty,
            "/silent",
            " was not read in time: try another page, or go on without it",
        ),
    ] {
        let url = format!("{site}{path}");
        assert_eq!(read(tool, &url).await, Err(format!("`{url}`{why}")));
    }
    let broken = read(&fetch(), &format!("{site}/broken")).await.unwrap_err();
    assert!(
        broken.starts_with(&format!("cannot read `{site}/broken`: ")),
        "{broken}"
    );
    let closed = read(&fetch(), "http://site.example:1025/")
        .await
        .unwrap_err();
    assert!(closed.contains("refused"), "{closed}");
}

#[tokio::test]
async fn long_pages_are_read_in_parts_and_endless_ones_are_cut() {
    let (site, tool) = (site().await, fetch());
    let url = format!("{site}/long");
    let (mut start, mut parts, mut totals) = (0, String::new(), Vec::new());
    loop {
        let output = call(&tool, json!({ "url": url, "start": start }))
            .await
            .unwrap();
        let data = output.data.unwrap();
        assert_eq!(
            (&data["title"], &data["url"]),
            (&json!("Long"), &json!(url))
        );
        let (_, part) = output.text.split_once("\n\n").unwrap();
        let (part, more) = part.rsplit_once("\n\n[").unwrap_or((part, ""));
        parts.push_str(part);
        totals.push(data["total"].as_u64().unwrap());
        let end = data["end"].as_u64().unwrap();
        if more.is_empty() {
            break;
        }
        assert!(
            more.ends_with(&format!("go on with `start` {end}]")),
            "{more}"
        );
        start = end;
    }
    assert_eq!(parts.matches("é12345678").count(), 5_000);
    assert_eq!(totals, [54_998; 3]);
    let beyond = call(&tool, json!({ "url": url, "start": 54_998 }))
        .await
        .unwrap_err();
    let why = "`start` is 54998, but the page has only 54998 characters";
    assert_eq!(beyond.to_string(), why);
    let last = json!({ "url": format!("{site}/endless"), "start": (1 << 20) - 10 });
    let text = call(&tool, last).await.unwrap().text;
    assert!(
        text.ends_with("xxxxxxxxxx\n\n[the page is too long: its end is missing]"),
        "{text}"
    );
}

#[tokio::test]
async fn web_fetch_conforms() {
    let (site, tool) = (site().await, fetch());
    let spec = tool.spec();
    assert_eq!(
        (spec.serves, spec.trust),
        (ToolNeed::Web, ToolTrust::Untrusted)
    );
    assert_eq!(spec.effect, ToolEffect::ReadOnly);
    conforms(&Subject {
        tool: &tool,
        works: json!({ "url": format!("{site}/long"), "start": 5 }),
        host_path: env!("CARGO_MANIFEST_DIR"),
        max_output: 45_000,
    })
    .await;
}
