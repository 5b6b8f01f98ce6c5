//! Switch programs, driven by a small switch with tail-drop queues.

mod abc;
mod ack_window;
mod conquest_aqm;
mod driver;
mod golden;
mod hash_to_queues;
mod p4air;
