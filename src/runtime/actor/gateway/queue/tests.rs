//! Order of the fair queue.

use super::*;

/// A queue whose values are named by tenant, session and number within the session: `a1.2`.
#[derive(Default)]
struct Line {
    queue: FairQueue<String>,
    next: u64,
}

impl Line {
    fn push(&mut self, tenant: &str, sid: u64, calls: u64) {
        for call in 1..=calls {
            let name = format!("{tenant}{sid}.{call}");
            let tenant = TenantId::new(tenant).unwrap();
            self.queue.push(self.next, (tenant, Sid(sid)), name, false);
            self.next += 1;
        }
    }

    fn of(waiting: &[(&str, u64, u64)]) -> Self {
        let mut line = Self::default();
        for (tenant, sid, calls) in waiting {
            line.push(tenant, *sid, *calls);
        }
        line
    }

    fn rest(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.queue.pop()).collect()
    }
}

#[test]
fn queue_rotates_over_tenants_then_sessions() {
    for (name, waiting, order) in [
        ("nobody", vec![], ""),
        (
            "one session keeps its order",
            vec![("a", 1, 3)],
            "a1.1 a1.2 a1.3",
        ),
        (
            "sessions take turns",
            vec![("a", 1, 3), ("a", 2, 2)],
            "a1.1 a2.1 a1.2 a2.2 a1.3",
        ),
        (
            "tenants take turns, however many sessions they have",
            vec![("a", 1, 2), ("a", 2, 1), ("b", 3, 2)],
            "a1.1 b3.1 a2.1 b3.2 a1.2",
        ),
        (
            "sessions of one number in two tenants are two",
            vec![("a", 1, 2), ("b", 1, 2)],
            "a1.1 b1.1 a1.2 b1.2",
        ),
    ] {
        assert_eq!(Line::of(&waiting).rest().join(" "), order, "{name}");
    }
}

#[test]
fn busy_session_or_tenant_does_not_delay_anothers_first_call() {
    let mut line = Line::of(&[("a", 1, 1_000)]);
    line.push("a", 2, 1);
    let first: Vec<String> = (0..2).filter_map(|_| line.queue.pop()).collect();
    assert_eq!(first, ["a1.1", "a2.1"], "another session");
    for sid in 10..1_010 {
        line.push("a", sid, 1);
    }
    line.push("b", 1, 1);
    let first: Vec<String> = (0..2).filter_map(|_| line.queue.pop()).collect();
    assert!(
        first.contains(&"b1.1".to_owned()),
        "another tenant: {first:?}"
    );
}

#[test]
fn abandoned_entry_is_skipped_and_freed() {
    let mut line = Line::of(&[("a", 1, 3), ("a", 2, 1), ("b", 3, 1)]);
    assert_eq!(line.queue.remove(1).as_deref(), Some("a1.2"));
    assert_eq!(line.queue.remove(3).as_deref(), Some("a2.1"));
    assert_eq!(line.queue.remove(3), None, "once");
    assert_eq!(line.queue.len(), 3);
    assert_eq!(line.queue.front().map(String::as_str), Some("a1.1"));
    assert_eq!(line.rest().join(" "), "a1.1 b3.1 a1.3");
    assert!(line.queue.is_empty());
    assert!(line.queue.tenants.values.is_empty() && line.queue.tenants.turns.is_empty());
}

#[test]
fn abandoned_entries_do_not_accumulate() {
    let mut line = Line::of(&[("z", 1, 1)]);
    for sid in 0..10_000 {
        let (tenant, id) = (format!("t{}", sid % 7), line.next);
        line.push(&tenant, sid, 1);
        line.queue.remove(id);
        // A session that leaves and returns repeatedly keeps one place.
        let id = line.next;
        line.push("y", 1, 1);
        line.queue.remove(id);
    }
    let tenants = &line.queue.tenants;
    assert_eq!((tenants.values.len(), tenants.turns.len()), (1, 1));
    let places = tenants.values.values().map(|(_, one)| one.turns.len());
    assert_eq!(places.sum::<usize>(), 1);
    assert_eq!(line.rest(), ["z1.1"]);
}

#[test]
fn take_if_drains_the_queue() {
    let mut line = Line::of(&[("a", 1, 2), ("b", 2, 1)]);
    let mut all = line.queue.take_if(|_| true);
    all.sort();
    assert_eq!(all, ["a1.1", "a1.2", "b2.1"]);
    assert_eq!((line.queue.len(), line.queue.front()), (0, None));
    line.push("a", 1, 1);
    assert_eq!(line.rest(), ["a1.1"]);
}

#[test]
fn values_set_aside_come_last_in_order_of_arrival() {
    let mut line = Line::of(&[("a", 1, 2), ("b", 2, 1), ("c", 3, 1)]);
    line.queue.set_aside(|value| value.starts_with('b'));
    line.queue.set_aside(|value| value.starts_with('a'));
    assert_eq!(line.queue.remove(0).as_deref(), Some("a1.1"));
    line.push("d", 4, 1);
    assert_eq!(line.rest().join(" "), "b2.1 c3.1 d4.1 a1.2");
    line.push("a", 1, 1);
    line.queue.set_aside(|_| true);
    assert_eq!((line.queue.is_empty(), line.queue.len()), (true, 1));
}
