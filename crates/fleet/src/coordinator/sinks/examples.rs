//! Alerts for tests.

use super::delivery::Outgoing;
use crate::protocol::Alert;

/// Texts that break formats which do not escape them.
pub const HOSTILE: &[&str] = &[
    "\"",
    "\\",
    "]",
    "\\\"] [x y=\"z\"]",
    "a\nb",
    "\r\n\r\nGET / HTTP/1.1",
    "\0",
    "\u{1b}[2J",
    "\u{2028}",
    "\u{202e}",
    "é\u{fffd}",
    "%s%n",
    "<1>1",
    "{\"a\":1}\n{\"b\":2}",
    LONG,
];

/// 64 kB of what is escaped.
const LONG: &str = {
    #[expect(clippy::large_const_arrays, reason = "tests only")]
    const BYTES: [u8; 64 << 10] = [b']'; 64 << 10];
    match str::from_utf8(&BYTES) {
        Ok(text) => text,
        Err(_) => "",
    }
};

/// An alert of a usual trigger.
pub fn alert(number: u64, detail: &str) -> Outgoing {
    let (member, trigger, detail) = ("web-1".to_owned(), "busy".to_owned(), detail.to_owned());
    let (at, value, packets) = (1_627_059_407_207_693_000, 81_024.0, 2_643);
    Outgoing::single(Alert { number, member, trigger, at, value, packets, detail, ..Alert::default() })
}

/// The same with a detail.
pub fn plain() -> Outgoing {
    alert(1, "src_ip 10.0.0.4")
}

/// The same, before which some were left out.
pub fn repeated(repeats: u64) -> Outgoing {
    Outgoing { repeats, ..plain() }
}

/// An alert all of whose texts are this one, without a value.
pub fn hostile(text: &str) -> Outgoing {
    let mut outgoing = alert(1, text);
    (outgoing.alert.member, outgoing.alert.trigger) = (text.to_owned(), text.to_owned());
    outgoing.alert.value = f64::NAN;
    outgoing
}
