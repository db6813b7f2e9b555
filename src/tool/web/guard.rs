//! The addresses that `web_fetch` may connect to.
//!
//! [`check`] is for the URL, which may name an address itself; [`Guarded`] is for the addresses of a
//! name. The client connects to what [`Guarded`] returns and asks nobody else, so that a name whose
//! addresses change between two looks (DNS rebinding) gains nothing.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use reqwest::{
    Url,
    dns::{Addrs, Name, Resolve, Resolving},
};
use tokio::net::lookup_host;

use super::FetchSettings;
use crate::tool::{ToolError, text::quoted};

/// Names of this machine and of private networks.
const PRIVATE_NAMES: [&str; 4] = ["localhost", "local", "internal", "home.arpa"];

/// Whether this is an address of the public Internet that contains no other address: by IANA's
/// registries of special-purpose addresses, and not that of Azure's own services.
#[rustfmt::skip]
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !matches!(
            v4.octets(),
            [0 | 10 | 127 | 224.., ..] | [100, 64..=127, ..] | [169, 254, ..]
                | [172, 16..=31, ..] | [192, 168, ..] | [192, 0, 0 | 2, _] | [192, 31, 196, _]
                | [192, 88, 99, _] | [198, 18 | 19, ..] | [198, 51, 100, _] | [203, 0, 113, _]
                | [168, 63, 129, 16]
        ),
        // All others are reserved, local or multicast, or contain addresses of IPv4: `::`,
        // `::ffff:0:0/96`, `64:ff9b::/96`, `64:ff9b:1::/48`.
        IpAddr::V6(v6) => matches!(v6.segments(), [0x2000..=0x3fff, ..]) && !matches!(
            v6.segments(),
            // Protocols (Teredo, ORCHID), documentation, 6to4, the former 6bone, ISATAP.
            [0x2001, ..0x200, ..] | [0x2001, 0xdb8, ..] | [0x3fff, ..0x1000, ..]
                | [0x2002 | 0x3ffe, ..] | [_, _, _, _, 0 | 0x200, 0x5efe, _, _]
        ),
    }
}

/// Whether an address may be connected to: [`is_public`], except in tests.
pub(super) type Allows = fn(IpAddr) -> bool;

/// Checks everything that a URL itself says.
pub(super) fn check(url: &Url, allows: Allows, settings: &FetchSettings) -> Result<(), ToolError> {
    // The parser has decoded every spelling of an address.
    let host = url.host_str().unwrap_or_default().trim_end_matches('.');
    let literal = host.trim_start_matches('[').trim_end_matches(']');
    let is_below = |name: &str| {
        let rest = host.strip_suffix(&name.to_ascii_lowercase());
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.')) || literal == name
    };
    let is_private = || match literal.parse::<IpAddr>() {
        Ok(address) => !allows(address),
        Err(_) => !host.contains('.') || PRIVATE_NAMES.iter().any(|name| is_below(name)),
    };
    let is_known = |names: &Vec<String>| names.iter().any(|name| is_below(name));
    let why = if !matches!(url.scheme(), "http" | "https") {
        "only http and https can be read"
    } else if !url.username().is_empty() || url.password().is_some() {
        "leave user and password out"
    } else if !matches!(url.port_or_known_default(), Some(80 | 443 | 1024..)) {
        "use port 80, 443 or one above 1023"
    } else if is_private() {
        "it is not on the public Internet"
    } else if is_known(&settings.deny_hosts) || !settings.allow_hosts.as_ref().is_none_or(is_known)
    {
        "the operator does not allow this host"
    } else {
        return Ok(());
    };
    refuse!("{} is refused: {why}", quoted(url.as_str()))
}

/// A resolver that returns only addresses that may be connected to.
pub(super) struct Guarded {
    pub(super) inner: Arc<dyn Resolve>,
    pub(super) allows: Allows,
}

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let (resolving, allows) = (self.inner.resolve(name), self.allows);
        Box::pin(async move {
            let mut addresses: Vec<SocketAddr> = resolving.await?.collect();
            addresses.retain(|address| allows(address.ip()));
            if addresses.is_empty() {
                let why = "its name has no address on the public Internet";
                return Err(io::Error::other(why).into());
            }
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

/// The system's resolver.
pub(super) struct System;

impl Resolve for System {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let addresses: Vec<SocketAddr> = lookup_host((name.as_str(), 0)).await?.collect();
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}
