//! Exact decimal numbers.

use serde::{Deserialize, Deserializer};

/// Parses a decimal number, scaled: `1.25` with 4 places is 12,500. `None` unless the text is
/// `digits` or `digits.digits`, and for more decimals than `places` and overflow.
pub fn scaled(text: &str, places: u32) -> Option<u64> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !all_digits(whole) || !all_digits(decimals) {
        return None;
    }
    let decimals = decimals.trim_end_matches('0');
    let missing = places.checked_sub(u32::try_from(decimals.len()).ok()?)?;
    let fraction = match decimals {
        "" => 0,
        decimals => decimals.parse::<u64>().ok()?,
    };
    let whole = whole.parse::<u64>().ok()?.checked_mul(10_u64.pow(places))?;
    whole.checked_add(fraction.checked_mul(10_u64.pow(missing))?)
}

/// Deserializes a number, or a text, as text.
///
/// # Errors
/// When the value is neither.
pub fn digits<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Text(String),
        Whole(i64),
        Float(f64),
    }
    Ok(match Written::deserialize(deserializer)? {
        Written::Text(text) => text,
        Written::Whole(number) => number.to_string(),
        Written::Float(number) => number.to_string(),
    })
}
