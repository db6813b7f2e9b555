//! Texts of a certain form: names, addresses, headers.

use std::{fmt, marker::PhantomData};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::NotAllowed;

/// Which texts are allowed.
pub trait Form {
    /// In words.
    const ALLOWED: &'static str;

    /// Whether this one is.
    fn allows(text: &str) -> bool;
}

/// A text of the form `F`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Text<F> {
    text: String,
    form: PhantomData<F>,
}

impl<F: Form> Text<F> {
    /// Takes a text.
    ///
    /// # Errors
    /// What is allowed, if this is not.
    pub fn new(text: impl Into<String>) -> Result<Self, NotAllowed> {
        let text = text.into();
        if F::allows(&text) {
            return Ok(Self::trusted(&text));
        }
        Err(NotAllowed(F::ALLOWED.to_owned()))
    }

    /// A text that is known to have the form, because a test says so.
    pub(in crate::config) fn trusted(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            form: PhantomData,
        }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl<F> fmt::Display for Text<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

impl<F> Serialize for Text<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de, F: Form> Deserialize<'de> for Text<F> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // What is no text is refused like an empty one.
        Self::new(String::deserialize(deserializer).unwrap_or_default()).map_err(de::Error::custom)
    }
}

/// Declares the form of a text and a name for texts of it.
macro_rules! forms {
    ($($(#[$doc:meta])* $name:ident, $form:ident, $allowed:literal, $allows:expr;)*) => {$(
        /// See the alias of the same name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $form;

        impl Form for $form {
            const ALLOWED: &'static str = $allowed;

            fn allows(text: &str) -> bool {
                $allows(text)
            }
        }

        $(#[$doc])*
        pub type $name = Text<$form>;
    )*};
}

forms! {
    /// The name of a provider, as in `provider/model`.
    ProviderName, ProviderForm,
    "lower-case letters, digits, `-` and `_`, but not \"offline\" or \"scripted\", which are built in",
    is_provider;
    /// The name of a model, without its provider.
    ModelName, ModelForm, "a model's name, without white space, quotes and commas", is_model;
    /// Where an API begins.
    BaseUrl, UrlForm,
    "an address that begins with http:// or https://, without user, password, `?` and `#`",
    is_url;
    /// The name of an environment variable. Small letters are left out on purpose: what was meant to be
    /// the secret itself has some.
    VariableName, VariableForm,
    "the name of an environment variable: capital letters, digits and `_`",
    is_variable;
    /// The name of a header.
    HeaderName, HeaderForm, "names of headers: letters, digits and `-`", is_header;
    /// The name of a machine.
    HostName, HostForm,
    "names or addresses of machines, like oracle.example.org or 2001:db8::1, without a port",
    is_host;
    /// Where a web page comes from, as browsers say it.
    WebOrigin, OriginForm,
    "origins as browsers send them, like https://chat.example.org or http://localhost:3000",
    is_origin;
    /// The value of a header.
    HeaderValue, HeaderValueForm, "texts in ASCII, on one line", is_header_value;
    /// The name of a tool.
    ToolName, ToolForm, "names of tools: 1 to 64 characters from A-Z a-z 0-9 _ -", is_tool;
    /// A few words about something.
    OneLine, LineForm, "1 to 200 characters on one line", is_line;
    /// What a model is told.
    Instructions, InstructionsForm, "a text of 1 to 20000 characters that is not blank", is_instruction;
}

fn is_tool(text: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    (1..=64).contains(&text.len()) && text.chars().all(good)
}

fn is_line(text: &str) -> bool {
    !text.trim().is_empty() && text.chars().count() <= 200 && !text.chars().any(char::is_control)
}

fn is_instruction(text: &str) -> bool {
    !text.trim().is_empty() && text.chars().count() <= 20_000
}

fn is_provider(text: &str) -> bool {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
    (1..=64).contains(&text.len())
        && text.chars().all(good)
        && !["offline", "scripted"].contains(&text)
}

fn is_model(text: &str) -> bool {
    !text.is_empty() && text.chars().all(super::chain::is_name_char)
}

fn is_host(text: &str) -> bool {
    let label = |label: &str| {
        let good = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        !label.is_empty() && label.chars().all(good)
    };
    let is_address = || text.parse::<std::net::Ipv6Addr>().is_ok();
    text.len() <= 253 && (text.split('.').all(label) || is_address())
}

fn is_origin(text: &str) -> bool {
    let scheme = |scheme: &str| text.strip_prefix(scheme);
    let Some(rest) = scheme("https://").or_else(|| scheme("http://")) else {
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
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => is_host(host) && !host.chars().any(|c| c.is_ascii_uppercase()),
    };
    good_host && port.is_none_or(|port| port.parse::<u16>().is_ok())
}

fn is_url(text: &str) -> bool {
    let scheme = |scheme: &str| text.strip_prefix(scheme);
    let Some(rest) = scheme("http://").or_else(|| scheme("https://")) else {
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

fn is_header(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

fn is_header_value(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_graphic() || c == ' ')
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
            assert_eq!(BaseUrl::new(text).is_ok(), good, "{text}");
        }
    }

    #[test]
    fn names_have_their_form() {
        for (text, provider, model, variable, header) in [
            ("openai", true, true, false, true),
            ("my-server_2", true, true, false, false),
            ("offline", false, true, false, true),
            ("meta/llama:8b", false, true, false, false),
            ("OPENAI_API_KEY", false, true, true, false),
            ("9LIVES", false, true, false, true),
            ("X-Title", false, true, false, true),
            ("sk-abcDEF", false, true, false, true),
            ("a b", false, false, false, false),
            ("a,b", false, false, false, false),
            ("", false, false, false, false),
        ] {
            let got = [
                ProviderName::new(text).is_ok(),
                ModelName::new(text).is_ok(),
                VariableName::new(text).is_ok(),
                HeaderName::new(text).is_ok(),
            ];
            assert_eq!(got, [provider, model, variable, header], "{text}");
        }
    }
}
