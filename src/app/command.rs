//! Runs a command line: loads the configuration, builds only what the command needs, and calls the
//! command.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

#[cfg(feature = "bench")]
mod bench;
#[cfg(feature = "server")]
mod ctl;
mod doctor;
mod models;
mod ollama;
#[cfg(feature = "server")]
mod rlimits;
mod run;
#[cfg(feature = "server")]
mod serve;
mod stored;

use self::ollama::with_local_model;
use super::{BuildError, Builder};
#[cfg(feature = "server")]
use crate::{access::KeyFile, actor::Clock};
use crate::{
    actor::Oracle,
    cli::{
        self, Args, CliError, Command, DevCommand, Environment, config::ConfigCommand,
        models::ModelsCommand, prompt::Subject, terminal::Terminal,
    },
    config::{self, Config, ConfigFile, Loaded, Problem, Setting, Sources},
    model::QueryType,
    prompt::{ComposeInput, ComposedPrompt},
    query::QueryContext,
};

/// Runs a command and returns its exit code.
///
/// # Errors
/// [`CliError`], with the message and exit code of a failed command.
pub fn run(
    args: &Args,
    environment: &Environment,
    terminal: &mut Terminal,
) -> Result<u8, CliError> {
    terminal.json = args.options.json;
    for (name, near) in config::near_misses(environment.pairs()) {
        let why = format!("`{name}` is not a setting and is ignored: did you mean `{near}`?");
        match args.command {
            #[cfg(feature = "server")]
            Command::Serve(_) => tracing::warn!("{why}"),
            Command::Completions { .. } => {}
            _ => terminal.err.say(format_args!("warning: {why}")),
        }
    }
    let context = CommandContext {
        args,
        environment,
        terminal,
    };
    let done = match &args.command {
        Command::Dev(command) | Command::Bare(command) => return dev(command, context),
        Command::Completions { shell } => cli::completions(*shell, context.terminal),
        Command::Config(config) => match *config {
            ConfigCommand::Init => {
                let named = args.options.config.clone();
                let file = named.or_else(|| usual_file(environment)).ok_or_else(|| {
                    CliError::usage("no home directory for the file; name one with --config FILE")
                })?;
                cli::config::init(&file, context.terminal)
            }
            ConfigCommand::Show { all } => {
                cli::config::show(&context.load()?, all, context.terminal)
            }
            ConfigCommand::Check => return check(context),
        },
        Command::Ask(ask) => return run::ask(ask, context),
        Command::Chat(chat) => return run::chat(chat, context),
        #[cfg(feature = "mcp")]
        Command::Mcp => run::mcp(context),
        #[cfg(feature = "server")]
        Command::Serve(serve) => serve::serve(&serve.settings(), context),
        #[cfg(feature = "server")]
        Command::Keys(keys) => {
            let file = KeyFile::within(&context.directory()?);
            cli::keys::run(keys, &file, Clock::system().now(), context.terminal)
        }
        #[cfg(feature = "server")]
        Command::Ctl(ctl) => ctl::ctl(ctl, context),
        #[cfg(feature = "tui")]
        Command::Top(top) => ctl::top(top, context),
        #[cfg(feature = "bench")]
        Command::Bench(args) => bench::bench(args, context),
        Command::Sessions(sessions) => stored::sessions(sessions, context),
        Command::Journal(journal) => return stored::journal(journal, context),
        Command::Usage { by } => stored::usage(*by, context),
        Command::Models { command: None } => models::models(context),
        Command::Models {
            command: Some(ModelsCommand::Update { from }),
        } => models::update(from, context),
        Command::Doctor => return doctor::doctor(context),
    };
    done.map(|()| cli::exit::DONE)
}

fn dev(command: &DevCommand, context: CommandContext<'_>) -> Result<u8, CliError> {
    let done = match command {
        #[cfg(feature = "mock")]
        DevCommand::MockModel(mock) => run::mock_model(mock, context.terminal),
        DevCommand::Man { folder } => cli::manual(folder),
        DevCommand::Signal(signal) => cli::signal::run(signal, context.terminal),
        DevCommand::Classify(classify) => {
            let classifier = super::classifier(&context.load()?.config)?;
            cli::classify::run(classify, &classifier, context.terminal)
        }
        DevCommand::Prompt(subject) => {
            let (config, project) = (context.load()?.config, &context.args.options.project);
            let prompt = compose(&config, context.environment, project, subject)?;
            cli::prompt::print(&prompt, context.terminal)
        }
        DevCommand::Replay { scenario } => return run::replay(scenario, context),
    };
    done.map(|()| cli::exit::DONE)
}

/// What all commands are given.
struct CommandContext<'a> {
    args: &'a Args,
    environment: &'a Environment,
    terminal: &'a mut Terminal,
}

impl CommandContext<'_> {
    fn load(&self) -> Result<Loaded, CliError> {
        self.load_with([&[], &[]])
    }

    /// Loads the configuration, with settings before and after those of the options.
    fn load_with(&self, more: [&[Setting]; 2]) -> Result<Loaded, CliError> {
        let found = find(self.args, self.environment, more);
        found.loaded.map_err(CliError::all)
    }

    /// Loads the configuration, with the model of a running Ollama if no other one is chosen.
    fn load_with_local_model(&mut self) -> Result<Loaded, CliError> {
        let (loaded, environment) = (self.load()?, self.environment);
        Ok(with_local_model(loaded, environment, self.terminal))
    }

    /// The data directory.
    fn directory(&self) -> Result<PathBuf, CliError> {
        stored::directory(&self.load()?.config, self.environment)
    }
}

/// A builder with the settings that all commands have in common.
fn builder(config: &Config, args: &Args, environment: &Environment) -> Builder {
    Oracle::builder()
        .config(config.clone())
        .environment(environment.pairs().iter().cloned())
        .project(&args.options.project)
}

struct FoundConfig {
    file: Option<PathBuf>,
    loaded: Result<Loaded, Vec<Problem>>,
}

/// Loads the configuration, with settings before and after those of the options. A file named by an
/// option has to exist; the default one does not.
fn find(args: &Args, environment: &Environment, [before, after]: [&[Setting]; 2]) -> FoundConfig {
    let named = args.options.config.clone();
    let file = named.or_else(|| usual_file(environment).filter(|path| !is_missing(path)));
    let read = file.as_deref().map(ConfigFile::read).transpose();
    let sources = Sources {
        file: read.clone().unwrap_or_default(),
        environment: environment.pairs().to_vec(),
        options: [before, &args.options.settings(), after].concat(),
    };
    let loaded = config::load(&sources);
    // The other sources are still checked, to report all problems at once.
    let loaded = match read {
        Ok(_) => loaded,
        Err(problem) => Err([vec![problem], loaded.err().unwrap_or_default()].concat()),
    };
    FoundConfig { file, loaded }
}

/// The default configuration file. By the XDG rules, an empty or relative `XDG_CONFIG_HOME` counts
/// as unset.
fn usual_file(environment: &Environment) -> Option<PathBuf> {
    let folder = |name| {
        let path = environment.get(name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    folder("XDG_CONFIG_HOME")
        .or_else(|| folder("HOME").map(|home| home.join(".config")))
        .map(|folder| folder.join("oracle/oracle.toml"))
}

fn is_missing(path: &Path) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound};
    let error = fs::metadata(path).err();
    error.is_some_and(|error| matches!(error.kind(), NotFound | NotADirectory))
}

fn check(context: CommandContext<'_>) -> Result<u8, CliError> {
    let (args, environment) = (context.args, context.environment);
    let FoundConfig { file, loaded } = find(args, environment, [&[], &[]]);
    let problems: Vec<String> = match loaded {
        Err(problems) => problems.iter().map(Problem::to_string).collect(),
        Ok(loaded) => builder(&loaded.config, args, environment).problems(),
    };
    cli::config::report(file.as_deref(), &problems, context.terminal)
}

fn compose(
    config: &Config,
    environment: &Environment,
    project: &Path,
    subject: &Subject,
) -> Result<ComposedPrompt, CliError> {
    let query_type = match (subject.query_type, &subject.query) {
        (Some(query_type), _) => query_type,
        (None, Some(query)) => {
            let classifier = super::classifier(config)?;
            classifier.classify(query, QueryContext::Fresh).query_type
        }
        // The type of a query without features.
        (None, None) => QueryType::Conversational,
    };
    let variables = super::project_variables(config, environment, project)?.prepare();
    let input = ComposeInput::new(variables.into(), query_type);
    let prompt = super::composer(config)?.compose(&input);
    prompt.map_err(|error| BuildError::from(error).into())
}

/// Every build error is a configuration error, except that of starting actors.
impl From<BuildError> for CliError {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::Start(_) => Self::failed(error),
            _ => Self::usage(error),
        }
    }
}

#[cfg(test)]
mod tests;
