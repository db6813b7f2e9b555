//! Work on many things, dealt to a few threads.

use std::{
    panic::resume_unwind,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

/// From so many passages on, more than one thread looks at them, and how many do at most.
const MANY: usize = 100_000;
const MOST_THREADS: usize = 4;

/// On how many threads so many passages are looked at.
pub(super) fn threads_for(passages: usize) -> usize {
    match passages {
        0..MANY => 1,
        _ => thread::available_parallelism()
            .map_or(1, usize::from)
            .min(MOST_THREADS),
    }
}

/// What a piece of work finds in each, in no order; on no more than so many threads, this one among them.
pub(super) fn dealt<T: Sync, R: Send>(
    all: &[T],
    threads: usize,
    of: impl Fn(usize, &T) -> Vec<R> + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut found = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(one) = all.get(number) else {
                return found;
            };
            found.extend(of(number, one));
        }
    };
    thread::scope(|scope| {
        let others: Vec<_> = (1..threads.min(all.len()))
            .map(|_| scope.spawn(work))
            .collect();
        let mut found = work();
        for other in others {
            found.extend(other.join().unwrap_or_else(|fault| resume_unwind(fault)));
        }
        found
    })
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, sync::Barrier};

    use super::*;

    #[test]
    fn however_much_there_is_to_do_few_threads_do_it() {
        for (count, most) in [(0, 3), (1, 3), (50, 1), (51, 3)] {
            let all: Vec<usize> = (0..count).collect();
            // So many do work at a time: each waits for the others.
            let together = Barrier::new(most.min(count));
            let of = |number: usize, one: &usize| {
                together.wait();
                vec![(number, *one, thread::current().id())]
            };
            let mut found = dealt(&all, most, of);
            found.sort_unstable_by_key(|(number, ..)| *number);
            let numbers: Vec<usize> = found.iter().map(|(number, ..)| *number).collect();
            assert_eq!(numbers, all);
            assert!(found.iter().all(|(number, one, _)| number == one));
            let threads: HashSet<_> = found.iter().map(|(.., thread)| *thread).collect();
            assert!(threads.len() <= most, "{} of {most}", threads.len());
        }
    }
}
