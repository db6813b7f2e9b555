//! Prepared statements by name, and their values.

/// Names each statement of a connection once, and prepares all of them.
macro_rules! statements {
    ($($name:ident: $sql:expr,)+) => {
        struct Statements<'c> {
            $($name: rusqlite::Statement<'c>,)+
        }

        impl<'c> Statements<'c> {
            fn prepare(connection: &'c rusqlite::Connection) -> rusqlite::Result<Self> {
                Ok(Self {
                    $($name: connection.prepare($sql)?,)+
                })
            }

            #[cfg(test)]
            fn plans(connection: &rusqlite::Connection) -> Vec<(&'static str, String)> {
                let plan = |sql: &str| {
                    let sql = format!("EXPLAIN QUERY PLAN {sql}");
                    let mut steps = connection.prepare(&sql).unwrap();
                    let steps = steps.raw_query().mapped(|row| row.get::<_, String>(3));
                    steps.map(Result::unwrap).collect::<Vec<_>>().join("; ")
                };
                vec![$((stringify!($name), plan($sql))),+]
            }
        }
    };
}
pub(super) use statements;

/// Asserts that no statement scans a whole table.
#[cfg(test)]
pub(super) fn assert_indexed(plans: Vec<(&str, String)>) {
    for (name, plan) in plans {
        // The search index is queried by row id or by words, never as a whole.
        let goes_through =
            |step: &str| step.starts_with("SCAN") && !step.ends_with(":=") && !step.contains(":M");
        assert!(!plan.split("; ").any(goes_through), "{name}: {plan}");
        assert!(!plan.contains("TEMP B-TREE"), "{name}: {plan}");
    }
}
