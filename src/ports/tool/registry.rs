//! The tools of a profile by name, in the fixed order in which they were given: providers cache a
//! prompt's prefix only while the tool list is unchanged.

use std::{fmt, sync::Arc};

use super::Tool;
use crate::model::ToolSpec;

/// Longest tool name that all providers accept, in characters.
pub const MAX_TOOL_NAME: usize = 64;

/// Why tools cannot form a registry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// A name that providers reject.
    #[error(
        "invalid tool name `{}`: use 1 to {MAX_TOOL_NAME} characters from A-Z a-z 0-9 _ -",
        .0.escape_debug()
    )]
    BadName(String),
    /// Arguments that are not an object.
    #[error(
        "the arguments of tool `{0}` are not an object: give its function a struct with named \
         fields, or its schema `\"type\": \"object\"`"
    )]
    NoObject(String),
    /// Two tools with the same name.
    #[error("two tools are named `{0}`: rename or remove one")]
    Duplicate(String),
}

/// Named tools in a stable order; by default none.
#[derive(Clone, Default)]
pub struct Registry {
    tools: Vec<Arc<dyn Tool>>,
    specs: Arc<[ToolSpec]>,
}

impl Registry {
    /// Creates a registry in the order that models will see.
    ///
    /// # Errors
    /// [`RegistryError`] for an invalid or duplicate name, or arguments that are not an object.
    pub fn new(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Result<Self, RegistryError> {
        let tools: Vec<_> = tools.into_iter().collect();
        let mut specs: Vec<ToolSpec> = Vec::with_capacity(tools.len());
        for tool in &tools {
            let spec = tool.spec();
            if !is_name(&spec.name) {
                return Err(RegistryError::BadName(spec.name.clone()));
            }
            if spec.schema["type"] != "object" {
                return Err(RegistryError::NoObject(spec.name.clone()));
            }
            let is_known = specs.iter().any(|known| known.name == spec.name);
            if is_known || spec.name == ToolSpec::FIND {
                return Err(RegistryError::Duplicate(spec.name.clone()));
            }
            specs.push(spec.clone());
        }
        Ok(Self {
            tools,
            specs: specs.into(),
        })
    }

    /// The specs of all tools, in order. Cheap.
    pub fn specs(&self) -> Arc<[ToolSpec]> {
        Arc::clone(&self.specs)
    }

    /// The tool with exactly this name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        let at = self.specs.iter().position(|spec| spec.name == name)?;
        self.tools.get(at)
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.specs.iter().map(|spec| &spec.name))
            .finish()
    }
}

/// Whether every provider accepts the name: 1–64 characters `[a-zA-Z0-9_-]`.
#[doc(hidden)]
pub fn is_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=MAX_TOOL_NAME).contains(&name.len()) && name.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use futures_util::future::BoxFuture;
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        model::tool::{ToolApproval, ToolEffect, ToolNeed, ToolRepeat, ToolTrust},
        tool::{ToolContext, ToolError, ToolOutput, tool_fn},
    };

    struct Named(ToolSpec);

    impl Tool for Named {
        fn spec(&self) -> &ToolSpec {
            &self.0
        }

        fn call(
            &self,
            _: Value,
            _: ToolContext,
        ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
            let name = self.0.name.clone();
            Box::pin(async move { Ok(name.into()) })
        }
    }

    fn named(name: &str) -> Arc<dyn Tool> {
        Arc::new(Named(ToolSpec {
            name: name.to_owned(),
            description: "Says its name.".to_owned(),
            schema: json!({"type": "object", "properties": {}}),
            serves: ToolNeed::General,
            effect: ToolEffect::ReadOnly,
            repeat: ToolRepeat::Safe,
            approval: ToolApproval::NotNeeded,
            trust: ToolTrust::Trusted,
            is_rare: false,
        }))
    }

    #[test]
    fn registry_keeps_the_given_order() {
        let registry = Registry::new(["zeta", "alpha", "mid"].map(named)).unwrap();
        let specs = registry.specs();
        let names: Vec<_> = specs.iter().map(|spec| spec.name.as_str()).collect();
        assert_eq!(names, ["zeta", "alpha", "mid"]);
        assert!(
            Arc::ptr_eq(&specs, &registry.specs()),
            "handed out, not built anew"
        );
    }

    #[test]
    fn tool_is_found_by_its_exact_name() {
        let registry = Registry::new(["zeta", "alpha"].map(named)).unwrap();
        for (name, found) in [
            ("alpha", Some("alpha")),
            ("zeta", Some("zeta")),
            ("Alpha", None),
            ("", None),
        ] {
            let got = registry.get(name).map(|tool| tool.spec().name.as_str());
            assert_eq!(got, found, "{name:?}");
        }
    }

    #[test]
    fn invalid_tool_names_are_refused() {
        let longest = "x".repeat(64);
        let too_long = "x".repeat(65);
        for (name, fine) in [
            ("code_search", true),
            ("Mcp-tool_9", true),
            (longest.as_str(), true),
            (too_long.as_str(), false),
            ("", false),
            ("a b", false),
            ("a.b", false),
            ("größe", false),
        ] {
            let want = if fine {
                None
            } else {
                Some(RegistryError::BadName(name.to_owned()))
            };
            assert_eq!(Registry::new([named(name)]).err(), want, "{name:?}");
        }
    }

    #[test]
    fn tool_whose_arguments_are_no_object_is_refused() {
        let text = tool_fn("length", "Counts.", async |text: String| {
            Ok(text.len().to_string())
        });
        let error = Registry::new([Arc::new(text) as Arc<dyn Tool>]).unwrap_err();
        assert_eq!(error, RegistryError::NoObject("length".to_owned()));
    }

    #[test]
    fn duplicate_tool_names_are_refused() {
        let error = Registry::new(["a", "b", "a"].map(named)).unwrap_err();
        assert_eq!(error, RegistryError::Duplicate("a".to_owned()));
        let says = "two tools are named `a`: rename or remove one";
        assert_eq!(error.to_string(), says);
    }
}
