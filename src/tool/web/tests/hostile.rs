//! Pages that want to exhaust the reader.

use std::{thread, time::Duration};

use reqwest::Url;
use tokio_util::sync::CancellationToken;

use crate::tool::web::markdown::{Page, page};

/// Converts a page, on a thread as small as those of the runtime. Stops after a minute.
fn converted(html: &str) -> Page {
    let stop = CancellationToken::new();
    let base = Url::parse("https://example.org/a/b").unwrap();
    thread::scope(|scope| {
        let small = thread::Builder::new().stack_size(2 << 20);
        let (done, ended) = std::sync::mpsc::channel::<()>();
        scope.spawn({
            let stop = stop.clone();
            move || {
                if ended.recv_timeout(Duration::from_secs(60)).is_err() {
                    stop.cancel();
                }
            }
        });
        let page = small
            .spawn_scoped(scope, || page(html, &base, &stop))
            .unwrap()
            .join();
        done.send(()).unwrap();
        page.unwrap().expect("converted in time")
    })
}

#[test]
fn hostile_pages_are_bounded() {
    const LARGE: usize = 128 << 10;
    const SMALL: usize = LARGE * 3 / 10;
    let of = |piece: &str, bytes: usize| piece.repeat(bytes / piece.len());
    let distinct = |open: &str, close: &str, count: usize| -> String {
        (0..count).map(|n| format!("{open}{n}{close}")).collect()
    };
    for (name, html, most) in [
        ("nested blocks", "<div>".repeat(5_000) + "end", 10),
        ("nested lists", "<ul><li>".repeat(5_000) + "end", 100),
        (
            "nested quotations",
            "<blockquote>".repeat(5_000) + "end",
            100,
        ),
        (
            "nested tables",
            "<table><tr><td>".repeat(5_000) + "end",
            30_000,
        ),
        ("nested links", "<a href=x>y".repeat(5_000), 200_000),
        ("nested code", "<pre><code>".repeat(5_000) + "end", 100),
        (
            "nested headings",
            "<h1><a href=x>".repeat(5_000) + "end",
            100,
        ),
        ("skipped", "<svg>".repeat(5_000) + "end", 10),
        (
            "formatting that is never closed",
            distinct("<font color=", ">", 2_000) + &of("<p>x", SMALL),
            40_000,
        ),
        (
            "code that is never closed",
            "<code>".repeat(20) + &of("<li>x", SMALL),
            60_000,
        ),
        ("short neighbours", of("<code>x</code>", SMALL), 10_000),
        ("bold neighbours", of("<b>x</b>", LARGE), 20_000),
        (
            "attributes",
            format!("<p {}>end", distinct("a", " ", 1_000)),
            10,
        ),
        (
            "attributes without end",
            format!("<p {}>end", distinct("a", " ", 150_000)),
            10,
        ),
        (
            "deep indents",
            "<ul><li>".repeat(100) + &of("x<br>", SMALL),
            400_000,
        ),
        (
            "deep quotations",
            "<blockquote>".repeat(100) + &of("x<br>", SMALL),
            450_000,
        ),
        (
            "a wide cell in a high table",
            format!(
                "<table><tr><td>{}{}",
                "w".repeat(LARGE),
                of("<tr><td>x", SMALL)
            ),
            200_000,
        ),
        (
            "a wide row in a high table",
            format!(
                "<table><tr>{}{}",
                of("<td>x", LARGE / 4),
                of("<tr><td>x", SMALL)
            ),
            80_000,
        ),
        ("entities", of("&amp;", LARGE), 40_000),
        (
            "an endless comment",
            format!("end<!--{}", of("-", 4 * LARGE)),
            10,
        ),
        (
            "an endless title",
            format!("end<title>{}", of("t", 4 * LARGE)),
            10,
        ),
        (
            "an endless tag",
            format!("end<p {}", of("a", 4 * LARGE)),
            10,
        ),
        ("tags without names", of("<</><!><?>", SMALL), 5_000),
        ("marks", of("`*_[]", LARGE), 300_000),
        (
            "an ordinary page",
            of(
                "<div><h2>H</h2><p>Some <b>text</b> with <a href=/x>a link</a>.</div>\n",
                5 * LARGE,
            ),
            600_000,
        ),
    ] {
        let page = converted(&html);
        assert!(page.text.len() <= most, "{name}: {}", page.text.len());
    }
}

#[test]
fn only_a_long_tag_is_left_out_of_a_page() {
    let long = "<x ".repeat(10_000);
    for (html, text) in [
        (format!("a <b {long}>b</b> <code>c</code>"), "a b `c`"),
        (
            format!("a <b title='{long}'>b</b> <code>c</code>"),
            "a b `c`",
        ),
        (format!("a <!-- > {long} --> <code>c</code>"), "a `c`"),
        (format!("a <script>{long}</script> <code>c</code>"), "a `c`"),
        (format!("a <title>{long}</title> <code>c</code>"), "a `c`"),
    ] {
        assert_eq!(converted(&html).text, text, "{}", &html[..20]);
    }
}

#[test]
fn a_conversion_stops_with_its_call() {
    let stop = CancellationToken::new();
    stop.cancel();
    let base = Url::parse("https://example.org").unwrap();
    assert_eq!(page("<p>x", &base, &stop), None);
}

/// Any cut of a page of every element converts.
#[test]
fn broken_pages_convert() {
    let whole = include_str!("page.html");
    for (at, _) in whole.char_indices().step_by(7) {
        converted_here(&whole[..at]);
        converted_here(&whole[at..]);
    }
}

fn converted_here(html: &str) -> Page {
    let base = Url::parse("https://example.org/a/b").unwrap();
    page(html, &base, &CancellationToken::new()).unwrap()
}

#[test]
fn a_page_becomes_markdown() {
    let Page {
        title,
        text,
        is_cut,
    } = converted_here(include_str!("page.html"));
    assert_eq!((&*title, is_cut), ("Rates & limits", false));
    insta::assert_snapshot!(text);
}
