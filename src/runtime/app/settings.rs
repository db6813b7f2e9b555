//! Conversions from configuration sections to the settings of other modules.

use std::time::Duration;

use crate::{
    actor::{GatewaySettings, Recovery, SystemSettings},
    config::{Config, Provider},
    kernel::{Policy, Thresholds},
    llm::Streaming,
    model::Limits,
};

pub(super) fn system(config: &Config) -> SystemSettings {
    let (default, model) = (GatewaySettings::default(), &config.model);
    let first_token = |usual: Duration| model.first_token_deadline.unwrap_or(usual);
    let gateway = GatewaySettings {
        concurrency: config.actors.model_concurrency,
        queue: config.actors.model_queue,
        first_token: first_token(default.first_token),
        local_first_token: first_token(default.local_first_token),
        idle: model.idle_deadline,
        total: model.total_deadline,
        ..default
    };
    let of_provider = |provider: &Provider| {
        let mut settings = GatewaySettings {
            concurrency: provider.concurrency.unwrap_or(gateway.concurrency),
            queue: provider.queue.unwrap_or(gateway.queue),
            requests_per_minute: provider.requests_per_minute,
            tokens_per_minute: provider.tokens_per_minute,
            ..gateway
        };
        if provider.stream == Streaming::Never {
            // A reply that does not stream has its first token at the end.
            (settings.first_token, settings.local_first_token) = (gateway.total, gateway.total);
        }
        (provider.name.clone(), settings)
    };
    SystemSettings {
        shards: config.supervisor.shards,
        stall_limit: config.supervisor.stall_limit,
        idle_timeout: config.session.idle_timeout,
        max_live: config.session.max_live,
        max_live_bytes: config.session.max_live_bytes,
        recovery: Recovery::AtStart {
            concurrency: config.supervisor.recovery_concurrency,
        },
        gateway,
        providers: config.providers.iter().map(of_provider).collect(),
        tenants: config.tenants.clone(),
        tool_deadline: config.tools.call_deadline,
        ..SystemSettings::default()
    }
}

pub(super) fn apply(config: &Config, policy: &mut Policy) {
    let (oracle, budget) = (&config.oracle, &config.budget);
    policy.limits = Limits {
        max_turns: oracle.max_turns,
        max_tokens: budget.max_tokens,
        max_cost: budget.max_cost_usd,
    };
    policy.session_tokens = budget.session_max_tokens;
    policy.session_cost = budget.session_max_cost_usd;
    policy.thresholds = Thresholds {
        iteration: oracle.iteration_warning_threshold,
        tokens: oracle.token_warning_threshold,
        context: oracle.context_warning_threshold,
    };
    policy.fallback = config.fallback;
    policy.on_missing_signal = config.turn.on_missing_signal;
    policy.retry.attempts = config.model.attempts;
    policy.retry.outage = config.model.patience.unwrap_or(policy.retry.outage);
    policy.restarts.crashes = config.supervisor.max_crashes;
    policy.restarts.process_deaths = config.supervisor.max_process_deaths;
    policy.delegation = config.delegation;
    policy.instructions = config.prompt.instructions.as_deref().map(Into::into);
    policy.parallel_calls = config.tools.max_parallel;
    policy.grant_wait = config.tools.grant_wait;
    policy.inbox_capacity = config.session.inbox_capacity;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn provider_limits_override_the_common_limits() {
        let file = "[actors]\nmodel_concurrency = 5\nmodel_queue = 6\n\
                    [[providers]]\nname = 'a'\ndialect = 'openai'\nbase_url = 'http://h'\n\
                    concurrency = 2\nqueue = 0\nrequests_per_minute = 600\ntokens_per_minute = 7000\n\
                    stream = 'never'\n\
                    [[providers]]\nname = 'b'\ndialect = 'openai'\nbase_url = 'http://h'\n";
        let settings = system(&toml::from_str(file).unwrap());
        let limits = |gateway: &GatewaySettings| {
            (
                (gateway.concurrency, gateway.queue),
                (gateway.requests_per_minute, gateway.tokens_per_minute),
                gateway.first_token.as_secs(),
            )
        };
        let of_all = ((5, 6), (None, None), 60);
        assert_eq!(limits(&settings.gateway), of_all);
        assert_eq!(limits(&settings.providers["b"]), of_all);
        // A reply that does not stream has the total deadline for its first token.
        let own = ((2, 0), (Some(600), Some(7_000)), 600);
        assert_eq!(limits(&settings.providers["a"]), own);
    }

    #[test]
    fn tenant_limits_are_read_from_the_configuration() {
        let file = "[tenants]\nmax_queued = 5\n[tenants.named.acme]\nmax_sessions = 7\n";
        let limits = system(&toml::from_str(file).unwrap()).tenants;
        assert_eq!((limits.all.queued, limits.all.sessions), (Some(5), None));
        let acme = limits.named[&crate::model::TenantId::new("acme").unwrap()];
        assert_eq!((acme.queued, acme.sessions), (None, Some(7)));
    }
}
