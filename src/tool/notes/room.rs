//! What the pages of an index may take.
//!
//! **Invariant:** together they take no more than [`MAX_WEIGHT`] and one unit for each thread that reads.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio_util::sync::CancellationToken;

use super::page::{Page, Stamp};

/// Most words of an index, each section's counted for itself: about 200 MB.
const MAX_WEIGHT: usize = 12_000_000;
/// Most of one note, of which the rest is not searched.
const MAX_WEIGHT_OF_ONE: usize = 2_000_000;

/// What all pages of an index may take together, and one of them alone.
pub(super) struct Room {
    taken: AtomicUsize,
    most: usize,
    most_of_one: usize,
}

/// Why a page was not read: it may be another time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missed {
    NoRoom,
    NoTime,
}

impl Room {
    /// What is left beside pages that take so much.
    pub(super) const fn beside(taken: usize) -> Self {
        Self {
            taken: AtomicUsize::new(taken),
            most: MAX_WEIGHT,
            most_of_one: MAX_WEIGHT_OF_ONE,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.taken.load(Ordering::Relaxed) > self.most
    }

    /// Reads a page; of one that takes more than any may, its beginning.
    pub(super) fn page(
        &self,
        path: &str,
        stamp: Stamp,
        text: &str,
        stop: &CancellationToken,
    ) -> Result<Page, Missed> {
        let (mut own, mut missed) = (0, None);
        let has_room = |more: usize| {
            own += more;
            if self.taken.fetch_add(more, Ordering::Relaxed) + more > self.most {
                missed = Some(Missed::NoRoom);
            } else if stop.is_cancelled() {
                missed = Some(Missed::NoTime);
            }
            missed.is_none() && own <= self.most_of_one
        };
        let page = Page::read(path.to_owned(), stamp, text, has_room);
        if let Some(missed) = missed {
            self.taken.fetch_sub(own, Ordering::Relaxed);
            return Err(missed);
        }
        let rest = page.weight().saturating_sub(own);
        self.taken.fetch_add(rest, Ordering::Relaxed);
        Ok(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_note_takes_more_room_than_there_is() {
        let text = "# A\nword\n".repeat(1_000);
        let stamp = Stamp {
            changed: None,
            size: 0,
        };
        let stop = CancellationToken::new();
        let read = |most: usize, most_of_one: usize| {
            let room = Room {
                taken: AtomicUsize::new(7),
                most,
                most_of_one,
            };
            let page = room.page("a.md", stamp, &text, &stop);
            (page, room.taken.into_inner())
        };
        let (whole, taken) = read(1_000_000, 1_000_000);
        let whole = whole.unwrap();
        assert!(whole.is_whole && whole.units.len() == 1_000);
        assert_eq!(taken, 7 + whole.weight());
        let (part, taken) = read(1_000_000, 500);
        let part = part.unwrap();
        let units = part.units.len();
        assert!(!part.is_whole && units < 200, "{units}");
        assert_eq!(taken, 7 + part.weight());
        let (none, taken) = read(500, 1_000_000);
        assert_eq!(none.unwrap_err(), Missed::NoRoom);
        assert_eq!(taken, 7, "given back");
        stop.cancel();
        let (none, taken) = read(1_000_000, 1_000_000);
        assert_eq!((none.unwrap_err(), taken), (Missed::NoTime, 7));
    }
}
