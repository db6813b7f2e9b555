//! `note_search`, `note_read` and `note_write`: what is written down, in a folder of notes or in the project itself.
//!
//! Notes are Markdown files (and reStructuredText, and lists of changes). The unit of a search is a
//! section; decisions, change logs and the notes of meetings are recognised, and are first when a
//! question asks for them; to-dos and links are listed. The index lives in memory, and every call
//! brings it up to date. Written is only into a folder that was named for it, and only what a person has
//! agreed to.
//!
//! **Invariants:** the same notes and the same arguments give the same text, unless the deadline cut
//! the reading, which the text then says; what was left out is counted in its last line.

mod bm25;
mod date;
mod edit;
mod find;
mod front;
mod index;
mod kind;
mod links;
mod note;
mod page;
mod piece;
mod question;
mod rank;
mod read;
mod report;
mod room;
mod search;
mod settings;
mod status;
mod store;
mod task;
mod tasks;
#[cfg(unix)]
#[cfg(test)]
mod tests;
mod walk;
mod words;
mod write;

pub use read::NoteRead;
pub use search::NoteSearch;
pub use settings::NotesSettings;
pub use store::Notes;
pub(in crate::tool) use store::OUTSIDE;
pub use write::NoteWrite;
