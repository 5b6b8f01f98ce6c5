//! The crate in `extension` has its own workspace, and `make extension` tests it there. Its sources are tested here too, with
//! what a test sees of this crate: what is public.

#[path = "extension/src/lib.rs"]
mod extension;
