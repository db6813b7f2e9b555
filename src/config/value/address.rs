//! Where a server listens.

use std::{fmt, net::SocketAddr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::NotAllowed;

/// An address and a port, like `127.0.0.1:7770` or `[::1]:7770`; port 0 is a free one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address(SocketAddr);

impl Address {
    /// This one.
    #[must_use]
    pub const fn new(address: SocketAddr) -> Self {
        Self(address)
    }

    /// The address.
    #[must_use]
    pub const fn get(self) -> SocketAddr {
        self.0
    }
}

impl std::str::FromStr for Address {
    type Err = NotAllowed;

    fn from_str(text: &str) -> Result<Self, NotAllowed> {
        text.trim().parse().map(Self).map_err(|_| {
            let allowed = "an IP address and a port, like 127.0.0.1:7770, [::1]:7770 or 0.0.0.0:80";
            NotAllowed(allowed.to_owned())
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // What is no text is refused like an empty one.
        let text = String::deserialize(deserializer).unwrap_or_default();
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_one_of_the_machine_and_a_port() {
        for (text, good) in [
            ("127.0.0.1:7770", true),
            (" [::1]:0 ", true),
            ("0.0.0.0:80", true),
            ("", false),
            ("7770", false),
            ("127.0.0.1", false),
            ("localhost:7770", false),
            ("127.0.0.1:70000", false),
        ] {
            assert_eq!(text.parse::<Address>().is_ok(), good, "{text:?}");
        }
    }
}
