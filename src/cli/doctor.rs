//! `oracle doctor`: checks everything that a question needs, from the key to the signal, and names
//! a remedy for each failure.
//!
//! Local checks come first and make no requests. Each model of the chain then gets a few short
//! questions through its [`Remote`], within a deadline; these cost a little.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, timeout};

use super::{
    CliError, CliResult, Options,
    context::{CommandContext, find},
    models::key_source,
    ollama::with_local_model,
    runtime::on_runtime,
};
use crate::{
    actor::Clock,
    app::{self, BuildError, Providers},
    llm::{Dialect, Remote, nearest, scripted::Scripts},
    model::{Day, Fault, FaultCode, Price, QueryType},
};
use oracle_config::{Config, Provider};
use oracle_core::prompt::ComposeInput;

mod local;
mod probe;
mod report;

use report::{Finding, Report, Verdict};

const LISTING: Duration = Duration::from_secs(15);
/// Deadline of one model call: a local server may have to load the model first.
const LONGEST: Duration = Duration::from_secs(120);

pub(super) fn run(context: CommandContext<'_>) -> CliResult<u8> {
    let (options, environment) = (context.options, context.environment);
    let (file, loaded) = find(options, environment, [&[], &[]]);
    let loaded = loaded.map_err(CliError::all)?;
    let loaded = &with_local_model(loaded, environment, context.terminal);
    let config = &loaded.config;
    let builder = context.builder(config);
    let mut report = Report::new(context.terminal);
    report.about("here")?;
    local::check(
        options,
        loaded,
        file.as_deref(),
        environment,
        &builder,
        &mut report,
    )?;
    // Calls cost money, so they need valid prices and prompts; `local::check` has reported any
    // problem.
    let (Ok(facts), Ok(prompt)) = (app::prices(config, environment), prompt(options, config))
    else {
        return report.finish();
    };
    let providers = Providers::new(config, environment, &facts);
    let mut patient = ProviderChecks {
        config,
        providers: &providers,
        prompt,
        report,
    };
    on_runtime(Box::pin(async {
        for model in loaded.choice.chain.models() {
            patient.report.about(model)?;
            Box::pin(patient.check(model)).await?;
        }
        patient.report.finish()
    }))
}

fn prompt(options: &Options, config: &Config) -> Result<Arc<str>, BuildError> {
    let name = app::project_name(&options.project);
    let variables = app::variables(config, name, std::iter::empty())?;
    let input = ComposeInput::new(variables.prepare().into(), QueryType::Conversational);
    Ok(app::composer(config)?.compose(&input)?.content)
}

struct ProviderChecks<'a> {
    config: &'a Config,
    providers: &'a Providers<'a>,
    prompt: Arc<str>,
    report: Report<'a>,
}

impl ProviderChecks<'_> {
    async fn check(&mut self, full: &str) -> CliResult {
        let (name, model) = full.split_once('/').unwrap_or((full, ""));
        let provider = match name {
            "offline" => {
                let seen = "built in, needs no key and no network";
                return self.report.add(Finding::ok("provider", seen));
            }
            Scripts::PROVIDER => {
                let script = Scripts::read(std::iter::once(model));
                return self.report.add(match script {
                    Ok(_) => Finding::ok("provider", "the script is valid"),
                    Err(error) => {
                        Finding::fail("provider", error.to_string(), "see docs/scripts.md")
                    }
                });
            }
            name => self.providers.find(name),
        };
        let choice = self.providers.choice(name, model);
        let today = Day::of(Clock::system().now());
        if let Some([seen, mend]) = choice.retirement.and_then(|one| one.warning(full, today)) {
            self.report.add(Finding::warn("model", seen, mend))?;
        }
        let provider = match provider {
            Ok(Some(provider)) => provider,
            Ok(None) => {
                let known = self.providers.names().join(", ");
                let mend = format!(
                    "use {known}, offline or scripted, or add a provider in `[[providers]]`"
                );
                let seen = format!("unknown provider `{name}`");
                return self.report.add(Finding::fail("provider", seen, mend));
            }
            Err(error) => return self.report_error("provider", &error),
        };
        let remote = self.providers.settings(&provider, &[model]);
        let remote = remote.map_err(BuildError::from);
        let remote = match remote.and_then(|settings| Ok(Remote::new(settings)?)) {
            Ok(remote) => remote,
            Err(error) => return self.report_error("key", &error),
        };
        self.report.add(Finding::ok("key", key_source(&provider)))?;
        // A server may require a key after all, and the remedy then names its usual variable.
        let provider = self.providers.with_usual_key(provider);
        if !self.connect(&remote, &provider, model).await? {
            return Ok(());
        }
        self.talk(&remote, &provider, model, choice.price.as_ref())
            .await
    }

    fn report_error(&mut self, check: &'static str, error: &dyn std::error::Error) -> CliResult {
        self.report
            .add(Finding::fail(check, error.to_string(), LEFT_OUT))
    }

    /// Lists the models, to check address and key. Returns whether further checks make sense.
    async fn connect(
        &mut self,
        remote: &Remote,
        provider: &Provider,
        model: &str,
    ) -> CliResult<bool> {
        const CHECK: &str = "connection";
        self.report.waiting("connecting");
        let (began, url) = (Instant::now(), &provider.base_url);
        let listed = timeout(LISTING, remote.list_models()).await;
        let listed = listed.unwrap_or_else(|_| {
            let seconds = LISTING.as_secs();
            let detail = format!("{url} did not list its models within {seconds} s");
            Err(Fault::retryable(FaultCode::HeadersTimeout, detail))
        });
        let took = began.elapsed().as_millis();
        match listed {
            Ok(listed) => {
                let seen = format!("{url} responded in {took} ms");
                self.report.add(Finding::ok(CHECK, seen))?;
                let names: Vec<&str> = listed.iter().map(|model| model.name.as_str()).collect();
                self.report.add(is_listed(&names, model))?;
                Ok(true)
            }
            Err(fault) if probe::is_final(&fault) => {
                let mend = format!("{}; {LEFT_OUT}", probe::remedy(&fault, provider));
                self.report
                    .add(Finding::fail(CHECK, fault.to_string(), mend))?;
                Ok(false)
            }
            // Some servers list no models but answer requests.
            Err(fault) => {
                let seen = format!("{url} does not list its models: {fault}");
                let mend = "harmless if the other checks pass";
                self.report.add(Finding::warn(CHECK, seen, mend))?;
                Ok(true)
            }
        }
    }

    async fn talk(
        &mut self,
        remote: &Remote,
        provider: &Provider,
        model: &str,
        price: Option<&Price>,
    ) -> CliResult {
        let longest = self.config.model.total_deadline.min(LONGEST);
        let report = &mut self.report;
        let ask = async |report: &mut Report<'_>, what: &str, request| {
            report.waiting(what);
            let probe_reply = probe::call(remote, request, longest, price).await;
            report.used(probe_reply.used);
            probe_reply
        };
        let probe_reply = ask(report, "a short reply", probe::counting(model)).await;
        let findings = probe::of_reply(&probe_reply, provider);
        let is_dead = findings[0].verdict == Verdict::Fail;
        for finding in findings {
            report.add(finding)?;
        }
        if is_dead {
            return Ok(());
        }
        let probe_reply = ask(report, "a tool call", probe::calling(model)).await;
        let refused = remote.refuses_tools(model);
        report.add(probe::of_call(&probe_reply, provider, refused))?;
        if let Some(request) = probe::answering(model, &probe_reply) {
            let probe_reply = ask(report, "the tool's result", request).await;
            report.add(probe::of_answer(&probe_reply, provider))?;
        }
        let asking = probe::asking(model, Arc::clone(&self.prompt));
        let probe_reply = ask(report, "the signal protocol", asking).await;
        report.add(probe::of_signal(&probe_reply, provider))?;
        let other = remote.other_dialect(model);
        other.map_or(Ok(()), |other| report.add(other_dialect(provider, other)))
    }
}

fn other_dialect(provider: &Provider, other: Dialect) -> Finding {
    let usual = provider.dialect();
    let seen = format!("the server takes these calls in the dialect `{other}`, not in `{usual}`");
    let mend = format!(
        "it is asked so from its first refusal on; `dialect = \"{other}\"` in `[[providers]]` saves \
         that request after each start"
    );
    Finding::warn("dialect", seen, mend)
}

const LEFT_OUT: &str = "the remaining checks were skipped";

fn is_listed(names: &[&str], model: &str) -> Finding {
    const CHECK: &str = "model";
    let seen = format!("among the {} models that the server lists", names.len());
    match &*nearest(names, model) {
        [] if !names.is_empty() => Finding::ok(CHECK, seen),
        near => {
            let near = match near.join(", ") {
                near if near.is_empty() => near,
                near => format!(", such as {near}"),
            };
            let mend = format!("choose a model that `oracle models` lists{near}");
            Finding::warn(CHECK, format!("not {seen}"), mend)
        }
    }
}
