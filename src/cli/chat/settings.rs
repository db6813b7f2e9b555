//! What a chat can change for its next questions: the models, the budgets, the length of the
//! conversation.

use super::{Chat, header::HINT, why::Rows};
use crate::{
    actor::{Profile, ReloadError},
    cli::{CliError, CliResult, text::grouped},
    control::question,
    llm::OFFLINE,
    model::{LimitsRequest, PartialLimits, ToolApproval},
};
use oracle_config::ModelChain;

impl Chat<'_> {
    /// The profile of the session.
    async fn profile(&self) -> CliResult<Profile> {
        let name = self.session.profile_name().await?;
        Ok(self.oracle.profiles().get(&name).clone())
    }

    /// The models that answer, for people.
    pub(super) async fn models(&self) -> CliResult<String> {
        let policy = self.profile().await?.policy;
        let names = policy.models.iter().map(|model| match &*model.name {
            "offline/offline" => OFFLINE,
            name => name,
        });
        Ok(names.collect::<Vec<_>>().join(" with failover to "))
    }

    /// Fails if a server answers the session's questions, by its own configuration.
    async fn requires_own(&self, what: &str) -> CliResult {
        if self.begun && question::is_served(&self.session).await? {
            let why = format!("a server owns this session and {what}");
            return Err(CliError::usage(why));
        }
        Ok(())
    }

    pub(super) async fn show_models(&mut self) -> CliResult {
        self.requires_own("chooses its model").await?;
        let (mut rows, model) = (Rows::default(), self.models().await?);
        rows.push(0, "model", &model);
        rows.push(0, "known", self.models.join(", "));
        rows.push(0, "more", "`oracle models` asks the providers");
        if model == OFFLINE {
            rows.push(0, OFFLINE, HINT);
        }
        self.show_rows(&rows)
    }

    /// Uses other models from the next question on, by a reload of the configuration.
    pub(super) async fn use_model(&mut self, wanted: &str) -> CliResult {
        let chain = ModelChain::new(wanted.split(',')).map_err(|allowed| {
            CliError::usage(format_args!("`{wanted}` is not a model: use {allowed}"))
        })?;
        self.requires_own("chooses its model").await?;
        let chosen = &self.chain;
        let before = chosen.lock().replace(chain);
        let problems = match self.oracle.reload().await {
            Ok(changes) if changes.waiting.is_empty() => Vec::new(),
            Ok(_) => vec![format!(
                "a provider of `{wanted}` is not set up here: leave, and return with `--model`"
            )],
            Err(ReloadError::Wrong(problems)) => problems,
            Err(error) => vec![error.to_string()],
        };
        if !problems.is_empty() {
            *chosen.lock() = before;
            return Err(CliError::all(problems));
        }
        self.options.model = Some(wanted.to_owned());
        let model = self.models().await?;
        self.note(&format!("the next question goes to {model}"))
    }

    /// Shows the budgets of the next question, after a change of them.
    pub(super) async fn budget(&mut self, change: Option<PartialLimits>) -> CliResult {
        self.limits = change.or(self.limits);
        let wanted = LimitsRequest::Operator(self.limits.unwrap_or_default());
        let limits = wanted.resolve(self.profile().await?.policy.limits);
        let mut most = vec![format!("{} turns", limits.max_turns)];
        let tokens = limits.max_tokens.map(grouped);
        most.extend(tokens.map(|tokens| format!("{tokens} tokens")));
        most.extend(limits.max_cost.map(|cost| cost.to_string()));
        self.note(&format!("each question: at most {}", most.join(", ")))
    }

    pub(super) async fn tools(&mut self) -> CliResult {
        self.requires_own("chooses its tools").await?;
        let mut rows = Rows::default();
        for tool in self.profile().await?.policy.own_tools() {
            let asks = match tool.approval {
                ToolApproval::Required => "asks you first. ",
                ToolApproval::NotNeeded => "",
            };
            rows.push(0, &tool.name, format!("{asks}{}", tool.first_sentence()));
        }
        self.show_rows(&rows)
    }

    /// Lets the next question begin with a summary of the conversation.
    pub(super) async fn compact(&mut self) -> CliResult {
        self.requires_own("compacts it by itself").await?;
        self.last_query().await?;
        if self.models().await? == OFFLINE {
            return self.note("the offline model reads only the question: nothing to compact");
        }
        self.compacts = true;
        self.note("with the next question, a summary replaces the conversation so far")
    }
}
