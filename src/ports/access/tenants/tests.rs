//! Tests of admission, refusal and retry hints.

use super::*;

const NOW: Duration = Duration::from_secs(100);

fn usage(limits: Limits) -> Usage {
    Usage::new(limits)
}

fn limited(limits: Limits) -> Account {
    let shop = TenantId::new("shop").unwrap();
    let named = [(shop.clone(), limits)].into();
    let all = Limits::default();
    let tenants = Tenants::new(
        TenantLimits {
            all,
            named,
            ..TenantLimits::default()
        },
        usize::MAX,
    );
    tenants.account(&shop)
}

#[test]
fn unused_accounts_without_limits_are_forgotten() {
    let shop = TenantId::new("shop").unwrap();
    let limits = Limits {
        queries: Some(1),
        ..Limits::default()
    };
    let tenants = Tenants::new(
        TenantLimits {
            all: Limits::default(),
            named: [(shop.clone(), limits)].into(),
            ..TenantLimits::default()
        },
        usize::MAX,
    );
    drop(tenants.account(&shop));
    let used = tenants.account(&TenantId::local());
    let _message = used.message().unwrap();
    for number in 0..10 * PRUNE_FROM {
        drop(tenants.account(&TenantId::new(&format!("t{number}")).unwrap()));
    }
    assert!(tenants.0.accounts.len() <= PRUNE_FROM);
    assert!(tenants.0.accounts.contains_key(&shop));
    assert_eq!(tenants.account(&TenantId::local()).load(), 1);
}

#[test]
fn requests_and_tokens_are_limited_per_minute() {
    let mut usage = usage(Limits {
        requests_per_minute: Some(2),
        tokens_per_minute: Some(600),
        ..Limits::default()
    });
    usage.request(NOW).unwrap();
    usage.request(NOW).unwrap();
    let over = usage.request(NOW).unwrap_err();
    let retry_after = Duration::from_secs(30);
    assert_eq!(
        over,
        LimitReached::Requests {
            limit: 2,
            retry_after
        }
    );
    assert_eq!(
        (over.code(), over.retry_after()),
        ("rate_limited", retry_after)
    );
    usage.message(NOW).unwrap();
    usage.tokens.as_mut().unwrap().charge(NOW, 599);
    usage.message(NOW).unwrap();
    usage.tokens.as_mut().unwrap().charge(NOW, 601);
    let over = usage.message(NOW).unwrap_err();
    assert_eq!(over.code(), "rate_limited");
    assert!(
        over.retry_after() > Duration::from_secs(60),
        "the overdraft is paid back first"
    );
    usage.message(NOW + over.retry_after()).unwrap();
}

#[test]
fn concurrent_requests_are_limited() {
    let account = limited(Limits {
        requests: Some(1),
        ..Limits::default()
    });
    let request = account.request().unwrap();
    let over = account.request().unwrap_err();
    assert_eq!(over, LimitReached::AtOnce { limit: 1 });
    assert_eq!(
        (over.code(), over.retry_after()),
        ("too_many_requests", RETRY_HINT)
    );
    drop(request);
    let _request = account.request().unwrap();
}

#[test]
fn submitted_messages_count_as_pending() {
    let account = limited(Limits {
        queued: Some(2),
        ..Limits::default()
    });
    let mut inbox = SessionUsage::new(account.clone());
    inbox.set(SessionLoad {
        pending: 1,
        ..SessionLoad::default()
    });
    let submitted = account.message().unwrap();
    assert_eq!(
        account.message().unwrap_err(),
        LimitReached::Queued { limit: 2 }
    );
    drop(submitted);
    drop(inbox);
    let both = [(); 2].map(|()| account.message().unwrap());
    assert!(account.message().is_err());
    drop(both);
    let _next = account.message().unwrap();
}

#[test]
fn running_and_submitted_queries_share_a_limit() {
    let account = limited(Limits {
        queries: Some(2),
        ..Limits::default()
    });
    let submitted = account.message().unwrap();
    let mut inbox = SessionUsage::new(account.clone());
    inbox.set(SessionLoad {
        running: true,
        ..SessionLoad::default()
    });
    let over = account.message().unwrap_err();
    assert_eq!(over, LimitReached::Queries { limit: 2 });
    assert_eq!(over.code(), "too_many_queries");
    drop(submitted);
    let _submitted = account.message().unwrap();
    inbox.set(SessionLoad::default());
    let _submitted = account.message().unwrap();
}

#[test]
fn changing_limits_keeps_usage_of_unchanged_limits() {
    let limits = |requests, tokens, queued, sessions| Limits {
        requests_per_minute: requests,
        tokens_per_minute: tokens,
        queued,
        sessions,
        ..Limits::default()
    };
    let mut usage = usage(limits(Some(1), None, None, Some(9)));
    usage.counted(NOW, 5);
    usage.request(NOW).unwrap();
    usage.message(NOW).unwrap();
    usage.limit(limits(Some(1), Some(7), Some(1), Some(5)));
    assert!(usage.request(NOW).is_err(), "that limit is as before");
    assert_eq!(usage.message(NOW), Err(LimitReached::Queued { limit: 1 }));
    let full = Some(Err(LimitReached::Sessions { limit: 5 }));
    assert_eq!(usage.session(NOW), full);
    usage.limit(limits(Some(2), None, None, None));
    usage.request(NOW).unwrap();
    usage.message(NOW).unwrap();
    usage.limit(limits(None, None, None, Some(9)));
    assert_eq!(usage.session(NOW), None, "to be counted anew");
}

#[test]
fn full_tenant_recounts_its_sessions() {
    let mut usage = usage(Limits {
        sessions: Some(2),
        ..Limits::default()
    });
    let (free, full) = (Some(Ok(())), Some(Err(LimitReached::Sessions { limit: 2 })));
    assert_eq!(usage.session(NOW), None);
    assert_eq!(usage.session_by_last_count(), None);
    usage.counted(NOW, 0);
    assert_eq!(usage.session(NOW), free);
    assert_eq!(usage.session(NOW), free);
    assert_eq!(usage.session(NOW), full, "both are being opened");
    usage.opening -= 1;
    assert_eq!(usage.session(NOW), free);
    usage.opened();
    usage.opened();
    assert_eq!(usage.session(NOW), full);
    let later = NOW + RECOUNT;
    assert_eq!(usage.session(later), None);
    usage.opened_since_count = 0;
    usage.counted(later, 1);
    assert_eq!(usage.session(later), free, "one was deleted");
    usage.opening -= 1;
    let much_later = later + MAX_COUNT_AGE;
    assert_eq!(usage.session(much_later), None, "sub-agents open some");
    let meanwhile = [(); 2].map(|()| usage.session_by_last_count());
    assert_eq!(meanwhile, [free, full]);
}

#[test]
fn sessions_opened_during_a_count_are_added_to_it() {
    let mut usage = usage(Limits {
        sessions: Some(3),
        ..Limits::default()
    });
    usage.counted(NOW, 0);
    for _ in 0..3 {
        assert_eq!(usage.session(NOW), Some(Ok(())));
    }
    usage.opened();
    usage.opened_since_count = 0;
    usage.opened();
    usage.opened();
    usage.counted(NOW, 1);
    assert!(matches!(usage.session(NOW), Some(Err(_))));
}

#[tokio::test(start_paused = true)]
async fn session_with_unknown_outcome_counts_until_the_next_count() {
    let account = limited(Limits {
        sessions: Some(1),
        ..Limits::default()
    });
    assert!(account.session().is_none());
    let count = account.count().unwrap();
    assert!(account.count().is_none(), "one counts at a time");
    drop(count);
    account.counted().await;
    assert!(account.session().is_none(), "an aborted count says nothing");
    account.count().unwrap().set(0);
    account.session().unwrap().unwrap().not_opened();
    let lost = account.session().unwrap().unwrap();
    drop(lost);
    assert!(account.session().unwrap().is_err(), "it may exist");
    tokio::time::advance(RECOUNT_AFTER_UNKNOWN).await;
    assert!(account.session().is_none(), "it is settled by a count");
    account.count().unwrap().set(0);
    account.session().unwrap().unwrap().opened();
}

#[test]
fn tenant_limits_override_the_common_limits() {
    let own = Limits {
        queued: Some(5),
        ..Limits::default()
    };
    let all = Limits {
        queued: Some(1),
        sessions: Some(9),
        ..Limits::default()
    };
    let both = own.or(all);
    assert_eq!((both.queued, both.sessions), (Some(5), Some(9)));
}

#[test]
fn limits_are_divided_by_the_nodes_for_old_and_new_accounts() {
    let all = Limits {
        requests: Some(6),
        queued: Some(2),
        sessions: Some(9),
        ..Limits::default()
    };
    let tenants = Tenants::new(
        TenantLimits {
            all,
            ..TenantLimits::default()
        },
        usize::MAX,
    );
    let tenant = |name| TenantId::new(name).unwrap();
    let old = tenants.account(&tenant("old"));
    tenants.divide(3);
    let share = Limits {
        requests: Some(2),
        queued: Some(1),
        ..all
    };
    let new = tenants.account(&tenant("new"));
    for account in [&old, &new] {
        assert_eq!(account.usage().limits, share);
    }
    tenants.divide(0);
    assert_eq!(old.usage().limits, all, "alone again");
}

fn weight(bytes: usize) -> SessionLoad {
    SessionLoad {
        bytes,
        ..SessionLoad::default()
    }
}

#[test]
fn tenant_that_takes_too_much_memory_gives_it_back() {
    let all = Limits {
        live_bytes: Some(400),
        ..Limits::default()
    };
    let limits = TenantLimits {
        all,
        ..TenantLimits::default()
    };
    let tenants = Tenants::new(limits, 1_000);
    let [large, small] = ["large", "small"].map(|name| TenantId::new(name).unwrap());
    let [mut of_large, mut of_small] =
        [&large, &small].map(|tenant| SessionUsage::new(tenants.account(tenant)));
    of_large.set(weight(500));
    of_small.set(weight(100));
    assert_eq!(tenants.excess(1), (0, [(large.clone(), 200)].into()));
    let full = |tenant| tenants.account(tenant).full();
    assert_eq!(full(&large), Some(("your tenant", "tenants")));
    assert_eq!(full(&small), None);
    let others = ["a", "b"].map(|name| {
        let mut usage = SessionUsage::new(tenants.account(&TenantId::new(name).unwrap()));
        usage.set(weight(300));
        usage
    });
    assert_eq!(tenants.excess(1).0, 450);
    assert_eq!(full(&small), Some(("all tenants", "session")));
    drop((of_large, others));
    assert_eq!((tenants.live_bytes(), full(&small)), (100, None));
}
