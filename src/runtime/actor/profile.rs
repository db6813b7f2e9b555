//! Profiles: prompt values, tools and policy that sessions share.

use std::{
    collections::{BTreeMap, BTreeSet},
    iter,
    sync::Arc,
};

use arc_swap::ArcSwap;

use crate::{
    kernel::{DelegationPolicy, ModelChoice, Policy, SubAgentType},
    model::{Day, ProfileName, ToolApproval, ToolSpec, record::Parent, tool::ToolEffect},
    prompt::{Composer, PreparedVariables, ToolLine, Variables},
    tool::Registry,
};

/// Parameters of a session, used if it is new.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Opening {
    pub profile: ProfileName,
    pub parent: Option<Parent>,
}

/// A named set of prompt values, tools and policy.
#[derive(Clone)]
pub struct Profile {
    /// Models, budgets and rules of the sessions.
    pub policy: Arc<Policy>,
    /// Prepared values for the prompts.
    pub prompt: Arc<PreparedVariables>,
    /// Implementations of the tools that the policy lists.
    pub tools: Arc<Registry>,
    /// Composer of the prompts.
    pub composer: Arc<Composer>,
    /// Purpose of the profile, shown to users who choose one.
    pub description: Option<Arc<str>>,
    /// The profiles whose sessions may have sub-agents of this one.
    pub sub_agent_of: Arc<[ProfileName]>,
    variables: Arc<Variables>,
}

impl Profile {
    /// Creates a profile whose prompts use these values and name the policy's tools.
    pub fn new(
        policy: Policy,
        variables: Variables,
        tools: Arc<Registry>,
        composer: Arc<Composer>,
    ) -> Self {
        let named = naming(&variables, &policy);
        Self {
            policy: Arc::new(policy),
            prompt: Arc::new(named.prepare()),
            tools,
            composer,
            description: None,
            sub_agent_of: Arc::default(),
            variables: Arc::new(named),
        }
    }

    /// Sets the description.
    #[must_use]
    pub fn described(mut self, description: &str) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Returns the profile for a sub-agent: only tools that its parent allows it, and no delegation
    /// beyond the depth that the policy allows.
    pub fn for_child(&self, parent: &Parent) -> Self {
        let may_use = |tool: &&ToolSpec| match &parent.tools {
            // It would find tools that its parent does not have, or wait where nobody is asked.
            _ if tool.name == ToolSpec::FIND || tool.approval == ToolApproval::Required => false,
            Some(names) => names.contains(&tool.name),
            None => tool.effect == ToolEffect::ReadOnly,
        };
        let tools = self.policy.own_tools().filter(may_use).cloned();
        let delegation = if parent.depth < self.policy.delegation.max_depth {
            self.policy.delegation
        } else {
            DelegationPolicy::OFF
        };
        let policy = Policy {
            tools: tools.collect(),
            findable: Arc::default(),
            attachable: Arc::default(),
            delegation,
            ..(*self.policy).clone()
        };
        self.with_policy(policy)
    }

    fn with_policy(&self, policy: Policy) -> Self {
        let variables = naming(&self.variables, &policy);
        let prompt = match variables == *self.variables {
            true => Arc::clone(&self.prompt),
            false => Arc::new(variables.prepare()),
        };
        Self {
            policy: Arc::new(policy),
            prompt,
            variables: Arc::new(variables),
            ..self.clone()
        }
    }
}

fn naming(variables: &Variables, policy: &Policy) -> Variables {
    let delegates = policy.delegation.max_depth > 0;
    let sub_agents = policy.sub_agents.iter().filter(|_| delegates);
    let sub_agents = sub_agents.map(|kind| {
        let about = kind.description.as_deref().unwrap_or_default();
        (kind.name.to_string(), about.to_owned())
    });
    Variables {
        tools: policy.tools.iter().map(ToolLine::from).collect(),
        sub_agents: sub_agents.collect(),
        ..variables.clone()
    }
}

/// All profiles of a system.
#[derive(Clone)]
pub struct Profiles {
    default: Profile,
    named: BTreeMap<ProfileName, Profile>,
}

impl Profiles {
    /// Creates a set with only the profile `oracle`.
    pub fn new(default: Profile) -> Self {
        Self {
            default,
            named: BTreeMap::new(),
        }
    }

    /// Adds a named profile.
    #[must_use]
    pub fn with(mut self, name: ProfileName, profile: Profile) -> Self {
        self.named.insert(name, profile);
        self
    }

    /// Returns a profile by its name, or the default one if the name is not (or no longer)
    /// configured, so that its sessions stay reachable.
    pub fn get(&self, name: &ProfileName) -> &Profile {
        self.named.get(name).unwrap_or(&self.default)
    }

    /// Warnings of models that their providers have switched off, or will soon.
    pub fn retirements(&self, today: Day) -> BTreeSet<String> {
        let models = self.all().flat_map(|(_, profile)| &*profile.policy.models);
        let warning = |model: &ModelChoice| {
            let warning = model.retirement.as_ref()?.warning(&model.name, today)?;
            Some(warning.join(": "))
        };
        models.filter_map(warning).collect()
    }

    /// Tells each profile which ones its sub-agents may have.
    fn with_types(mut self) -> Self {
        let named = self.named.clone();
        let typed = |profile: &Profile, name: &ProfileName| {
            let types = named.iter();
            let types = types.filter(|(_, kind)| kind.sub_agent_of.contains(name));
            let types = types.map(|(name, kind)| SubAgentType {
                name: name.clone(),
                description: kind.description.clone(),
                tools: kind.policy.own_tools().cloned().collect(),
            });
            profile.with_policy(Policy {
                sub_agents: types.collect(),
                ..(*profile.policy).clone()
            })
        };
        self.default = typed(&self.default, &ProfileName::oracle());
        for (name, profile) in &mut self.named {
            *profile = typed(profile, name);
        }
        self
    }

    pub(super) fn name_of(&self, name: &ProfileName) -> ProfileName {
        match self.named.get_key_value(name) {
            Some((name, _)) => name.clone(),
            None => ProfileName::oracle(),
        }
    }

    /// All profiles, the default one first.
    pub fn all(&self) -> impl Iterator<Item = (ProfileName, &Profile)> {
        let named = self.named.iter();
        let named = named.map(|(name, profile)| (name.clone(), profile));
        iter::once((ProfileName::oracle(), &self.default)).chain(named)
    }

    pub(super) fn of(&self, opening: &Opening) -> Profile {
        let profile = self.get(&opening.profile);
        match &opening.parent {
            Some(parent) => profile.for_child(parent),
            None => profile.clone(),
        }
    }
}

#[derive(Clone)]
pub(super) struct ProfileStore(Arc<ArcSwap<Profiles>>);

impl ProfileStore {
    pub(super) fn new(profiles: Profiles) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(profiles.with_types())))
    }

    pub(super) fn now(&self) -> Arc<Profiles> {
        self.0.load_full()
    }

    pub(super) fn put(&self, profiles: Profiles) {
        self.0.store(Arc::new(profiles.with_types()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        kernel::ModelChoice,
        model::{QueryId, SessionName},
        prompt::{Composer, Prompts, TOKEN_BUDGET},
    };

    fn profile(tools: &[ToolSpec]) -> Profile {
        let policy = Policy::new(vec![ModelChoice::new("m/m")], tools.into());
        let registry = Arc::new(Registry::new([]).unwrap());
        let composer = Composer::new(Prompts::builtin().unwrap(), TOKEN_BUDGET);
        Profile::new(policy, Variables::default(), registry, composer.into())
    }

    #[test]
    fn profile_is_a_type_of_sub_agent_only_where_it_says_so() {
        let [oracle, a, b, c] =
            ["oracle", "a", "b", "c"].map(|name| ProfileName::new(name).unwrap());
        let of = |parents: &[&ProfileName]| Profile {
            sub_agent_of: parents.iter().copied().cloned().collect(),
            ..profile(&[])
        };
        let profiles = Profiles::new(profile(&[]))
            .with(a.clone(), of(&[&oracle, &b]))
            .with(b.clone(), of(&[&b]))
            .with(c.clone(), of(&[]));
        let profiles = profiles.with_types();
        for (parent, types) in [
            (oracle, vec![&a]),
            (a.clone(), vec![]),
            (b.clone(), vec![&a, &b]),
            (c, vec![]),
        ] {
            let found = profiles.get(&parent).policy.sub_agents.iter();
            assert_eq!(
                found.map(|kind| &kind.name).collect::<Vec<_>>(),
                types,
                "{parent}"
            );
        }
    }

    #[test]
    fn child_gets_only_read_only_tools() {
        let tool = |name| ToolSpec::new(name, "Does it.", serde_json::json!({ "type": "object" }));
        let tools = [tool("look").read_only(), tool("change")];
        let mut profile = profile(&tools);
        let rare = [tool("log").read_only().rare()];
        Arc::make_mut(&mut profile.policy).findable = rare.into();
        let session = SessionName::new("p").unwrap();
        let parent = Parent {
            session,
            query: QueryId(1),
            depth: 1,
            tools: None,
        };
        let child = profile.for_child(&parent);
        let names = |profile: &Profile| -> Vec<String> {
            profile
                .policy
                .tools
                .iter()
                .map(|tool| tool.name.clone())
                .collect()
        };
        assert_eq!(
            (names(&profile).len(), names(&child)),
            (2, vec!["look".to_owned(), "log".to_owned()])
        );
        let listed = |profile: &Profile| profile.variables.tools.len();
        assert_eq!((listed(&profile), listed(&child)), (2, 2));
    }
}
