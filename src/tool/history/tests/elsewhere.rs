//! Repositories that do not lie in the project.

use std::{os::unix::fs::symlink, path::PathBuf};

use super::*;

/// An unpacked archive may name any repository of the user.
#[tokio::test]
async fn repository_elsewhere_is_used_only_if_it_leads_back() {
    let (private, outer) = (repository(), tempfile::tempdir().unwrap());
    let at = |path: &str| outer.path().join(path);
    let git_dir = private.path().join(".git");
    let own = git_dir.to_str().unwrap();
    let linked = at("linked");
    git(
        private.path(),
        "",
        &["worktree", "add", "-q", linked.to_str().unwrap()],
    );
    let linked_git = fs::read_to_string(linked.join(".git")).unwrap();
    for folder in ["file", "worktree", "common", "link", "link_to_file"] {
        fs::create_dir(at(folder)).unwrap();
    }
    fs::write(at("file/.git"), format!("gitdir: {own}\n")).unwrap();
    fs::write(at("worktree/.git"), &linked_git).unwrap();
    symlink(&git_dir, at("link/.git")).unwrap();
    symlink(linked.join(".git"), at("link_to_file/.git")).unwrap();
    // A folder of the project that claims to belong to a repository elsewhere.
    git(&at("common"), "", &["init", "-q"]);
    fs::write(at("common/.git/commondir"), own).unwrap();
    fs::write(
        at("common/.git/gitdir"),
        at("common/.git").to_str().unwrap(),
    )
    .unwrap();
    for folder in ["file", "worktree", "common", "link", "link_to_file"] {
        let shown = search(&at(folder), json!({})).await;
        let refused = shown.expect_err(folder).to_string();
        let says = "`.git` leads to a repository elsewhere that does not lead back";
        assert!(refused.starts_with(says), "{folder}: {refused}");
    }
    // Repositories of the project that take their commits from elsewhere.
    for folder in ["links", "alternates"] {
        fs::create_dir(at(folder)).unwrap();
        git(&at(folder), "", &["init", "-q"]);
    }
    for part in ["objects", "refs"] {
        let link = at("links/.git").join(part);
        fs::remove_dir_all(&link).unwrap();
        symlink(git_dir.join(part), link).unwrap();
    }
    let objects = git_dir.join("objects");
    let alternates = at("alternates/.git/objects/info/alternates");
    fs::write(alternates, objects.to_str().unwrap()).unwrap();
    // Git's output has this path in two lines, before the one that counts.
    for folder in ["lines/a", "lines/b", "lines/a\nb"] {
        fs::create_dir_all(at(folder)).unwrap();
    }
    for file in ["HEAD", "config"] {
        fs::copy(git_dir.join(file), at("lines/a\nb").join(file)).unwrap();
    }
    fs::write(at("lines/.git"), "gitdir: a\nb\n").unwrap();
    fs::write(at("lines/a\nb/commondir"), own).unwrap();
    for folder in ["links", "alternates", "lines"] {
        let shown = search(&at(folder), json!({})).await;
        let refused = shown.expect_err(folder).to_string();
        let says = "`.git` leads to a repository elsewhere that does not lead back";
        assert!(refused.starts_with(says), "{folder}: {refused}");
    }
    let newest = |folder: PathBuf| async move { subjects(&folder, json!({})).await.remove(0) };
    assert_eq!(newest(linked.clone()).await, "Drop b");
    assert_eq!(newest(linked.join("docs")).await, "Drop b", "a part of it");
    let add = ["-c", "protocol.file.allow=always", "submodule", "add", "-q"];
    git(outer.path(), "", &["init", "-q"]);
    git(
        outer.path(),
        "",
        &[&add[..], &[private.path().to_str().unwrap(), "sub"]].concat(),
    );
    assert_eq!(newest(at("sub")).await, "Drop b");
    let worktree = at("file");
    git(
        private.path(),
        "",
        &["config", "core.worktree", worktree.to_str().unwrap()],
    );
    assert_eq!(newest(worktree).await, "Drop b", "a person has set it");
}
