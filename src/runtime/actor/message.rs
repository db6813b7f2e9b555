//! Actor messages, which are local to the process.

/// Marks types as actor messages. Ractor requires this only with its `cluster` feature, which ours
/// of the same name enables for hosts that use it.
macro_rules! local_messages {
    ($($message:ty),+ $(,)?) => {
        $(
            #[cfg(feature = "cluster")]
            impl ractor::Message for $message {}
        )+
    };
}
pub(super) use local_messages;
