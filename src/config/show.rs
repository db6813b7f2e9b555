//! A configuration as people read it: TOML that can be used as a file, with the source of each value.

use toml::{Value, ser::Error};

use super::{Loaded, keys};

impl Loaded {
    /// Every section and key, each value with where it came from; optional keys that are not set
    /// are named in a comment.
    ///
    /// # Errors
    /// If a value has no form in TOML, which none has that was read from somewhere.
    pub fn show(&self) -> Result<String, Error> {
        let config = Value::try_from(&self.config)?;
        let mut text = String::new();
        for section in keys::sections() {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&format!("[{}]\n", section.name));
            for key in section.keys {
                let value = config
                    .get(section.name)
                    .and_then(|section| section.get(key));
                text.push_str(&match value {
                    Some(value) => {
                        let origin = self.origin(&format!("{}.{key}", section.name));
                        format!("{key} = {value} # {origin}\n")
                    }
                    None => format!("# {key} is not set\n"),
                });
            }
        }
        Ok(text)
    }
}
