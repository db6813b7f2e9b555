//! A configuration as people read it: TOML that can be used as a file, with the source of each value.

use toml::{Value, ser::Error};

use super::{Loaded, Profile, Provider, ProviderModel, keys};

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
                let section_name = section.name;
                let value = config
                    .get(section_name)
                    .and_then(|section| section.get(key));
                if value.is_none() && (section_name, *key) == ("model", "chain") {
                    let (chain, why) =
                        (self.choice.chain.models().join(", "), &self.choice.because);
                    text.push_str(&format!("# {key} is not set: {chain}, {why}\n"));
                    continue;
                }
                text.push_str(&self.line(section_name, key, value));
            }
        }
        let profiles = config.get(keys::PROFILES).and_then(Value::as_array);
        for (at, profile) in profiles.into_iter().flatten().enumerate() {
            let place = format!("{}.{at}", keys::PROFILES);
            text.push_str(&format!("\n[[{}]]\n", keys::PROFILES));
            for key in keys::fields_of::<Profile>() {
                text.push_str(&self.line(&place, key, profile.get(key)));
            }
        }
        let providers = config.get(keys::PROVIDERS).and_then(Value::as_array);
        for (at, provider) in providers.into_iter().flatten().enumerate() {
            self.show_provider(&mut text, at, provider);
        }
        Ok(text)
    }

    fn show_provider(&self, text: &mut String, at: usize, provider: &Value) {
        const MODELS: &str = "models";
        let place = format!("{}.{at}", keys::PROVIDERS);
        text.push_str(&format!("\n[[{}]]\n", keys::PROVIDERS));
        let own = keys::fields_of::<Provider>().iter();
        for key in own.filter(|key| **key != MODELS) {
            text.push_str(&self.line(&place, key, provider.get(key)));
        }
        let models = provider.get(MODELS).and_then(Value::as_array);
        for (number, model) in models.into_iter().flatten().enumerate() {
            let place = format!("{place}.{MODELS}.{number}");
            text.push_str(&format!("\n[[{}.{MODELS}]]\n", keys::PROVIDERS));
            for key in keys::fields_of::<ProviderModel>() {
                text.push_str(&self.line(&place, key, model.get(key)));
            }
        }
    }

    fn line(&self, place: &str, key: &str, value: Option<&Value>) -> String {
        match value {
            Some(value) => {
                let origin = self.origin(&format!("{place}.{key}"));
                format!("{key} = {value} # {origin}\n")
            }
            None => format!("# {key} is not set\n"),
        }
    }
}
