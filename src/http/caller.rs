//! Extractors of the principal.

use std::sync::Arc;

use axum::{extract::FromRequestParts, http::request::Parts};

use super::Problem;
use crate::model::{By, Principal, SessionKey, SessionName, access::Role};

/// The authenticated caller.
#[derive(Debug, Clone)]
pub struct Caller(pub Principal);

impl Caller {
    /// A session of the caller's tenant.
    #[must_use]
    pub fn session(&self, name: SessionName) -> SessionKey {
        SessionKey {
            tenant: self.0.tenant.clone(),
            name,
        }
    }

    /// The name that is recorded.
    #[must_use]
    pub fn by(&self) -> By {
        By::new(Arc::clone(&self.0.name))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let caller = parts.extensions.get::<Principal>();
        caller.cloned().map(Self).ok_or_else(Problem::no_key)
    }
}

/// A caller of the role `admin`.
#[derive(Debug, Clone)]
pub struct Admin(pub Principal);

impl<S: Send + Sync> FromRequestParts<S> for Admin {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Caller(principal) = Caller::from_request_parts(parts, state).await?;
        match principal.role {
            Role::Admin => Ok(Self(principal)),
            Role::User => Err(Problem::admin_only()),
        }
    }
}
