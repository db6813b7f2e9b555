//! Signatures of requests between nodes. The cluster's key itself is never sent, so neither a row in
//! the database nor a listener on the network gains anybody more than the request that it gets.
//!
//! A signature is good for one request: with this method, URL, caller and body, once, within
//! [`WINDOW`]. Pure: the time and the nonce are arguments.

use std::collections::BTreeSet;

use hmac::{Hmac, KeyInit as _, Mac as _, digest::Key};
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::model::{Timestamp, hex};

/// Seconds by which the clocks of two nodes may differ.
const WINDOW: u64 = 60;
/// Signatures that a node remembers.
const NONCES: usize = 1 << 20;

/// What a request of another node is told if it was not signed for this.
pub(super) const WRONG: &str = "the signature of another node does not fit this request: give all \
                                nodes the same cluster key, and each its own `cluster.url`";

/// The key that all nodes of a cluster share.
pub struct ClusterKey(Hmac<Sha256>);

/// What is signed, besides time, nonce and body: the method, the URL and the caller.
pub(super) type Signed<'a> = [&'a [u8]; 3];
/// The time, the nonce and the hash of the body that were signed.
type Claims<'a> = (Timestamp, &'a str, &'a str);

impl ClusterKey {
    /// A key from its secret text.
    pub fn new(secret: &SecretString) -> Self {
        let mut key = Key::<Hmac<Sha256>>::default();
        key[..32].copy_from_slice(&Sha256::digest(secret.expose_secret()));
        Self(Hmac::new(&key))
    }

    /// The URL of a node with a proof that it has the key, for its row in the database
    /// (`journal::postgres::Settings::node_url`). The others use no row without one.
    pub fn proven(&self, url: &str) -> String {
        format!("{url}#{}", self.mac("node", [url.as_bytes(), b"", b""]))
    }

    /// The URL in a row, if its node has the key.
    pub(super) fn of_row<'a>(&self, row: &'a str) -> Option<&'a str> {
        let (url, _) = row.split_once('#')?;
        is_same(&self.proven(url), row).then_some(url)
    }

    /// A signature; `body` is the [`hash`] of the body.
    pub(super) fn sign(&self, of: Signed<'_>, at: Timestamp, nonce: &str, body: &str) -> String {
        let claims = format!("v1 {} {nonce} {body}", at.as_millis());
        format!("{claims} {}", self.mac(&claims, of))
    }

    pub(super) fn verify<'a>(&self, of: Signed<'_>, signature: &'a [u8]) -> Option<Claims<'a>> {
        let signature = str::from_utf8(signature).ok()?;
        let mut parts = signature.split(' ').skip(1);
        let (at, nonce, body) = (parts.next()?, parts.next()?, parts.next()?);
        let at = Timestamp::from_millis(at.parse().ok()?);
        let wanted = self.sign(of, at, nonce, body);
        is_same(&wanted, signature).then_some((at, nonce, body))
    }

    /// Each part with its length, so that none can pass for the end of another.
    fn mac(&self, claims: &str, parts: Signed<'_>) -> String {
        let mut mac = self.0.clone();
        for part in [claims.as_bytes()].into_iter().chain(parts) {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        hex(&mac.finalize().into_bytes())
    }
}

/// In constant time.
fn is_same(one: &str, other: &str) -> bool {
    one.as_bytes().ct_eq(other.as_bytes()).into()
}

pub(super) fn hash(body: &[u8]) -> String {
    hex(&Sha256::digest(body))
}

/// Signatures that have been used, by time and nonce, as long as they would be good.
#[derive(Debug, Default)]
pub(super) struct Nonces(BTreeSet<(Timestamp, String)>);

impl Nonces {
    pub(super) fn admit(&mut self, new: (Timestamp, String), now: Timestamp) -> Result<(), String> {
        let apart = new.0.since(now).max(now.since(new.0)).as_secs();
        if apart > WINDOW {
            return Err(format!(
                "the clocks of two nodes differ by {apart} s: synchronise them"
            ));
        }
        let is_over = |at: Timestamp| now.since(at).as_secs() > WINDOW;
        while self.0.first().is_some_and(|(at, _)| is_over(*at)) {
            self.0.pop_first();
        }
        let why = "this request of another node came before, or too many came within a minute";
        let is_new = self.0.len() < NONCES && self.0.insert(new);
        is_new.then_some(()).ok_or_else(|| why.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);
    const SIGNED: Signed<'static> = [b"POST", b"http://one/api", b"{}"];

    fn key(text: &str) -> ClusterKey {
        ClusterKey::new(&text.into())
    }

    #[test]
    fn signature_fits_one_request() {
        let signature = key("k").sign(SIGNED, NOW, "n1", "hash");
        let [_, url, caller] = SIGNED;
        for (name, by, signed, from, to, fits) in [
            ("right", "k", SIGNED, "", "", true),
            ("other key", "x", SIGNED, "", "", false),
            ("method", "k", [b"GET", url, caller], "", "", false),
            (
                "node",
                "k",
                [b"POST", b"http://two/api", caller],
                "",
                "",
                false,
            ),
            ("caller", "k", [b"POST", url, b"{ }"], "", "", false),
            (
                "border",
                "k",
                [b"POSTh", b"ttp://one/api", caller],
                "",
                "",
                false,
            ),
            ("time", "k", SIGNED, "17000", "17001", false),
            ("nonce", "k", SIGNED, "n1", "n2", false),
            ("body", "k", SIGNED, "hash", "hush", false),
            ("version", "k", SIGNED, "v1", "v2", false),
            ("parts", "k", SIGNED, " n1", "", false),
            ("number", "k", SIGNED, "17000", "+17000", false),
        ] {
            let text = signature.replace(from, to);
            let said = key(by).verify(signed, text.as_bytes());
            let wanted = fits.then_some((NOW, "n1", "hash"));
            assert_eq!(said, wanted, "{name}");
        }
        assert_eq!(key("k").verify(SIGNED, b""), None);
    }

    #[test]
    fn signature_is_good_once_for_a_minute() {
        let second = |number: i64| Timestamp::from_millis(NOW.as_millis() + number * 1_000);
        let mut nonces = Nonces::default();
        let (clocks, came) = (
            "clocks of two nodes differ by 61 s: synchronise",
            "came before",
        );
        for (name, at, now, refused) in [
            ("new", 0, 0, None),
            ("again", 0, 0, Some(came)),
            ("again, late", 0, 60, Some(came)),
            ("too late", 0, 61, Some(clocks)),
            ("too early", 61, 0, Some(clocks)),
            ("early", 60, 0, None),
            ("again, later", 60, 120, Some(came)),
        ] {
            let told = nonces.admit((second(at), "n".into()), second(now)).err();
            let fits =
                refused.map(|refused| told.as_ref().is_some_and(|told| told.contains(refused)));
            assert!(fits.unwrap_or(told.is_none()), "{name}: {told:?}");
        }
        assert_eq!(nonces.0.len(), 1, "the first one has expired");
        let many = (0..NONCES).map(|nonce| (second(60), nonce.to_string()));
        nonces.0.extend(many);
        assert!(
            nonces
                .admit((second(60), "new".into()), second(60))
                .is_err()
        );
        assert!(
            nonces
                .admit((second(121), "new".into()), second(121))
                .is_ok()
        );
    }

    #[test]
    fn row_of_a_node_needs_the_proof_for_its_url() {
        let row = key("k").proven("http://one");
        assert_eq!(key("k").of_row(&row), Some("http://one"));
        let moved = row.replace("one", "two");
        let rows = [
            ("key", "x", &*row),
            ("URL", "k", &moved),
            ("none", "k", "http://one"),
        ];
        for (name, by, row) in rows {
            assert_eq!(key(by).of_row(row), None, "{name}");
        }
    }
}
