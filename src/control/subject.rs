//! The session of a verb, written `NAME` or `TENANT/NAME`.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::model::{IdError, SessionKey, SessionName, TenantId};

/// A session, of the caller's tenant unless another is given.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Subject {
    /// The tenant, if it is not the caller's.
    pub tenant: Option<TenantId>,
    /// The session's name.
    pub name: SessionName,
}

impl Subject {
    /// The session's key, for a caller of this tenant.
    pub fn of(&self, tenant: &TenantId) -> SessionKey {
        SessionKey {
            tenant: self.tenant.as_ref().unwrap_or(tenant).clone(),
            name: self.name.clone(),
        }
    }
}

impl From<SessionName> for Subject {
    fn from(name: SessionName) -> Self {
        Self { tenant: None, name }
    }
}

impl From<SessionKey> for Subject {
    fn from(key: SessionKey) -> Self {
        Self {
            tenant: Some(key.tenant),
            name: key.name,
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.tenant {
            Some(tenant) => write!(f, "{tenant}/{}", self.name),
            None => self.name.fmt(f),
        }
    }
}

impl FromStr for Subject {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let (tenant, name) = match text.split_once('/') {
            Some((tenant, name)) => (Some(TenantId::new(tenant)?), name),
            None => (None, text),
        };
        let name = SessionName::new(name)?;
        Ok(Self { tenant, name })
    }
}

impl Serialize for Subject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Subject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(feature = "openapi")]
oracle_core::described! {
    Subject as {
        let text = utoipa::openapi::ObjectBuilder::new().schema_type(utoipa::openapi::Type::String);
        let name = "[A-Za-z0-9._:-]{1,128}";
        text.pattern(Some(format!("^({name}/)?~*{name}$"))).into()
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subject_parses_with_or_without_a_tenant() {
        let own = TenantId::new("own").unwrap();
        for (text, meant) in [("s", "own/s"), ("acme/s", "acme/s")] {
            let subject: Subject = text.parse().unwrap();
            assert_eq!(subject.to_string(), text);
            assert_eq!(subject.of(&own).to_string(), meant);
        }
        for bad in ["", "/", "acme/", "/s", "a/b/c", "a b"] {
            assert!(bad.parse::<Subject>().is_err(), "{bad}");
        }
    }
}
