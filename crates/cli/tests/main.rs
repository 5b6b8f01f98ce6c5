//! All tests of the crate from outside, in one binary.

mod abc_domain;
mod acting;
#[path = "../../p4/tests/bmv2.rs"]
mod bmv2;
mod common;
mod experiment;
mod explosions;
mod fleet;
mod folder;
mod formats;
mod full_disk;
mod grants;
mod guides;
mod input;
mod json;
mod link;
mod live;
mod live_behaviour;
mod live_classes;
mod live_counts;
mod live_json;
mod live_victims;
#[path = "../../live/tests/common/mod.rs"]
mod namespaces;
mod outputs;
mod p4air;
mod pipes;
#[path = "common/pty.rs"]
mod pty;
mod queued;
mod readers;
mod record;
mod reference;
mod sim;
mod sweep;
mod tap;
mod tap_command;
#[path = "tap/pair.rs"]
mod tap_pair;
mod tap_switch;
#[path = "tap/switch.rs"]
mod tap_through_switch;
mod terminal;
mod traffic;
mod uploads;
mod version_0_1;
mod victims;
mod watch;
mod whole;
mod why;
