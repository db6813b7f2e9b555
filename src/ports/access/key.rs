//! API keys: the text that its owner sees once, the hash that is stored, and the names.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::model::{Principal, hex};

/// Prefix of every key, so that a leaked one can be recognised.
const PREFIX: &str = "oracle_";
/// Random bytes of an id, which identifies the key and is not secret.
const ID_BYTES: usize = 4;
/// Random bytes of a secret: with so many, a hash without salt is safe.
const SECRET_BYTES: usize = 32;
const MAX_NAME: usize = 64;

/// The operating system returned no random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cannot create a key: the operating system provides no random numbers")]
pub struct NoRandomness;

/// A key in plain text: `oracle_<id>_<secret>`. `Debug` shows only the id.
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    id: KeyId,
    text: String,
}

impl Key {
    /// Creates a random key.
    ///
    /// # Errors
    /// When the operating system returns no random numbers.
    pub fn generate() -> Result<Self, NoRandomness> {
        let mut random = [0; ID_BYTES + SECRET_BYTES];
        getrandom::fill(&mut random).map_err(|_| NoRandomness)?;
        let (id, secret) = random.split_at(ID_BYTES);
        let id = KeyId(hex(id));
        let text = format!("{PREFIX}{id}_{}", hex(secret));
        Ok(Self { id, text })
    }

    /// Parses a key; `None` if the text does not have the form of one.
    pub fn read(text: &str) -> Option<Self> {
        let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
        let id = KeyId::new(id)?;
        (secret.len() == 2 * SECRET_BYTES && is_hex(secret)).then(|| Self {
            id,
            text: text.to_owned(),
        })
    }

    /// Public identifier, which may be logged.
    pub const fn id(&self) -> &KeyId {
        &self.id
    }

    /// The hash to store.
    pub fn hash(&self) -> KeyHash {
        KeyHash(Sha256::digest(self.text.as_bytes()).into())
    }

    /// The secret text, to be shown to its owner only.
    pub fn reveal(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}_…", self.id)
    }
}

/// Public identifier of a key: 8 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct KeyId(String);

impl KeyId {
    fn new(text: &str) -> Option<Self> {
        (text.len() == 2 * ID_BYTES && is_hex(text)).then(|| Self(text.to_owned()))
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for KeyId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::new(&text).ok_or_else(|| de::Error::custom("a key id has 8 hexadecimal digits"))
    }
}

/// SHA-256 of a key.
#[derive(Clone, Copy)]
pub struct KeyHash([u8; 32]);

impl KeyHash {
    pub(super) const NONE: Self = Self([0; 32]);

    /// Compares two hashes in constant time.
    pub fn is(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hash(…)")
    }
}

impl Serialize for KeyHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex(&self.0))
    }
}

impl<'de> Deserialize<'de> for KeyHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        unhex(&String::deserialize(deserializer)?)
            .map(Self)
            .ok_or_else(|| de::Error::custom("a hash has 64 hexadecimal digits"))
    }
}

/// Accepts lower case only, so that a key has one form.
fn is_hex(text: &str) -> bool {
    text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 2 * bytes.len() || !is_hex(text) {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

/// The name of a key: 1–64 characters from `A–Z a–z 0–9 . _ : @ -`. It appears in logs and events.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct KeyName(String);

/// A text is not valid as the name of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidKeyName {
    /// Too long, empty, or with other characters.
    #[error("a key name has 1 to {MAX_NAME} characters from A-Z a-z 0-9 . _ : @ -")]
    Form,
    /// Reserved for the principal of callers without a key.
    #[error("this name is reserved for callers without a key: choose another one")]
    Reserved,
}

impl KeyName {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for KeyName {
    type Err = InvalidKeyName;

    fn from_str(text: &str) -> Result<Self, InvalidKeyName> {
        let good = |c: char| c.is_ascii_alphanumeric() || "._:@-".contains(c);
        if !(1..=MAX_NAME).contains(&text.len()) || !text.chars().all(good) {
            return Err(InvalidKeyName::Form);
        }
        if text == &*Principal::local().name {
            return Err(InvalidKeyName::Reserved);
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for KeyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for KeyName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_round_trip_and_are_unique() {
        let (one, other) = (Key::generate().unwrap(), Key::generate().unwrap());
        assert_ne!(one, other);
        assert_eq!(Key::read(one.reveal()), Some(one.clone()));
        assert!(one.hash().is(&one.hash()) && !one.hash().is(&other.hash()));
        let kept = serde_json::to_string(&one.hash()).unwrap();
        let read: KeyHash = serde_json::from_str(&kept).unwrap();
        assert!(read.is(&one.hash()));
    }

    #[test]
    fn malformed_keys_are_rejected() {
        let secret = "0123456789abcdef".repeat(4);
        let good = format!("oracle_00112233_{secret}");
        assert!(Key::read(&good).is_some());
        for bad in [
            "",
            "oracle_",
            "sk-123",
            "oracle_00112233",
            "oracle_00112233_",
            &good[1..],
            &good[..good.len() - 1],
            &format!("{good}0"),
            &format!(" {good}"),
            &good.to_uppercase(),
            &good.replace("00112233", "0011223g"),
            &good.replace("00112233", "0011é3"),
        ] {
            assert_eq!(Key::read(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn debug_output_hides_secret_and_hash() {
        let key = Key::generate().unwrap();
        let secret = &key.reveal()[16..];
        let seen = format!("{key:?} {:?}", key.hash());
        assert!(!seen.contains(secret), "{seen}");
        assert!(seen.contains(key.id().as_str()), "{seen}");
        assert!(!seen.contains(&hex(&key.hash().0)), "{seen}");
    }

    #[test]
    fn key_names_are_short_plain_and_not_reserved() {
        let long = "x".repeat(64);
        for good in ["a", "ci.build-7", "ann@shop", long.as_str()] {
            assert_eq!(good.parse::<KeyName>().unwrap().as_str(), good);
        }
        let too_long = "x".repeat(65);
        for (bad, why) in [
            ("", InvalidKeyName::Form),
            ("two words", InvalidKeyName::Form),
            ("é", InvalidKeyName::Form),
            ("a\nb", InvalidKeyName::Form),
            (too_long.as_str(), InvalidKeyName::Form),
            ("local", InvalidKeyName::Reserved),
        ] {
            assert_eq!(bad.parse::<KeyName>(), Err(why), "{bad:?}");
        }
    }
}
