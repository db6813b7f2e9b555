//! Tools of the web for tests.

use oracle_runtime::testkit::TestError;

/// Creates a `web_fetch` that reads from this machine alone.
///
/// # Errors
/// When its client cannot be built.
pub fn local_web_fetch(
    settings: oracle_tool::web::FetchSettings,
) -> Result<oracle_tool::FnTool, TestError> {
    let builder = oracle_llm::client_builder()?;
    Ok(oracle_tool::web::local_web_fetch(builder, settings)?)
}
