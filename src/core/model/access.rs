//! Principals and roles.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use super::id::{ProfileName, TenantId};

words! {
    /// The access that a key grants.
    #[derive(PartialOrd, Ord)]
    pub enum Role {
        /// Access to the conversations of one tenant.
        User = "user",
        /// Access to all tenants' conversations and the system.
        Admin = "admin",
    }
}

/// The name of a principal in `control.*` records.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct By(Arc<str>);

impl By {
    /// The principal of this name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The user of the command line or the library.
    pub fn local() -> Self {
        Self::new("local")
    }

    /// Oracle itself.
    pub fn oracle() -> Self {
        Self::new("oracle")
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the principal has no key.
    pub fn is_local(&self) -> bool {
        *self == Self::local()
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

/// An authenticated principal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Principal {
    /// The name of its key in logs and events, never the key.
    pub name: Arc<str>,
    /// Its tenant.
    pub tenant: TenantId,
    /// Its role.
    pub role: Role,
    /// The profiles that it may use; all if empty.
    pub profiles: Arc<[ProfileName]>,
}

impl Principal {
    /// The local user, in the role `admin`.
    pub fn local() -> Self {
        Self {
            name: "local".into(),
            tenant: TenantId::local(),
            role: Role::Admin,
            profiles: Arc::default(),
        }
    }

    /// Whether it may use this profile.
    pub fn may_use(&self, profile: &ProfileName) -> bool {
        self.profiles.is_empty() || self.profiles.contains(profile)
    }
}
