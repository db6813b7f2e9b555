//! Who reads letters, and answers them.

use tokio::{sync::mpsc, task::JoinSet};

use super::Answer;
use crate::{
    actor::{handle::Router, shard::Presence},
    journal::{Delivery, LETTERS, Said},
};

/// Reads letters for as long as anybody sends any, a bounded number at a time.
pub(in crate::actor) async fn read(mut letters: mpsc::Receiver<Delivery>, router: Router) {
    let mut under_way = JoinSet::new();
    while let Some(letter) = letters.recv().await {
        while under_way.try_join_next().is_some() {}
        if under_way.len() >= LETTERS {
            under_way.join_next().await;
        }
        let router = router.clone();
        under_way.spawn(async move { answer(&router, letter).await });
    }
}

async fn answer(router: &Router, Delivery { key, body, answer }: Delivery) {
    let said = match (router.presence(&key).await, serde_json::from_slice(&body)) {
        (Ok(Presence::Away), _) => {
            // Whoever asked may have given up.
            let _ = answer.send(Said::NotHere);
            return;
        }
        (Ok(Presence::Leaving), _) => Some(Answer::Later),
        (Ok(Presence::Here), Ok(letter)) => router.carry_out(&key, letter).await,
        (_, Err(error)) => {
            tracing::warn!(session = %key, %error, "a letter cannot be read");
            None
        }
        (Err(_), _) => None,
    };
    let body = said.and_then(|said| serde_json::to_vec(&said).ok());
    if let Some(body) = body {
        let _ = answer.send(Said::Answer(body));
    }
}
