//! The builder of a system. It only collects settings; all errors come from [`Builder::start`].

use std::{ffi::OsString, path::PathBuf, sync::Arc, time::Duration};

use ractor::ActorCell;

use super::{
    BuildError, classifier,
    profiles::ProfileFactory,
    reload::{ConfigReader, Live, Reloader},
    settings,
};
use crate::{
    actor::{Clock, Oracle, Recovery, System, SystemArgs},
    config::{Config, Environment, ModelChain},
    journal::{self, Journal},
    kernel::{FallbackClassifier, TurnPolicy},
    llm::{Backend, Offline},
    model::Day,
    query::QueryClassifier,
    tool::Tool,
};

#[cfg(feature = "mcp")]
use super::mcp::Fleet;
#[cfg(any(test, feature = "testkit"))]
use crate::testkit::CrashPoint;

/// Builds a [`System`]; created by [`Oracle::builder`]. Everything has a default.
///
/// A clone builds another system of the same parts, over the same journal unless it sets its own:
/// for example, a supervisor starts the next one when one has failed.
///
/// ```
/// use std::time::Duration;
///
/// # mod oracle_agent { pub use oracle_runtime::actor; pub use oracle_core::kernel; pub use oracle_llm as llm; }
/// use oracle_agent::{
///     actor::Oracle,
///     kernel::{DecisionTable, TurnDecision, TurnEnd, TurnPolicy, Verdict},
///     llm::Scripted,
/// };
///
/// /// The first reply is the answer, whatever its signal says.
/// struct OneTurn;
///
/// impl TurnPolicy for OneTurn {
///     fn decide(&self, turn: &TurnEnd<'_>) -> TurnDecision {
///         match DecisionTable.decide(turn) {
///             decision if decision.verdict.ends_the_query() => decision,
///             _ => Verdict::Answered.into(),
///         }
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let builder = Oracle::builder()
///     .backend(Scripted::new().reply("It might be in the attic."))
///     .model("scripted/any")
///     .turn_policy(OneTurn);
/// let system = builder.clone().start().await?;
/// let session = system.oracle().session("letters")?;
/// let answer = session.answer("Where are the letters?").await?;
/// assert_eq!((answer.text.as_str(), answer.turns), ("It might be in the attic.", 1));
/// system.shut_down(Duration::ZERO).await;
///
/// // The next system has the same journal, and so the same conversations.
/// let system = builder.start().await?;
/// let session = system.oracle().session("letters")?;
/// assert_eq!(session.view().await?.state.as_str(), "idle");
/// # system.shut_down(Duration::ZERO).await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use]
pub struct Builder {
    pub(super) config: Config,
    pub(super) environment: Environment,
    models: Vec<String>,
    pub(super) project: Option<PathBuf>,
    pub(super) backends: Vec<Arc<dyn Backend>>,
    tools: Vec<Arc<dyn Tool>>,
    #[cfg(feature = "mcp")]
    pub(super) mcp_pins: Option<PathBuf>,
    #[cfg(feature = "mcp")]
    pub(super) mcp_guard: Option<PathBuf>,
    #[doc(hidden)]
    pub journal: Arc<dyn Journal>,
    clock: Clock,
    classifier: Option<Arc<dyn QueryClassifier>>,
    pub(super) fallback: Option<Arc<dyn FallbackClassifier>>,
    pub(super) turn: Option<Arc<dyn TurnPolicy>>,
    drain: Duration,
    short_lived: bool,
    pub(super) standby: bool,
    read: Option<ConfigReader>,
    #[cfg(any(test, feature = "testkit"))]
    pub(super) crash_at: Option<CrashPoint>,
}

impl Oracle {
    /// Returns a builder of a system; by default it answers by the built-in offline model, keeps
    /// its journal in memory and has no tools.
    pub fn builder() -> Builder {
        Builder {
            config: Config::default(),
            environment: Environment::default(),
            models: Vec::new(),
            project: None,
            backends: vec![Arc::new(Offline)],
            tools: Vec::new(),
            #[cfg(feature = "mcp")]
            mcp_pins: None,
            #[cfg(feature = "mcp")]
            mcp_guard: None,
            journal: Arc::new(journal::Memory::new()),
            clock: Clock::system(),
            classifier: None,
            fallback: None,
            turn: None,
            drain: Duration::ZERO,
            short_lived: false,
            standby: false,
            read: None,
            #[cfg(any(test, feature = "testkit"))]
            crash_at: None,
        }
    }
}

impl Builder {
    /// Sets the configuration.
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Takes the keys and addresses of providers from these environment variables. Without them,
    /// only models that need no key can be called.
    pub fn environment(
        mut self,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Self {
        self.environment = Environment::new(variables);
        self
    }

    /// Uses this model, given as `provider/model`, instead of the configured chain. Further calls
    /// add models to fail over to, in this order.
    pub fn model(mut self, name: impl Into<String>) -> Self {
        self.models.push(name.into());
        self
    }

    /// Works on this project folder: its name goes into the prompt, and the built-in tools read its
    /// files and search the journal. Without one there are only the host's own tools.
    #[cfg(feature = "project")]
    pub fn project(mut self, folder: impl Into<PathBuf>) -> Self {
        self.project = Some(folder.into());
        self
    }

    /// Adds a model provider; it replaces the built-in one of that name. It is called for models
    /// that [`Self::model`] or the configuration names.
    pub fn backend(mut self, backend: impl Backend) -> Self {
        self.backends
            .retain(|known| known.provider() != backend.provider());
        self.backends.push(Arc::new(backend));
        self
    }

    /// Adds a tool.
    pub fn tool(mut self, tool: impl Tool) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// Remembers in this directory how MCP servers declare their tools, so that a tool that changes is
    /// withheld until an operator approves it. Without one, every start accepts what there is.
    #[cfg(feature = "mcp")]
    pub fn mcp_pins(mut self, directory: impl Into<PathBuf>) -> Self {
        self.mcp_pins = Some(directory.into());
        self
    }

    /// Starts MCP servers by this program, which ends them with this process however that ends: it
    /// has to pass the arguments after its first, `__mcp-child`, to
    /// [`guard`](crate::tool::mcp::guard), as the `oracle` program does. Without one, a server whose
    /// host was killed may stay.
    #[cfg(feature = "mcp")]
    pub fn mcp_guard(mut self, program: impl Into<PathBuf>) -> Self {
        self.mcp_guard = Some(program.into());
        self
    }

    /// Uses this journal instead of one in memory.
    pub fn journal(mut self, journal: Arc<dyn Journal>) -> Self {
        self.journal = journal;
        self
    }

    /// Uses this clock instead of the system's.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Replaces the lexicon and the weights as the classifier of queries.
    pub fn classifier(mut self, classifier: impl QueryClassifier) -> Self {
        self.classifier = Some(Arc::new(classifier));
        self
    }

    /// Replaces the heuristic for replies without a usable signal.
    pub fn fallback(mut self, classifier: impl FallbackClassifier + 'static) -> Self {
        self.fallback = Some(Arc::new(classifier));
        self
    }

    /// Replaces the decision table.
    pub fn turn_policy(mut self, policy: impl TurnPolicy + 'static) -> Self {
        self.turn = Some(Arc::new(policy));
        self
    }

    /// Sets how long queries may continue when the parent of the system stops
    /// ([`Self::start_under`]); by default not at all. Interrupted queries are recovered when a
    /// system starts over the same journal.
    pub fn drain(mut self, patience: Duration) -> Self {
        self.drain = patience;
        self
    }

    /// Recovers an interrupted session only when something is sent to it: for a process that is
    /// short-lived or shares its journal.
    pub fn short_lived(mut self) -> Self {
        self.short_lived = true;
        self
    }

    /// Also sets up providers that no chain names, if their keys are set, so that a
    /// [reload](Oracle::reload) can switch to their models.
    pub fn standby(mut self) -> Self {
        self.standby = true;
        self
    }

    /// Sets how [`Oracle::reload`] reads the configuration. `read` returns its errors as lines of
    /// text.
    pub fn reads(
        mut self,
        read: impl Fn() -> Result<Config, Vec<String>> + Send + Sync + 'static,
    ) -> Self {
        self.read = Some(Arc::new(read));
        self
    }

    /// Kills the process at this point, as by a signal.
    #[cfg(any(test, feature = "testkit"))]
    pub fn crash_at(mut self, at: CrashPoint) -> Self {
        self.crash_at = Some(at);
        self
    }

    /// Starts the system.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub async fn start(self) -> Result<System, BuildError> {
        self.start_below(None).await
    }

    /// Starts the system as a child of an actor of the host, which receives its supervision events
    /// and with which it ends gracefully: see [`System::start_under`].
    ///
    /// ```
    /// # mod oracle_agent { pub use oracle_runtime::actor; }
    /// use oracle_agent::actor::{Oracle, System};
    /// use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
    ///
    /// struct Host;
    ///
    /// impl Actor for Host {
    ///     type Msg = ();
    ///     type State = System;
    ///     type Arguments = ();
    ///
    ///     async fn pre_start(&self, me: ActorRef<()>, (): ()) -> Result<System, ActorProcessingErr> {
    ///         Ok(Oracle::builder().start_under(me.get_cell()).await?)
    ///     }
    ///
    ///     async fn handle_supervisor_evt(
    ///         &self,
    ///         _: ActorRef<()>,
    ///         event: SupervisionEvent,
    ///         system: &mut System,
    ///     ) -> Result<(), ActorProcessingErr> {
    ///         match event {
    ///             SupervisionEvent::ActorFailed(cell, why) if cell.get_id() == system.cell().get_id() => {
    ///                 Err(why)
    ///             }
    ///             _ => Ok(()),
    ///         }
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (host, ended) = Actor::spawn(None, Host, ()).await?;
    /// host.stop(None);
    /// # ended.await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`BuildError`].
    pub async fn start_under(self, parent: ActorCell) -> Result<System, BuildError> {
        self.start_below(Some(parent)).await
    }

    async fn start_below(mut self, parent: Option<ActorCell>) -> Result<System, BuildError> {
        self.choose_models()?;
        let profile_factory = self.profile_factory()?;
        #[cfg(feature = "mcp")]
        let fleet = Fleet::start(&self).await?;
        #[cfg(feature = "mcp")]
        profile_factory.add_tools(fleet.tools());
        #[cfg(not(feature = "mcp"))]
        self.check_mcp()?;
        let args = self.parts(&profile_factory)?;
        for warning in args.profiles.retirements(Day::of(self.clock.now())) {
            tracing::warn!("{warning}");
        }
        let system = match parent {
            Some(parent) => System::start_under(args, parent, self.drain).await?,
            None => System::start(args).await?,
        };
        let live = Arc::new(Live::new(profile_factory, self.config));
        #[cfg(feature = "mcp")]
        fleet.operate(Arc::clone(&live), system.oracle().clone());
        if let Some(read) = self.read {
            system.oracle().reload_by(Arc::new(Reloader { read, live }));
        }
        Ok(system)
    }

    /// Returns the parts of the system, for hosts that change some before they start it. They have no
    /// tools of MCP servers.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn into_args(mut self) -> Result<SystemArgs, BuildError> {
        self.choose_models()?;
        self.parts(&self.profile_factory()?)
    }

    fn choose_models(&mut self) -> Result<(), BuildError> {
        if self.models.is_empty() {
            return Ok(());
        }
        let chain = ModelChain::new(self.models.iter().map(String::as_str))?;
        self.config.model.chain = Some(chain.clone());
        self.read = self.read.take().map(|read| -> ConfigReader {
            Arc::new(move || {
                let mut config = read()?;
                config.model.chain = Some(chain.clone());
                Ok(config)
            })
        });
        Ok(())
    }

    fn parts(&self, profile_factory: &ProfileFactory) -> Result<SystemArgs, BuildError> {
        let mut settings = settings::system(&self.config);
        if self.short_lived {
            settings.recovery = Recovery::OnDemand;
        }
        let classifier = match &self.classifier {
            Some(own) => Arc::clone(own),
            None => Arc::new(classifier(&self.config)?),
        };
        let journal = Arc::clone(&self.journal);
        #[cfg(any(test, feature = "testkit"))]
        let journal = match &self.crash_at {
            Some(point) => point.in_journal(journal),
            None => journal,
        };
        let project = self.project.as_deref();
        let project = project.and_then(|folder| folder.canonicalize().ok());
        Ok(SystemArgs {
            settings,
            journal,
            clock: self.clock.clone(),
            backends: profile_factory.backends.clone(),
            profiles: profile_factory.profiles(&self.config)?,
            classifier,
            project: project.map(|path| path.to_string_lossy().into()),
        })
    }

    /// Checks the settings of MCP servers.
    #[doc(hidden)]
    pub fn check_mcp(&self) -> Result<(), BuildError> {
        #[cfg(feature = "mcp")]
        return super::mcp::settings(self).map(drop);
        #[cfg(not(feature = "mcp"))]
        match self.config.mcp.first() {
            None => Ok(()),
            Some(server) => Err(BuildError::McpServer {
                name: server.name.clone(),
                why: "build Oracle with `--features mcp`".to_owned(),
            }),
        }
    }

    /// The built-in tools, and the host's own.
    #[doc(hidden)]
    pub fn tools(&self) -> Result<Vec<Arc<dyn Tool>>, BuildError> {
        let mut built_in = Vec::new();
        #[cfg(feature = "project")]
        if let Some(folder) = &self.project {
            let journal = Arc::clone(&self.journal);
            built_in = super::project::project_tools(&self.config, folder, journal)?;
        }
        built_in.extend(super::web::web_tools(&self.config, &self.environment)?);
        let shared = |tool| -> Arc<dyn Tool> { Arc::new(tool) };
        let built_in = built_in.into_iter().map(shared);
        let tools = built_in.chain(self.tools.iter().cloned());
        #[cfg(any(test, feature = "testkit"))]
        let tools = tools.map(|tool| match &self.crash_at {
            Some(point) => point.in_tool(tool),
            None => tool,
        });
        Ok(tools.collect())
    }
}
