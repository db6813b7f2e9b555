//! Systems in memory for tests, over the parts of [`oracle_ports::testkit`].

mod oracle;
pub mod prefix;
mod session;
mod watch;

pub use oracle::{TestError, TestOracle, TestSystem, advance_time};
pub use oracle_ports::testkit::*;
pub use session::TestSession;

#[doc(hidden)]
pub use watch::Verdict;
pub(crate) use watch::calling;
