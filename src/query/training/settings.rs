//! What the training may choose.

/// The numbers that cross-validation chooses (`train_classifier choose`, `config/classifier-choice.txt`): they
/// are within one standard error of the best that fits the file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// What the words and the letters of a text count for together.
    pub gains: [f64; 2],
    /// Of the squares of the weights, for the whole data.
    pub penalty: f64,
    /// Features in fewer rows are not learned.
    pub fewest_rows: usize,
    /// Which share of the features is kept, those that move the answers most: 8 bytes each.
    pub kept: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            gains: [1.0, 1.4],
            penalty: 0.01,
            fewest_rows: 2,
            kept: 0.875,
        }
    }
}
