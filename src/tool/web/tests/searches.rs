//! Searching.

use axum::extract::Request;
use reqwest::{Url, redirect::Policy};

use super::*;
use crate::{
    model::tool::{ToolEffect, ToolNeed, ToolTrust},
    testkit::tool_conformance::{Subject, conforms},
    tool::{
        SearchService,
        web::{SearchSettings, web_search},
    },
};

use SearchService::{Brave, Searxng, Tavily};

const KEY: &str = "secret-key-1";

type Answer = (u16, String);

/// A service that answers this, and what it was asked.
async fn service(answer: Answer) -> (Url, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind((PUBLIC, 0)).await.unwrap();
    let url = format!("http://{}/base", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    let app = Router::new().fallback(move |request: Request| {
        let (log, (status, body)) = (Arc::clone(&log), answer.clone());
        async move {
            let (head, sent) = request.into_parts();
            let header = |name| head.headers.get(name).map(|value| value.to_str().unwrap());
            let key = header("authorization").or(header("x-subscription-token"));
            let sent = axum::body::to_bytes(sent, 10_000).await.unwrap();
            let sent = String::from_utf8_lossy(&sent).into_owned();
            let key = key.unwrap_or("no key");
            log.lock()
                .push(format!("{} {} {key} {sent}", head.method, head.uri));
            response(status, &[], body)
        }
    });
    in_background(async move { axum::serve(listener, app).await.unwrap() });
    (Url::parse(&url).unwrap(), asked)
}

fn tool(service: SearchService, base_url: Url, deadline: Duration) -> FnTool {
    let key = match service {
        Tavily => Some(format!("Bearer {KEY}").parse().unwrap()),
        Brave => Some(KEY.parse().unwrap()),
        Searxng => None,
    };
    let settings = SearchSettings {
        service,
        base_url,
        key,
        deadline,
    };
    let client = client_builder().redirect(Policy::none()).build().unwrap();
    web_search(client, settings)
}

async fn search(service: SearchService, answer: Answer) -> Result<ToolOutput, String> {
    let (url, _) = self::service(answer).await;
    let tool = tool(service, url, Duration::from_secs(30));
    let output = call(&tool, json!({ "query": "rust actors" })).await;
    output.map_err(|error| error.to_string())
}

/// Ten results in the format of a service, of which the first has everything.
fn answer(service: SearchService) -> String {
    let excerpt = if service == Brave {
        "description"
    } else {
        "content"
    };
    let mut results = vec![json!({
        "title": "Actors & Rust\n", "url": "https://a.example/x?y=1&z",
        excerpt: format!("What's   new\nin {}", "long ".repeat(200)), "score": 0.9,
        "engines": ["a", "b"], "family_friendly": true,
    })];
    results.push(json!({ "title": null, "url": "https://b.example/" }));
    results.push(json!({ "title": "no address", "url": "javascript:alert(1)" }));
    results
        .extend((3..11).map(
            |n| json!({ "title": "t", "url": format!("https://{n}.example/"), excerpt: "e" }),
        ));
    match service {
        Brave => json!({ "type": "search", "query": { "original": "q" }, "web": { "results": results } }),
        Tavily => json!({ "query": "q", "answer": null, "images": [], "results": results, "response_time": "1.2" }),
        Searxng => json!({ "query": "q", "number_of_results": 0, "results": results, "unresponsive_engines": [["a", "timeout"]] }),
    }
    .to_string()
}

#[tokio::test]
async fn each_service_is_asked_and_understood() {
    for (service, expected) in [
        (
            Tavily,
            "POST /base/search Bearer secret-key-1 {\"max_results\":8,\"query\":\"rust actors\"}",
        ),
        (
            Brave,
            "GET /base/res/v1/web/search?q=rust+actors&count=8&text_decorations=false secret-key-1 ",
        ),
        (
            Searxng,
            "GET /base/search?q=rust+actors&format=json no key ",
        ),
    ] {
        let (url, asked) = self::service((200, answer(service))).await;
        let tool = tool(service, url, Duration::from_secs(30));
        let output = call(&tool, json!({ "query": " rust actors " }))
            .await
            .unwrap();
        assert_eq!(*asked.lock(), [expected]);
        let start = "1. Actors & Rust\n   https://a.example/x?y=1&z\n   What's new in long";
        assert!(output.text.starts_with(start), "{}", output.text);
        assert!(
            output
                .text
                .ends_with("\n\n8. t\n   https://8.example/\n   e"),
            "{}",
            output.text
        );
        let results = output.data.unwrap()["results"].as_array().unwrap().clone();
        assert_eq!(results.len(), 8);
        assert_eq!(
            results[1],
            json!({ "title": "", "url": "https://b.example/", "excerpt": "" })
        );
        assert_eq!(results[0]["excerpt"].as_str().unwrap().chars().count(), 401);
    }
}

#[tokio::test]
async fn failures_of_a_search_are_clear_and_contain_no_key() {
    let json = || "{\"error\": \"secret-key-1\"}".to_owned();
    let key = |status| {
        format!(
            "the search service refused the request or its key: the operator has to check the key \
             ({status}): go on without it"
        )
    };
    let failed =
        |why| format!("the search service failed ({why}): try again once, or go on without it");
    let limit =
        |status| format!("the search service has reached its limit ({status}): go on without it");
    let garbage = || failed("sent no valid answer");
    for (service, answer, expected) in [
        (Tavily, (401, json()), key("401 Unauthorized")),
        (Brave, (422, json()), key("422 Unprocessable Entity")),
        (Searxng, (401, json()), key("401 Unauthorized")),
        (
            Searxng,
            (403, String::new()),
            "the search service does not answer in JSON: the operator has to add `json` to \
             `search.formats` in its settings.yml (403 Forbidden): go on without it"
                .to_owned(),
        ),
        (Brave, (429, json()), limit("429 Too Many Requests")),
        (Tavily, (432, json()), limit("432 <unknown status code>")),
        (Tavily, (400, json()), failed("400 Bad Request")),
        (Brave, (500, json()), failed("500 Internal Server Error")),
        (Brave, (302, json()), failed("302 Found")),
        (Tavily, (200, "<html>".to_owned()), garbage()),
        (Tavily, (200, "{\"results\": 5}".to_owned()), garbage()),
        (Searxng, (200, String::new()), garbage()),
        (Brave, (200, " ".repeat(2 << 20)), garbage()),
    ] {
        let result = search(service, answer).await;
        assert_eq!(result, Err(expected), "{service:?}");
    }
    for empty in ["{}", "{\"results\": []}", "{\"web\": {\"results\": []}}"] {
        let output = search(Brave, (200, empty.to_owned())).await.unwrap();
        assert_eq!(output.text, "no results for `rust actors`: use other words");
        assert_eq!(output.data, Some(json!({ "results": [] })));
    }
    let (silent, _) = counted(SocketAddr::new(PUBLIC, 0)).await;
    let url = Url::parse(&format!("http://{silent}")).unwrap();
    let gone = call(
        &tool(Brave, url, Duration::from_secs(30)),
        json!({ "query": "x" }),
    )
    .await;
    assert!(
        gone.unwrap_err()
            .to_string()
            .starts_with("the search service failed (")
    );
    let late = TcpListener::bind((PUBLIC, 0)).await.unwrap();
    let url = Url::parse(&format!("http://{}", late.local_addr().unwrap())).unwrap();
    let late = call(
        &tool(Brave, url, Duration::from_millis(300)),
        json!({ "query": "x" }),
    )
    .await;
    assert_eq!(
        late.unwrap_err().to_string(),
        failed("did not answer in time")
    );
}

#[tokio::test]
async fn web_search_conforms() {
    let (url, _) = service((200, answer(Brave))).await;
    let tool = tool(Brave, url, Duration::from_secs(30));
    let spec = tool.spec();
    assert_eq!(
        (spec.serves, spec.trust),
        (ToolNeed::Web, ToolTrust::Untrusted)
    );
    assert_eq!(spec.effect, ToolEffect::ReadOnly);
    conforms(&Subject {
        tool: &tool,
        works: json!({ "query": "rust" }),
        host_path: env!("CARGO_MANIFEST_DIR"),
        max_output: 16_000,
    })
    .await;
}
