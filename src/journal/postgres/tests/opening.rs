//! Opening: databases that are refused, and why.

use futures_util::future::join_all;

use super::*;
use crate::journal::postgres::settings::is_supported;

async fn refused(settings: &Settings) -> String {
    let opened = Postgres::open(settings).await;
    let said = opened.unwrap_err().to_string();
    assert!(!said.contains("hunter2"), "{said}");
    said
}

#[tokio::test]
async fn unusable_urls_are_refused_with_a_reason() {
    for (url, why) in [
        ("mysql://u@h/d", "it does not begin with postgresql://"),
        (
            "postgresql://u:hunter2@h:x/d",
            "invalid value for option `port`",
        ),
        ("postgresql://u@h/d?sslmode=prefer", "use `verify-full`"),
        ("postgresql://u@h/d?sslmode=require", "needs TLS"),
        ("postgresql://u@h/d", "needs TLS"),
        ("postgresql://u@localhost,h/d", "needs TLS"),
        ("postgresql://u@localhost/d?hostaddr=10.0.0.1", "needs TLS"),
        ("postgresql://u@h/d?colour=red", "colour"),
        (
            "postgresql:///d?host=/nowhere&user=u",
            "cannot connect to the database",
        ),
    ] {
        let said = refused(&Settings::new(url)).await;
        assert!(said.contains(why), "{url}: {said}");
    }
}

#[tokio::test]
async fn layouts_of_others_are_refused_unchanged() {
    let cluster = cluster!();
    let settings = cluster.fresh().await.unwrap();
    let sql = "CREATE TABLE session (id int)";
    Postgres::execute(&settings, sql).await.unwrap();
    let said = refused(&settings).await;
    assert!(said.contains("tables that are not Oracle's"), "{said}");

    let settings = cluster.fresh().await.unwrap();
    Postgres::open(&settings).await.unwrap().close().await;
    let sql = "UPDATE layout SET number = 99";
    Postgres::execute(&settings, sql).await.unwrap();
    let opened = refused(&settings).await;
    let migrated = Postgres::migrate(&settings).await.unwrap_err().to_string();
    for said in [opened, migrated] {
        assert!(said.contains("layout 99"), "{said}");
        assert!(said.contains("upgrade Oracle"), "{said}");
    }
}

#[tokio::test]
async fn migration_is_repeatable_and_concurrent() {
    let settings = cluster!().fresh().await.unwrap();
    let all = join_all((0..4).map(|_| Postgres::migrate(&settings))).await;
    let steps: Vec<_> = all.into_iter().map(Result::unwrap).collect();
    let first = steps.iter().filter(|(before, _)| *before == 0).count();
    assert_eq!(first, 1, "{steps:?}");
    let is_latest = |&(_, after): &(i32, i32)| after == schema::LAYOUT;
    assert!(steps.iter().all(is_latest), "{steps:?}");
}

#[tokio::test]
async fn older_layout_is_opened_after_its_migration() {
    let settings = cluster!().fresh().await.unwrap();
    Postgres::open(&settings).await.unwrap().close().await;
    let sql = "DROP TABLE gone; UPDATE layout SET number = 1";
    Postgres::execute(&settings, sql).await.unwrap();
    let said = refused(&settings).await;
    assert!(said.contains("old layout 1"), "{said}");
    assert_eq!(Postgres::migrate(&settings).await.unwrap(), (1, 2));
    Postgres::open(&settings).await.unwrap().close().await;
}

#[tokio::test]
async fn strings_mean_the_same_whatever_the_url_prefers() {
    let cluster = cluster!();
    let url = format!(
        "{}%20-cstandard_conforming_strings%3Doff",
        cluster.schema().await.unwrap()
    );
    let settings = Settings::new(url);
    let sql = "SELECT (current_setting('standard_conforming_strings') = 'on')::int::int8";
    assert_eq!(Postgres::count(&settings, sql).await.unwrap(), 1);
}

#[tokio::test]
async fn nodes_that_start_together_create_one_journal() {
    let settings = cluster!().fresh().await.unwrap();
    let opened = join_all((0..4).map(|_| Postgres::open(&settings))).await;
    for journal in opened {
        journal.unwrap().close().await;
    }
}

#[tokio::test]
async fn missing_rights_standbys_and_asynchronous_commits_are_refused() {
    let cluster = cluster!();
    let settings = cluster.fresh().await.unwrap();
    let role = "DROP ROLE IF EXISTS guest; CREATE ROLE guest LOGIN";
    Postgres::execute(&settings, role).await.unwrap();
    let url = cluster.url("public").replace("user=oracle", "user=guest");
    let said = refused(&Settings::new(url)).await;
    assert!(said.contains("permission denied"), "{said}");
    assert!(said.contains("grant it"), "{said}");

    for (option, why) in [
        ("synchronous_commit%3Doff", "`synchronous_commit = off`"),
        (
            "default_transaction_read_only%3Don",
            "does not allow writes",
        ),
    ] {
        let url = format!("{}%20-c{option}", cluster.url("public"));
        let said = refused(&Settings::new(url)).await;
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn old_servers_are_not_supported() {
    for (version, supported) in [
        (90_624, false),
        (130_022, false),
        (140_000, true),
        (150_018, true),
    ] {
        assert_eq!(is_supported(version), supported, "{version}");
    }
}
