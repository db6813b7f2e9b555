//! `oracle chat`: a conversation. On a terminal it offers an editor and slash commands; from a pipe
//! it takes one question per line. Ctrl-C cancels the running query and keeps the session; Ctrl-D
//! leaves.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use futures_util::future::OptionFuture;
use parking_lot::Mutex;

use super::{
    CliError, CliResult, Options,
    ask::{self, Format},
    context::CommandContext,
    exit,
    interrupts::{self, Interrupts, Signals},
    models,
    progress::Follower,
    sessions,
    system::with_system,
    terminal::Terminal,
    user::{self, TerminalModeGuard},
};
use crate::{
    actor::{Answer, Oracle, SessionHandle},
    app::BuildError,
    control::{Code, Refused, question::QueryHandle},
    model::{
        AnswerOptions, LimitsRequest, PartialLimits, ProfileName, SessionKey, SessionName,
        Submission, visible,
    },
    tool::ProjectRoot,
};
use oracle_config::ModelChain;
use oracle_journal::{Journal, Known};

mod command;
mod editor;
mod header;
mod history;
mod perform;
mod reader;
mod settings;
mod why;

use command::ChatInput;
use reader::{Reader, ReaderEvent};

const HISTORY: &str = "chat_history";

/// `oracle chat`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct ChatArgs {
    /// Print the events of the queries as they occur, one JSON object per line
    #[arg(long)]
    pub events: bool,
    /// Continue the session used last in this project
    #[arg(long, conflicts_with = "session")]
    pub last: bool,
    /// Profile for a new session [default: oracle]
    #[arg(long, value_name = "NAME")]
    pub profile: Option<ProfileName>,
}

/// Runs the conversation until the input ends. Returns [`exit::DONE`] on a terminal, else the exit
/// code of the last query.
pub(super) fn run(args: &ChatArgs, mut context: CommandContext<'_>) -> CliResult<u8> {
    let config = context.load_with_local_model()?.config;
    let (options, environment) = (context.options, context.environment);
    let format = Format::of(options, args.events);
    let root = ProjectRoot::open(&options.project).map_err(BuildError::from)?;
    let profile = ask::profile(&config, args.profile.as_ref())?;
    let (builder, storage) = context.prepare(&config)?;
    let history = storage.folder.join(HISTORY);
    let models = models::known(&config, environment)?;
    let chain = Arc::new(Mutex::new(None));
    let chosen = Arc::clone(&chain);
    let builder = builder.standby().reads(move || {
        let mut config = config.clone();
        if let chain @ Some(_) = &*chosen.lock() {
            let profiles = config.profiles.iter_mut();
            profiles.for_each(|profile| profile.chain.clone_from(chain));
            config.model.chain.clone_from(chain);
        }
        Ok(config)
    });
    let home = environment.get("HOME").map(PathBuf::from);
    with_system(builder, Some(storage), async |oracle, journal| {
        let name = ask::session_name(options, args.last, journal, &root).await?;
        let known = journal.find(SessionKey::local(name.clone())).await?;
        let mode_guard = TerminalModeGuard::now();
        let interrupts = Interrupts::listen_and(mode_guard.restorer());
        let terminal = context.terminal;
        let user = terminal.input.is_terminal();
        let mut termination = user.then(Signals::terminations);
        let mut chat = Chat {
            oracle,
            journal,
            session: oracle.session_by_key(name).profile(profile.clone()),
            begun: known.is_some(),
            before: None,
            limits: None,
            compacts: false,
            listed: Vec::new(),
            format,
            root,
            home: home.and_then(|home| home.canonicalize().ok()),
            profile,
            models,
            chain,
            options: options.clone(),
            reader: Reader::new(history, terminal),
            terminal,
            interrupts,
            leaves: false,
            code: exit::DONE,
        };
        let done = tokio::select! {
            done = chat.talk(user, known) => done,
            // A termination signal must still restore the terminal from raw mode.
            Some(()) = OptionFuture::from(termination.as_mut().map(Signals::come)) => Ok(()),
        };
        drop(mode_guard);
        if user {
            chat.print_resume_hint();
        }
        done?;
        Ok(if user { exit::DONE } else { chat.code })
    })
}

struct Chat<'a> {
    oracle: &'a Oracle,
    journal: &'a dyn Journal,
    /// The format of the answers.
    format: Format,
    /// The project against which citations are checked.
    root: ProjectRoot,
    /// The user's home folder, for paths that are shown.
    home: Option<PathBuf>,
    /// The profile of a new session.
    profile: ProfileName,
    /// Models that are known without a request, as `provider/model`.
    models: Vec<String>,
    /// The user's choice of models, which the next [reload](Oracle::reload) applies.
    chain: Arc<Mutex<Option<ModelChain>>>,
    /// The options with which a session is resumed.
    options: Options,
    session: SessionHandle,
    begun: bool,
    /// The last session before this one that has messages.
    before: Option<SessionName>,
    /// Budgets of the questions, instead of the configured ones.
    limits: Option<PartialLimits>,
    /// Whether the next question compacts the conversation.
    compacts: bool,
    /// The sessions of the last list.
    listed: Vec<SessionName>,
    terminal: &'a mut Terminal,
    reader: Reader,
    interrupts: Interrupts,
    leaves: bool,
    code: u8,
}

enum QueryToFollow {
    Now(String),
    Before(Box<QueryHandle>),
}

impl Chat<'_> {
    async fn talk(&mut self, user: bool, known: Option<Known>) -> CliResult {
        if user && self.terminal.err_is_terminal() {
            self.introduce().await?;
            self.greet(known.as_ref()).await?;
        }
        while !self.leaves {
            self.reader.prompt(self.terminal);
            let (typed, warning) = tokio::select! {
                // A Ctrl-C from before the line does not concern it.
                biased;
                () = self.interrupts.pressed() => {
                    self.reader.pressed(self.terminal);
                    continue;
                }
                typed = self.reader.typed() => typed,
            };
            if let Some(warning) = warning {
                self.terminal.say(warning);
            }
            let text = match typed {
                ReaderEvent::Message(text) => text,
                ReaderEvent::Cleared => continue,
                ReaderEvent::Suspended => {
                    interrupts::suspended().await;
                    continue;
                }
                ReaderEvent::End => return Ok(()),
                ReaderEvent::NotUtf8 => {
                    let how = "the line was skipped because it is not UTF-8: convert it to UTF-8";
                    self.terminal.say(how);
                    self.code = exit::USAGE;
                    continue;
                }
                ReaderEvent::Failed(error) => {
                    let what = "cannot read standard input";
                    return Err(CliError::usage(format_args!("{what}: {error}")));
                }
            };
            // From a pipe, every line is a question.
            let message = match user {
                true => ChatInput::read(&text),
                false if text.trim().is_empty() => ChatInput::Blank,
                false => ChatInput::Question(text),
            };
            match message {
                ChatInput::Blank => {}
                ChatInput::Question(question) => self.follow(QueryToFollow::Now(question)).await?,
                ChatInput::Mistake(mistake) => self.terminal.say(mistake),
                ChatInput::Command(command) => self.perform(command).await?,
            }
        }
        Ok(())
    }

    async fn follow(&mut self, asked: QueryToFollow) -> CliResult {
        let (format, terminal) = (self.format, &mut *self.terminal);
        let mut user = self.reader.user(format, terminal);
        let (shown, interrupts) = ((format, &self.root), &mut self.interrupts);
        let mut follower = Follower::new(&self.session, shown, &mut user, terminal, interrupts);
        let followed = match asked {
            QueryToFollow::Now(question) => {
                let compact = AnswerOptions {
                    compact: true,
                    ..AnswerOptions::default()
                };
                let asked = Submission {
                    limits: self.limits.map(LimitsRequest::Operator),
                    options: self.compacts.then(|| compact.into()),
                    ..Submission::new(question)
                };
                match follower.ask(asked).await {
                    Ok(question) => {
                        // Set before the query runs, because a termination signal ends this future
                        // first.
                        (self.begun, self.compacts) = (true, false);
                        follower.follow_query(question).await
                    }
                    Err(stop) => Err(stop),
                }
            }
            QueryToFollow::Before(question) => follower.follow_query(*question).await,
        };
        let user::TypedAhead { text, leaves, lost } = user.typed().await;
        if lost {
            let how = "some of the text typed meanwhile was too long and is lost: type it again";
            self.terminal.say(how);
        }
        self.reader.begin_with(text);
        self.leaves = leaves;
        self.end(followed).await
    }

    async fn end(&mut self, followed: CliResult<Answer>) -> CliResult {
        self.begun |= !matches!(followed, Err(CliError::Refused(_)));
        match followed {
            Ok(answer) => {
                let (root, format) = (&self.root, self.format);
                ask::show_object(&self.session, root, &answer, format, self.terminal).await?;
                self.code = exit::of_outcome(&answer.outcome);
                Ok(())
            }
            // Only this message was refused; the session goes on.
            Err(CliError::Refused(refused)) if continues_after(&refused) => {
                self.terminal.say(&refused);
                self.code = exit::of_code(refused.code);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn print_resume_hint(&mut self) {
        // A signal may have cut an answer off.
        self.terminal.keep_live();
        self.terminal.clear_status();
        let this = self.begun.then_some(&self.session.key().name);
        if let Some(name) = this.or(self.before.as_ref())
            && self.terminal.err_is_terminal()
        {
            let (how, name) = (resume_command(&self.options), sessions::short(name));
            self.terminal.note(&format!("to resume: {how} {name}"));
        }
    }
}

/// The command line that returns to a session, up to its name, with the options on which the
/// session depends.
fn resume_command(options: &Options) -> String {
    let project = (options.project != Path::new(".")).then_some(&options.project);
    let path = |path: &PathBuf| path.display().to_string();
    let said = [
        ("--project", project.map(path)),
        ("--data-dir", options.data_dir.clone()),
        ("--config", options.config.as_ref().map(path)),
        ("--model", options.model.clone()),
    ];
    let said = said
        .into_iter()
        .filter_map(|(name, value)| Some(format!(" {name} {}", visible::shell_word(&value?))));
    format!("oracle chat{} --session", said.collect::<String>())
}

const fn continues_after(refused: &Refused) -> bool {
    !matches!(
        refused.code,
        Code::Unavailable | Code::Journal | Code::NoSession | Code::Deleted
    )
}
