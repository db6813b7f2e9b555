//! The whole server, over the wire.
