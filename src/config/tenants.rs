//! The section of tenants' limits (spec 14).

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, de};

use super::{keys, value::Count};
use crate::model::TenantId;

/// `[tenants]`: what a tenant may have of the server. What is not set has no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tenants {
    /// Most requests in a minute.
    pub requests_per_minute: Option<Count<1, 10_000_000>>,
    /// Most requests at a time that are worked on, streams among them.
    pub max_requests: Option<Count<1, 1_000_000>>,
    /// Most queries that run at a time.
    pub max_queries: Option<Count<1, 1_000_000>>,
    /// Most tokens in a minute, sent to models and received.
    pub tokens_per_minute: Option<Count<1, 4_000_000_000>>,
    /// Most sessions that are kept.
    pub max_sessions: Option<Count<1, 100_000_000>>,
    /// Most messages that wait, over all sessions of the tenant.
    pub max_queued: Option<Count<1, 10_000_000>>,
    /// Other limits for single tenants.
    pub named: Named,
}

/// Limits of single tenants, by the tenant's name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Named(pub BTreeMap<TenantId, OfTenant>);

/// Limits of one tenant; what is not set is as for all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OfTenant {
    /// Most requests in a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<Count<1, 10_000_000>>,
    /// Most requests at a time that are worked on, streams among them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_requests: Option<Count<1, 1_000_000>>,
    /// Most queries that run at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_queries: Option<Count<1, 1_000_000>>,
    /// Most tokens in a minute, sent to models and received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_minute: Option<Count<1, 4_000_000_000>>,
    /// Most sessions that are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_sessions: Option<Count<1, 100_000_000>>,
    /// Most messages that wait, over all sessions of the tenant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_queued: Option<Count<1, 10_000_000>>,
}

impl<'de> Deserialize<'de> for Named {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // In our own words: serde's say what was wrong, not what is allowed.
        let toml::Value::Table(tables) = toml::Value::deserialize(deserializer)? else {
            let allowed =
                "only tables of limits: the line `[tenants.named.NAME]` and keys below it";
            return Err(de::Error::custom(allowed));
        };
        let tenant = |(name, limits): (String, toml::Value)| {
            let id = TenantId::new(&name);
            let id = id.map_err(|error| format!("names of tenants; {error}"))?;
            Ok((id, of_tenant(&name, limits)?))
        };
        let named: Result<_, String> = tables.into_iter().map(tenant).collect();
        named.map(Self).map_err(de::Error::custom)
    }
}

/// The limits of one tenant, or what is allowed for the one that is not.
fn of_tenant(name: &str, limits: toml::Value) -> Result<OfTenant, String> {
    let names = keys::fields_of::<OfTenant>();
    let toml::Value::Table(limits) = limits else {
        return Err(format!("for `{name}` a table with {}", names.join(", ")));
    };
    for (key, value) in &limits {
        if !names.contains(&key.as_str()) {
            return Err(format!("for `{name}` only {}", names.join(", ")));
        }
        let one = toml::Table::from_iter([(key.clone(), value.clone())]);
        if let Err(error) = one.try_into::<OfTenant>() {
            return Err(format!("for `{name}.{key}` {}", error.message()));
        }
    }
    limits
        .try_into()
        .map_err(|error: toml::de::Error| error.message().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_may_have_limits_of_its_own() {
        let text = "max_queued = 5\n[named.acme]\nmax_queued = 9\nrequests_per_minute = 60\n";
        let tenants: Tenants = toml::from_str(text).unwrap();
        let acme = &tenants.named.0[&TenantId::new("acme").unwrap()];
        assert_eq!(acme.max_queued.map(Count::get), Some(9));
        assert_eq!(acme.max_sessions, None);
        let again = toml::to_string(&tenants).unwrap();
        assert_eq!(toml::from_str::<Tenants>(&again).unwrap(), tenants);
    }

    #[test]
    fn what_is_wrong_with_a_tenants_limits_is_said_with_what_is_allowed() {
        for (text, allowed) in [
            ("named = 1", "only tables of limits"),
            (
                "named.acme = 1",
                "for `acme` a table with requests_per_minute, ",
            ),
            (
                "named.acme.queue = 1",
                "for `acme` only requests_per_minute, ",
            ),
            (
                "named.acme.max_queued = 0",
                "for `acme.max_queued` a whole number from 1 to 10000000",
            ),
            ("named.'a b'.max_queued = 1", "names of tenants; "),
        ] {
            let error = toml::from_str::<Tenants>(text).unwrap_err();
            assert!(error.message().contains(allowed), "{text}: {error}");
        }
    }
}
