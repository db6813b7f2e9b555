//! The controller, which executes verbs.

use super::{
    Answer, Code, Follow, Refused, Verb, Watching,
    follow::{check_after, follow},
    limits,
    subject::Subject,
};
use crate::{
    actor::{AskError, Oracle, SessionFilter, SessionHandle},
    journal::{Entry, Only},
    kernel::{Command, CommandReply},
    model::{
        ApprovalToken, By, CallId, ForkPoint, LimitsRequest, Principal, ProfileName, Seq, TenantId,
        access::Role, record::ApprovalVerdict,
    },
};

/// Most events in an answer to `tail`.
const EVENTS: u32 = 512;

/// Executes verbs on a running system. Cheap to clone.
#[derive(Clone)]
pub struct Controller {
    oracle: Oracle,
}

impl Controller {
    /// Creates a controller for this system.
    pub const fn new(oracle: Oracle) -> Self {
        Self { oracle }
    }

    /// Executes a verb; its changes are durable when this returns.
    ///
    /// # Errors
    /// [`Refused`] if the caller is no administrator, or the verb cannot be executed.
    pub async fn carry_out(&self, who: &Principal, verb: Verb) -> Result<Answer, Refused> {
        require_admin(who)?;
        let acting = TenantController {
            oracle: self.oracle.acting(By::from(who)),
            tenant: &who.tenant,
        };
        let is_read = matches!(verb, Verb::Inspect { .. } | Verb::Tail { .. });
        match verb.session() {
            Some(_) if is_read || who.profiles.is_empty() => {}
            Some(subject) => check_session(who, &acting.existing_session(subject).await?).await?,
            None => require_unbound(who)?,
        }
        acting.carry_out(verb).await
    }

    /// Subscribes to records, from now on or after the given number.
    ///
    /// # Errors
    /// [`Refused`] if the caller is no administrator, the session does not exist, or `after` is out
    /// of range.
    pub async fn watch(&self, who: &Principal, wanted: Watching) -> Result<Follow, Refused> {
        require_admin(who)?;
        if wanted.session.is_none() {
            require_unbound(who)?;
        }
        follow(self.oracle.clone(), who, wanted).await
    }
}

fn require_admin(who: &Principal) -> Result<(), Refused> {
    match who.role {
        Role::Admin => Ok(()),
        Role::User => Err(Refused::new(
            Code::AdminOnly,
            "control needs a key with the role `admin`: run `oracle keys create --role admin`",
        )),
    }
}

/// Refuses what is about all sessions or the system to a key for certain profiles.
fn require_unbound(who: &Principal) -> Result<(), Refused> {
    if who.profiles.is_empty() {
        return Ok(());
    }
    let what = "your key is for certain profiles, and this is about more than their sessions: name \
                a session, or use a key without `--profile`";
    Err(Refused::new(Code::ProfileNotAllowed, what))
}

/// Checks that the caller may use a profile.
pub fn check_profile(who: &Principal, profile: &ProfileName) -> Result<(), Refused> {
    if who.may_use(profile) {
        return Ok(());
    }
    let names: Vec<&str> = who.profiles.iter().map(ProfileName::as_str).collect();
    let what = format!(
        "your key is not for the profile `{profile}`, only for `{}`: choose one of these",
        names.join("`, `")
    );
    Err(Refused::new(Code::ProfileNotAllowed, what))
}

/// Checks that the caller may use the profile of a session.
pub async fn check_session(who: &Principal, session: &SessionHandle) -> Result<(), Refused> {
    if who.profiles.is_empty() {
        return Ok(());
    }
    check_profile(who, &session.profile_name().await?)
}

fn answer(
    session: Subject,
    call: CallId,
    token: ApprovalToken,
    verdict: ApprovalVerdict,
    reason: Option<String>,
) -> Result<(Subject, Command), Refused> {
    let command = Command::AnswerApproval {
        call,
        token,
        verdict,
        reason: AskError::check_reason(reason)?,
    };
    Ok((session, command))
}

struct TenantController<'a> {
    oracle: Oracle,
    tenant: &'a TenantId,
}

impl TenantController<'_> {
    async fn carry_out(&self, verb: Verb) -> Result<Answer, Refused> {
        let (session, command) = match verb {
            Verb::List {
                tenant,
                state,
                prefix,
                updated_since,
                after,
                limit,
            } => {
                let filter = SessionFilter {
                    state,
                    prefix,
                    updated_since,
                    ..SessionFilter::default()
                };
                let tenant = tenant.as_ref().unwrap_or(self.tenant);
                let page = self.oracle.list(tenant, &filter, after, limit as usize);
                return Ok(Answer::Sessions(page.await?));
            }
            Verb::Tenants { after, limit } => {
                let page = self.oracle.stored_tenants(after, limit as usize);
                return Ok(Answer::Tenants(page.await?));
            }
            Verb::Approvals { tenant, limit } => {
                let tenant = tenant.as_ref().unwrap_or(self.tenant);
                let waiting = self.oracle.approvals(tenant, limit as usize).await?;
                return Ok(Answer::Approvals(waiting));
            }
            Verb::Inspect { session } => {
                let session = Box::new(self.existing_session(&session).await?.view().await?);
                return Ok(Answer::Session { session });
            }
            Verb::Tail {
                session,
                after,
                limit,
            } => {
                let handle = self.session(&session);
                let limit = limit.min(EVENTS);
                let after = match after {
                    Some(after) => after,
                    None => {
                        let last = handle.last().await?.unwrap_or_default();
                        Seq(last.0.saturating_sub(limit.into()))
                    }
                };
                let page = handle.page(after, limit as usize).await?;
                check_after(after, page.last)?;
                let event = |entry: Entry| entry.event(&session.name);
                let events = page.entries.into_iter().map(event).collect();
                return Ok(Answer::Events { events });
            }
            Verb::Fork {
                session,
                into,
                query,
                turn,
            } => {
                let point = ForkPoint { query, turn };
                let source = session.of(self.tenant);
                let copy = self.oracle.fork(&source, point, into).await?;
                let session = copy.key().clone().into();
                return Ok(Answer::Forked { session });
            }
            Verb::Delete { session, anyway } => {
                let only = if anyway { Only::Always } else { Only::WhenIdle };
                let deletion = self.oracle.delete(&session.of(self.tenant), only).await?;
                return Ok(Answer::Deleted {
                    records: deletion.known.last,
                    sub_agents: deletion.sub_agents.len(),
                });
            }
            Verb::ToolServers {} => {
                let servers = self.oracle.tool_servers();
                return Ok(Answer::ToolServers { servers });
            }
            Verb::ApproveTool { tool, sha256 } => {
                if self.oracle.approve_tool(tool.clone(), sha256).await {
                    return Ok(Answer::Done {});
                }
                let text = format!(
                    "no declaration of the tool `{tool}` with this hash is withheld: `oracle ctl \
                     mcp` lists those that are"
                );
                return Err(Refused::new(Code::UnknownTool, text));
            }
            Verb::Drain {} => {
                self.oracle.drain();
                return Ok(Answer::Done {});
            }
            Verb::ShutDown {} => {
                self.oracle.shut_down();
                return Ok(Answer::Done {});
            }
            Verb::Reload {} => return Ok(Answer::Reloaded(self.oracle.reload().await?)),
            Verb::Pause { session } => (session, Command::Pause),
            Verb::Resume { session } => (session, Command::Resume),
            Verb::Interrupt { session, query } => (session, Command::Cancel { query }),
            Verb::FinishNow { session } => (session, Command::FinishNow),
            Verb::Steer {
                session,
                text,
                author,
            } => {
                AskError::check_question(&text)?;
                (session, Command::Steer { text, author })
            }
            Verb::SetBudget { session, limits } => {
                limits::require_any(&limits)?;
                limits::check(&limits)?;
                (session, Command::SetBudget(LimitsRequest::Operator(limits)))
            }
            Verb::Continue { session, limits } => {
                limits::check(&limits)?;
                (session, Command::Continue(LimitsRequest::Operator(limits)))
            }
            Verb::Restart { session } => (session, Command::Restart),
            Verb::Release { session } => (session, Command::Release),
            Verb::Close { session } => (session, Command::Close),
            Verb::Approve {
                session,
                call,
                token,
            } => answer(session, call, token, ApprovalVerdict::Approved, None)?,
            Verb::Deny {
                session,
                call,
                token,
                reason,
            } => answer(session, call, token, ApprovalVerdict::Denied, reason)?,
            Verb::AttachTool { session, tool } => (session, Command::AttachTool { tool }),
        };
        self.command(&session, command).await
    }

    fn session(&self, subject: &Subject) -> SessionHandle {
        self.oracle.session_by_key(subject.of(self.tenant))
    }

    /// Returns a session only if it exists, because a command would create it.
    async fn existing_session(&self, subject: &Subject) -> Result<SessionHandle, Refused> {
        let session = self.session(subject);
        if session.last().await?.is_some() {
            return Ok(session);
        }
        Err(AskError::NoSession(session.key().clone()).into())
    }

    async fn command(&self, subject: &Subject, command: Command) -> Result<Answer, Refused> {
        if subject.name.is_reserved() {
            return Err(AskError::Reserved(subject.name.clone()).into());
        }
        let session = self.existing_session(subject).await?;
        match session.command(command).await? {
            CommandReply::Done => Ok(Answer::Done {}),
            CommandReply::Query { query, .. } => Ok(Answer::Query { query }),
        }
    }
}
