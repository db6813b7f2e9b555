use proptest::{collection::vec, prelude::*};

use super::*;

type Named = (String, String);

fn read(chunks: &[&[u8]], limit: usize) -> Result<Vec<Named>, TooLong> {
    let mut events = Vec::new();
    let mut parser = Parser::new(limit);
    for mut chunk in chunks.iter().copied() {
        while let Some(event) = parser.next(&mut chunk)? {
            events.push(event);
        }
    }
    while let Some(event) = parser.finish()? {
        events.push(event);
    }
    let named = events.into_iter().map(|event| (event.name, event.data));
    Ok(named.collect())
}

fn data(texts: &[&str]) -> Vec<Named> {
    texts
        .iter()
        .map(|text| (String::new(), (*text).to_owned()))
        .collect()
}

#[test]
fn sse_events_parse_in_every_form() {
    let forms: [(&str, &[u8], Vec<Named>); 21] = [
        ("nothing", b"", vec![]),
        ("line feeds", b"data: a\n\ndata: b\n\n", data(&["a", "b"])),
        (
            "carriage returns",
            b"data: a\r\rdata: b\r\r",
            data(&["a", "b"]),
        ),
        ("both", b"data: a\r\n\r\ndata: b\r\n\r\n", data(&["a", "b"])),
        ("mixed", b"data: a\r\n\ndata: b\r\r\n", data(&["a", "b"])),
        ("byte order mark", b"\xEF\xBB\xBFdata: a\n\n", data(&["a"])),
        ("no space", b"data:a\n\n", data(&["a"])),
        ("one space of two", b"data:  a\n\n", data(&[" a"])),
        ("several lines", b"data: a\ndata: b\n\n", data(&["a\nb"])),
        (
            "no blank lines between events",
            b"data: {a}\ndata: {b}\n: x\ndata: [DONE]",
            data(&["{a}", "{b}", "[DONE]"]),
        ),
        (
            "no blank lines between named events",
            b"event: x\ndata: {a}\nevent: y\ndata: {b}\n\n",
            vec![("x".into(), "{a}".into()), ("y".into(), "{b}".into())],
        ),
        (
            "a JSON text in lines",
            b"data: {\ndata: [\ndata: {},\ndata: {}\ndata: ]}\n\n",
            data(&["{\n[\n{},\n{}\n]}"]),
        ),
        (
            "a name after the data",
            b"data: a\nevent: x\n\n",
            vec![("x".into(), "a".into())],
        ),
        ("empty data", b"data:\n\ndata\n\n", data(&["", ""])),
        ("comments", b": hello\n\n:\n:\n\ndata: a\n\n", data(&["a"])),
        (
            "other fields",
            b"id: 1\nretry: 5\nx: y\ndata: a\n\n",
            data(&["a"]),
        ),
        ("blank lines", b"\n\n\r\n\rdata: a\n\n\n\n", data(&["a"])),
        (
            "no blank line at the end",
            b"data: a\n\ndata: b\n",
            data(&["a", "b"]),
        ),
        (
            "no line end at the end",
            b"data: a\n\ndata: b",
            data(&["a", "b"]),
        ),
        (
            "a name, for its event alone",
            b"event: x\ndata: a\n\nevent: y\n\ndata: b\n\n",
            vec![("x".into(), "a".into()), (String::new(), "b".into())],
        ),
        ("broken UTF-8", b"data: a\xFFb\n\n", data(&["a\u{FFFD}b"])),
    ];
    for (name, bytes, expected) in forms {
        assert_eq!(read(&[bytes], 64), Ok(expected.clone()), "{name}");
        for at in 0..bytes.len() {
            let (head, tail) = bytes.split_at(at);
            assert_eq!(
                read(&[head, tail], 64),
                Ok(expected.clone()),
                "{name}, cut at {at}"
            );
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(read(&single, 64), Ok(expected), "{name}, byte by byte");
    }
}

#[test]
fn overlong_sse_line_or_event_is_refused() {
    let event = |lines: usize| b"data: 1234\n".repeat(lines);
    for (name, bytes, fits) in [
        ("an endless line", b"x".repeat(101), false),
        ("a long line", b"x".repeat(100), true),
        (
            "a long line that ends",
            [b"data:", &b"x".repeat(94)[..], b"\n\n"].concat(),
            true,
        ),
        ("endless lines of one event", event(25), false),
        ("a long event", event(16), true),
        ("many short events", b"data: 1234\n\n".repeat(1000), true),
        (
            "an endless name",
            [b"event:", &b"x".repeat(101)[..], b"\n"].concat(),
            false,
        ),
        (
            "a name that grows as it is read",
            [b"event:", &b"\xFF"[..].repeat(40)[..], b"\n"].concat(),
            false,
        ),
    ] {
        let chunks: Vec<&[u8]> = bytes.chunks(7).collect();
        assert_eq!(read(&chunks, 100).is_ok(), fits, "{name}");
    }
}

proptest! {
    #[test]
    fn sse_events_do_not_depend_on_chunking(
        bytes in vec(prop::sample::select(b"data: event\r\n\r\n:\xEF\xBB\xBF\xC3\xA4".to_vec()), 0..200),
        cuts in vec(1_usize..9, 1..40),
    ) {
        let mut chunks = Vec::new();
        let (mut rest, mut sizes) = (&bytes[..], cuts.iter().cycle());
        while !rest.is_empty() {
            let size = sizes.next().map_or(1, |size| *size).min(rest.len());
            let (head, tail) = rest.split_at(size);
            chunks.push(head);
            rest = tail;
        }
        prop_assert_eq!(read(&chunks, 1000), read(&[&bytes], 1000));
    }
}
