//! A system in memory for tests.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use super::{
    TestSession,
    watch::{Verdict, watched},
};
use crate::{
    actor::{Clock, Oracle, Profile, Profiles, System, SystemArgs, SystemSettings},
    journal::{Journal, Memory},
    kernel::{ModelChoice, Policy},
    llm::Backend,
    model::{Price, ProfileName, SessionKey, SessionName, Timestamp},
    prompt::{self, Composer, Prompts, Variables},
    query::{Classifier, Lexicon, Weights},
    tool::{Registry, Tool},
};

/// A failure of a test's system.
pub type TestError = Box<dyn std::error::Error + Send + Sync>;

type PolicyChange = Box<dyn FnOnce(&mut Policy) + Send>;

/// Builds a system of scripted models, tools and a journal in memory. Its clock starts at
/// 2026-01-01 and follows the runtime's.
pub struct TestOracle {
    backends: Vec<Arc<dyn Backend>>,
    tools: Vec<Arc<dyn Tool>>,
    models: Vec<ModelChoice>,
    settings: SystemSettings,
    journal: Arc<dyn Journal>,
    /// The journal that is below.
    store: Option<Arc<dyn Journal>>,
    policy: Vec<PolicyChange>,
    profiles: Vec<ProfileName>,
}

impl TestOracle {
    /// Creates a builder with one model, named `test`.
    pub fn new(backend: impl Backend) -> Self {
        let model = ModelChoice {
            price: Some(Price::FREE),
            takes: backend.capabilities("test"),
            ..ModelChoice::new(&format!("{}/test", backend.provider()))
        };
        let mut settings = SystemSettings {
            shards: 2,
            buses: 2,
            ..SystemSettings::default()
        };
        // Passivates sessions after each query, which must not be observable.
        if std::env::var("ORACLE_TESTKIT_PASSIVATE").is_ok_and(|value| value == "1") {
            settings.idle_timeout = Duration::ZERO;
        }
        Self {
            backends: vec![Arc::new(backend)],
            tools: Vec::new(),
            models: vec![model],
            settings,
            journal: Arc::new(Memory::new()),
            store: None,
            policy: Vec::new(),
            profiles: Vec::new(),
        }
    }

    /// Adds a profile equal to the default one.
    ///
    /// # Errors
    /// If the name is invalid.
    pub fn profile(mut self, name: &str) -> Result<Self, TestError> {
        self.profiles.push(ProfileName::new(name)?);
        Ok(self)
    }

    /// Adds a provider. [`Self::models`] names its models.
    #[must_use]
    pub fn backend(mut self, backend: impl Backend) -> Self {
        self.backends.push(Arc::new(backend));
        self
    }

    /// Adds a tool.
    #[must_use]
    pub fn tool(mut self, tool: impl Tool) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// Replaces the model chain.
    #[must_use]
    pub fn models(mut self, names: &[&str]) -> Self {
        self.models = names.iter().map(|name| ModelChoice::new(name)).collect();
        self
    }

    /// Replaces the journal, which several systems may share.
    #[must_use]
    pub fn journal(mut self, journal: Arc<dyn Journal>) -> Self {
        self.journal = journal;
        self
    }

    /// Names the journal that lasts, if that of this system is a layer over it.
    #[must_use]
    pub fn store(mut self, journal: &Arc<dyn Journal>) -> Self {
        self.store = Some(Arc::clone(journal));
        self
    }

    /// Changes the system's settings.
    #[must_use]
    pub fn settings(mut self, change: impl FnOnce(&mut SystemSettings)) -> Self {
        change(&mut self.settings);
        self
    }

    /// Changes the policy.
    #[must_use]
    pub fn policy(mut self, change: impl FnOnce(&mut Policy) + Send + 'static) -> Self {
        self.policy.push(Box::new(change));
        self
    }

    /// Builds the arguments of a system for the test to start.
    ///
    /// # Errors
    ///
    /// If parts conflict.
    pub fn args(self) -> Result<SystemArgs, TestError> {
        let tools = Arc::new(Registry::new(self.tools)?);
        let mut policy = Policy::new(self.models, tools.specs());
        self.policy
            .into_iter()
            .for_each(|change| change(&mut policy));
        let variables = Variables {
            project_name: "test".into(),
            max_turns: Some(policy.limits.max_turns),
            ..Variables::default()
        };
        let (classifier, composer) = parts()?;
        let profile = Profile::new(policy, variables, tools, composer);
        let mut sub_agent = profile.clone();
        sub_agent.sub_agent_of = [ProfileName::oracle()].into();
        let named = self.profiles.into_iter();
        let profiles = named.fold(Profiles::new(profile.clone()), |profiles, name| {
            profiles.with(name, sub_agent.clone())
        });
        let store = self.store.as_ref().unwrap_or(&self.journal);
        let backends = self.backends.into_iter();
        let backends = backends.map(|backend| watched(backend, store));
        Ok(SystemArgs {
            settings: self.settings,
            // 2026-01-01T00:00:00Z
            clock: Clock::from(Timestamp::from_millis(1_767_225_600_000)),
            backends: backends.collect(),
            journal: self.journal,
            profiles,
            classifier,
            project: None,
        })
    }

    /// Starts the system.
    ///
    /// # Errors
    /// If parts conflict, or an actor does not start.
    pub async fn start(self) -> Result<TestSystem, TestError> {
        let journal = Arc::clone(&self.journal);
        let verdict = Verdict::of(self.store.as_ref().unwrap_or(&journal));
        let system = System::start(self.args()?).await?;
        Ok(TestSystem {
            system,
            journal,
            verdict,
        })
    }
}

/// Cached, because tests start many systems.
fn parts() -> Result<(Arc<Classifier>, Arc<Composer>), TestError> {
    static PARTS: OnceLock<(Arc<Classifier>, Arc<Composer>)> = OnceLock::new();
    if let Some(parts) = PARTS.get() {
        return Ok(parts.clone());
    }
    let weights = Arc::new(Weights::builtin()?);
    let classifier = Classifier::new(&Lexicon::builtin()?).with_weights(weights);
    let composer = Composer::new(Prompts::builtin()?, prompt::TOKEN_BUDGET);
    let parts = (Arc::new(classifier), Arc::new(composer));
    Ok(PARTS.get_or_init(|| parts).clone())
}

/// A running system of a test.
pub struct TestSystem {
    #[doc(hidden)]
    pub system: System,
    #[doc(hidden)]
    pub journal: Arc<dyn Journal>,
    #[doc(hidden)]
    pub verdict: Verdict,
}

impl TestSystem {
    /// Handle of the system.
    pub const fn oracle(&self) -> &Oracle {
        self.system.oracle()
    }

    /// Journal of the system.
    pub fn journal(&self) -> Arc<dyn Journal> {
        Arc::clone(&self.journal)
    }

    /// Opens a handle to the session of this name.
    ///
    /// # Errors
    /// If the name is invalid.
    pub fn session(&self, name: &str) -> Result<TestSession, TestError> {
        let key = SessionKey::local(SessionName::new(name)?);
        Ok(TestSession(self.oracle().session_by_key(key)))
    }

    /// Shuts the system down gracefully.
    pub async fn shut_down(self, drain: Duration) {
        self.system.shut_down(drain).await;
    }

    /// Aborts the system, as in a crash of the process.
    pub async fn die(self) {
        self.system.abort().await;
    }
}

/// Advances a paused clock and runs the tasks that become due.
pub async fn advance_time(time: Duration) {
    tokio::time::sleep(time).await;
}
