//! Targets of fuzzing: each takes any bytes and panics where a promise is broken.
//!
//! The targets of `fuzz/` and the seeded mutations of `tests/it/fuzz.rs` share them.

use std::{fs, future::Future, io, path::Path};

use serde_json::json;
use tempfile::TempDir;

use super::{
    llm_conformance::{Scenario, request},
    tool_context,
};
use crate::{
    control::Verb,
    http,
    kernel::IdleState,
    llm::{Delta, Dialect, decode},
    model::{
        Message, Role, Timestamp,
        record::codec::{Encoded, Encoder},
    },
    signal::{self, Finding, Stripper},
    tool::{ProjectRoot, Tool, file_read},
};

/// A target and its name.
pub type Target = (&'static str, fn(&[u8]));

/// All targets. Seeds are in `fuzz/corpus/NAME`.
pub const TARGETS: [Target; 6] = [
    ("reply", reply),
    ("signal", signal),
    ("body", body),
    ("record", record),
    ("snapshot", snapshot),
    ("tool", tool),
];

/// A model server's answer. The first byte selects the dialect, the second the chunks' size.
pub fn reply(data: &[u8]) {
    let [dialect, size, bytes @ ..] = data else {
        return;
    };
    let dialect = match dialect {
        b'A' => Dialect::Anthropic,
        b'R' => Dialect::Responses,
        _ => Dialect::OpenAi,
    };
    let request = || request(Scenario::Results);
    let (deltas, reply) = decode(dialect, request(), [bytes]);
    let chunks = bytes.chunks(1 + usize::from(size % 64));
    let in_chunks = decode(dialect, request(), chunks);
    assert_eq!(in_chunks, (deltas.clone(), reply.clone()), "in chunks");
    let Ok(reply) = reply else { return };
    let told = deltas.iter().filter_map(|delta| match delta {
        Delta::Text(text) => Some(text.as_str()),
        _ => None,
    });
    let message = Message::new(Role::Assistant, reply.parts);
    let text: String = message.texts().collect();
    assert_eq!(text, told.collect::<String>(), "the text that was streamed");
    let mut ids: Vec<_> = message.calls().map(|call| &call.id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), message.calls().count(), "ids are unique");
}

/// A model's text, which may have signals. The first byte selects the chunks' size.
pub fn signal(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let whole = signal::read(&text, Timestamp::default());
    let size = 1 + data.first().map_or(0, |byte| usize::from(byte % 16));
    let mut stripper = Stripper::new();
    let mut streamed = String::new();
    let characters: Vec<char> = text.chars().collect();
    for chunk in characters.chunks(size) {
        streamed += &stripper.push(&chunk.iter().collect::<String>());
    }
    streamed += &stripper.finish();
    // The stream also has a thought without an opening tag.
    assert!(streamed.ends_with(&whole.text), "as it is streamed");
    let escaped = signal::read(&signal::escape(&text), Timestamp::default());
    assert_eq!(escaped.finding, Finding::Nothing, "an escaped text");
}

/// A body of a request over HTTP, or a line of the control channel.
pub fn body(data: &[u8]) {
    let mut longer = data.to_vec();
    longer.push(b'}');
    for (route, is_accepted) in http::accepts(data) {
        let accepts_longer = http::accepts(&longer).contains(&(route, true));
        let accepts_both = is_accepted && accepts_longer;
        assert!(!accepts_both, "{route}: text after the body");
        let over_socket = Verb::read(data).is_ok() && data.trim_ascii_start().starts_with(b"{");
        let is_same = route != "control" || is_accepted == over_socket;
        assert!(is_same, "one way only");
    }
}

/// A record of the journal.
pub fn record(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    let line: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let kind = line["type"].as_str().unwrap_or_default();
    let decode = |text| Encoded::read(text)?.decode(Timestamp::default(), kind, None);
    if let Ok(record) = decode(text)
        && let Ok(encoded) = Encoder::default().encode(&record)
    {
        let again = decode(&encoded);
        assert_eq!(again.ok().as_ref(), Some(&record), "{encoded}");
    }
}

/// A snapshot of a session.
pub fn snapshot(data: &[u8]) {
    if let Ok(state) = IdleState::from_bytes(data)
        && let Ok(bytes) = state.to_bytes()
    {
        let again = IdleState::from_bytes(&bytes);
        let again = again.ok().and_then(|state| state.to_bytes().ok());
        assert_eq!(again, Some(bytes), "it is written as it was read");
    }
}

const SECRET: &str = "mongoose";

/// A project beside a file that must not be read.
struct Project {
    folder: TempDir,
    root: ProjectRoot,
}

impl Project {
    fn new() -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let path = |name: &str| folder.path().join(name);
        for (name, text) in [
            ("outside/secret.txt", SECRET),
            ("project/.git/config", SECRET),
            ("project/src/inside.txt", "fn run() {}\n"),
        ] {
            fs::create_dir_all(path(name).parent().unwrap_or(Path::new("")))?;
            fs::write(path(name), text)?;
        }
        std::os::unix::fs::symlink("../outside", path("project/link"))?;
        let root = ProjectRoot::open(&path("project")).map_err(io::Error::other)?;
        Ok(Self { folder, root })
    }
}

thread_local! {
    static PROJECT: io::Result<Project> = Project::new();
}

/// Arguments of `file_read`, or its path alone.
pub fn tool(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let arguments = serde_json::from_str(&text).unwrap_or_else(|_| json!({ "path": text }));
    PROJECT.with(|project| {
        let Ok(project) = project else { return };
        let outside = project.folder.path().join("outside");
        if let Some(path) = arguments["path"].as_str()
            && let Ok(found) = project.root.resolve(path)
        {
            let shown = found.display();
            assert!(found.starts_with(project.root.path()), "{shown}");
            assert!(!found.starts_with(outside), "{shown}");
        }
        let call = file_read(project.root.clone()).call(arguments, tool_context());
        if let Ok(Ok(output)) = block_on(call) {
            assert!(!output.text.contains(SECRET), "{}", output.text);
        }
    });
}

fn block_on<T>(work: impl Future<Output = T>) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build()?;
    Ok(runtime.block_on(work))
}
