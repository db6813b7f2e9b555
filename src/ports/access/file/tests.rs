//! Tests of reading and changing the key file, by several writers too.

use super::*;
use crate::{
    access::{Key, KeySetError, NewKey},
    model::{TenantId, Timestamp, access::Role},
};

#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    KeySet(#[from] KeySetError),
}

fn add(file: &KeyFile, name: &str) -> Result<Key, Refused> {
    let key = Key::generate().unwrap();
    let new = NewKey {
        name: name.parse().unwrap(),
        tenant: TenantId::local(),
        role: Role::Admin,
        profiles: Vec::new(),
        expires: None,
    };
    file.change(|key_set| Ok::<_, Refused>(key_set.add(&key, new, Timestamp::from_millis(0))?))?;
    Ok(key)
}

fn names(file: &KeyFile) -> Vec<String> {
    let key_set = file.read().unwrap().unwrap();
    let name = |entry: &crate::access::StoredKey| entry.name.to_string();
    key_set.keys().iter().map(name).collect()
}

#[test]
fn key_file_is_private_and_stores_no_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let file = KeyFile::within(&folder.path().join("not/there/yet"));
    assert!(file.read().unwrap().is_none());
    let key = add(&file, "a").unwrap();
    add(&file, "b").unwrap();
    assert_eq!(names(&file), ["a", "b"]);
    let text = fs::read_to_string(file.path()).unwrap();
    assert!(text.contains(key.id().as_str()));
    assert!(!text.contains(&key.reveal()[16..]), "{text}");
    for (path, mode) in [(file.path(), 0o600), (file.path().parent().unwrap(), 0o700)] {
        use std::os::unix::fs::PermissionsExt as _;
        let found = fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(found & 0o777, mode, "{}", path.display());
    }
}

#[test]
fn unreadable_key_file_is_named_and_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let file = KeyFile::within(folder.path());
    add(&file, "a").unwrap();
    let good = fs::read_to_string(file.path()).unwrap();
    let twice = good.replace("\"keys\": [", "\"keys\": [KEY,").replace(
        "KEY",
        good.split_once('[').unwrap().1.rsplit_once(']').unwrap().0,
    );
    for (name, text, says) in [
        (
            "cut",
            good[..good.len() / 2].to_owned(),
            "invalid JSON in line",
        ),
        ("empty", String::new(), "invalid JSON in line"),
        (
            "a field too many",
            good.replace("\"name\"", "\"nam\""),
            "invalid data in line",
        ),
        (
            "no hash",
            good.replace("\"sha256\": \"", "\"sha256\": \"canary"),
            "invalid data",
        ),
        (
            "newer",
            good.replace("\"version\": 1", "\"version\": 2"),
            "layout 2",
        ),
        ("twice", twice, "two keys have the id"),
    ] {
        fs::write(file.path(), &text).unwrap();
        let read = file.read().unwrap_err().to_string();
        let changed = add(&file, "b").unwrap_err().to_string();
        assert!(read.contains(says), "{name}: {read}");
        assert!(read.contains(&file.path().display().to_string()), "{read}");
        assert!(!read.contains("canary"), "{read}");
        assert_eq!(changed, read, "{name}");
        assert_eq!(fs::read_to_string(file.path()).unwrap(), text, "{name}");
    }
}

#[test]
fn key_file_writable_by_others_is_rejected() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let file = KeyFile::within(folder.path());
    add(&file, "a").unwrap();
    for (mode, trusted) in [(0o644, true), (0o660, false), (0o602, false)] {
        fs::set_permissions(file.path(), fs::Permissions::from_mode(mode)).unwrap();
        let read = file.read();
        assert_eq!(read.is_ok(), trusted, "{mode:o}");
    }
}

#[test]
fn key_file_in_a_writable_folder_is_rejected() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let file = KeyFile::within(folder.path());
    add(&file, "a").unwrap();
    for (mode, trusted) in [
        (0o755, true),
        (0o1777, true),
        (0o777, false),
        (0o775, false),
        (0o2770, false),
        (0o757, false),
    ] {
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
        match file.read() {
            Ok(_) => assert!(trusted, "{mode:o}"),
            Err(FileError {
                path,
                fault: FileFault::Replaceable,
            }) => {
                assert!(!trusted, "{mode:o}");
                assert_eq!(path, folder.path());
            }
            Err(error) => panic!("{mode:o}: {error}"),
        }
    }
}

/// Only root can change a file's owner, so without root this test checks nothing.
#[test]
fn key_file_of_a_foreign_owner_is_rejected() {
    use std::os::unix::fs::chown;
    const STRANGER: u32 = 54_321;
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = KeyFile::within(folder.path());
    add(&file, "a").unwrap();
    for path in [file.path(), folder.path()] {
        chown(path, Some(STRANGER), None).unwrap();
        match file.read() {
            Err(FileError {
                path: told,
                fault: FileFault::Foreign,
            }) => assert_eq!(told, path),
            other => panic!("{}: {other:?}", path.display()),
        }
        assert!(matches!(
            add(&file, "b"),
            Err(Refused::File(FileError {
                fault: FileFault::Foreign,
                ..
            }))
        ));
        chown(path, Some(0), None).unwrap();
        assert_eq!(names(&file), ["a"]);
    }
}

#[test]
fn rejected_change_leaves_the_file_untouched() {
    let folder = tempfile::tempdir().unwrap();
    let file = KeyFile::within(folder.path());
    add(&file, "a").unwrap();
    let before = file.stamp().unwrap();
    assert!(matches!(
        add(&file, "a"),
        Err(Refused::KeySet(KeySetError::Taken { .. }))
    ));
    assert_eq!(file.stamp().unwrap(), before);
    add(&file, "b").unwrap();
    assert_ne!(file.stamp().unwrap(), before);
}

#[test]
fn concurrent_writers_lose_no_keys() {
    let folder = tempfile::tempdir().unwrap();
    let file = KeyFile::within(folder.path());
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let file = &file;
            scope.spawn(move || {
                for number in 0..4 {
                    add(file, &format!("k{writer}.{number}")).unwrap();
                }
            });
        }
    });
    let mut names = names(&file);
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 32);
}

#[test]
fn only_root_and_the_current_user_are_trusted_owners() {
    for (owner, own, trusted) in [
        (1_000, 1_000, true),
        (0, 1_000, true),
        (0, 0, true),
        (1_001, 1_000, false),
        (1_000, 0, false),
    ] {
        assert_eq!(is_trusted(owner, own), trusted, "{owner} for {own}");
    }
}
