//! Systems in memory for tests, over the parts of [`oracle_ports::testkit`].

mod oracle;
mod session;

pub use oracle::{TestError, TestOracle, TestSystem, advance_time};
pub use oracle_ports::testkit::*;
pub use session::TestSession;
