//! An abandoned search frees its thread.

use std::{cell::Cell, sync::mpsc};

use super::*;

#[tokio::test]
async fn abandoned_search_stops_before_the_next_record() {
    let fresh = Fresh::new();
    let directory = fresh.directory();
    let journal = open(&directory);
    let by = journal.claim(key("a")).await.unwrap();
    say(&journal, by, &["needle"; 9]).await;
    let connection = connection::reading(&directory.join("journal.db")).unwrap();
    let mut reader = query::Reader::new(&connection, &journal.inner.process).unwrap();
    let wanted = SearchQuery::of("needle").unwrap();
    let looked = Cell::new(0);
    let given_up = || {
        looked.set(looked.get() + 1);
        looked.get() == 4
    };
    let ended = reader.search(&TenantId::local(), &wanted, 9, &given_up);
    assert!(ended.is_err());
    assert_eq!(looked.get(), 4);
    // The thread serves other requests.
    let whole = reader.search(&TenantId::local(), &wanted, 9, &|| false);
    assert_eq!(whole.map_err(error::Failed::of_reading).unwrap().len(), 9);
}

#[tokio::test]
async fn long_read_sees_that_its_caller_is_gone() {
    let fresh = Fresh::new();
    let journal = fresh.journal();
    let (seen, sees) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel();
    let mut asked = Box::pin(journal.inner.readers.ask_at_length(move |_, given_up| {
        let _ = seen.send(given_up());
        let _ = goes_on.recv();
        let _ = seen.send(given_up());
        Ok(())
    }));
    assert!(futures_util::poll!(&mut asked).is_pending());
    assert_eq!(sees.recv(), Ok(false));
    drop(asked);
    go_on.send(()).unwrap();
    assert_eq!(sees.recv(), Ok(true));
}

#[tokio::test]
async fn short_reads_are_served_during_long_searches() {
    let fresh = Fresh::new();
    let journal = fresh.journal();
    let by = journal.claim(key("a")).await.unwrap();
    let (seen, sees) = mpsc::channel();
    let mut ends = Vec::new();
    let mut asked: Vec<_> = (0..9)
        .map(|_| {
            let (end, ended) = mpsc::channel::<()>();
            ends.push(end);
            let seen = seen.clone();
            Box::pin(journal.inner.readers.ask_at_length(move |_, _| {
                let _ = seen.send(());
                let _ = ended.recv();
                Ok(())
            }))
        })
        .collect();
    for search in &mut asked {
        assert!(futures_util::poll!(search).is_pending());
    }
    for _ in 0..2 {
        sees.recv().unwrap();
    }
    let known = journal.find(key("a")).await.unwrap();
    assert_eq!(known.map(|known| known.sid), Some(by.sid));
    drop(ends);
    for search in asked {
        assert_eq!(search.await, Ok(()));
    }
}
