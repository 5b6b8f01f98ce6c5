//! Telemetry: reports and INT headers, against an independent decoder and worked examples.

mod errors;
mod golden;
mod headers;
mod model;
mod packets;
mod reference;
mod reports;
mod view;
