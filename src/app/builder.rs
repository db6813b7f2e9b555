//! Puts a system together, piece by piece.
//!
//! It only collects: whatever can fail fails in [`Builder::start`].

use std::{ffi::OsString, path::PathBuf, sync::Arc, time::Duration};

use ractor::ActorCell;

use super::{
    BuildError, classifier, composer,
    profiles::Workshop,
    reload::{Read, Reloader},
    settings,
};
use crate::{
    actor::{Clock, Oracle, Recovery, System, SystemArgs},
    config::{Config, Environment, ModelChain},
    journal::{self, Journal},
    kernel::{FallbackClassifier, TurnPolicy},
    llm::{Backend, Offline},
    query::QueryClassifier,
    tool::{Progress, Registry, Tool},
};

#[cfg(feature = "testkit")]
use crate::testkit::Point;

/// Puts a system together; begun by [`Oracle::builder`]. Everything has a default.
///
/// A clone is another system of the same parts: over the same journal, for a supervisor that starts the next
/// one when one has failed, or with one of its own.
///
/// ```
/// use std::time::Duration;
///
/// use oracle_agent::{
///     actor::Oracle,
///     kernel::{DecisionTable, TurnEnd, TurnPolicy, Verdict},
///     llm::Scripted,
///     model::{SessionName, Submission},
/// };
///
/// /// The first reply is the answer, whatever its signal says.
/// struct OneTurn;
///
/// impl TurnPolicy for OneTurn {
///     fn verdict(&self, turn: &TurnEnd<'_>) -> Verdict {
///         match DecisionTable.verdict(turn) {
///             verdict if verdict.ends_the_query() => verdict,
///             _ => Verdict::Answered,
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
/// let letters = SessionName::new("letters")?;
/// let session = system.oracle().session(letters.clone());
/// let answer = session.answer(Submission::new("Where are the letters?")).await?;
/// assert_eq!((answer.text.as_str(), answer.turns), ("It might be in the attic.", 1));
/// system.shut_down(Duration::ZERO).await;
///
/// // The next one has the same journal, and so the same conversations.
/// let system = builder.start().await?;
/// let session = system.oracle().session(letters);
/// assert_eq!(session.view().await?.state, "idle");
/// # system.shut_down(Duration::ZERO).await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Builder {
    pub(super) config: Config,
    pub(super) environment: Environment,
    models: Vec<String>,
    pub(super) project: Option<PathBuf>,
    pub(super) backends: Vec<Arc<dyn Backend>>,
    tools: Vec<Arc<dyn Tool>>,
    pub(super) progress: Progress,
    pub(super) journal: Arc<dyn Journal>,
    clock: Clock,
    classifier: Option<Arc<dyn QueryClassifier>>,
    pub(super) fallback: Option<Arc<dyn FallbackClassifier>>,
    pub(super) turn: Option<Arc<dyn TurnPolicy>>,
    drain: Duration,
    short_lived: bool,
    read: Option<Read>,
    #[cfg(feature = "testkit")]
    pub(super) dies: Option<Point>,
}

impl Oracle {
    /// Begins to put a system together: by default one that answers by the built-in offline model, keeps its
    /// journal in memory and has no tools.
    #[must_use]
    pub fn builder() -> Builder {
        Builder {
            config: Config::default(),
            environment: Environment::default(),
            models: Vec::new(),
            project: None,
            backends: vec![Arc::new(Offline)],
            tools: Vec::new(),
            progress: Progress::default(),
            journal: Arc::new(journal::Memory::new()),
            clock: Clock::system(),
            classifier: None,
            fallback: None,
            turn: None,
            drain: Duration::ZERO,
            short_lived: false,
            read: None,
            #[cfg(feature = "testkit")]
            dies: None,
        }
    }
}

impl Builder {
    /// Goes by this configuration.
    #[must_use]
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Looks for keys of providers among these environment variables. Without them there are none, and so
    /// only models that need no key.
    #[must_use]
    pub fn environment(
        mut self,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Self {
        self.environment = Environment::new(variables);
        self
    }

    /// Asks this model, as `provider/model`, instead of those of the configuration. Of several, one is asked
    /// where those before it fail.
    #[must_use]
    pub fn model(mut self, name: impl Into<String>) -> Self {
        self.models.push(name.into());
        self
    }

    /// Answers over this folder: its name goes into the prompt, code search and file read work within
    /// it, and thread search over the journal. Without one there are only the host's own tools.
    #[cfg(feature = "project")]
    #[must_use]
    pub fn project(mut self, folder: impl Into<PathBuf>) -> Self {
        self.project = Some(folder.into());
        self
    }

    /// Adds a model provider; one of the same name takes the place of the built-in. Its models are asked where
    /// [`Self::model`] or the configuration names them.
    #[must_use]
    pub fn backend(mut self, backend: impl Backend) -> Self {
        self.backends
            .retain(|known| known.provider() != backend.provider());
        self.backends.push(Arc::new(backend));
        self
    }

    /// Adds a tool.
    #[must_use]
    pub fn tool(mut self, tool: impl Tool) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// Where tools say how far long work is: for a host that shows it, and for its own tools.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// Keeps records here instead of in memory. An `Arc` of a journal is one too, for hosts that look into it
    /// themselves.
    #[must_use]
    pub fn journal(mut self, journal: impl Journal) -> Self {
        self.journal = Arc::new(journal);
        self
    }

    /// Takes time from here instead of from the machine.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Says what kind of question one is, instead of lexicon and weights.
    #[must_use]
    pub fn classifier(mut self, classifier: impl QueryClassifier) -> Self {
        self.classifier = Some(Arc::new(classifier));
        self
    }

    /// Replaces the fallback's heuristic.
    #[must_use]
    pub fn fallback(mut self, classifier: impl FallbackClassifier + 'static) -> Self {
        self.fallback = Some(Arc::new(classifier));
        self
    }

    /// Replaces the decision table.
    #[must_use]
    pub fn turn_policy(mut self, policy: impl TurnPolicy + 'static) -> Self {
        self.turn = Some(Arc::new(policy));
        self
    }

    /// How long queries may go on when the parent of a system ends ([`Self::start_under`]). Without it they
    /// leave memory as they stand, and go on when a system is started over the same journal.
    #[must_use]
    pub fn drain(mut self, patience: Duration) -> Self {
        self.drain = patience;
        self
    }

    /// For a process that does not last, or that shares its journal: sessions that were cut off are left
    /// alone until somebody has something for them.
    #[must_use]
    pub fn short_lived(mut self) -> Self {
        self.short_lived = true;
        self
    }

    /// Reads the configuration anew in this way when [`Oracle::reload`] asks for that. A failure is told in lines.
    #[must_use]
    pub fn reads(
        mut self,
        read: impl Fn() -> Result<Config, Vec<String>> + Send + Sync + 'static,
    ) -> Self {
        self.read = Some(Arc::new(read));
        self
    }

    /// The process dies at this point, as by a signal.
    #[cfg(feature = "testkit")]
    #[must_use]
    pub fn dies(mut self, at: Point) -> Self {
        self.dies = Some(at);
        self
    }

    /// Starts the system.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub async fn start(self) -> Result<System, BuildError> {
        self.start_below(None).await
    }

    /// Starts the system as a child of an actor of the host's, which hears how it ends by supervision events and
    /// with whom it ends in order: see [`System::start_under`].
    ///
    /// ```
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
        let (args, workshop) = self.parts()?;
        let system = match parent {
            Some(parent) => System::start_under(args, parent, self.drain).await?,
            None => System::start(args).await?,
        };
        if let Some(read) = self.read {
            let reloader = Reloader::new(read, workshop, self.config);
            system.oracle().reload_by(Arc::new(reloader));
        }
        Ok(system)
    }

    /// What the system will be made of, for hosts that change a part of it before they start it.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn into_args(mut self) -> Result<SystemArgs, BuildError> {
        self.choose_models()?;
        let (args, _) = self.parts()?;
        Ok(args)
    }

    fn choose_models(&mut self) -> Result<(), BuildError> {
        if self.models.is_empty() {
            return Ok(());
        }
        let chain = ModelChain::new(self.models.iter().map(String::as_str))?;
        self.config.model.chain = Some(chain.clone());
        self.read = self.read.take().map(|read| -> Read {
            Arc::new(move || {
                let mut config = read()?;
                config.model.chain = Some(chain.clone());
                Ok(config)
            })
        });
        Ok(())
    }

    fn parts(&self) -> Result<(SystemArgs, Workshop), BuildError> {
        let mut settings = settings::system(&self.config);
        if self.short_lived {
            settings.recovery = Recovery::OnDemand;
        }
        let workshop = self.workshop()?;
        let classifier = match &self.classifier {
            Some(own) => Arc::clone(own),
            None => Arc::new(classifier(&self.config)?),
        };
        let journal = Arc::clone(&self.journal);
        #[cfg(feature = "testkit")]
        let journal = match &self.dies {
            Some(point) => point.in_journal(journal),
            None => journal,
        };
        let args = SystemArgs {
            settings,
            journal,
            clock: self.clock.clone(),
            backends: workshop.backends.clone(),
            profiles: workshop.profiles(&self.config)?,
            classifier,
            composer: Arc::new(composer(&self.config)?),
        };
        Ok((args, workshop))
    }

    pub(super) fn registry(&self) -> Result<Registry, BuildError> {
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        #[cfg(feature = "project")]
        if let Some(folder) = &self.project {
            let journal = Arc::clone(&self.journal);
            let built_in =
                super::project::project_tools(&self.config, folder, &self.progress, journal)?;
            tools.extend(
                built_in
                    .into_iter()
                    .map(|tool| Arc::new(tool) as Arc<dyn Tool>),
            );
        }
        tools.extend(self.tools.iter().cloned());
        #[cfg(feature = "testkit")]
        if let Some(point) = &self.dies {
            tools = tools.into_iter().map(|tool| point.in_tool(tool)).collect();
        }
        Ok(Registry::new(tools)?)
    }
}
