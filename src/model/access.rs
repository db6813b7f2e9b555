//! Who asks, and what they may do.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use super::id::TenantId;

/// What a key opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The conversations of one tenant.
    User,
    /// The conversations of all tenants, and the system itself.
    Admin,
}

impl Role {
    /// Both, the lesser first.
    pub const ALL: [Self; 2] = [Self::User, Self::Admin];

    /// The name on the wire and on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Who did something, by name: what stands in `control.*` records.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct By(Arc<str>);

impl By {
    /// Somebody of this name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// Whoever uses this machine's command line, or embeds the library and says nothing else.
    #[must_use]
    pub fn local() -> Self {
        Self::new("local")
    }

    /// Oracle itself, such as a session that takes back its sub-agent.
    #[must_use]
    pub fn oracle() -> Self {
        Self::new("oracle")
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for By {
    fn default() -> Self {
        Self::local()
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&Principal> for By {
    fn from(principal: &Principal) -> Self {
        Self(Arc::clone(&principal.name))
    }
}

/// Who asks, as it was made sure of at the door.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// By what name it stands in logs and events: of its key, never the key itself.
    pub name: Arc<str>,
    /// Whose sessions it means.
    pub tenant: TenantId,
    /// What it may do.
    pub role: Role,
}

impl Principal {
    /// Whoever uses this machine's command line or a server without keys.
    #[must_use]
    pub fn local() -> Self {
        Self {
            name: "local".into(),
            tenant: TenantId::local(),
            role: Role::Admin,
        }
    }
}
