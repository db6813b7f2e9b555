//! The files that Oracle has built in: settings, models, and the data of the query classifier.
//! `oracle-config` reads the settings.
//!
//! A package contains no files from outside of its folder, so this folder is a package.

/// Every setting with its default, described.
pub const SETTINGS: &str = include_str!("oracle.toml");
/// What `oracle config init` writes.
pub const STARTER: &str = include_str!("starter.toml");
/// Context windows and prices of models.
pub const MODELS: &str = include_str!("models.toml");
/// The words by which queries are classified.
pub const LEXICON: &str = include_str!("lexicon.toml");
/// The trained weights of the classifier.
pub const CLASSIFIER: &[u8] = include_bytes!("classifier.bin");
