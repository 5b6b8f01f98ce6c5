//! Partial results of members, and how they become one.
