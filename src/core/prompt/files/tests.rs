use super::*;
use crate::prompt::{Prompts, SegmentId};

struct Folder(tempfile::TempDir);

impl Folder {
    fn with(files: &[(&str, &[u8])]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            fs::write(folder.path().join(name), bytes).unwrap();
        }
        Self(folder)
    }

    fn load(&self) -> Result<Prompts, Error> {
        Prompts::with_overlay(self.0.path())
    }

    fn path_of(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }
}

#[test]
fn overlay_files_replace_built_in_ones() {
    let folder = Folder::with(&[
        ("signals.md", b"mine\n"),
        (".hidden", b"\xff"),
        (".git", b""),
    ]);
    let loaded = folder.load().unwrap();
    for (file, builtin) in loaded.files().iter().zip(builtin()) {
        let expected = match file.segment.id {
            SegmentId::Signals => PromptFile {
                origin: Origin::Folder(folder.path_of("signals.md")),
                text: "mine\n".into(),
                ..builtin
            },
            SegmentId::Base
            | SegmentId::Tools
            | SegmentId::Code
            | SegmentId::Conversation
            | SegmentId::Docs
            | SegmentId::Research => builtin,
        };
        assert_eq!(*file, expected);
    }
    assert_eq!(loaded.files().len(), REGISTRY.len());
}

#[test]
fn an_empty_folder_changes_nothing() {
    assert_eq!(Folder::with(&[]).load().unwrap().files(), builtin());
}

#[test]
fn a_missing_folder_is_an_error() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("nowhere");
    match Prompts::with_overlay(&folder).unwrap_err() {
        Error::Folder {
            folder: named,
            reason,
        } => {
            assert_eq!(named, folder.display().to_string());
            assert!(!reason.is_empty());
        }
        other => panic!("{other}"),
    }
}

#[test]
fn all_invalid_prompt_files_are_reported_at_once() {
    let folder = Folder::with(&[
        ("README.md", b"notes"),
        ("base.md", b"line one\nline two \xff\n"),
        ("base.md~", b"a backup"),
        ("code-analysis.md", b"{{ nmae }}"),
        ("conversation.md", b"fine"),
        ("research.md", b" \r\n\t"),
        ("signals.md", b"\xef\xbb\xbf\n"),
    ]);
    fs::create_dir(folder.0.path().join("oracle")).unwrap();
    let broken = |name, line, fault| BrokenFile {
        file: folder.path_of(name),
        line,
        fault,
    };
    let expected = vec![
        broken("README.md", None, FileFault::UnknownName),
        broken("base.md", Some(2), FileFault::NotUtf8),
        broken("base.md~", None, FileFault::UnknownName),
        broken("oracle", None, FileFault::UnknownName),
        broken("research.md", None, FileFault::Empty),
        broken("signals.md", None, FileFault::Empty),
        broken(
            "code-analysis.md",
            Some(1),
            FileFault::UnknownVariable("nmae".to_owned()),
        ),
    ];
    assert_eq!(folder.load().unwrap_err(), Error::Files(expected));
}

#[test]
fn unreadable_prompt_file_is_named() {
    let folder = Folder::with(&[]);
    fs::create_dir(folder.0.path().join("base.md")).unwrap();
    match folder.load().unwrap_err() {
        Error::Files(found) => assert!(
            matches!(&found[..], [BrokenFile { file, line: None, fault: FileFault::Unreadable(_) }]
                if *file == folder.path_of("base.md")),
            "{found:?}"
        ),
        other => panic!("{other}"),
    }
}

#[test]
fn line_endings_and_byte_order_marks_are_normalized() {
    let folder = Folder::with(&[("base.md", "\u{feff}one\r\ntwo\r\n".as_bytes())]);
    assert_eq!(folder.load().unwrap().files()[0].text, "one\ntwo\n");
}
