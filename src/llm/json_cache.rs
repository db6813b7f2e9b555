//! A cache of JSON text that many calls share: prompts, lists of tools and beginnings of
//! conversations. The address is the key, because a comparison would cost as much as serialization.

use std::{collections::VecDeque, sync::Arc};

use parking_lot::Mutex;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::{anthropic::Places, prefixes::Prefixes};
use crate::model::ToolSpec;

/// Usually more than profiles times types of queries; a miss is only serialized again.
const MOST: usize = 32;

#[derive(Debug, Default)]
pub(super) struct JsonCache {
    prompts: Texts<str>,
    tools: Texts<[ToolSpec]>,
    pub(super) plain: Prefixes<()>,
    pub(super) anthropic: Prefixes<Places>,
}

/// Texts by their source, the newest last.
#[derive(Debug)]
struct Texts<T: ?Sized>(Mutex<VecDeque<(Arc<T>, Arc<RawValue>)>>);

impl JsonCache {
    pub(super) fn prompt(&self, prompt: &Arc<str>) -> serde_json::Result<Arc<RawValue>> {
        self.prompts.of(prompt, |prompt| prompt)
    }

    pub(super) fn tools<'a, W: Serialize>(
        &self,
        tools: &'a Arc<[ToolSpec]>,
        written: impl FnOnce(&'a [ToolSpec]) -> W,
    ) -> serde_json::Result<Arc<RawValue>> {
        self.tools.of(tools, written)
    }
}

impl<T: ?Sized> Default for Texts<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: ?Sized> Texts<T> {
    fn of<'a, W: Serialize>(
        &self,
        what: &'a Arc<T>,
        written: impl FnOnce(&'a T) -> W,
    ) -> serde_json::Result<Arc<RawValue>> {
        // An entry keeps its source alive, so that its address is not reused.
        let known = |(of, _): &&(Arc<T>, Arc<RawValue>)| Arc::ptr_eq(of, what);
        let kept = self.0.lock();
        if let Some((_, text)) = kept.iter().find(known) {
            return Ok(Arc::clone(text));
        }
        drop(kept);
        let text: Arc<RawValue> = to_raw_value(&written(what))?.into();
        let mut kept = self.0.lock();
        if kept.len() == MOST {
            kept.pop_front();
        }
        kept.push_back((Arc::clone(what), Arc::clone(&text)));
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompt_is_serialized_once() {
        let kept = JsonCache::default();
        let prompt: Arc<str> = "Say \"ready\".".into();
        let text = kept.prompt(&prompt).unwrap();
        assert_eq!(text.get(), r#""Say \"ready\".""#);
        assert!(Arc::ptr_eq(&text, &kept.prompt(&prompt).unwrap()));
        let other: Arc<str> = (&*prompt).into();
        assert!(!Arc::ptr_eq(&text, &kept.prompt(&other).unwrap()));
    }

    #[test]
    fn prompt_cache_is_bounded() {
        let kept = JsonCache::default();
        let first: Arc<str> = "first".into();
        let text = kept.prompt(&first).unwrap();
        for number in 1..MOST {
            kept.prompt(&number.to_string().into()).unwrap();
        }
        assert!(Arc::ptr_eq(&text, &kept.prompt(&first).unwrap()));
        kept.prompt(&"one more".into()).unwrap();
        assert!(!Arc::ptr_eq(&text, &kept.prompt(&first).unwrap()));
        assert_eq!(kept.prompts.0.lock().len(), MOST);
    }
}
