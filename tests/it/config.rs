//! Configuration from outside: sources, precedence, and reports of mistakes.

use oracle_agent::config::{ConfigFile, Loaded, Setting, Sources, load};

mod documented;
mod mistakes;
mod profiles;
mod providers;
mod sources;

fn sources(file: &str, environment: &[(&str, &str)], options: &[(&str, &str, &str)]) -> Sources {
    let setting = |&(option, key, value): &(&str, &str, &str)| Setting {
        option: option.into(),
        key: key.into(),
        value: value.into(),
    };
    Sources {
        file: Some(ConfigFile {
            path: "oracle.toml".into(),
            text: file.into(),
        }),
        environment: environment
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect(),
        options: options.iter().map(setting).collect(),
    }
}

fn from_file(text: &str) -> Loaded {
    load(&sources(text, &[], &[])).unwrap_or_else(|problems| panic!("{text}: {problems:?}"))
}

fn problems(sources: &Sources) -> Vec<String> {
    match load(sources) {
        Ok(loaded) => panic!("no problem seen: {loaded:?}"),
        Err(problems) => problems.iter().map(ToString::to_string).collect(),
    }
}
