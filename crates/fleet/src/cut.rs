//! The distributed atomic snapshot.
