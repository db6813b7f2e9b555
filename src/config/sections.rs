//! The tables of the configuration: each key with its type, default and rule, written once.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    iter,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use jiff::fmt::serde::unsigned_duration::friendly::compact as span;
use serde::{Deserialize, Serialize};

use super::{
    models::ModelChain,
    rule::{
        self, Key,
        Rule::{
            self, Keys, List, Map, Models, Money, OneOf, Rate, Section, Share, Switch, Tenants,
            Text, Texts, Time, Whole, Words,
        },
    },
};
use crate::{
    access::TenantLimits,
    kernel::{BasisPoints, DelegationPolicy, FallbackPolicy, OnMissingSignal},
    llm::{Dialect, Streaming},
    model::{NanoUsd, ProfileName, tool::ApprovalRule, usage::usd},
    tool::SearchService,
};

const SECOND: u64 = 1_000;
const HOUR: u64 = 3_600 * SECOND;
const DAY: u64 = 24 * HOUR;
const TURNS: Rule = Whole(1, 100);
const TOKENS: Rule = Whole(1, 4_000_000_000);
const BYTES: Rule = Whole(1 << 20, 1 << 44);
const PER_MINUTE: Rule = Whole(1, 10_000_000);
const PER_PERIOD: Rule = Whole(1, 1_000_000_000_000);
const SILENT: Rule = OneOf(&["auto", "remind", "finish"]);
const PATH: Rule = Text(rule::PATH);
const TOOLS: Rule = Texts(rule::TOOLS);
const HEADERS: Rule = Map("headers", rule::HEADER, rule::HEADER_VALUE);
/// Headers and the environment variables that hold their values.
const HEADER_ENV: Rule = Map("headers", rule::HEADER, rule::VARIABLE);
const VARIABLES: Rule = Map("variables", rule::VARIABLE, rule::NO_NUL);
pub(super) const ALIASES: Rule = Map("models", rule::ALIAS, rule::ANY_PROFILE);

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Declares tables, each key as `name: type = default, rule;`: the struct, its defaults and its
/// rows of the schema.
macro_rules! tables {
    ($(
        $(#[$of_table:meta])*
        $name:ident {
            $($(#[$of_key:meta])* $key:ident: $type:ty = $default:expr, $rule:expr;)*
        }
    )*) => {$(
        $(#[$of_table])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            $($(#[$of_key])* pub $key: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($key: $default,)* }
            }
        }

        impl $name {
            /// The keys, in display order.
            pub(super) const KEYS: &'static [Key] = &[$((stringify!($key), $rule),)*];
        }
    )*};
}

tables! {
    /// The whole configuration, by section.
    Config {
        /// Turns and warnings.
        oracle: Oracle = Oracle::default(), Section(Oracle::KEYS);
        /// Tokens and cost of a query and of a session.
        budget: Budget = Budget::default(), Section(Budget::KEYS);
        /// When the fallback intervenes.
        fallback: FallbackPolicy = FallbackPolicy::default(), Section(FALLBACK);
        /// Replies without a signal.
        turn: Turn = Turn::default(), Section(Turn::KEYS);
        /// Sub-agents.
        delegation: DelegationPolicy = DelegationPolicy::default(), Section(DELEGATION);
        /// The prompt.
        prompt: Prompt = Prompt::default(), Section(Prompt::KEYS);
        /// Classification of queries.
        query: Query = Query::default(), Section(Query::KEYS);
        /// Limits of tools.
        tools: Tools = Tools::default(), Section(Tools::KEYS);
        /// Notes.
        notes: Notes = Notes::default(), Section(Notes::KEYS);
        /// The web.
        web: Web = Web::default(), Section(Web::KEYS);
        /// Models, retries and deadlines.
        model: Model = Model::default(), Section(Model::KEYS);
        /// Limits of a session.
        session: Session = Session::default(), Section(Session::KEYS);
        /// Stalls, restarts and recovery.
        supervisor: Supervisor = Supervisor::default(), Section(Supervisor::KEYS);
        /// Shared actors.
        actors: Actors = Actors::default(), Section(Actors::KEYS);
        /// The HTTP server.
        server: Server = Server::default(), Section(Server::KEYS);
        /// Limits of tenants.
        tenants: TenantLimits = TenantLimits::default(), Section(TENANTS);
        /// The data directory.
        data: Data = Data::default(), Section(Data::KEYS);
        /// The journal, if it is in PostgreSQL.
        journal: Database = Database::default(), Section(Database::KEYS);
        /// This process as a node of a cluster.
        cluster: Cluster = Cluster::default(), Section(Cluster::KEYS);
        /// Profiles besides the default one that the sections describe.
        profiles: Vec<Profile> = Vec::new(), List(Profile::KEYS);
        /// Model servers besides the built-in presets.
        providers: Vec<Provider> = Vec::new(), List(Provider::KEYS);
        /// Servers of tools over the Model Context Protocol.
        mcp: Vec<McpServer> = Vec::new(), List(McpServer::KEYS);
    }

    /// `[oracle]`: turns and warnings. These keys have environment variables of their own.
    Oracle {
        /// Maximum turns of a query.
        max_turns: u32 = 30, TURNS;
        /// Share of the turn budget at which a query is warned.
        iteration_warning_threshold: BasisPoints = BasisPoints::new(7_000), Share;
        /// Share of a token or cost budget at which a query is warned.
        token_warning_threshold: BasisPoints = BasisPoints::new(8_000), Share;
        /// Share of the context window at which a query is warned.
        context_warning_threshold: BasisPoints = BasisPoints::new(7_000), Share;
    }

    /// `[budget]`: budgets besides turns; an unset key means no limit.
    Budget {
        /// Maximum tokens of a query, sent and received.
        max_tokens: Option<u64> = None, TOKENS;
        /// Maximum cost of a query, in US dollars.
        #[serde(with = "usd")]
        max_cost_usd: Option<NanoUsd> = None, Money;
        /// Maximum tokens of all queries of a session.
        session_max_tokens: Option<u64> = None, TOKENS;
        /// Maximum cost of all queries of a session, in US dollars.
        #[serde(with = "usd")]
        session_max_cost_usd: Option<NanoUsd> = None, Money;
        /// A price list that overrides the built-in one.
        prices: Option<PathBuf> = None, PATH;
    }

    /// `[turn]`.
    Turn {
        /// Effect of a reply without a signal.
        on_missing_signal: OnMissingSignal = OnMissingSignal::default(), SILENT;
    }

    /// `[prompt]`.
    Prompt {
        /// A directory whose files replace the built-in segments of the same name.
        dir: Option<PathBuf> = None, PATH;
        /// A file about the project for every model; its first 2,000 tokens are used.
        context: Option<PathBuf> = None, PATH;
        /// Further instructions for every model.
        instructions: Option<String> = None, Text(rule::INSTRUCTIONS);
        /// Maximum tokens of a composed prompt, estimated.
        token_budget: u64 = 8_000, Whole(1, 1_000_000);
    }

    /// `[query]`: classification of queries.
    Query {
        /// A lexicon that replaces the built-in one.
        lexicon: Option<PathBuf> = None, PATH;
        /// A lexicon that is merged over it.
        lexicon_overlay: Option<PathBuf> = None, PATH;
        /// Learned weights that replace the built-in ones.
        weights: Option<PathBuf> = None, PATH;
    }

    /// `[tools]`: limits of tools.
    Tools {
        /// Deadline of one call.
        #[serde(with = "span::required")]
        call_deadline: Duration = secs(30), Time(SECOND, HOUR);
        /// Deadline of one search, after which it returns what it has found; at most one minute
        /// over files.
        #[serde(with = "span::required")]
        search_deadline: Duration = secs(10), Time(100, 600 * SECOND);
        /// Maximum concurrent calls in a turn.
        max_parallel: usize = 8, Whole(1, 64);
        /// Maximum size of a file to search, in bytes.
        max_file_bytes: u64 = 1_048_576, Whole(1_024, 67_108_864);
        /// Default size of a project map, in tokens.
        map_tokens: u32 = 2_000, Whole(200, 16_000);
        /// The tools of a session; all except those of `attachable`, if unset.
        only: Option<Vec<String>> = None, TOOLS;
        /// Tools that can be attached to a running session, one by one.
        attachable: Vec<String> = Vec::new(), TOOLS;
        /// The tools that are offered first, of more than twenty.
        pinned: Vec<String> = Vec::new(), TOOLS;
        /// How long a query that needs a tool of `attachable` waits until it is attached.
        #[serde(with = "span::required")]
        grant_wait: Duration = Duration::ZERO, Time(0, DAY);
        /// Project folders whose file `.mcp.json` may name servers of tools.
        mcp_projects: Vec<String> = Vec::new(), Texts(rule::FOLDERS);
    }

    /// `[notes]`: the notes folder and write access.
    Notes {
        /// The notes folder, relative to the project; the project itself, if unset.
        dir: Option<PathBuf> = None, PATH;
        /// Whether notes may be written; each write needs approval.
        write: bool = false, Switch;
        /// Maximum notes in the index.
        max_files: usize = 20_000, Whole(1, 200_000);
        /// Maximum size of the indexed notes, in bytes.
        max_bytes: u64 = 67_108_864, Whole(1_024, 1_073_741_824);
    }

    /// `[web]`: searching the web and reading pages; there is a tool only for what is configured.
    Web {
        /// The service of `web_search`.
        search: Option<SearchService> = None, OneOf(&["tavily", "brave", "searxng"]);
        /// The base URL of its API; its usual one, if unset.
        search_url: Option<String> = None, Text(rule::URL);
        /// The environment variable that holds its key; its usual one, if unset.
        key_env: Option<String> = None, Text(rule::VARIABLE);
        /// Whether there is `web_fetch`.
        fetch: bool = false, Switch;
        /// The only hosts to fetch from, if set, each with its subdomains.
        allow_hosts: Option<Vec<String>> = None, Texts(rule::HOSTS);
        /// Hosts never to fetch from, each with its subdomains.
        deny_hosts: Vec<String> = Vec::new(), Texts(rule::HOSTS);
        /// Maximum bytes read of a page.
        max_page_bytes: usize = 2_097_152, Whole(1_024, 67_108_864);
        /// Maximum redirects of a page.
        max_redirects: usize = 5, Whole(0, 20);
        /// Deadline of a search or a page.
        #[serde(with = "span::required")]
        deadline: Duration = secs(20), Time(SECOND, 600 * SECOND);
    }

    /// `[model]`: models, attempts and deadlines.
    Model {
        /// The models, in order of preference. If unset, the keys in the environment decide: see
        /// [`Config::choice`].
        chain: Option<ModelChain> = None, Models;
        /// Maximum attempts of a turn with one model before failover.
        attempts: u32 = 3, Whole(1, 10);
        /// Maximum outage of the last model that a query waits out. If unset, five minutes, and ten
        /// seconds for `ask` at a terminal.
        #[serde(with = "span::optional")]
        patience: Option<Duration> = None, Time(100, HOUR);
        /// Deadline of an attempt to connect.
        #[serde(with = "span::required")]
        connect_deadline: Duration = secs(10), Time(100, 300 * SECOND);
        /// Deadline of the response headers, from the connection on. If unset, a minute, and ten
        /// minutes for a server on this machine or network.
        #[serde(with = "span::optional")]
        headers_deadline: Option<Duration> = None, Time(SECOND, HOUR);
        /// Deadline of the first token, from the start of the attempt. If unset, as
        /// `headers_deadline`.
        #[serde(with = "span::optional")]
        first_token_deadline: Option<Duration> = None, Time(SECOND, HOUR);
        /// Maximum time between two tokens.
        #[serde(with = "span::required")]
        idle_deadline: Duration = secs(60), Time(SECOND, HOUR);
        /// Deadline of a whole attempt.
        #[serde(with = "span::required")]
        total_deadline: Duration = secs(600), Time(SECOND, HOUR);
    }

    /// `[session]`: limits of a session.
    Session {
        /// Maximum messages pending during a query; further ones are refused.
        inbox_capacity: usize = 32, Whole(1, 10_000);
        /// Idle time after which a session is passivated.
        #[serde(with = "span::required")]
        idle_timeout: Duration = secs(300), Time(SECOND, DAY);
        /// Number of live sessions beyond which the longest idle ones are passivated.
        max_live: usize = 50_000, Whole(1, 10_000_000);
        /// Bytes of live sessions beyond which the largest idle ones are passivated, and then new
        /// messages refused.
        max_live_bytes: usize = 1 << 30, BYTES;
    }

    /// `[supervisor]`: stalls, restarts and recovery.
    Supervisor {
        /// Time without progress after which a session is stalled; longer than every model and tool
        /// deadline.
        #[serde(with = "span::required")]
        stall_limit: Duration = secs(900), Time(SECOND, DAY);
        /// Number of crashes and stalls that fail a query.
        max_crashes: u32 = 3, Whole(1, 100);
        /// Number of process deaths that fail a query.
        max_process_deaths: u32 = 10, Whole(1, 100);
        /// Maximum running queries during the recovery after a start.
        recovery_concurrency: usize = 32, Whole(1, 10_000);
        /// Number of shards.
        shards: usize = 16, Whole(1, 64);
    }

    /// `[actors]`: actors that all sessions share.
    Actors {
        /// Maximum concurrent calls to one provider.
        model_concurrency: usize = 64, Whole(1, 10_000);
        /// Maximum queued calls to one provider; further ones are refused with a retry
        /// hint.
        model_queue: usize = 1_024, Whole(0, 1_000_000);
    }

    /// `[server]`: address and limits of the HTTP server.
    Server {
        /// The address; port 0 selects a free port.
        listen: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 7770)), Text(rule::ADDRESS);
        /// Deadline of a graceful shutdown.
        #[serde(with = "span::required")]
        drain_deadline: Duration = secs(25), Time(SECOND, HOUR);
        /// Maximum time for a request's head to arrive.
        #[serde(with = "span::required")]
        header_timeout: Duration = secs(10), Time(100, 600 * SECOND);
        /// Maximum time for a request's body to arrive.
        #[serde(with = "span::required")]
        body_timeout: Duration = secs(60), Time(100, HOUR);
        /// Time without a request after which a connection is closed.
        #[serde(with = "span::required")]
        idle_timeout: Duration = secs(120), Time(SECOND, DAY);
        /// Time after which a client that reads nothing of a response is disconnected.
        #[serde(with = "span::required")]
        write_timeout: Duration = secs(30), Time(100, HOUR);
        /// Maximum connections.
        max_connections: usize = 10_000, Whole(1, 1_000_000);
        /// Maximum connections from one address, except this machine's own.
        max_connections_per_address: usize = 1_000, Whole(1, 1_000_000);
        /// Maximum concurrent requests, including streams.
        max_requests: usize = 10_000, Whole(1, 1_000_000);
        /// Maximum running queries; further messages are refused.
        max_queries: usize = 20_000, Whole(1, 10_000_000);
        /// Maximum pending messages and queued model calls; further messages are refused.
        max_backlog: usize = 1_000, Whole(1, 1_000_000);
        /// Maximum size of a request's body, in bytes.
        max_body: usize = 8 << 20, Whole(1_024, 1_073_741_824);
        /// Whether the server refuses to start without keys.
        require_keys: bool = false, Switch;
        /// Host names of the server, besides `localhost` and its address.
        allowed_hosts: Vec<String> = Vec::new(), Texts(rule::HOSTS);
        /// Origins whose web pages may send requests, in the format of the header `Origin`.
        allowed_origins: Vec<String> = Vec::new(), Texts(rule::ORIGINS);
        /// Wrong keys that an address may send per minute.
        wrong_keys_per_minute: u64 = 10, Whole(1, 1_000_000);
        /// Which text a stream of OpenAI's interface has, unless a request overrides it.
        stream: StreamText = StreamText::default(), OneOf(&["turns", "answer"]);
        /// Time for which responses of OpenAI's interface are kept after the last one that continues
        /// them.
        #[serde(with = "span::required")]
        responses_kept: Duration = secs(30 * 24 * 3_600), Time(SECOND, 3_650 * DAY);
        /// Further models of OpenAI's interface, by the profiles that answer for them.
        models: BTreeMap<String, ProfileName> = BTreeMap::new(), ALIASES;
    }

    /// `[data]`.
    Data {
        /// The journal's directory; see [`Data::directory`] for the default.
        dir: Option<PathBuf> = None, PATH;
    }

    /// `[journal]`. Holds no secret, only the place of one.
    Database {
        /// The URL of the database; without one, the journal is in the data directory.
        url: Option<String> = None, Text(rule::DATABASE);
        /// The environment variable that holds the password.
        password_env: Option<String> = None, Text(rule::VARIABLE);
        /// The file that holds the password.
        password_file: Option<PathBuf> = None, PATH;
        /// A file with certificate authorities to trust besides those of the machine.
        ca_file: Option<PathBuf> = None, PATH;
        /// Connections that write.
        writers: usize = 1, Whole(1, 2);
        /// Connections that read.
        readers: usize = 2, Whole(1, 64);
    }

    /// `[cluster]`. Holds no secret, only the place of one.
    Cluster {
        /// The URL at which the other nodes reach this one's server.
        url: Option<String> = None, Text(rule::URL);
        /// The environment variable that holds the cluster's key.
        key_env: Option<String> = None, Text(rule::VARIABLE);
        /// The file that holds the cluster's key.
        key_file: Option<PathBuf> = None, PATH;
    }

    /// `[[profiles]]`: a profile, which overrides sections. The command line overrides both.
    #[expect(missing_docs, reason = "each key is as the one of the sections that `over` replaces")]
    Profile {
        /// The name by which clients select it.
        name: ProfileName = ProfileName::oracle(), Text(rule::PROFILE);
        /// Its purpose.
        description: Option<String> = None, Text(rule::LINE);
        /// The profiles whose sub-agents may have this one.
        sub_agent_of: Vec<ProfileName> = Vec::new(), Texts(rule::PROFILES);
        instructions: Option<String> = None, Text(rule::INSTRUCTIONS);
        prompt_dir: Option<PathBuf> = None, PATH;
        prompt_context: Option<PathBuf> = None, PATH;
        chain: Option<ModelChain> = None, Models;
        max_turns: Option<u32> = None, TURNS;
        max_tokens: Option<u64> = None, TOKENS;
        #[serde(with = "usd")]
        max_cost_usd: Option<NanoUsd> = None, Money;
        session_max_tokens: Option<u64> = None, TOKENS;
        #[serde(with = "usd")]
        session_max_cost_usd: Option<NanoUsd> = None, Money;
        silence_turns: Option<u32> = None, Whole(1, 100);
        low_confidence: Option<BasisPoints> = None, Share;
        on_missing_signal: Option<OnMissingSignal> = None, SILENT;
        max_depth: Option<u32> = None, Whole(0, 3);
        max_children: Option<u32> = None, Whole(1, 100);
        tools: Option<Vec<String>> = None, TOOLS;
        attachable: Option<Vec<String>> = None, TOOLS;
        pinned: Option<Vec<String>> = None, TOOLS;
        #[serde(with = "span::optional")]
        grant_wait: Option<Duration> = None, Time(0, DAY);
    }

    /// `[[providers]]`: a model server. Holds no secret, only the place of one.
    Provider {
        /// Its name, as in `provider/model`.
        name: String = String::new(), Text(rule::PROVIDER);
        /// The protocol of its API; by its host, if unset.
        dialect: Option<Dialect> = None, OneOf(&["openai", "responses", "anthropic"]);
        /// The base URL of its API.
        base_url: String = String::new(), Text(rule::URL);
        /// The environment variable that holds the key.
        key_env: Option<String> = None, Text(rule::VARIABLE);
        /// A file that holds the key, instead of a variable.
        key_file: Option<PathBuf> = None, PATH;
        /// A file with certificate authorities to trust besides those of the machine.
        ca_file: Option<PathBuf> = None, PATH;
        /// Whether replies are requested as streams.
        stream: Streaming = Streaming::Always, OneOf(&["always", "never"]);
        /// Whether its server enforces JSON schemas; by its host, if unset.
        structured_output: Option<bool> = None, Switch;
        /// Maximum calls per minute.
        requests_per_minute: Option<u64> = None, PER_MINUTE;
        /// Maximum tokens per minute, sent and received.
        tokens_per_minute: Option<u64> = None, TOKENS;
        /// Maximum concurrent calls; `actors.model_concurrency`, if unset.
        concurrency: Option<usize> = None, Whole(1, 10_000);
        /// Maximum queued calls; `actors.model_queue`, if unset.
        queue: Option<usize> = None, Whole(0, 1_000_000);
        /// Headers of each call, with public values.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        headers: BTreeMap<String, String> = BTreeMap::new(), HEADERS;
        /// Headers with secret values: the environment variables that hold them.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        header_env: BTreeMap<String, String> = BTreeMap::new(), HEADER_ENV;
        /// Facts about its models; others can be called too.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        models: Vec<ProviderModel> = Vec::new(), List(ProviderModel::KEYS);
    }

    /// `[[providers.models]]`: facts about a model, also an entry of a price list.
    ProviderModel {
        /// Its name, without the provider; in a price list `model`, with the provider.
        #[serde(alias = "model")]
        name: String = String::new(), Text(rule::MODEL);
        /// Size of the context window in tokens, sent and received.
        context_window: Option<u64> = None, Whole(256, 100_000_000);
        /// Maximum tokens of one reply.
        max_output_tokens: Option<u64> = None, Whole(1, 10_000_000);
        /// Whether it takes images; by the provider's host, if unset.
        images: Option<bool> = None, Switch;
        /// Whether it takes tools.
        tools: Option<bool> = None, Switch;
        /// Whether it takes a choice of tools that forces a call.
        forced_tools: Option<bool> = None, Switch;
        /// Whether it takes a temperature and other parameters of sampling.
        sampling: Option<bool> = None, Switch;
        /// Whether it thinks before every reply.
        always_thinks: Option<bool> = None, Switch;
        /// Whether it signals by the tool `report_status`.
        reports_status: Option<bool> = None, Switch;
        /// Price of a million tokens sent.
        #[serde(with = "usd")]
        input: Option<NanoUsd> = None, Rate;
        /// Price of a million cached tokens sent; `input`, if unset.
        #[serde(with = "usd")]
        cached: Option<NanoUsd> = None, Rate;
        /// Price of a million tokens written to the cache; `input`, if unset.
        #[serde(with = "usd")]
        cache_write: Option<NanoUsd> = None, Rate;
        /// Price of a million tokens received.
        #[serde(with = "usd")]
        output: Option<NanoUsd> = None, Rate;
        /// The day on which its provider switches it off.
        retires: Option<String> = None, Text(rule::DAY);
        /// The model to use instead, as `provider/model`.
        successor: Option<String> = None, Text(rule::LINE);
        /// Prices of calls that send more.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tiers: Vec<PriceTier> = Vec::new(), List(PriceTier::KEYS);
    }

    /// Prices that hold for all tokens of a call that sends more than a number of tokens.
    PriceTier {
        /// The number of tokens sent.
        above: u64 = 0, Whole(1, 100_000_000);
        /// Price of a million tokens sent.
        #[serde(with = "usd")]
        input: Option<NanoUsd> = None, Rate;
        /// Price of a million cached tokens sent; `input`, if unset.
        #[serde(with = "usd")]
        cached: Option<NanoUsd> = None, Rate;
        /// Price of a million tokens written to the cache; `input`, if unset.
        #[serde(with = "usd")]
        cache_write: Option<NanoUsd> = None, Rate;
        /// Price of a million tokens received.
        #[serde(with = "usd")]
        output: Option<NanoUsd> = None, Rate;
    }

    /// `[[mcp]]`: a server of tools over the Model Context Protocol: either a `command` or a `url`.
    /// Holds no secret, only the place of one.
    McpServer {
        /// Its name, which the names of its tools begin with.
        name: String = String::new(), Text(rule::MCP);
        /// The program to start.
        command: Option<String> = None, Text(rule::PATH);
        /// Its arguments.
        args: Vec<String> = Vec::new(), Words;
        /// Its environment variables, with public values, besides a few such as `PATH`.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        env: BTreeMap<String, String> = BTreeMap::new(), VARIABLES;
        /// Variables that it gets from Oracle's own environment.
        pass_env: Vec<String> = Vec::new(), Texts(rule::VARIABLES);
        /// Its working directory; Oracle's, if unset.
        cwd: Option<PathBuf> = None, PATH;
        /// The address of a server over HTTP.
        url: Option<String> = None, Text(rule::URL);
        /// Headers of each request, with public values.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        headers: BTreeMap<String, String> = BTreeMap::new(), HEADERS;
        /// Headers with secret values: the environment variables that hold them.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        header_env: BTreeMap<String, String> = BTreeMap::new(), HEADER_ENV;
        /// The environment variable that holds the bearer token.
        bearer_env: Option<String> = None, Text(rule::VARIABLE);
        /// The tools to use, by the server's names; all, if unset.
        tools: Option<Vec<String>> = None, Texts(rule::MCP_TOOLS);
        /// Which calls need approval.
        approval: ApprovalRule = ApprovalRule::Auto, OneOf(&["auto", "never", "always"]);
        /// Deadline of its start.
        #[serde(with = "span::required")]
        start_deadline: Duration = secs(10), Time(100, 600 * SECOND);
        /// Deadline of one call; `tools.call_deadline`, if unset.
        #[serde(with = "span::optional")]
        call_deadline: Option<Duration> = None, Time(SECOND, HOUR);
        /// Maximum size of one message from the server, in bytes.
        max_reply_bytes: usize = 4 << 20, Whole(1_024, 67_108_864);
        /// Maximum concurrent calls.
        parallel: usize = 8, Whole(1, 64);
    }
}

/// Which text a stream of OpenAI's chat completions has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum StreamText {
    /// That of every turn, as the model writes it.
    #[default]
    Turns,
    /// That of the answer, at its end.
    Answer,
}

/// Keys that are required in every list item that can have them.
pub(super) const REQUIRED: [&str; 3] = ["name", "dialect", "base_url"];

// Sections that are structs of other modules; a test compares their keys.
const FALLBACK: &[Key] = &[("silence_turns", Whole(1, 100)), ("low_confidence", Share)];
const DELEGATION: &[Key] = &[
    ("max_depth", Whole(0, 3)),
    ("max_children", Whole(1, 100)),
    ("max_parallel", Whole(1, 100)),
    ("default_tokens", Whole(100, 100_000)),
];
/// The limits of every tenant, with those of single tenants and the budgets of keys, whose keys are
/// the same.
pub(super) const TENANTS: &[Key] = &[
    ("requests_per_minute", PER_MINUTE),
    ("max_requests", Whole(1, 1_000_000)),
    ("max_queries", Whole(1, 1_000_000)),
    ("tokens_per_minute", TOKENS),
    ("max_sessions", Whole(1, 100_000_000)),
    ("max_queued", PER_MINUTE),
    ("max_live_bytes", BYTES),
    ("max_stored_bytes", BYTES),
    ("tokens_per_day", PER_PERIOD),
    ("tokens_per_month", PER_PERIOD),
    ("cost_usd_per_day", Money),
    ("cost_usd_per_month", Money),
    ("named", Tenants),
    ("keys", Keys),
];

impl Config {
    /// The names of all profiles, the default one first.
    #[doc(hidden)]
    pub fn profile_names(&self) -> impl Iterator<Item = ProfileName> {
        let configured = self.profiles.iter().map(|profile| profile.name.clone());
        iter::once(ProfileName::oracle()).chain(configured)
    }
}

impl Profile {
    /// Returns the configuration with this profile's overrides.
    pub fn over(&self, base: &Config) -> Config {
        fn set<U, T: Clone + Into<U>>(there: &mut U, here: &Option<T>) {
            if let Some(here) = here {
                *there = here.clone().into();
            }
        }
        let mut config = base.clone();
        set(&mut config.prompt.instructions, &self.instructions);
        set(&mut config.prompt.dir, &self.prompt_dir);
        set(&mut config.prompt.context, &self.prompt_context);
        set(&mut config.model.chain, &self.chain);
        set(&mut config.oracle.max_turns, &self.max_turns);
        let budget = &mut config.budget;
        set(&mut budget.max_tokens, &self.max_tokens);
        set(&mut budget.max_cost_usd, &self.max_cost_usd);
        set(&mut budget.session_max_tokens, &self.session_max_tokens);
        set(&mut budget.session_max_cost_usd, &self.session_max_cost_usd);
        set(&mut config.fallback.silence_turns, &self.silence_turns);
        set(&mut config.fallback.low_confidence, &self.low_confidence);
        set(&mut config.turn.on_missing_signal, &self.on_missing_signal);
        set(&mut config.delegation.max_depth, &self.max_depth);
        set(&mut config.delegation.max_children, &self.max_children);
        set(&mut config.tools.only, &self.tools);
        set(&mut config.tools.attachable, &self.attachable);
        set(&mut config.tools.pinned, &self.pinned);
        set(&mut config.tools.grant_wait, &self.grant_wait);
        config
    }
}

/// There is no directory for data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no data directory: neither `XDG_DATA_HOME` nor `HOME` is set; set `data.dir`")]
pub struct NoDataDirectory;

impl Data {
    /// Returns the configured directory, else `oracle` in `$XDG_DATA_HOME`, else in
    /// `$HOME/.local/share`. As in the XDG specification, an empty or relative `XDG_DATA_HOME`
    /// counts as unset.
    ///
    /// # Errors
    /// If neither is set.
    pub fn directory(
        &self,
        xdg_data_home: Option<&OsStr>,
        home: Option<&OsStr>,
    ) -> Result<PathBuf, NoDataDirectory> {
        if let Some(dir) = &self.dir {
            return Ok(dir.clone());
        }
        let absolute = |path: &OsStr| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
        let data = xdg_data_home.and_then(absolute);
        let in_home = || Some(home.and_then(absolute)?.join(".local/share"));
        let data = data.or_else(in_home).ok_or(NoDataDirectory)?;
        Ok(data.join("oracle"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::access::{Budgets, Limits};

    #[test]
    fn every_configuration_key_has_a_rule() {
        // Unlike TOML, JSON includes unset optional keys.
        let json = serde_json::to_value(Config::default()).unwrap();
        let sorted = |keys: &[Key]| {
            let mut names: Vec<&str> = keys.iter().map(|(key, _)| *key).collect();
            names.sort_unstable();
            names
        };
        let there: Vec<&String> = json.as_object().unwrap().keys().collect();
        assert_eq!(sorted(Config::KEYS), there);
        for (name, rule) in Config::KEYS {
            if let Section(keys) = rule {
                let there: Vec<&String> = json[name].as_object().unwrap().keys().collect();
                assert_eq!(sorted(keys), there, "{name}");
            }
        }
    }

    #[test]
    fn tables_of_limits_and_budgets_have_their_keys() {
        let names = |of: serde_json::Value| {
            let names = of.as_object().unwrap().keys().cloned();
            names.collect::<BTreeSet<_>>()
        };
        let keys = |rule: Rule| {
            let keys = rule.keys().iter().map(|(key, _)| (*key).to_owned());
            keys.collect::<BTreeSet<_>>()
        };
        let limits = serde_json::to_value(Limits::default()).unwrap();
        assert_eq!(keys(Tenants), names(limits));
        let budgets = serde_json::to_value(Budgets::default()).unwrap();
        assert_eq!(keys(Keys), names(budgets));
    }

    #[test]
    fn data_directory_follows_configuration_then_xdg() {
        let set = Data {
            dir: Some("here".into()),
        };
        let default = Data::default();
        for (name, data, xdg, home, want) in [
            ("set", &set, "/x", "/h", Some("here")),
            ("xdg", &default, "/x", "/h", Some("/x/oracle")),
            ("home", &default, "", "/h", Some("/h/.local/share/oracle")),
            ("relative xdg", &default, "x", "", None),
        ] {
            let got = data.directory(Some(OsStr::new(xdg)), Some(OsStr::new(home)));
            let want = want.map(PathBuf::from).ok_or(NoDataDirectory);
            assert_eq!(got, want, "{name}");
        }
        assert_eq!(default.directory(None, None), Err(NoDataDirectory));
    }
}
