//! A list that grows at its end and is cheap to clone.
//!
//! A clone shares the items so far. The chain runs from newest to oldest; serialized, the list is a
//! sequence, oldest first.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A persistent list.
pub struct SharedList<T> {
    newest: Option<Arc<Link<T>>>,
    len: usize,
}

struct Link<T> {
    item: T,
    before: SharedList<T>,
}

impl<T> SharedList<T> {
    /// Adds an item at the end; earlier clones do not see it.
    pub fn push(&mut self, item: T) {
        let len = self.len + 1;
        let before = std::mem::take(self);
        self.newest = Some(Arc::new(Link { item, before }));
        self.len = len;
    }

    /// The number of items.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether it is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.newest.is_none()
    }

    /// The newest item.
    #[must_use]
    pub fn last(&self) -> Option<&T> {
        self.newest.as_deref().map(|link| &link.item)
    }

    /// Items, newest first, without allocation.
    pub fn newest_first(&self) -> impl Iterator<Item = &T> {
        let newest = self.newest.as_deref();
        std::iter::successors(newest, |link| link.before.newest.as_deref()).map(|link| &link.item)
    }

    /// Items, oldest first.
    #[must_use]
    pub fn oldest_first(&self) -> Vec<&T> {
        let mut items = Vec::with_capacity(self.len);
        items.extend(self.newest_first());
        items.reverse();
        items
    }
}

impl<T> Default for SharedList<T> {
    fn default() -> Self {
        let newest = None;
        Self { newest, len: 0 }
    }
}

impl<T> Clone for SharedList<T> {
    fn clone(&self) -> Self {
        Self {
            newest: self.newest.clone(),
            len: self.len,
        }
    }
}

/// Iterative, because recursion would be as deep as the list is long.
impl<T> Drop for SharedList<T> {
    fn drop(&mut self) {
        let mut next = self.newest.take();
        while let Some(mut link) = next.and_then(Arc::into_inner) {
            next = link.before.newest.take();
        }
    }
}

impl<T: PartialEq> PartialEq for SharedList<T> {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.newest_first().eq(other.newest_first())
    }
}

impl<T: fmt::Debug> fmt::Debug for SharedList<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.oldest_first()).finish()
    }
}

impl<T> FromIterator<T> for SharedList<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut list = Self::default();
        items.into_iter().for_each(|item| list.push(item));
        list
    }
}

impl<T: Serialize> Serialize for SharedList<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.oldest_first())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for SharedList<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::from_iter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(items: &[&'static str]) -> SharedList<&'static str> {
        items.iter().copied().collect()
    }

    #[test]
    fn clones_share_their_prefix_and_diverge() {
        let mut original = list(&["a", "b"]);
        let mut copy = original.clone();
        original.push("c");
        copy.push("d");
        copy.push("e");
        for (name, list, want) in [
            ("original", &original, vec!["a", "b", "c"]),
            ("copy", &copy, vec!["a", "b", "d", "e"]),
            ("empty", &SharedList::default(), vec![]),
        ] {
            let got: Vec<_> = list.oldest_first().into_iter().copied().collect();
            assert_eq!(got, want, "{name}");
            let back: Vec<_> = list.newest_first().copied().collect();
            assert!(back.iter().rev().eq(&want), "{name}: newest first");
            assert_eq!(list.len(), want.len(), "{name}");
            assert_eq!(list.is_empty(), want.is_empty(), "{name}");
            assert_eq!(list.last(), want.last(), "{name}");
        }
    }

    #[test]
    fn lists_compare_by_their_items() {
        for (name, other, equal) in [
            ("the same items", vec!["a", "b"], true),
            ("one less", vec!["b"], false),
            ("one more", vec!["a", "b", "b"], false),
            ("another order", vec!["b", "a"], false),
        ] {
            assert_eq!(list(&["a", "b"]) == list(&other), equal, "{name}");
        }
    }

    #[test]
    fn shared_list_serializes_as_a_sequence() {
        let list = SharedList::from_iter([1, 2, 3]);
        let json = serde_json::to_string(&list).unwrap();
        assert_eq!(json, "[1,2,3]");
        assert_eq!(format!("{list:?}"), "[1, 2, 3]");
        assert_eq!(
            serde_json::from_str::<SharedList<i32>>(&json).unwrap(),
            list
        );
    }

    #[test]
    fn dropping_a_long_list_does_not_recurse() {
        let witness = Arc::new(());
        let mut list = SharedList::default();
        (0..200_000).for_each(|_| list.push(Arc::clone(&witness)));
        let shorter = list.clone();
        list.push(Arc::clone(&witness));
        drop(list);
        assert_eq!(Arc::strong_count(&witness), 200_001);
        drop(shorter);
        assert_eq!(Arc::strong_count(&witness), 1);
    }
}
