//! Texts of a certain form: names, addresses, headers.

use std::net::{Ipv6Addr, SocketAddr};

use super::value::is_name_char;
use crate::model::ProfileName;

/// Which texts are allowed, and that in words.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    pub(super) allowed: &'static str,
    pub(super) allows: fn(&str) -> bool,
}

const fn form(allowed: &'static str, allows: fn(&str) -> bool) -> Form {
    Form { allowed, allows }
}

pub(super) const PATH: Form = form("a path as text, not empty", |text| {
    !text.is_empty() && !text.contains('\0')
});
pub(super) const ADDRESS: Form = form(
    "an IP address and a port, like 127.0.0.1:7770, [::1]:7770 or 0.0.0.0:80",
    |text| text.parse::<SocketAddr>().is_ok(),
);
pub(super) const INSTRUCTIONS: Form = form(
    "a text of 1 to 20000 characters that is not blank",
    |text| !text.trim().is_empty() && text.chars().count() <= 20_000,
);
pub(super) const LINE: Form = form("1 to 200 characters on one line", |text| {
    !text.trim().is_empty() && text.chars().count() <= 200 && !text.chars().any(char::is_control)
});
pub(super) const PROFILE: Form = form(
    "1 to 128 characters from A-Z a-z 0-9 . _ : -, but not \"oracle\", which is what the sections describe",
    |text| ProfileName::new(text).is_ok_and(|name| name != ProfileName::oracle()),
);
pub(super) const PROVIDER: Form = form(
    "lower-case letters, digits, `-` and `_`, but not \"offline\" or \"scripted\", which are built in",
    is_provider,
);
pub(super) const MODEL: Form = form(
    "a model's name, without white space, quotes and commas",
    |text| !text.is_empty() && text.chars().all(is_name_char),
);
pub(super) const URL: Form = form(
    "an address that begins with http:// or https://, without user, password, `?` and `#`",
    is_url,
);
/// Small letters are left out on purpose: what was meant to be the secret itself has some.
pub(super) const VARIABLE: Form = form(
    "the name of an environment variable: capital letters, digits and `_`",
    is_variable,
);
pub(super) const HEADER: Form = form("names of headers: letters, digits and `-`", |text| {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '-';
    !text.is_empty() && text.chars().all(good)
});
pub(super) const HEADER_VALUE: Form = form("texts in ASCII, on one line", |text| {
    text.chars().all(|c| c.is_ascii_graphic() || c == ' ')
});
pub(super) const HOSTS: Form = form(
    "a list of names or addresses of machines, like oracle.example.org or 2001:db8::1, without a port, none twice",
    is_host,
);
pub(super) const ORIGINS: Form = form(
    "a list of origins as browsers send them, like https://chat.example.org or http://localhost:3000, none twice",
    is_origin,
);
pub(super) const TOOLS: Form = form(
    "a list of names of tools, each 1 to 64 characters from A-Z a-z 0-9 _ -, none twice",
    |text| {
        let good = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        (1..=64).contains(&text.len()) && text.chars().all(good)
    },
);

fn is_provider(text: &str) -> bool {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
    (1..=64).contains(&text.len())
        && text.chars().all(good)
        && !["offline", "scripted"].contains(&text)
}

fn is_host(text: &str) -> bool {
    let label = |label: &str| {
        let good = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        !label.is_empty() && label.chars().all(good)
    };
    text.len() <= 253 && (text.split('.').all(label) || text.parse::<Ipv6Addr>().is_ok())
}

fn without_scheme(text: &str) -> Option<&str> {
    text.strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"))
}

fn is_origin(text: &str) -> bool {
    let Some(rest) = without_scheme(text) else {
        return false;
    };
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (rest, None),
    };
    let address = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let good_host = match address {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => is_host(host) && !host.chars().any(|c| c.is_ascii_uppercase()),
    };
    good_host && port.is_none_or(|port| port.parse::<u16>().is_ok())
}

/// Whether an address is whole and has no part that may hold a secret.
pub(super) fn is_url(text: &str) -> bool {
    let Some(rest) = without_scheme(text) else {
        return false;
    };
    let host = rest.split('/').next().unwrap_or_default();
    let port = host.rsplit_once(':').filter(|_| !host.ends_with(']'));
    let name = port.map_or(host, |(name, _)| name);
    let good_port = port.is_none_or(|(_, port)| port.parse::<u16>().is_ok());
    let good = |c: char| c.is_ascii_graphic() && !"@?#\\\"'<>`{}|^".contains(c);
    // Without brackets nobody can tell the end of an IPv6 address from a port.
    let good_name = !name.contains(':') || (name.starts_with('[') && name.ends_with(']'));
    !name.is_empty() && good_name && good_port && rest.chars().all(good)
}

fn is_variable(text: &str) -> bool {
    let good = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    text.starts_with(|c: char| !c.is_ascii_digit()) && text.chars().all(good)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_whole_and_hold_no_secret() {
        for (text, good) in [
            ("https://api.openai.com/v1", true),
            ("http://127.0.0.1:11434/v1", true),
            ("http://[::1]:8080", true),
            ("http://[::1]", true),
            ("https://host", true),
            ("https://host/", true),
            ("", false),
            ("api.openai.com", false),
            ("ftp://host", false),
            ("https://", false),
            ("https:///v1", false),
            ("https://:80", false),
            ("https://host:port", false),
            ("http://::1/v1", false),
            ("http://::1:80", false),
            ("https://host:99999", false),
            ("https://me:secret@host", false),
            ("https://host/v1?key=secret", false),
            ("https://host/#x", false),
            ("https://ho st", false),
        ] {
            assert_eq!(is_url(text), good, "{text}");
        }
    }

    #[test]
    fn names_have_their_form() {
        for (text, wanted) in [
            ("openai", [true, true, false, true]),
            ("my-server_2", [true, true, false, false]),
            ("offline", [false, true, false, true]),
            ("meta/llama:8b", [false, true, false, false]),
            ("OPENAI_API_KEY", [false, true, true, false]),
            ("9LIVES", [false, true, false, true]),
            ("X-Title", [false, true, false, true]),
            ("sk-abcDEF", [false, true, false, true]),
            ("a b", [false; 4]),
            ("a,b", [false; 4]),
            ("", [false; 4]),
        ] {
            let forms = [PROVIDER, MODEL, VARIABLE, HEADER];
            assert_eq!(forms.map(|form| (form.allows)(text)), wanted, "{text}");
        }
    }
}
