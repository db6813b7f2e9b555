//! A model that fails during a chat.

use super::*;
use crate::cli::{
    ask::QUESTION,
    failover::{CHAIN, place},
    server::{Server, ServerBehaviour},
};

#[test]
fn failover_stays_in_the_transcript_of_a_chat() {
    let server = Server::start(ServerBehaviour::Good);
    let place = place(&server);
    let environment = [("LOCAL_KEY", "wrong-key"), ("LOCAL_HEADER", "h")];
    let line = format!("chat --session s {CHAIN}");
    let mut screen = Screen::with(&place, &line, (40, 500), &environment);
    screen.prompt();
    screen.say(QUESTION);
    screen.shows("went on with offline/offline");
    screen.shows("without a language model");
    screen.prompt();
    let shown = screen.text();
    let failed = shown.matches("• local/small failed (401 unauthorized");
    assert_eq!(failed.count(), 1, "{shown}");
    assert!(shown.contains("went on with offline/offline"), "{shown}");
    screen.say("/quit");
    screen.end();
}
