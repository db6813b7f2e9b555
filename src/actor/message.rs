//! Messages of actors are local to the process.

/// Marks types as actor messages. Without ractor's `cluster` feature every type is one already; with
/// it (our feature `cluster`, for hosts that use it) each has to say so.
macro_rules! local_messages {
    ($($message:ty),+ $(,)?) => {
        $(
            #[cfg(feature = "cluster")]
            impl ractor::Message for $message {}
        )+
    };
}
pub(super) use local_messages;
