//! A request on its way to the writer and its answer on the way back.

use tokio::sync::oneshot;

use super::{error::Failed, store::Store};
use crate::journal::Error;

type Run<T> = Box<dyn for<'s, 'c> Fn(&'s mut Store<'c>) -> Result<T, Failed> + Send>;

/// A request, whatever it answers.
pub(super) trait Work: Send {
    /// Does it within the transaction, and keeps the answer until that is durable. May be called
    /// again when the transaction was rolled back.
    ///
    /// # Errors
    /// If SQLite failed; what the journal refuses is an answer.
    fn run(&mut self, store: &mut Store<'_>) -> rusqlite::Result<()>;

    /// Gives the answer that was kept. Nobody may be waiting for it any more, which is their right.
    fn answer(self: Box<Self>);

    /// Gives this answer instead.
    fn refuse(self: Box<Self>, error: Error);
}

struct Request<T> {
    run: Run<T>,
    kept: Option<Result<T, Error>>,
    reply: oneshot::Sender<Result<T, Error>>,
}

/// Makes a request, and the place where its answer arrives.
pub(super) fn request<T: Send + 'static>(
    run: impl for<'s, 'c> Fn(&'s mut Store<'c>) -> Result<T, Failed> + Send + 'static,
) -> (Box<dyn Work>, oneshot::Receiver<Result<T, Error>>) {
    let (reply, answer) = oneshot::channel();
    let run = Box::new(run);
    let request = Request {
        run,
        kept: None,
        reply,
    };
    (Box::new(request), answer)
}

impl<T: Send> Work for Request<T> {
    fn run(&mut self, store: &mut Store<'_>) -> rusqlite::Result<()> {
        self.kept = Some(match (self.run)(store) {
            Ok(done) => Ok(done),
            Err(Failed::Refused(error)) => Err(error),
            Err(Failed::Store(error)) => return Err(error),
        });
        Ok(())
    }

    fn answer(self: Box<Self>) {
        if let Some(answer) = self.kept {
            let _ = self.reply.send(answer);
        }
    }

    fn refuse(self: Box<Self>, error: Error) {
        let _ = self.reply.send(Err(error));
    }
}
