//! From the configuration to the settings of each room.

use std::time::Duration;

use crate::{
    access::{Limits, TenantLimits},
    actor::{GatewaySettings, Recovery, SystemSettings, Timeouts},
    config::{Config, Count, OnMissingSignal, Provider, Share, Stream, Text, Usd},
    http,
    kernel::{self, BasisPoints, DelegationPolicy, FallbackPolicy, Policy, Thresholds},
    model, prompt,
    tool::{
        CodeSearchSettings, FileReadSettings, HistorySearchSettings, NotesSettings,
        RepoMapSettings, ThreadSearchSettings,
    },
};

/// The settings of the actors.
pub(super) fn system(config: &Config) -> SystemSettings {
    let defaults = SystemSettings::default();
    let gateway = GatewaySettings {
        concurrency: config.actors.model_concurrency.size(),
        queue: config.actors.model_queue.size(),
        first_token: config.model.first_token_deadline.get(),
        idle: config.model.idle_deadline.get(),
        total: config.model.total_deadline.get(),
        ..GatewaySettings::default()
    };
    let of_provider = |provider: &Provider| {
        let settings = of_provider(gateway, provider);
        (provider.name.to_string(), settings)
    };
    SystemSettings {
        shards: config.supervisor.shards.size(),
        classifiers: config.actors.classifiers.size(),
        composers: config.actors.composers.size(),
        stall_limit: config.supervisor.stall_limit.get(),
        idle_timeout: config.session.idle_timeout.get(),
        max_live: config.session.max_live.size(),
        recovery: Recovery::AtStart {
            concurrency: config.supervisor.recovery_concurrency.size(),
        },
        max_restarts: config.supervisor.max_crashes.get(),
        gateway,
        providers: config.providers.iter().map(of_provider).collect(),
        tenants: tenants(config),
        timeouts: Timeouts {
            tool: config.tools.call_deadline.get(),
            ..defaults.timeouts
        },
        ..defaults
    }
}

/// What a provider may be asked of, where it says so itself.
fn of_provider(gateway: GatewaySettings, provider: &Provider) -> GatewaySettings {
    let (requests, tokens) = (provider.requests_per_minute, provider.tokens_per_minute);
    GatewaySettings {
        concurrency: provider
            .concurrency
            .map_or(gateway.concurrency, Count::size),
        queue: provider.queue.map_or(gateway.queue, Count::size),
        requests_per_minute: requests.map(|most| most.get().into()),
        tokens_per_minute: tokens.map(|most| most.get().into()),
        first_token: match provider.stream {
            Stream::Always => gateway.first_token,
            // It begins when it is whole.
            Stream::Never => gateway.total,
        },
        ..gateway
    }
}

/// What decisions go by.
pub(super) fn apply(config: &Config, policy: &mut Policy) {
    let budget = &config.budget;
    policy.limits = model::Limits {
        max_turns: config.oracle.max_turns.get(),
        max_tokens: budget.max_tokens.map(|tokens| u64::from(tokens.get())),
        max_cost: budget.max_cost_usd.map(Usd::nanos),
    };
    policy.session_tokens = budget
        .session_max_tokens
        .map(|tokens| u64::from(tokens.get()));
    policy.session_cost = budget.session_max_cost_usd.map(Usd::nanos);
    policy.thresholds = Thresholds {
        iteration: share(config.oracle.iteration_warning_threshold),
        tokens: share(config.oracle.token_warning_threshold),
        context: share(config.oracle.context_warning_threshold),
    };
    policy.fallback = FallbackPolicy {
        silence_turns: config.fallback.silence_turns.get(),
        low_confidence: share(config.fallback.low_confidence),
    };
    policy.on_missing_signal = match config.turn.on_missing_signal {
        OnMissingSignal::Auto => kernel::OnMissingSignal::Auto,
        OnMissingSignal::Remind => kernel::OnMissingSignal::Remind,
        OnMissingSignal::Finish => kernel::OnMissingSignal::Finish,
    };
    policy.retry.attempts = config.model.attempts.get();
    if let Some(patience) = config.model.patience {
        policy.retry.outage = patience.get();
    }
    policy.restarts.crashes = config.supervisor.max_crashes.get();
    policy.restarts.process_deaths = config.supervisor.max_process_deaths.get();
    policy.delegation = DelegationPolicy {
        max_depth: config.delegation.max_depth.get(),
        max_children: config.delegation.max_children.get(),
        default_tokens: u64::from(config.delegation.default_tokens.get()),
    };
    let told = config.prompt.instructions.as_ref();
    policy.instructions = told.map(|text| text.as_str().into());
    policy.parallel_calls = config.tools.max_parallel.size();
    policy.inbox_capacity = config.session.inbox_capacity.size();
}

/// The settings of the server.
pub(super) fn server(config: &Config) -> http::Settings {
    let server = &config.server;
    http::Settings {
        listen: server.listen.get(),
        drain_deadline: server.drain_deadline.get(),
        header_timeout: server.header_timeout.get(),
        body_timeout: server.body_timeout.get(),
        idle_timeout: server.idle_timeout.get(),
        write_timeout: server.write_timeout.get(),
        max_connections: server.max_connections.size(),
        max_connections_per_address: server.max_connections_per_address.size(),
        max_requests: server.max_requests.size(),
        max_queries: server.max_queries.size(),
        max_backlog: server.max_backlog.size(),
        max_body: server.max_body.size(),
        require_keys: server.require_keys,
        allowed_hosts: texts(&server.allowed_hosts),
        allowed_origins: texts(&server.allowed_origins),
        wrong_keys_per_minute: server.wrong_keys_per_minute.get().into(),
        progress: server.progress,
    }
}

fn texts<F>(list: &[Text<F>]) -> Vec<String>
where
    Text<F>: ToString,
{
    list.iter().map(ToString::to_string).collect()
}

/// What tenants may have.
pub(super) fn tenants(config: &Config) -> TenantLimits {
    let tenants = &config.tenants;
    let named = tenants.named.0.iter().map(|(name, own)| {
        let limits = Limits {
            requests_per_minute: own.requests_per_minute.map(|most| most.get().into()),
            requests: own.max_requests.map(Count::size),
            queries: own.max_queries.map(Count::size),
            tokens_per_minute: own.tokens_per_minute.map(|most| most.get().into()),
            sessions: own.max_sessions.map(Count::size),
            queued: own.max_queued.map(Count::size),
        };
        (name.clone(), limits)
    });
    TenantLimits {
        all: Limits {
            requests_per_minute: tenants.requests_per_minute.map(|most| most.get().into()),
            requests: tenants.max_requests.map(Count::size),
            queries: tenants.max_queries.map(Count::size),
            tokens_per_minute: tenants.tokens_per_minute.map(|most| most.get().into()),
            sessions: tenants.max_sessions.map(Count::size),
            queued: tenants.max_queued.map(Count::size),
        },
        named: named.collect(),
    }
}

/// The settings of composition.
pub(super) fn prompt(config: &Config) -> prompt::Settings {
    prompt::Settings {
        token_budget: u64::from(config.prompt.token_budget.get()),
        ..prompt::Settings::default()
    }
}

/// The settings of code search.
pub(super) fn code_search(config: &Config) -> CodeSearchSettings {
    CodeSearchSettings {
        deadline: search_deadline(config),
        max_file_bytes: u64::from(config.tools.max_file_bytes.get()),
        ..CodeSearchSettings::default()
    }
}

/// The settings of file read.
pub(super) fn file_read(_: &Config) -> FileReadSettings {
    FileReadSettings::default()
}

/// The settings of the repository map.
pub(super) fn repo_map(config: &Config) -> RepoMapSettings {
    let settings = RepoMapSettings::default();
    RepoMapSettings {
        max_tokens: config.tools.map_tokens.get(),
        max_file_bytes: settings
            .max_file_bytes
            .min(config.tools.max_file_bytes.get().into()),
        deadline: search_deadline(config),
        ..settings
    }
}

/// The settings of history search.
pub(super) fn history_search(config: &Config) -> HistorySearchSettings {
    HistorySearchSettings {
        deadline: search_deadline(config),
        ..HistorySearchSettings::default()
    }
}

/// What tools over files take at most for a deadline is a minute.
fn search_deadline(config: &Config) -> Duration {
    let most = Duration::from_secs(60);
    config
        .tools
        .search_deadline
        .get()
        .min(before(config))
        .min(most)
}

/// The settings of the tools for notes.
pub(super) fn notes(config: &Config) -> NotesSettings {
    NotesSettings {
        max_files: config.notes.max_files.size(),
        max_file_bytes: u64::from(config.tools.max_file_bytes.get()),
        max_total_bytes: u64::from(config.notes.max_bytes.get()),
        deadline: search_deadline(config),
        ..NotesSettings::default()
    }
}

/// The settings of thread search.
pub(super) fn thread_search(config: &Config) -> ThreadSearchSettings {
    ThreadSearchSettings {
        deadline: config.tools.search_deadline.get().min(before(config)),
        ..ThreadSearchSettings::default()
    }
}

/// A search has to answer with what it has before its call is stopped.
fn before(config: &Config) -> Duration {
    config.tools.call_deadline.get().mul_f64(0.9)
}

fn share(share: Share) -> BasisPoints {
    BasisPoints::new(share.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_by_default_as_its_room_says() {
        assert_eq!(server(&Config::default()), http::Settings::default());
    }

    /// Nobody asks the tools' own checks at run time: what a configuration can say must pass them.
    #[test]
    fn what_a_configuration_allows_the_tools_allow() {
        let least = "[tools]\nsearch_deadline = '100ms'\ncall_deadline = '1s'\nmax_file_bytes = 1024\n\
                     map_tokens = 200\n[notes]\nmax_files = 1\nmax_bytes = 1024\n";
        let most = "[tools]\nsearch_deadline = '10m'\ncall_deadline = '1h'\n\
                    max_file_bytes = 67108864\nmap_tokens = 16000\n\
                    [notes]\nmax_files = 200000\nmax_bytes = 1073741824\n";
        for file in ["", least, most] {
            let config: Config = toml::from_str(file).unwrap();
            assert_eq!(code_search(&config).validate(), Ok(()), "{file}");
            assert_eq!(file_read(&config).validate(), Ok(()), "{file}");
            assert_eq!(repo_map(&config).validate(), Ok(()), "{file}");
            assert_eq!(history_search(&config).validate(), Ok(()), "{file}");
            assert_eq!(notes(&config).validate(), Ok(()), "{file}");
            assert_eq!(thread_search(&config).validate(), Ok(()), "{file}");
        }
    }

    #[test]
    fn tenants_have_the_limits_that_are_set() {
        let file = "[tenants]\nmax_queued = 5\n[tenants.named.acme]\nmax_sessions = 7\n";
        let limits = system(&toml::from_str(file).unwrap()).tenants;
        assert_eq!((limits.all.queued, limits.all.sessions), (Some(5), None));
        let acme = limits.named[&model::TenantId::new("acme").unwrap()];
        assert_eq!((acme.queued, acme.sessions), (None, Some(7)));
        assert_eq!(system(&Config::default()).tenants, TenantLimits::default());
    }

    #[test]
    fn a_reply_that_comes_whole_has_all_its_time_to_begin() {
        let file = "[model]\nfirst_token_deadline = '20s'\ntotal_deadline = '300s'\n\
                    [[providers]]\nname = 'a'\ndialect = 'openai'\nbase_url = 'http://h'\n\
                    stream = 'never'\n\
                    [[providers]]\nname = 'b'\ndialect = 'openai'\nbase_url = 'http://h'\n";
        let settings = system(&toml::from_str(file).unwrap());
        let first = |name: &str| settings.providers[name].first_token.as_secs();
        assert_eq!((first("a"), first("b")), (300, 20));
    }

    #[test]
    fn a_provider_has_its_own_limits_or_those_of_all() {
        let file = "[actors]\nmodel_concurrency = 5\nmodel_queue = 6\n\
                    [[providers]]\nname = 'a'\ndialect = 'openai'\nbase_url = 'http://h'\n\
                    concurrency = 2\nqueue = 0\nrequests_per_minute = 600\ntokens_per_minute = 7000\n\
                    [[providers]]\nname = 'b'\ndialect = 'openai'\nbase_url = 'http://h'\n";
        let settings = system(&toml::from_str(file).unwrap());
        let limits = |gateway: &GatewaySettings| {
            (
                gateway.concurrency,
                gateway.queue,
                gateway.requests_per_minute,
                gateway.tokens_per_minute,
            )
        };
        assert_eq!(limits(&settings.gateway), (5, 6, None, None));
        assert_eq!(limits(&settings.providers["b"]), (5, 6, None, None));
        assert_eq!(
            limits(&settings.providers["a"]),
            (2, 0, Some(600), Some(7_000))
        );
    }
}
