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
