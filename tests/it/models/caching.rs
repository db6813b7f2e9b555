//! What a provider can keep from one request to the next, through a whole system and a strict mock
//! model in both dialects.

use std::{collections::BTreeSet, time::Duration};

use oracle_agent::llm::Dialect;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::play::{DONE, looking, looks, script, strict_server};

/// Anthropic's servers look so many blocks before a mark for a prefix that they have.
const LOOKBACK: usize = 20;
const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;
const MORE: &str = r#"{"reply": "More.\n<signal type=\"need_turn\"><reason>There is a second file</reason></signal>"}"#;

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    tools: &'a RawValue,
    #[serde(borrow, default)]
    system: Vec<&'a RawValue>,
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct Message<'a> {
    role: &'a str,
    #[serde(borrow)]
    content: Vec<&'a RawValue>,
}

/// A request as the model reads it: its tools, its prompt, its messages or their blocks.
#[derive(Debug)]
struct Sent {
    blocks: Vec<String>,
    /// Places of the blocks with a cache mark.
    marks: Vec<usize>,
}

impl Sent {
    fn new(dialect: Dialect, body: &[u8]) -> Self {
        let body: Body<'_> = serde_json::from_slice(body).unwrap();
        let text = |block: &&RawValue| block.get().to_owned();
        let mut blocks = vec![text(&body.tools)];
        blocks.extend(body.system.iter().map(text));
        for message in body.messages {
            match dialect {
                Dialect::OpenAi | Dialect::Responses => blocks.push(text(&message)),
                Dialect::Anthropic => {
                    let message: Message<'_> = serde_json::from_str(message.get()).unwrap();
                    let of_role = |block: &&RawValue| format!("{} {}", message.role, block.get());
                    blocks.extend(message.content.iter().map(of_role));
                }
            }
        }
        let marked = |(at, block): (usize, &String)| block.contains(MARK).then_some(at);
        let marks = blocks.iter().enumerate().filter_map(marked).collect();
        let blocks = blocks.iter().map(|block| block.replace(MARK, "")).collect();
        Self { blocks, marks }
    }

    /// Number of blocks that this request repeats.
    fn shares(&self, before: &Self) -> usize {
        let pairs = self.blocks.iter().zip(&before.blocks);
        pairs.take_while(|(one, other)| one == other).count()
    }

    fn prefix(&self, last: usize) -> String {
        self.blocks[..=last].concat()
    }

    /// The last block that the server finds in its cache.
    fn found(&self, cache: &BTreeSet<String>) -> Option<usize> {
        let near = |mark: &usize| mark.saturating_sub(LOOKBACK)..=*mark;
        let near = self.marks.iter().flat_map(near);
        near.filter(|at| cache.contains(&self.prefix(*at))).max()
    }
}

#[tokio::test]
async fn each_request_repeats_the_one_before_it() {
    for dialect in [Dialect::OpenAi, Dialect::Anthropic] {
        let mock = strict_server().await;
        let oracle = looking(dialect, &mock, "claude-sonnet-4-5");
        let oracle = oracle.start().await.unwrap();
        let session = oracle.session("s").unwrap();
        let mut requests: Vec<Sent> = Vec::new();
        for turns in [
            vec![looks(1), looks(2), DONE.into()],
            // Guidance first, and then more blocks than a server looks back.
            vec![MORE.into(), looks(12), looks(1), DONE.into()],
            vec![DONE.into()],
            vec![looks(1), MORE.into(), DONE.into()],
        ] {
            let answer = session.ask(&script(&turns)).await.unwrap();
            assert_eq!(answer.turns as usize, turns.len(), "{answer:?}");
            let new = mock.requests().into_iter().skip(requests.len());
            requests.extend(new.map(|request| Sent::new(dialect, &request.body)));
        }
        let mut cache = BTreeSet::new();
        for (before, next) in requests.iter().zip(&requests[1..]) {
            let lasts = before.blocks.len();
            let shared = next.shares(before);
            assert!(
                shared >= lasts,
                "{shared} of {lasts}: {before:#?}\n{next:#?}"
            );
            cache.extend(before.marks.iter().map(|at| before.prefix(*at)));
            let marked = before.marks.iter().max();
            assert!(
                next.found(&cache).as_ref() >= marked,
                "{before:#?}\n{next:#?}"
            );
        }
        let marks = requests.iter().map(|sent| sent.marks.len()).max();
        let is_marked = dialect == Dialect::Anthropic;
        // Besides the one of the tools, which are one block here.
        assert_eq!(marks, Some(if is_marked { 3 } else { 0 }));
        oracle.shut_down(Duration::from_secs(5)).await;
    }
}
