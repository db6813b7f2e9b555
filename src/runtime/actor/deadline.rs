//! Deadlines of the journal and of sessions.

use std::time::Duration;

use crate::journal::Error;

/// Deadline for the journal to make records durable.
pub(super) const APPEND_DEADLINE: Duration = Duration::from_secs(10);
/// Deadline for a session or the journal to answer a request.
pub(super) const REPLY_DEADLINE: Duration = Duration::from_secs(30);

/// Waits for the journal; a missed deadline counts as [`Error::Unavailable`].
pub(super) async fn within<T>(
    deadline: Duration,
    asked: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let silent = || Error::Unavailable(format!("no answer within {deadline:?}"));
    let answer = tokio::time::timeout(deadline, asked).await;
    answer.unwrap_or_else(|_| Err(silent()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn silent_journal_is_reported_unavailable() {
        let silent = std::future::pending::<Result<(), Error>>();
        let answer = within(Duration::from_secs(10), silent).await;
        let why = "no answer within 10s".to_owned();
        assert_eq!(answer, Err(Error::Unavailable(why)));
        let prompt = async { Ok::<_, Error>(7) };
        assert_eq!(within(Duration::from_secs(10), prompt).await, Ok(7));
    }
}
