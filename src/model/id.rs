//! Identities: names that people choose, numbers that Oracle gives.
//!
//! Outside, a session is a tenant and a name ([`SessionKey`]); inside, it is a small integer
//! ([`Sid`]) that the journal gives out, so that records and tables stay narrow.

use std::{fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Longest session, tenant or profile name, in characters (spec 1).
pub const MAX_NAME: usize = 128;

/// A name that cannot be one. The text says what is allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// Nothing was given.
    #[error("a {what} may not be empty: use 1 to {MAX_NAME} characters from A-Z a-z 0-9 . _ : -")]
    Empty {
        /// Which kind of name it should have been.
        what: &'static str,
    },
    /// More than [`MAX_NAME`] characters.
    #[error(
        "a {what} of {length} characters is too long: use 1 to {MAX_NAME} from A-Z a-z 0-9 . _ : -"
    )]
    TooLong {
        /// Which kind of name it should have been.
        what: &'static str,
        /// How many characters it has.
        length: usize,
    },
    /// A character outside the set.
    #[error(
        "the {what} `{name}` has the character `{bad}`: use 1 to {MAX_NAME} characters from A-Z a-z 0-9 . _ : -",
        bad = bad.escape_default()
    )]
    BadCharacter {
        /// Which kind of name it should have been.
        what: &'static str,
        /// The name as given.
        name: String,
        /// The first character that is not allowed.
        bad: char,
    },
}

fn checked(what: &'static str, name: &str) -> Result<Arc<str>, IdError> {
    if name.is_empty() {
        return Err(IdError::Empty { what });
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | ':' | '-');
    let length = name.chars().count();
    if length > MAX_NAME {
        return Err(IdError::TooLong { what, length });
    }
    match name.chars().find(|&c| !allowed(c)) {
        Some(bad) => Err(IdError::BadCharacter {
            what,
            name: name.to_owned(),
            bad,
        }),
        None => Ok(name.into()),
    }
}

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks and takes a name (spec 1): 1–128 characters from `A–Z a–z 0–9 . _ : -`.
            pub fn new(name: &str) -> Result<Self, IdError> {
                checked($what, name).map(Self)
            }

            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }

        impl FromStr for $name {
            type Err = IdError;
            fn from_str(name: &str) -> Result<Self, IdError> {
                Self::new(name)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let name = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                Self::new(&name).map_err(de::Error::custom)
            }
        }
    };
}

name_type!(
    /// The name of a session, unique within its tenant.
    SessionName,
    "session name"
);
name_type!(
    /// Who owns sessions, keys and limits.
    TenantId,
    "tenant name"
);
name_type!(
    /// A named set of persona, prompts, model chain, tools and budgets.
    ProfileName,
    "profile name"
);

impl TenantId {
    /// The tenant of a command line: `default`.
    #[must_use]
    pub fn local() -> Self {
        Self("default".into())
    }
}

impl ProfileName {
    /// The profile that always exists: `oracle`.
    #[must_use]
    pub fn oracle() -> Self {
        Self("oracle".into())
    }
}

/// How the names of sessions begin that last for one request.
const BRIEF: &str = "once-";
/// How the names of sessions in memory begin.
const EPHEMERAL: &str = "ephemeral-";

impl SessionName {
    /// The session that holds what belongs to none (spec 9); nobody can talk with it.
    #[must_use]
    pub fn system() -> Self {
        Self("system".into())
    }

    /// The session that comes and goes where it is tried whether anything can be made durable.
    #[must_use]
    pub fn probe() -> Self {
        Self("system-probe".into())
    }

    /// The session that holds what model calls of ephemeral sessions use.
    #[must_use]
    pub fn usage() -> Self {
        Self("usage".into())
    }

    /// Whether it is Oracle's own.
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        [Self::system(), Self::probe(), Self::usage()].contains(self)
    }

    /// A name for a session that lasts for one request, from a UUID (version 7) that the caller drew.
    #[must_use]
    pub fn brief(id: uuid::Uuid) -> Self {
        Self(format!("{BRIEF}{}", id.hyphenated()).into())
    }

    /// Whether it is the name of a session that lasts for one request, or of a sub-agent's below it. Whoever
    /// finds one that nobody works for knows that a crash has left it.
    #[must_use]
    pub fn is_brief(&self) -> bool {
        self.root(BRIEF).or_else(|| self.root(EPHEMERAL)).is_some()
    }

    /// A name for a session in memory, from a UUID (version 7) that the caller drew.
    #[must_use]
    pub fn ephemeral(id: uuid::Uuid) -> Self {
        Self(format!("{EPHEMERAL}{}", id.hyphenated()).into())
    }

    /// The session in memory that it names, or to which it belongs as a sub-agent.
    #[must_use]
    pub fn ephemeral_root(&self) -> Option<Self> {
        self.root(EPHEMERAL).map(|root| Self(root.into()))
    }

    fn root(&self, prefix: &str) -> Option<&str> {
        const ID: usize = uuid::fmt::Hyphenated::LENGTH;
        let (id, below) = self.0.strip_prefix(prefix)?.split_at_checked(ID)?;
        let fits = uuid::Uuid::parse_str(id).is_ok() && (below.is_empty() || are_sub_agents(below));
        fits.then(|| &self.0[..prefix.len() + ID])
    }

    /// A name for a session nobody named, from a UUID that the caller drew.
    #[must_use]
    pub fn from_uuid(id: uuid::Uuid) -> Self {
        Self(id.hyphenated().to_string().into())
    }
}

/// Whether it is what the names of sub-agents have behind those of their parents: `.QUERY.NUMBER`, for each of
/// them.
fn are_sub_agents(below: &str) -> bool {
    let Some(numbers) = below.strip_prefix('.').map(|below| below.split('.')) else {
        return false;
    };
    numbers.clone().count() % 2 == 0
        && numbers
            .into_iter()
            .all(|number| number.parse::<u32>().is_ok())
}

/// A session as the outside knows it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SessionKey {
    /// Who owns it.
    pub tenant: TenantId,
    /// Its name within the tenant.
    pub name: SessionName,
}

impl SessionKey {
    /// A session of the local tenant.
    #[must_use]
    pub fn local(name: SessionName) -> Self {
        Self {
            tenant: TenantId::local(),
            name,
        }
    }
}

/// A session of the local tenant.
impl From<SessionName> for SessionKey {
    fn from(name: SessionName) -> Self {
        Self::local(name)
    }
}

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.tenant, self.name)
    }
}

macro_rules! number_type {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl $name {
            /// The one after this.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number_type!(
    /// A session inside the process and the journal; given by the journal.
    Sid(u64)
);
number_type!(
    /// Position of a record in its session's log, from 1, without gaps. 0 is "before the first".
    Seq(u64)
);
number_type!(
    /// Ownership of a session: each owner that opens it gets the next one; older ones are fenced.
    Epoch(u64)
);
number_type!(
    /// A query within its session, from 1.
    QueryId(u32)
);
number_type!(
    /// How many turns of the query were complete when this one began, so the first is 0 (spec 1).
    Turn(u32)
);
number_type!(
    /// A try at a turn's model call, from 1 within the turn (spec 1).
    Attempt(u32)
);

/// A tool call's id, as the model gave it or, where it gave none, as Oracle made it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(pub Arc<str>);

impl CallId {
    /// Takes an id from the wire.
    #[must_use]
    pub fn new(id: &str) -> Self {
        Self(id.into())
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_hold_to_the_rule_of_spec_1() {
        let long = "x".repeat(128);
        for good in ["a", "A.b_c:d-9", long.as_str()] {
            assert_eq!(SessionName::new(good).unwrap().as_str(), good);
        }
        let too_long = "x".repeat(129);
        for (bad, says) in [
            ("", "may not be empty"),
            (too_long.as_str(), "of 129 characters is too long"),
            ("a b", "has the character ` `"),
            ("../x", "has the character `/`"),
            ("é", "has the character `\\u{e9}`"),
            ("a\nb", "has the character `\\n`"),
        ] {
            let error = SessionName::new(bad).unwrap_err().to_string();
            assert!(error.contains(says), "{bad:?}: {error}");
        }
    }

    #[test]
    fn sub_agents_of_what_lasts_for_one_request_last_no_longer() {
        let name = SessionName::brief(uuid::Uuid::from_u128(7));
        for (behind, is_brief) in [
            ("", true),
            (".1.2", true),
            (".1.2.30.4", true),
            (".", false),
            (".1", false),
            (".1.2.", false),
            (".1.2.3", false),
            (".a.b", false),
            (".1.99999999999", false),
            ("0", false),
            ("-1.2", false),
        ] {
            let name = SessionName::new(&format!("{name}{behind}")).unwrap();
            assert_eq!(name.is_brief(), is_brief, "{name}");
        }
        for other in ["once-", "once-1", "once-upon-a-time", "system"] {
            assert!(!SessionName::new(other).unwrap().is_brief(), "{other}");
        }
    }

    #[test]
    fn names_are_checked_when_they_are_read_back() {
        assert_eq!(
            serde_json::to_string(&TenantId::local()).unwrap(),
            "\"default\""
        );
        assert!(serde_json::from_str::<SessionName>("\"a/b\"").is_err());
    }
}
