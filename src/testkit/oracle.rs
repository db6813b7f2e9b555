//! A whole system in memory, put together for a test.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use super::TestSession;
use crate::{
    actor::{
        AskError, Clock, Oracle, Profile, Profiles, StartError, System, SystemArgs, SystemSettings,
    },
    http::BindError,
    journal::{Journal, Memory},
    kernel::{ModelChoice, Policy},
    llm::Backend,
    model::{IdError, ProfileName, SessionKey, SessionName, Timestamp},
    prompt::{self, Composer, Prompts, Variables},
    query::{Classifier, Lexicon, LexiconError, Weights, WeightsError},
    tool::{Registry, RegistryError, Tool},
};

/// Why a test's system did not do what the test asked.
#[derive(Debug, thiserror::Error)]
pub enum TestError {
    /// The prompts are not in order.
    #[error(transparent)]
    Prompt(#[from] prompt::Error),
    /// The lexicon is not in order.
    #[error(transparent)]
    Lexicon(#[from] LexiconError),
    /// The classifier's weights are not in order.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// The tools do not go together.
    #[error(transparent)]
    Tools(#[from] RegistryError),
    /// The actors did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A name that cannot be one.
    #[error(transparent)]
    Name(#[from] IdError),
    /// There is no port to serve on.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The session refused.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// What was waited for did not come.
    #[error("`{kind}` did not come within {within:?}; there is\n{seen}")]
    NotSeen {
        /// What.
        kind: String,
        /// How long, by the runtime's clock.
        within: Duration,
        /// The events that did.
        seen: String,
    },
}

type PolicyChange = Box<dyn FnOnce(&mut Policy) + Send>;

/// Puts a system together: scripted models, tools, a journal in memory, a clock that starts on
/// 2026-01-01 and goes with the runtime's.
pub struct TestOracle {
    backends: Vec<Arc<dyn Backend>>,
    tools: Vec<Arc<dyn Tool>>,
    models: Vec<ModelChoice>,
    settings: SystemSettings,
    journal: Arc<dyn Journal>,
    policy: Vec<PolicyChange>,
    profiles: Vec<ProfileName>,
}

impl TestOracle {
    /// With one model, named `test`, of this backend.
    #[must_use]
    pub fn new(backend: impl Backend) -> Self {
        let model = ModelChoice::new(&format!("{}/test", backend.provider()));
        let settings = SystemSettings {
            shards: 2,
            buses: 2,
            idle_timeout: idle_timeout(),
            ..SystemSettings::default()
        };
        Self {
            backends: vec![Arc::new(backend)],
            tools: Vec::new(),
            models: vec![model],
            settings,
            journal: Arc::new(Memory::new()),
            policy: Vec::new(),
            profiles: Vec::new(),
        }
    }

    /// Adds a profile that is as the default one.
    ///
    /// # Errors
    /// When that is no name.
    pub fn profile(mut self, name: &str) -> Result<Self, TestError> {
        self.profiles.push(ProfileName::new(name)?);
        Ok(self)
    }

    /// Adds another provider; its models are called by their names in [`Self::models`].
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

    /// Goes by this chain of models instead.
    #[must_use]
    pub fn models(mut self, names: &[&str]) -> Self {
        self.models = names.iter().map(|name| ModelChoice::new(name)).collect();
        self
    }

    /// Keeps records here: share a journal to see what another system makes of them.
    #[must_use]
    pub fn journal(mut self, journal: Arc<dyn Journal>) -> Self {
        self.journal = journal;
        self
    }

    /// Changes the settings of the actors.
    #[must_use]
    pub fn settings(mut self, change: impl FnOnce(&mut SystemSettings)) -> Self {
        change(&mut self.settings);
        self
    }

    /// Changes what decisions go by.
    #[must_use]
    pub fn policy(mut self, change: impl FnOnce(&mut Policy) + Send + 'static) -> Self {
        self.policy.push(Box::new(change));
        self
    }

    /// What the system is started with, for those who start it themselves.
    ///
    /// # Errors
    /// When parts do not go together.
    pub fn args(self) -> Result<SystemArgs, TestError> {
        let tools = Arc::new(Registry::new(self.tools)?);
        let mut policy = Policy::new(self.models, tools.specs());
        self.policy
            .into_iter()
            .for_each(|change| change(&mut policy));
        let variables = Variables {
            project_name: "test".into(),
            project_context: String::new(),
            max_turns: Some(policy.limits.max_turns),
            tools: Vec::new(),
        };
        let profile = Profile::new(policy, variables, tools);
        let (classifier, composer) = parts()?;
        let named = self.profiles.into_iter();
        let profiles = named.fold(Profiles::new(profile.clone()), |profiles, name| {
            profiles.with(name, profile.clone())
        });
        Ok(SystemArgs {
            settings: self.settings,
            // 2026-01-01T00:00:00Z
            clock: Clock::from(Timestamp::from_millis(1_767_225_600_000)),
            journal: self.journal,
            backends: self.backends,
            profiles,
            classifier,
            composer,
        })
    }

    /// Starts it.
    ///
    /// # Errors
    /// When parts do not go together, or an actor does not start.
    pub async fn start(self) -> Result<TestSystem, TestError> {
        let journal = Arc::clone(&self.journal);
        let system = System::start(self.args()?).await?;
        Ok(TestSystem { system, journal })
    }
}

/// The same in every system, and made once: tests start very many.
fn parts() -> Result<(Arc<Classifier>, Arc<Composer>), TestError> {
    static PARTS: OnceLock<(Arc<Classifier>, Arc<Composer>)> = OnceLock::new();
    if let Some(parts) = PARTS.get() {
        return Ok(parts.clone());
    }
    let weights = Arc::new(Weights::builtin()?);
    let classifier = Classifier::new(&Lexicon::builtin()?).with_weights(weights);
    let composer = Composer::new(Prompts::builtin()?, prompt::Settings::default())?;
    let parts = (Arc::new(classifier), Arc::new(composer));
    Ok(PARTS.get_or_init(|| parts).clone())
}

/// With `ORACLE_TESTKIT_PASSIVATE=1` no session stays in memory beyond its query: nothing that can be
/// observed may change by that.
fn idle_timeout() -> Duration {
    let at_once = std::env::var("ORACLE_TESTKIT_PASSIVATE").is_ok_and(|value| value == "1");
    if at_once {
        Duration::ZERO
    } else {
        SystemSettings::default().idle_timeout
    }
}

/// A running system of a test.
pub struct TestSystem {
    system: System,
    journal: Arc<dyn Journal>,
}

impl TestSystem {
    /// For those who use it.
    #[must_use]
    pub const fn oracle(&self) -> &Oracle {
        self.system.oracle()
    }

    /// Where its records are.
    #[must_use]
    pub fn journal(&self) -> Arc<dyn Journal> {
        Arc::clone(&self.journal)
    }

    /// A session of this name.
    ///
    /// # Errors
    /// When that is no name.
    pub fn session(&self, name: &str) -> Result<TestSession, TestError> {
        let key = SessionKey::local(SessionName::new(name)?);
        Ok(TestSession::new(self.oracle().session(key)))
    }

    pub(super) fn into_parts(self) -> (System, Arc<dyn Journal>) {
        (self.system, self.journal)
    }

    /// Ends it in order.
    pub async fn shut_down(self, drain: Duration) {
        self.system.shut_down(drain).await;
    }

    /// Ends it at once: what runs is cut off and stands in the journal as after a crash of the process.
    pub async fn die(self) {
        self.system.abort().await;
    }
}

/// Lets time pass on a paused clock, and everything happen that falls due in it.
pub async fn let_pass(time: Duration) {
    tokio::time::sleep(time).await;
}
