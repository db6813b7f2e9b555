//! Profiles: what sessions of a kind share (spec 1).

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    kernel::{DelegationPolicy, Policy},
    model::{ProfileName, ToolSpec, record::Parent, tool::ToolEffect},
    prompt,
    tool::Registry,
};

/// A named set of prompt values, tools and policy.
#[derive(Clone)]
pub struct Profile {
    /// What decisions go by.
    pub policy: Arc<Policy>,
    /// The values that its prompts are composed with.
    pub prompt: Arc<prompt::Prepared>,
    /// The tools behind the policy's list.
    pub tools: Arc<Registry>,
}

impl Profile {
    /// What sub-agents of such a session go by: only tools that read, and no children of their own
    /// beyond the depth that the policy allows (spec 11).
    #[must_use]
    pub fn for_child(&self, parent: &Parent) -> Self {
        let reads = |tool: &&ToolSpec| tool.effect == ToolEffect::ReadOnly;
        let tools: Vec<ToolSpec> = self.policy.tools.iter().filter(reads).cloned().collect();
        let delegation = if parent.depth < self.policy.delegation.max_depth {
            self.policy.delegation
        } else {
            DelegationPolicy::OFF
        };
        let policy = Policy {
            tools: tools.into(),
            delegation,
            ..(*self.policy).clone()
        };
        Self {
            policy: Arc::new(policy),
            ..self.clone()
        }
    }
}

/// All profiles of a system.
#[derive(Clone)]
pub struct Profiles {
    default: Profile,
    named: BTreeMap<ProfileName, Profile>,
}

impl Profiles {
    /// The profile `oracle`, and no other.
    #[must_use]
    pub fn new(default: Profile) -> Self {
        Self {
            default,
            named: BTreeMap::new(),
        }
    }

    /// Adds one more.
    #[must_use]
    pub fn with(mut self, name: ProfileName, profile: Profile) -> Self {
        self.named.insert(name, profile);
        self
    }

    /// A profile by its name; the default one for a name that is not (or no longer) configured, so
    /// that its sessions stay reachable.
    #[must_use]
    pub fn get(&self, name: &ProfileName) -> &Profile {
        self.named.get(name).unwrap_or(&self.default)
    }
}
