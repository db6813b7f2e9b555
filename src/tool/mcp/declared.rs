//! A tool as its server declares it, and as models see it.

use rmcp::model::ToolAnnotations;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::{
    model::{
        ToolApproval, ToolRepeat, ToolSpec, hex,
        tool::{ApprovalRule, ToolTrust},
    },
    tool::registry::{MAX_TOOL_NAME, is_name},
};

/// Maximum size of a declaration, in bytes of JSON.
const MAX_DECLARATION: usize = 16 * 1024;

/// What a server declares of a tool; any change of it changes the hash.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[doc(hidden)]
pub struct Declared {
    pub name: String,
    pub description: String,
    pub schema: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    annotations: Option<ToolAnnotations>,
}

impl Declared {
    /// # Errors
    /// Why the tool cannot be used.
    pub(super) fn new(tool: rmcp::model::Tool) -> Result<Self, &'static str> {
        let title = tool.title.unwrap_or_default();
        let description = tool.description.map(String::from);
        let declared = Self {
            name: tool.name.into(),
            description: description.unwrap_or(title),
            schema: Value::Object((*tool.input_schema).clone()),
            annotations: tool.annotations,
        };
        if declared.schema["type"] != "object" {
            return Err("its arguments are not an object");
        }
        let size = serde_json::to_vec(&declared).map_or(usize::MAX, |json| json.len());
        if size > MAX_DECLARATION {
            return Err("its declaration is longer than 16 KiB");
        }
        Ok(declared)
    }

    /// SHA-256 in hex. Keys of JSON objects are sorted, so their order does not count.
    pub fn hash(&self) -> String {
        let json = serde_json::to_vec(self).unwrap_or_default();
        hex(&Sha256::digest(json))
    }

    /// The tool as models see it. The server's hints decide, which an operator has seen and which
    /// are pinned.
    pub(super) fn spec(&self, server: &str, approval: ApprovalRule) -> ToolSpec {
        let hints = self.annotations.clone().unwrap_or_default();
        let read_only = hints.read_only_hint == Some(true);
        let needs_approval = match approval {
            ApprovalRule::Auto => !read_only,
            ApprovalRule::Never => false,
            ApprovalRule::Always => true,
        };
        let name = model_name(server, &self.name);
        let mut spec = ToolSpec::new(name, self.description.clone(), self.schema.clone());
        spec.trust = ToolTrust::Untrusted;
        if read_only {
            spec = spec.read_only();
        }
        if hints.is_idempotent() {
            spec.repeat = ToolRepeat::Safe;
        }
        if needs_approval {
            spec.approval = ToolApproval::Required;
        }
        spec
    }
}

/// `server__tool`; a name that providers reject is made to fit, and a hash keeps it apart from
/// others.
fn model_name(server: &str, tool: &str) -> String {
    const HASH: usize = 8;
    let name = format!("{server}__{tool}");
    if is_name(&name) {
        return name;
    }
    let good = |c: char| match is_name(c.encode_utf8(&mut [0; 4])) {
        true => c,
        false => '_',
    };
    let start = name.chars().map(good).take(MAX_TOOL_NAME - HASH - 1);
    let start: String = start.collect();
    let hash = hex(&Sha256::digest(&name));
    format!("{start}_{}", hash.get(..HASH).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::ToolEffect;

    fn declared(tool: Value) -> Result<Declared, &'static str> {
        Declared::new(serde_json::from_value(tool).unwrap())
    }

    #[test]
    fn hints_decide_on_repeat_and_approval() {
        use ApprovalRule::{Always, Auto, Never};
        for (hints, approval, expected) in [
            (json!({}), Auto, (false, false, true)),
            (json!({"readOnlyHint": true}), Auto, (true, true, false)),
            (json!({"readOnlyHint": true}), Always, (true, true, true)),
            (json!({"idempotentHint": true}), Auto, (false, true, true)),
            (
                json!({"destructiveHint": false}),
                Auto,
                (false, false, true),
            ),
            (
                json!({"destructiveHint": true}),
                Never,
                (false, false, false),
            ),
        ] {
            let tool = declared(json!({
                "name": "t", "inputSchema": {"type": "object"}, "annotations": hints
            }));
            let spec = tool.unwrap().spec("s", approval);
            let got = (
                spec.effect == ToolEffect::ReadOnly,
                spec.repeat == ToolRepeat::Safe,
                spec.approval == ToolApproval::Required,
            );
            assert_eq!(
                (got, spec.trust),
                (expected, ToolTrust::Untrusted),
                "{hints}"
            );
        }
    }

    #[test]
    fn names_fit_every_provider_and_stay_apart() {
        assert_eq!(model_name("git", "log"), "git__log");
        let long = "x".repeat(100);
        let odd: Vec<String> = ["a.b", "a b", "größe", &long, &format!("{long}y")]
            .map(|tool| model_name("git", tool))
            .into();
        assert!(odd.iter().all(|name| is_name(name)), "{odd:?}");
        let apart: std::collections::BTreeSet<_> = odd.iter().collect();
        assert_eq!(apart.len(), odd.len(), "{odd:?}");
    }

    #[test]
    fn hash_covers_the_declaration_but_no_order_of_keys() {
        let tool = |description: &str, schema: &str| {
            let schema: Value = serde_json::from_str(schema).unwrap();
            declared(json!({"name": "t", "description": description, "inputSchema": schema}))
        };
        let one = tool("d", r#"{"type": "object", "title": "x"}"#).unwrap();
        let same = tool("d", r#"{"title": "x", "type": "object"}"#).unwrap();
        let other = tool("e", r#"{"title": "x", "type": "object"}"#).unwrap();
        assert_eq!(one.hash(), same.hash());
        assert_ne!(one.hash(), other.hash());
        assert!(tool("d", r#"{"type": "string"}"#).is_err());
        assert!(tool(&"x".repeat(17_000), r#"{"type": "object"}"#).is_err());
    }
}
