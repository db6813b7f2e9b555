//! The composition root: from a configuration and a project to a running system. The only room that
//! names concrete back ends, tools and journals; what a host brings itself takes their place.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    actor::{Clock, Oracle, Recovery, System, SystemArgs},
    cli::Environment,
    config::{Config, Prices},
    journal::{self, Journal},
    kernel::{FallbackClassifier, TurnPolicy},
    llm::{Backend, Offline},
    prompt::{Composer, Prompts, ToolLine, Variables},
    query::{Classifier, Lexicon},
    tool::{CodeSearch, FileRead, ProjectRoot, Registry, ThreadSearch, Tool},
};

#[cfg(feature = "testkit")]
use crate::testkit::Point;

mod backends;
pub mod command;
mod error;
mod profiles;
mod providers;
mod reload;
mod settings;
mod threads;

pub use error::BuildError;
pub use providers::ProviderError;
use reload::Reloader;
pub use threads::JournalThreads;

/// Puts a system together. Everything has a default but the project.
pub struct Builder {
    config: Config,
    environment: Environment,
    project: Option<PathBuf>,
    backends: Vec<Arc<dyn Backend>>,
    tools: Vec<Arc<dyn Tool>>,
    journal: Arc<dyn Journal>,
    clock: Clock,
    fallback: Option<Arc<dyn FallbackClassifier>>,
    turn: Option<Arc<dyn TurnPolicy>>,
    short_lived: bool,
    read: Option<reload::Read>,
    #[cfg(feature = "testkit")]
    dies: Option<Point>,
}

impl Oracle {
    /// Begins to put a system together.
    #[must_use]
    pub fn builder() -> Builder {
        Builder {
            config: Config::default(),
            environment: Environment::default(),
            project: None,
            backends: vec![Arc::new(Offline)],
            tools: Vec::new(),
            journal: Arc::new(journal::Memory::new()),
            clock: Clock::system(),
            fallback: None,
            turn: None,
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

    /// Answers over this folder: its name goes into the prompt, code search and file read work within
    /// it, and thread search over the journal. Without one there are only the host's own tools.
    #[must_use]
    pub fn project(mut self, folder: impl Into<PathBuf>) -> Self {
        self.project = Some(folder.into());
        self
    }

    /// Adds a model provider; one of the same name takes the place of the built-in.
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

    /// Keeps records here instead of in memory.
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

    /// Replaces the fallback's heuristic (spec 7).
    #[must_use]
    pub fn fallback(mut self, classifier: impl FallbackClassifier + 'static) -> Self {
        self.fallback = Some(Arc::new(classifier));
        self
    }

    /// Replaces the decision table (spec 8).
    #[must_use]
    pub fn turn_policy(mut self, policy: impl TurnPolicy + 'static) -> Self {
        self.turn = Some(Arc::new(policy));
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
        self.read = Some(Box::new(read));
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
        let journal = self.records();
        let mut settings = settings::system(&self.config);
        if self.short_lived {
            settings.recovery = Recovery::OnDemand;
        }
        let backends = self.backends()?;
        let workshop = self.workshop(&backends)?;
        let profiles = workshop.profiles(&self.config)?;
        let args = SystemArgs {
            settings,
            clock: self.clock,
            journal,
            backends,
            profiles,
            classifier: Arc::new(classifier(&self.config)?),
            composer: Arc::new(composer(&self.config)?),
        };
        let system = System::start(args).await?;
        if let Some(read) = self.read {
            let reloader = Reloader::new(read, workshop, self.config);
            system.oracle().reload_by(Arc::new(reloader));
        }
        Ok(system)
    }

    #[cfg(not(feature = "testkit"))]
    fn records(&self) -> Arc<dyn Journal> {
        Arc::clone(&self.journal)
    }

    #[cfg(feature = "testkit")]
    fn records(&self) -> Arc<dyn Journal> {
        let journal = Arc::clone(&self.journal);
        match &self.dies {
            Some(point) => point.in_journal(journal),
            None => journal,
        }
    }

    fn registry(&self) -> Result<Registry, BuildError> {
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        if let Some(folder) = &self.project {
            tools.extend(project_tools(&self.config, folder)?);
            let threads = Arc::new(JournalThreads::new(Arc::clone(&self.journal)));
            let settings = settings::thread_search(&self.config);
            tools.push(Arc::new(ThreadSearch::new(threads, settings)));
        }
        tools.extend(self.tools.iter().cloned());
        #[cfg(feature = "testkit")]
        if let Some(point) = &self.dies {
            tools = tools.into_iter().map(|tool| point.in_tool(tool)).collect();
        }
        Ok(Registry::new(tools)?)
    }
}

/// The tools over a project folder.
fn project_tools(config: &Config, folder: &Path) -> Result<[Arc<dyn Tool>; 2], BuildError> {
    let root = ProjectRoot::open(folder)?;
    let search = CodeSearch::new(root.clone(), settings::code_search(config));
    let read = FileRead::new(root, settings::file_read(config));
    Ok([Arc::new(search), Arc::new(read)])
}

/// What the built-in tools declare of themselves where there is a project, as it stands in a prompt.
///
/// # Errors
/// When the folder is not to be had.
pub fn project_variables(config: &Config, folder: &Path) -> Result<Variables, BuildError> {
    let tools = project_tools(config, folder)?;
    let threads = ThreadSearch::declared(settings::thread_search(config));
    let specs = tools.iter().map(|tool| tool.spec()).chain([&threads]);
    variables(config, project_name(folder), specs.map(ToolLine::from))
}

fn variables(
    config: &Config,
    project_name: String,
    tools: impl Iterator<Item = ToolLine>,
) -> Result<Variables, BuildError> {
    Ok(Variables {
        project_name,
        project_context: project_context(config)?,
        max_turns: Some(config.oracle.max_turns.get()),
        tools: tools.collect(),
    })
}

/// What every model is to know of the project.
fn project_context(config: &Config) -> Result<String, BuildError> {
    let Some(path) = &config.prompt.context else {
        return Ok(String::new());
    };
    let path = path.as_path();
    fs::read_to_string(path).map_err(|source| BuildError::ContextFile {
        path: path.to_path_buf(),
        source,
    })
}

/// The last part of the folder's real path.
fn project_name(folder: &Path) -> String {
    let real = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_path_buf());
    real.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// The price list that a configuration asks for.
fn prices(config: &Config) -> Result<Prices, BuildError> {
    let builtin = Prices::builtin()?;
    let Some(path) = &config.budget.prices else {
        return Ok(builtin);
    };
    let path = path.as_path();
    let text = fs::read_to_string(path).map_err(|source| BuildError::PricesFile {
        path: path.to_path_buf(),
        source,
    })?;
    Ok(Prices::parse(&text, &path.display().to_string())?.or(builtin))
}

/// The classifier that a configuration asks for.
///
/// # Errors
/// When the lexicon cannot be read or is not in order.
pub fn classifier(config: &Config) -> Result<Classifier, BuildError> {
    let lexicon = match &config.query.lexicon {
        None => Lexicon::builtin()?,
        Some(path) => {
            let path = path.as_path();
            let text = fs::read_to_string(path).map_err(|source| BuildError::LexiconFile {
                path: path.to_path_buf(),
                source,
            })?;
            Lexicon::parse(&text, &path.display().to_string())?
        }
    };
    Ok(Classifier::new(&lexicon))
}

/// The composer that a configuration asks for.
///
/// # Errors
/// When the prompts are not in order.
pub fn composer(config: &Config) -> Result<Composer, BuildError> {
    let prompts = match &config.prompt.dir {
        None => Prompts::builtin()?,
        Some(folder) => Prompts::with_overlay(folder.as_path())?,
    };
    Ok(Composer::new(prompts, settings::prompt(config))?)
}
