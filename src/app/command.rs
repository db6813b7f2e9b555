//! Runs a command line: loads the configuration, builds only what the command needs, and calls the
//! command.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

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

use super::BuildError;
#[cfg(feature = "server")]
use crate::{access::KeyFile, actor::Clock};
use crate::{
    actor::Oracle,
    cli::{
        self, Args, CliError, Command, DevCommand, Environment, config::ConfigCommand,
        prompt::Subject, terminal::Terminal,
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
    for (name, near) in config::near_misses(environment.pairs()) {
        let why = format!("`{name}` is not a setting and is ignored: did you mean `{near}`?");
        match args.command {
            #[cfg(feature = "server")]
            Command::Serve(_) => tracing::warn!("{why}"),
            Command::Completions { .. } => {}
            _ => terminal.err.say(format_args!("warning: {why}")),
        }
    }
    let load = || configuration(args, environment);
    let done = match &args.command {
        Command::Dev(command) | Command::Bare(command) => {
            return dev(command, args, environment, terminal);
        }
        Command::Completions { shell } => cli::completions(*shell, terminal),
        Command::Config(config) => match *config {
            ConfigCommand::Init => {
                let named = args.options.config.clone();
                let file = named.or_else(|| usual_file(environment)).ok_or_else(|| {
                    CliError::usage("no home directory for the file; name one with --config FILE")
                })?;
                cli::config::init(&file, args.options.json, terminal)
            }
            ConfigCommand::Show { all } => {
                cli::config::show(&load()?, all, args.options.json, terminal)
            }
            ConfigCommand::Check => return check(args, environment, terminal),
        },
        Command::Ask(ask) => {
            let config = ollama::with_local_model(load()?, environment, terminal).config;
            return run::ask(ask, &config, (args, environment, terminal));
        }
        Command::Chat(chat) => {
            let config = ollama::with_local_model(load()?, environment, terminal).config;
            return run::chat(chat, &config, (args, environment, terminal));
        }
        #[cfg(feature = "mcp")]
        Command::Mcp => {
            let config = ollama::with_local_model(load()?, environment, terminal).config;
            return run::mcp(&config, args, environment);
        }
        #[cfg(feature = "server")]
        Command::Serve(serve) => {
            return serve::serve(args, &serve.settings(), environment, terminal);
        }
        #[cfg(feature = "server")]
        Command::Keys(keys) => {
            let file = KeyFile::within(&stored::directory(&load()?.config, environment)?);
            let (now, json) = (Clock::system().now(), args.options.json);
            cli::keys::run(keys, &file, now, json, terminal)
        }
        #[cfg(feature = "server")]
        Command::Ctl(ctl) => return ctl::ctl(ctl, &load()?.config, (args, environment, terminal)),
        #[cfg(feature = "tui")]
        Command::Top(top) => return ctl::top(top, &load()?.config, (args, environment, terminal)),
        Command::Sessions(sessions) => {
            return stored::sessions(sessions, &load()?.config, (args, environment, terminal));
        }
        Command::Usage { by } => {
            return stored::usage(*by, &load()?.config, (args, environment, terminal));
        }
        Command::Models => {
            let loaded = ollama::with_local_model(load()?, environment, terminal);
            return models::models(&loaded, args.options.json, environment, terminal);
        }
        Command::Doctor => {
            let FoundConfig { file, loaded } = find(args, environment, [&[], &[]]);
            let loaded =
                ollama::with_local_model(loaded.map_err(CliError::all)?, environment, terminal);
            return doctor::doctor(args, &loaded, file.as_deref(), environment, terminal);
        }
    };
    done.map(|()| cli::exit::DONE)
}

fn dev(
    command: &DevCommand,
    args: &Args,
    environment: &Environment,
    terminal: &mut Terminal,
) -> Result<u8, CliError> {
    let config = || configuration(args, environment).map(|loaded| loaded.config);
    let done = match command {
        #[cfg(feature = "mock")]
        DevCommand::MockModel(mock) => run::mock_model(mock, terminal),
        DevCommand::Man { folder } => cli::manual(folder),
        DevCommand::Signal(signal) => cli::signal::run(signal, terminal),
        DevCommand::Classify(classify) => {
            let classifier = super::classifier(&config()?)?;
            cli::classify::run(classify, &classifier, terminal)
        }
        DevCommand::Prompt(subject) => {
            let prompt = compose(&config()?, environment, &args.options.project, subject)?;
            cli::prompt::print(&prompt, args.options.json, terminal)
        }
        DevCommand::Replay { scenario } => {
            return run::replay(scenario, (args, environment, terminal));
        }
        DevCommand::Journal(journal) => {
            return stored::journal(*journal, &config()?, (args, environment, terminal));
        }
    };
    done.map(|()| cli::exit::DONE)
}

type CommandContext<'a> = (&'a Args, &'a Environment, &'a mut Terminal);

struct FoundConfig {
    file: Option<PathBuf>,
    loaded: Result<Loaded, Vec<Problem>>,
}

fn configuration(args: &Args, environment: &Environment) -> Result<Loaded, CliError> {
    find(args, environment, [&[], &[]])
        .loaded
        .map_err(CliError::all)
}

/// Loads the configuration. A file named by an option has to exist; the default one does not.
fn find(args: &Args, environment: &Environment, [before, after]: [&[Setting]; 2]) -> FoundConfig {
    let named = args.options.config.clone();
    let usual = || usual_file(environment).filter(|path| !is_missing(path));
    let file = named.or_else(usual);
    let (text, unreadable) = match file.as_deref().map(ConfigFile::read).transpose() {
        Ok(text) => (text, None),
        Err(problem) => (None, Some(problem)),
    };
    let sources = Sources {
        file: text,
        environment: environment.pairs().to_vec(),
        options: [before, &args.options.settings(), after].concat(),
    };
    let loaded = config::load(&sources);
    // The other sources are still checked, to report all problems at once.
    let loaded = match (unreadable, loaded) {
        (None, loaded) => loaded,
        (Some(problem), Ok(_)) => Err(vec![problem]),
        (Some(problem), Err(others)) => Err([vec![problem], others].concat()),
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
    match fs::metadata(path) {
        Ok(_) => false,
        Err(error) => matches!(
            error.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
        ),
    }
}

fn check(args: &Args, environment: &Environment, terminal: &mut Terminal) -> Result<u8, CliError> {
    let FoundConfig { file, loaded } = find(args, environment, [&[], &[]]);
    let problems: Vec<String> = match loaded {
        Err(problems) => problems.iter().map(Problem::to_string).collect(),
        Ok(Loaded { config, .. }) => {
            let builder = Oracle::builder().config(config.clone());
            let builder = builder
                .environment(environment.pairs().iter().cloned())
                .project(&args.options.project);
            builder.problems()
        }
    };
    cli::config::report(file.as_deref(), &problems, args.options.json, terminal)
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
