//! Identifiers: names that people choose, and numbers that Oracle assigns.
//!
//! Clients know a session by [`SessionKey`]; records and tables use the small integer [`Sid`].

use std::{fmt, path::PathBuf, str::FromStr, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, de};

/// Maximum length of a session, tenant or profile name, in characters.
pub const MAX_NAME: usize = 128;

/// A name is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// It is empty.
    #[error("a {what} must not be empty: use 1 to {MAX_NAME} characters from A-Z a-z 0-9 . _ : -")]
    Empty {
        /// The kind of name.
        what: &'static str,
    },
    /// It has more than [`MAX_NAME`] characters.
    #[error(
        "a {what} of {length} characters is too long: use 1 to {MAX_NAME} from A-Z a-z 0-9 . _ : -"
    )]
    TooLong {
        /// The kind of name.
        what: &'static str,
        /// Its length in characters.
        length: usize,
    },
    /// It has an invalid character.
    #[error(
        "the {what} `{name}` contains the character `{bad}`: use 1 to {MAX_NAME} characters from \
         A-Z a-z 0-9 . _ : -",
        bad = bad.escape_debug()
    )]
    BadCharacter {
        /// The kind of name.
        what: &'static str,
        /// The name.
        name: String,
        /// The first invalid character.
        bad: char,
    },
    /// It is `.` or `..`, which clients remove from a path.
    #[error("the {what} `{name}` has a special meaning in paths: add a letter or a digit")]
    Dots {
        /// The kind of name.
        what: &'static str,
        /// The name.
        name: String,
    },
}

fn checked(what: &'static str, name: &str, prefix: &[char]) -> Result<Arc<str>, IdError> {
    let plain = name.trim_start_matches(prefix);
    if plain.is_empty() {
        return Err(IdError::Empty { what });
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | ':' | '-');
    let length = name.chars().count();
    if length > MAX_NAME {
        return Err(IdError::TooLong { what, length });
    }
    if matches!(name, "." | "..") {
        let name = name.to_owned();
        return Err(IdError::Dots { what, name });
    }
    match plain.chars().find(|&c| !allowed(c)) {
        Some(bad) => Err(IdError::BadCharacter {
            what,
            name: name.to_owned(),
            bad,
        }),
        None => Ok(name.into()),
    }
}

macro_rules! name_types {
    ($( $(#[$doc:meta])* $name:ident($what:literal, $prefix:expr), )+) => {
        $(
            $(#[$doc])*
            #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
            #[serde(transparent)]
            pub struct $name(Arc<str>);

            impl $name {
                /// Checks a name.
                ///
                /// # Errors
                /// [`IdError`] unless it is 1–128 characters from `A–Z a–z 0–9 . _ : -`.
                pub fn new(name: &str) -> Result<Self, IdError> {
                    checked($what, name, $prefix).map(Self)
                }

                /// The name as text.
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

            impl AsRef<str> for $name {
                fn as_ref(&self) -> &str {
                    self.as_str()
                }
            }

            impl FromStr for $name {
                type Err = IdError;
                fn from_str(name: &str) -> Result<Self, IdError> {
                    Self::new(name)
                }
            }

            impl<'de> Deserialize<'de> for $name {
                fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    let name = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                    Self::new(&name).map_err(de::Error::custom)
                }
            }
        )+
    };
}

name_types! {
    /// The name of a session, unique within its tenant. A name that begins with `~` belongs to a
    /// sub-agent.
    SessionName("session name", &[SUB_AGENT]),
    /// The owner of sessions, keys and limits.
    TenantId("tenant name", &[]),
    /// The name of a set of persona, prompts, model chain, tools and budgets.
    ProfileName("profile name", &[]),
}

impl TenantId {
    /// The tenant of the command line: `default`.
    pub fn local() -> Self {
        Self("default".into())
    }
}

impl ProfileName {
    /// The profile that always exists: `oracle`.
    pub fn oracle() -> Self {
        Self("oracle".into())
    }
}

/// Prefix of in-memory sessions.
const EPHEMERAL: &str = "ephemeral-";

/// Prefix of sub-agents, once for each level of depth.
const SUB_AGENT: char = '~';

impl SessionName {
    /// The reserved session for records that belong to no session; it takes no messages.
    pub fn system() -> Self {
        Self("system".into())
    }

    /// The reserved session of a probe for durable writes.
    pub fn probe() -> Self {
        Self("system-probe".into())
    }

    /// The reserved session that records the usage of in-memory sessions.
    pub fn usage() -> Self {
        Self("usage".into())
    }

    /// Whether Oracle reserves this name.
    pub fn is_reserved(&self) -> bool {
        Self::reserved().contains(self)
    }

    #[doc(hidden)]
    pub fn reserved() -> [Self; 3] {
        [Self::system(), Self::probe(), Self::usage()]
    }

    /// The name of a sub-agent of this session: `~NAME.QUERY.NUMBER`, reserved for this purpose.
    ///
    /// # Errors
    /// [`IdError::TooLong`].
    pub fn sub_agent(&self, query: QueryId, number: u32) -> Result<Self, IdError> {
        Self::new(&format!("{SUB_AGENT}{self}.{query}.{number}"))
    }

    /// The common beginning of the names of this session's sub-agents.
    #[doc(hidden)]
    pub fn below(&self) -> Option<Self> {
        Self::new(&format!("{SUB_AGENT}{self}")).ok()
    }

    /// Whether the name is reserved for a sub-agent.
    pub fn is_sub_agent(&self) -> bool {
        self.0.starts_with(SUB_AGENT)
    }

    /// A name for an in-memory session, from a UUID (version 7).
    pub fn ephemeral(id: uuid::Uuid) -> Self {
        Self(format!("{EPHEMERAL}{}", id.hyphenated()).into())
    }

    /// The in-memory session of this name, or the one whose sub-agent has it.
    pub fn ephemeral_root(&self) -> Option<Self> {
        const ID: usize = uuid::fmt::Hyphenated::LENGTH;
        let plain = self.0.trim_start_matches(SUB_AGENT);
        let depth = self.0.len() - plain.len();
        let (root, below) = plain.split_at_checked(EPHEMERAL.len() + ID)?;
        let mut numbers = below.split('.');
        let fits = uuid::Uuid::parse_str(root.strip_prefix(EPHEMERAL)?).is_ok()
            && numbers.next() == Some("")
            && numbers.clone().count() == 2 * depth
            && numbers.all(|number| number.parse::<u32>().is_ok());
        fits.then(|| Self(root.into()))
    }

    /// Whether an in-memory session or one of its sub-agents has this name.
    pub fn is_ephemeral(&self) -> bool {
        self.ephemeral_root().is_some()
    }

    /// A name for an unnamed session, from a UUID.
    pub fn from_uuid(id: uuid::Uuid) -> Self {
        Self(id.hyphenated().to_string().into())
    }
}

/// A session's tenant and name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SessionKey {
    /// The tenant.
    pub tenant: TenantId,
    /// The name within the tenant.
    pub name: SessionName,
}

impl SessionKey {
    /// A session of the local tenant.
    pub fn local(name: SessionName) -> Self {
        Self {
            tenant: TenantId::local(),
            name,
        }
    }

    /// Returns the key of another session of the tenant.
    #[doc(hidden)]
    pub fn with_name(&self, name: SessionName) -> Self {
        Self {
            tenant: self.tenant.clone(),
            name,
        }
    }
}

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

macro_rules! number_types {
    ($( $(#[$doc:meta])* $name:ident($inner:ty), )+) => {
        $(
            $(#[$doc])*
            #[derive(
                Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
            )]
            #[serde(transparent)]
            pub struct $name(pub $inner);

            impl $name {
                /// The next number.
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
        )+
    };
}

number_types! {
    /// Number of a session in the journal.
    Sid(u64),
    /// Number of a record in its session's log, from 1 without gaps; 0 is before the first.
    Seq(u64),
    /// Fencing epoch of a session's owner.
    Epoch(u64),
    /// Number of a query in its session, from 1.
    QueryId(u32),
    /// A turn: the number of complete turns when it began.
    Turn(u32),
    /// Number of an attempt at a turn's model call, from 1.
    Attempt(u32),
}

/// The id of a tool call, from the model or generated by Oracle.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(pub Arc<str>);

impl CallId {
    /// An id as received.
    pub fn new(id: &str) -> Self {
        Self(id.into())
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A process that owns sessions while it lives.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Owner {
    /// Its process id, if it is on this machine and readable.
    pub pid: Option<u32>,
    /// Its control socket, if it is on this machine and runs a server.
    pub socket: Option<PathBuf>,
    /// The URL at which other nodes reach its server, if it is a node with one.
    pub url: Option<String>,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.url, self.pid) {
            // Behind `#` is the node's proof of the cluster's key.
            (Some(url), _) => write!(f, "the node at {}", url.split('#').next().unwrap_or(url)),
            (None, Some(pid)) => write!(f, "process {pid}"),
            (None, None) => f.write_str("another process"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_names_follow_the_naming_rule() {
        let long = "x".repeat(128);
        for good in ["a", "A.b_c:d-9", "~a.1.2", "~~a.1.2.3.4", long.as_str()] {
            assert_eq!(SessionName::new(good).unwrap().as_str(), good);
        }
        let too_long = "x".repeat(129);
        for (bad, says) in [
            ("", "must not be empty"),
            (too_long.as_str(), "of 129 characters is too long"),
            ("a b", "contains the character ` `"),
            ("../x", "contains the character `/`"),
            ("~", "must not be empty"),
            ("a~b", "contains the character `~`"),
            ("é", "contains the character `é`"),
            ("..", "the session name `..` has a special meaning in paths"),
            ("a\nb", "contains the character `\\n`"),
        ] {
            let error = SessionName::new(bad).unwrap_err().to_string();
            assert!(error.contains(says), "{bad:?}: {error}");
        }
        assert!(
            TenantId::new("~a").is_err(),
            "only sessions have sub-agents"
        );
    }

    #[test]
    fn names_of_sub_agents_are_distinct_and_no_caller_s() {
        let name = |name: &str| SessionName::new(name).unwrap();
        let below = |parent: &SessionName| parent.sub_agent(QueryId(1), 1).unwrap();
        let (child, other) = (below(&name("a")), below(&name("a.1.1")));
        let grandchild = below(&child);
        assert_eq!(child.as_str(), "~a.1.1");
        assert_eq!(grandchild.as_str(), "~~a.1.1.1.1");
        assert_ne!(grandchild, other);
        assert!(child.is_sub_agent() && !name("a.1.1").is_sub_agent());
        assert!(name(&"x".repeat(124)).sub_agent(QueryId(1), 1).is_err());
    }

    #[test]
    fn child_of_an_ephemeral_session_is_ephemeral() {
        let name = SessionName::ephemeral(uuid::Uuid::from_u128(7));
        for (before, behind, is_ephemeral) in [
            ("", "", true),
            ("~", ".1.2", true),
            ("~~", ".1.2.30.4", true),
            ("", ".1.2", false),
            ("~", "", false),
            ("~", ".1.2.30.4", false),
            ("~", ".", false),
            ("~", ".1", false),
            ("~", ".1.2.", false),
            ("~", ".a.b", false),
            ("~", ".1.99999999999", false),
            ("", "0", false),
            ("~", "-1.2", false),
            ("~", "0.1.2", false),
        ] {
            let name = SessionName::new(&format!("{before}{name}{behind}")).unwrap();
            assert_eq!(name.is_ephemeral(), is_ephemeral, "{name}");
        }
        for other in ["ephemeral-", "ephemeral-1", "system"] {
            assert!(!SessionName::new(other).unwrap().is_ephemeral(), "{other}");
        }
    }

    #[test]
    fn names_are_validated_on_deserialization() {
        assert_eq!(
            serde_json::to_string(&TenantId::local()).unwrap(),
            "\"default\""
        );
        assert!(serde_json::from_str::<SessionName>("\"a/b\"").is_err());
    }
}
