//! BBR version 3.
