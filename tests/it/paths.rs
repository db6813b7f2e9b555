//! Every public path of the library, without `cli` and `testkit`: one that is gone here is gone for
//! all programs that use it, and CHANGELOG.md has to say what it is called now.
#![expect(unused_imports, reason = "each path only has to exist")]

mod root {
    use oracle_agent::{
        Answer, AskError, BuildError, Builder, Oracle, Progress, Session, StartError, System, Watch,
    };
}
mod access {
    use oracle_agent::access::{
        Account, Attempts, Bucket, Budgets, FileError, FileFault, InvalidKeyName, Judgement, Key,
        KeyFile, KeyHash, KeyId, KeyName, KeySet, KeySetError, KeyState, Keyring, LimitReached,
        Limits, NewKey, NoRandomness, NoShare, RequestPermit, SessionCount, SessionLoad,
        SessionReservation, SessionUsage, Share, Shares, StoredKey, SubmissionPermit, TENANT_SHARE,
        TenantLimits, Tenants, network_of,
    };
}
mod actor {
    use oracle_agent::actor::{
        Answer, Approval, AskError, AwaitedGrant, BreakerSettings, CallProgressed, Changes,
        CircuitState, Clock, Deletion, Detail, Ephemeral, EventStream, FactPredicate, Filter,
        Frame, Frames, GatewaySettings, MetricFamily, MetricGauge, Metrics, ModelState, Notice,
        Oracle, ProcessUsage, Profile, Profiles, Progress, ProviderState, QueryAccount, QueryPage,
        QueueDepths, RecordPage, Recovery, Reload, ReloadError, SessionFilter, SessionHandle,
        SessionPage, SessionRecord, SessionState, SessionSummary, SessionView, StartError,
        StateFilter, SubAgent, Subscription, System, SystemArgs, SystemSettings, TenantPage,
        Timing, ToolServer, ToolServers, WaitingCalls, Watch, WithheldTool, delete, sub_agents,
    };
}
mod actor_port {
    use oracle_agent::actor::port::{MAX_PENDING_EVENTS, MAX_PENDING_REQUESTS, PortEvent, PortMsg};
}
mod app {
    use oracle_agent::app::{
        BuildError, Builder, JournalThreads, ProviderError, classifier, composer,
    };
}
#[cfg(feature = "project")]
mod app_2 {
    use oracle_agent::app::project_variables;
}
#[cfg(feature = "cli")]
mod cli {
    use oracle_agent::cli::run;
}
mod config {
    use oracle_agent::config::{
        Actors, Budget, ChainReason, Cluster, Config, ConfigFile, Data, Database, Environment,
        Loaded, McpServer, Model, ModelChain, ModelChoice, NoDataDirectory, NotAllowed, Notes,
        Oracle, Origin, PRESETS, Preset, PriceTier, Prices, PricesError, Problem, Profile, Prompt,
        Provider, ProviderModel, Query, Server, Session, Setting, Sources, StreamText, Supervisor,
        Tools, Turn, Web, base_url, load, may_be_secret, near_misses,
    };
}
mod control {
    use oracle_agent::control::{
        Accepted, Answer, Code, Controller, Follow, Refused, Subject, Update, Verb, Watching,
        WireUpdate,
    };
}
#[cfg(any(feature = "cli", feature = "server"))]
mod control_2 {
    use oracle_agent::control::{Client, ClientError, Events, QueryEnd, SessionUpdate, TextFrame};
}
mod control_port {
    use oracle_agent::control::port::{ControlMsg, MAX_IN_FLIGHT, start};
}
#[cfg(any(feature = "cli", feature = "server"))]
mod control_socket {
    use oracle_agent::control::socket::{NAME, Socket, SocketError};
}
#[cfg(feature = "server")]
mod http {
    use oracle_agent::http::{
        Admin, AuthMode, BindError, Caller, Cluster, ClusterKey, DrainSignal, Host, HostParts,
        Listener, LocalServer, Problem, Reservation, Server, Settings, StreamText, router,
    };
}
#[cfg(feature = "server")]
mod http_2 {
    use oracle_agent::http::described;
}
#[cfg(feature = "server")]
#[cfg(feature = "page")]
mod http_3 {
    use oracle_agent::http::report;
}
mod journal {
    use oracle_agent::journal::{
        ALL, Append, Claim, Entry, Erasure, Error, Hit, Journal, Known, Memory, Node, NodeFigures,
        Nodes, Only, SessionStatus, Sids, Snapshot, StatusTracker,
    };
}
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod journal_2 {
    use oracle_agent::journal::{Problem, Stats};
}
#[cfg(feature = "postgres")]
mod journal_3 {
    use oracle_agent::journal::Postgres;
}
#[cfg(feature = "sqlite")]
mod journal_4 {
    use oracle_agent::journal::Sqlite;
}
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod journal_copy {
    use oracle_agent::journal::copy::{Copied, CopyError, Usages, copy};
}
#[cfg(feature = "postgres")]
mod journal_postgres {
    use oracle_agent::journal::postgres::{OpenError, Postgres, Settings};
}
#[cfg(feature = "sqlite")]
mod journal_sqlite {
    use oracle_agent::journal::sqlite::{Inspection, OnBroken, OpenError, Sqlite, processes};
}
mod kernel {
    use oracle_agent::kernel::{
        BasisPoints, BegunQuery, CallState, CallToken, ChildSlot, Command, CommandReply, Decision,
        DecisionContext, DecisionTable, DelegationPolicy, Effect, FallbackClassifier, FallbackDone,
        FallbackPolicy, FallbackView, Heuristic, IdleState, InFlight, IssuedCommand, Judgement,
        ModelChoice, OnMissingSignal, ParseBasisPointsError, Pause, Phase, Policy, Quarantine,
        Query, Refusal, Report, RestartPolicy, RetryPolicy, ReturnedResult, Session, Step,
        SubAgentType, Thresholds, ToolSlot, Transcript, TurnDecision, TurnEnd, TurnPolicy, Verdict,
        check_schema, offer,
    };
}
mod llm {
    use oracle_agent::llm::{
        Allowance, Backend, Delta, DeltaStream, Dialect, ModelSettings, OFFLINE, Offline,
        ProviderSettings, RateLimits, Remote, Request, Scripted, SetupError, Streaming, ToolChoice,
        estimate_tokens, estimate_usage,
    };
}
mod llm_offline {
    use oracle_agent::llm::offline::{OFFLINE, Offline, SURE};
}
mod llm_script {
    use oracle_agent::llm::script::{
        Script, ScriptCall, ScriptError, ScriptFault, ScriptReply, ScriptText, ScriptTurn,
    };
}
mod llm_scripted {
    use oracle_agent::llm::scripted::{REQUESTS_KEPT, Scripted, ScriptedReply, Scripts, Try};
}
#[cfg(all(feature = "mcp", any(feature = "cli", feature = "server")))]
mod mcp {
    use oracle_agent::mcp::{serve, standard_stream};
}
#[cfg(feature = "mock")]
mod mock {
    use oracle_agent::mock::{
        Breach, Fault, FaultKind, Mock, ParseError, Planned, Recorded, Rule, Settings, Spread,
        Stats, When,
    };
}
mod model {
    use oracle_agent::model::{
        Allowance, AnswerFormat, AnswerOptions, ApprovalToken, Attempt, BudgetUnit, BusyPolicy, By,
        CallId, Capabilities, Charge, ClientToolChoice, Cut, Day, DayUsage, Epoch, Event, Fault,
        FaultClass, FaultCode, ForcedBy, ForkPoint, IdError, Image, Import, ImportedMessage,
        Limits, LimitsRequest, Message, NanoUsd, Needs, OpaquePart, Outcome, Owner, Parameter,
        Part, PartialLimits, Payer, Period, PeriodBudget, Price, Principal, ProfileName,
        QueryClassification, QueryId, QueryType, Record, Rejection, Reply, Retirement, Role, Seq,
        SessionKey, SessionName, SessionState, Severity, Sid, Signal, SignalFields, SignalType,
        Source, Span, Speaker, StopReason, Submission, TenantId, Timestamp, ToolApproval, ToolCall,
        ToolEffect, ToolNeed, ToolRepeat, ToolResult, ToolSpec, ToolStatus, ToolTrust, Turn, Usage,
        Utterance,
    };
}
mod model_access {
    use oracle_agent::model::access::{By, Principal, Role};
}
mod model_budget {
    use oracle_agent::model::budget::{
        Allowance, BudgetUnit, Charge, Day, DayUsage, Payer, Period, PeriodBudget,
    };
}
mod model_classification {
    use oracle_agent::model::classification::{Needs, QueryClassification, QueryType};
}
mod model_command {
    use oracle_agent::model::command::{
        Author, BusyPolicy, ForkPoint, Import, ImportedMessage, MAX_IMPORT, MAX_IMPORTED, MAX_KEY,
        MAX_QUESTION, MAX_REASON, Speaker, Submission,
    };
}
mod model_decimal {
    use oracle_agent::model::decimal::{digits, scaled};
}
mod model_event {
    use oracle_agent::model::event::{Event, INLINE_LIMIT, Severity, Source};
}
mod model_fault {
    use oracle_agent::model::fault::{Fault, FaultClass};
}
mod model_id {
    use oracle_agent::model::id::{CallId, IdError, MAX_NAME, Owner, SessionKey};
}
mod model_limits {
    use oracle_agent::model::limits::{Limits, LimitsRequest, PartialLimits};
}
mod model_message {
    use oracle_agent::model::message::{Message, OpaquePart, Part, Role, SUMMARY_LABEL};
}
mod model_options {
    use oracle_agent::model::options::{
        AnswerFormat, AnswerOptions, Capabilities, ClientToolChoice, Cut, Image, Parameter,
    };
}
mod model_outcome {
    use oracle_agent::model::outcome::{ForcedBy, Outcome};
}
mod model_price {
    use oracle_agent::model::price::{Price, Retirement};
}
mod model_record {
    use oracle_agent::model::record::{
        Accepted, Act, AddedTool, Admitted, AgentFact, AmountBudget, AnswerRejected,
        ApprovalAnswered, ApprovalFact, ApprovalGiven, ApprovalRequested, ApprovalVerdict,
        BudgetFact, BudgetSet, CallStarted, CapabilityRequested, ChildCancel, ChildEnd,
        ChildProgress, ChildStart, CircuitClosed, CircuitOpened, Classified, Compacted,
        CompactedPart, Compacting, CompactionFailed, Continued, ControlFact, Deleted, Ending,
        EscalationRaised, Failed, FailedOver, FallbackAction, FallbackCause, FallbackTriggered,
        ForkMade, Forked, HandedOver, InboxPosition, IterationExceeded, IterationWarning, LlmFact,
        LoopDetected, LoopKind, MessageRange, ModelUsage, Noted, Opened, Parent, PrefixBroken,
        PromptSummary, Quarantined, QueryFact, QueryFinished, RateLimitCleared, RateLimited,
        Record, RefusedWhy, Reloaded, Replied, RestartCause, Restarted, Retried, Returned,
        SessionFact, SignalFact, SignalPresence, Steered, SupervisorFact, ToolApproved,
        ToolAttached, ToolFact, ToolFinished, ToolRefused, ToolRequested, ToolsAdded, TurnFact,
        TurnMode, TurnRestartCause, TurnRestarted, TurnStarted, Utterance, WaitReason, Waiting,
    };
}
mod model_record_codec {
    use oracle_agent::model::record::codec::{DecodeError, Encoded, Encoder, VERSION};
}
mod model_reply {
    use oracle_agent::model::reply::{Reply, StopReason};
}
mod model_signal {
    use oracle_agent::model::signal::{
        ContextSufficient, DelegationRecommended, Extra, NeedCapability, NeedTurn, PartialAnswer,
        Rejection, Signal, SignalClass, SignalFields, SignalType, Stuck,
    };
}
mod model_state {
    use oracle_agent::model::state::{SessionState, StateFilter};
}
mod model_time {
    use oracle_agent::model::time::{Span, Timestamp};
}
mod model_tool {
    use oracle_agent::model::tool::{
        ApprovalRule, ApprovalToken, Place, SearchData, ToolApproval, ToolCall, ToolEffect,
        ToolNeed, ToolRepeat, ToolResult, ToolSpec, ToolStatus, ToolTrust,
    };
}
mod model_usage {
    use oracle_agent::model::usage::{NanoUsd, Usage};
}
mod model_visible {
    use oracle_agent::model::visible::{escaped, readable, shell_word};
}
mod prelude {
    use oracle_agent::prelude::{
        Answer, AskError, Detail, Fact, Filter, FnTool, Frames, Notice, Oracle, Outcome, Progress,
        QueryFact, Scripted, Seq, SessionHandle, SessionKey, SessionName, Submission, System, Tool,
        ToolContext, ToolError, ToolFact, ToolOutput, TurnFact, Watch, tool_fn,
    };
}
mod prompt_segment {
    use oracle_agent::prompt::segment::{Inclusion, Presence, Segment, SegmentId};
}
mod query {
    use oracle_agent::query::{
        Basis, Classifier, Evaluation, LabelError, LabelledQuery, Lexicon, LexiconError,
        LexiconProblem, Mistake, QueryClassifier, QueryContext, Tally, TrainingRow, Weights,
        WeightsError, WeightsProblem, training_rows,
    };
}
mod signal {
    use oracle_agent::signal::{
        Finding, LOOP_THRESHOLD, Reading, ReplyReading, SignalState, Stripper, TextLimit,
        begins_token, escape, meant, read, read_reply,
    };
}
#[cfg(feature = "cli")]
mod telemetry {
    use oracle_agent::telemetry::{LogGuard, LogWriter, start, write_final_line};
}
mod tool {
    use oracle_agent::tool::{
        CallProgress, CallStep, FnTool, MAX_DATA, Registry, RegistryError, SearchService,
        ThreadHit, Threads, Tool, ToolContext, ToolError, ToolOutput, arguments, schema_of,
        thread_search, tool_fn,
    };
}
#[cfg(feature = "project")]
mod tool_2 {
    use oracle_agent::tool::{
        Citation, CodeSearchSettings, Notes, NotesSettings, ProjectRoot, RepoMapSettings,
        RootError, citations, code_search, file_read, history_search, note_read, note_search,
        note_write, repo_map,
    };
}
#[cfg(feature = "mcp")]
mod tool_mcp {
    use oracle_agent::tool::mcp::{GUARD, guard};
}
mod tool_registry {
    use oracle_agent::tool::registry::{MAX_TOOL_NAME, Registry, RegistryError};
}
