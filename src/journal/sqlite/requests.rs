//! The writer's queue. The writer sleeps until as many requests have arrived as it waits for, so that
//! the first and the last request of a batch wake it, and not each of them.

use std::{collections::VecDeque, mem, time::Duration};

use parking_lot::{Condvar, Mutex};

#[derive(Debug)]
pub(super) struct Requests<T> {
    state: Mutex<State<T>>,
    arrived: Condvar,
}

#[derive(Debug)]
struct State<T> {
    queued: VecDeque<T>,
    /// How many the writer waits for.
    wanted: usize,
    is_closed: bool,
}

impl<T> Requests<T> {
    pub(super) fn new() -> Self {
        let state = State {
            queued: VecDeque::new(),
            wanted: 1,
            is_closed: false,
        };
        Self {
            state: Mutex::new(state),
            arrived: Condvar::new(),
        }
    }

    /// Drops the request if the queue is closed.
    pub(super) fn add(&self, request: T) {
        let mut state = self.state.lock();
        if state.is_closed {
            return;
        }
        state.queued.push_back(request);
        let is_enough = state.queued.len() >= state.wanted;
        drop(state);
        if is_enough {
            self.arrived.notify_one();
        }
    }

    /// Accepts no more requests. Those that wait are still taken.
    pub(super) fn close(&self) {
        self.state.lock().is_closed = true;
        self.arrived.notify_one();
    }

    /// Closes the queue and drops what waits.
    pub(super) fn abandon(&self) {
        self.close();
        // Outside of the lock, because it may run anything.
        let rest = mem::take(&mut self.state.lock().queued);
        drop(rest);
    }

    /// Waits for this many requests, or for the end of the queue; `false` if time runs out first.
    pub(super) fn wait_for(&self, wanted: usize, within: Duration) -> bool {
        let mut state = self.state.lock();
        state.wanted = wanted;
        let lacks = |state: &mut State<T>| state.queued.len() < wanted && !state.is_closed;
        !self
            .arrived
            .wait_while_for(&mut state, lacks, within)
            .timed_out()
    }

    /// Waits for a request, or for the end of the queue.
    pub(super) fn wait(&self) {
        let mut state = self.state.lock();
        state.wanted = 1;
        let lacks = |state: &mut State<T>| state.queued.is_empty() && !state.is_closed;
        self.arrived.wait_while(&mut state, lacks);
    }

    /// Takes up to `most` of the requests that wait.
    pub(super) fn take(&self, most: usize) -> Vec<T> {
        let queued = &mut self.state.lock().queued;
        let most = most.min(queued.len());
        queued.drain(..most).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, thread};

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn requests_are_taken_in_order_up_to_the_bound() {
        let requests = Requests::new();
        (0..5).for_each(|number| requests.add(number));
        assert_eq!(requests.take(3), [0, 1, 2]);
        assert_eq!(requests.take(3), [3, 4]);
    }

    #[test]
    fn wait_ends_with_the_last_wanted_request() {
        let requests = Arc::new(Requests::new());
        let writer = Arc::clone(&requests);
        let writer = thread::spawn(move || (writer.wait_for(3, LONG), writer.take(8)));
        (0..3).for_each(|number| requests.add(number));
        assert_eq!(writer.join().unwrap(), (true, vec![0, 1, 2]));
        assert!(!requests.wait_for(1, Duration::ZERO));
    }

    #[test]
    fn closed_queue_hands_out_the_rest_and_accepts_nothing() {
        let requests = Requests::new();
        requests.add(1);
        requests.close();
        requests.add(2);
        assert!(requests.wait_for(2, LONG));
        assert_eq!(requests.take(8), [1]);
        assert!(requests.take(8).is_empty());
    }

    #[test]
    fn abandoned_queue_drops_the_rest() {
        let requests = Requests::new();
        let request = Arc::new(());
        requests.add(Arc::clone(&request));
        requests.abandon();
        assert_eq!(Arc::strong_count(&request), 1);
        assert!(requests.take(8).is_empty());
    }
}
