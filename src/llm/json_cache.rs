//! A cache of JSON text that many calls share: lists of tools and beginnings of conversations. The address is the key, because a comparison would cost as much as serialization.

use std::{collections::VecDeque, sync::Arc};

use parking_lot::Mutex;
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

use super::{anthropic::Places, prefixes::Prefixes};
use crate::model::ToolSpec;

/// Usually more than profiles times types of queries; a miss is only serialized again.
const MOST: usize = 32;

#[derive(Debug, Default)]
pub(super) struct JsonCache {
    /// By their source, the newest last.
    tools: Mutex<VecDeque<(Tools, Arc<RawValue>)>>,
    pub(super) plain: Prefixes<()>,
    pub(super) anthropic: Prefixes<Places>,
}

type Tools = Arc<[ToolSpec]>;

impl JsonCache {
    pub(super) fn tools(
        &self,
        tools: &Tools,
        written: impl Fn(&[ToolSpec]) -> Vec<Value>,
    ) -> serde_json::Result<Arc<RawValue>> {
        // An entry keeps its source alive, so that its address is not reused.
        let known = |(of, _): &&(Tools, Arc<RawValue>)| Arc::ptr_eq(of, tools);
        if let Some((_, text)) = self.tools.lock().iter().find(known) {
            return Ok(Arc::clone(text));
        }
        let text: Arc<RawValue> = to_raw_value(&written(tools))?.into();
        let mut kept = self.tools.lock();
        if kept.len() == MOST {
            kept.pop_front();
        }
        kept.push_back((Arc::clone(tools), Arc::clone(&text)));
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools(name: &str) -> Tools {
        [ToolSpec::new(name, "Does it.", Value::Null)].into()
    }

    fn text(kept: &JsonCache, tools: &Tools) -> Arc<RawValue> {
        let name = |tool: &ToolSpec| tool.name.as_str().into();
        kept.tools(tools, |tools| tools.iter().map(name).collect())
            .unwrap()
    }

    #[test]
    fn tools_are_serialized_once() {
        let kept = JsonCache::default();
        let own = tools("\"ready\"");
        let written = text(&kept, &own);
        assert_eq!(written.get(), r#"["\"ready\""]"#);
        assert!(Arc::ptr_eq(&written, &text(&kept, &own)));
        assert!(!Arc::ptr_eq(&written, &text(&kept, &tools("\"ready\""))));
    }

    #[test]
    fn tools_cache_is_bounded() {
        let kept = JsonCache::default();
        let first = tools("first");
        let written = text(&kept, &first);
        for number in 1..MOST {
            text(&kept, &tools(&number.to_string()));
        }
        assert!(Arc::ptr_eq(&written, &text(&kept, &first)));
        text(&kept, &tools("one more"));
        assert!(!Arc::ptr_eq(&written, &text(&kept, &first)));
        assert_eq!(kept.tools.lock().len(), MOST);
    }
}
