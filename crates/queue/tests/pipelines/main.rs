//! Switch programs, driven by a small switch with tail-drop queues.

mod ack_window;
mod driver;
mod hash_to_queues;
