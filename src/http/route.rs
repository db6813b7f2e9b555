//! What a route says of itself, besides its handlers and their description, to the layers around
//! them.

use bytes::Bytes;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};

use super::{Host, Problem, sse};

/// A path with its handlers.
pub(super) struct Route {
    pub kind: RouteKind,
    pub router: OpenApiRouter<Host>,
}

/// What the layers know of a route.
#[derive(Debug, Clone, Copy)]
pub(super) struct RouteKind {
    pub group: RouteGroup,
    pub begins: Begins,
    /// The last event of a stream whose key is revoked.
    pub revocation: fn() -> Bytes,
}

/// What a request has to pass before its handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RouteGroup {
    /// Nothing.
    Open,
    /// A key. By these routes an operator diagnoses and repairs: they are exempt from the tenant's
    /// limits.
    Operators,
    /// A key and admission.
    Others,
    /// Early load shedding, a key and admission.
    Messages,
}

/// What a POST begins, by which a cluster chooses its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begins {
    /// Nothing: it acts on what is there, or the route has no POST.
    Nothing,
    /// A session, unless a header names one.
    Session,
    /// A query of the session in the path.
    Query,
    /// What a tool call over MCP begins.
    ToolCall,
}

impl Route {
    /// Creates a route without POST.
    pub(super) fn without_post(group: RouteGroup, methods: UtoipaMethodRouter<Host>) -> Self {
        Self::post(group, Begins::Nothing, methods)
    }

    /// Creates a route with POST.
    pub(super) fn post(
        group: RouteGroup,
        begins: Begins,
        methods: UtoipaMethodRouter<Host>,
    ) -> Self {
        let router = OpenApiRouter::default().routes(methods);
        Self::new(group, begins, router)
    }

    /// Creates a route whose handlers may have no description.
    pub(super) fn new(
        group: RouteGroup,
        begins: Begins,
        router: impl Into<OpenApiRouter<Host>>,
    ) -> Self {
        let revocation = || sse::last_event(None, &Problem::no_key().body());
        let kind = RouteKind {
            group,
            begins,
            revocation,
        };
        let router = router.into();
        Self { kind, router }
    }

    /// Sets the last event of a stream whose key is revoked.
    pub(super) fn revocation(mut self, revocation: fn() -> Bytes) -> Self {
        self.kind.revocation = revocation;
        self
    }
}
