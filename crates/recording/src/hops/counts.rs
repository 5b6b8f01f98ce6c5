//! What was read of reports, and what was not.

use queuescope_ingest::notes::noted;
use queuescope_report::model::Skipped;

/// Counts of datagrams, reports and hops.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HopCounts {
    /// Datagrams that were read.
    pub datagrams: u64,
    /// Reports in them.
    pub reports: u64,
    /// Hops that became records.
    pub hops: u64,
    /// Switches.
    pub switches: u64,
    /// Hops of which only the wait is known.
    pub untimed: u64,
    /// Frames of a capture that are no datagrams to the port.
    pub other_frames: u64,
    /// Datagrams of hosts that are not to be read.
    pub other_senders: u64,
    /// Datagrams beyond the rate.
    pub over_rate: u64,
    /// Reports that did not arrive, by the sequence numbers of their switches.
    pub lost: u64,
    /// Datagrams of another version.
    pub other_version: u64,
    /// Datagrams and reports that contradict themselves.
    pub malformed: u64,
    /// Reports of a type that has no hops, or none that is read.
    pub unread: u64,
    /// Reports without a packet.
    pub no_packet: u64,
    /// Reports on packets that are not IP.
    pub not_ip: u64,
    /// Packets whose INT headers contradict themselves.
    pub malformed_int: u64,
    /// Packets of which fewer hops are in the report than their headers state.
    pub cut: u64,
    /// Hops that do not name their switch.
    pub no_switch: u64,
    /// Hops without a latency and without two times.
    pub no_wait: u64,
    /// Hops that a packet left before it came.
    pub backwards: u64,
    /// Reports of switches beyond the number that is known.
    pub too_many: u64,
    /// Clocks that do not count from 1970, and times that such a clock was set.
    pub shifted: u64,
}

impl HopCounts {
    /// Reports that are missing from the records because there were too many, or because they did not arrive.
    pub fn shed(&self) -> u64 {
        self.over_rate + self.lost
    }

    /// Each count that is not 0, with its reason and meaning.
    pub fn notes(&self) -> impl Iterator<Item = Skipped> + use<> {
        let notes = [
            ("int_other_frames", self.other_frames, "frames that are no datagrams to the port of reports; left out"),
            ("int_other_senders", self.other_senders, "datagrams of hosts that --int-from does not name; not read"),
            ("int_over_rate", self.over_rate, "datagrams beyond --int-rate; not read"),
            ("int_lost", self.lost, "reports that did not arrive, by the sequence numbers of their switches"),
            ("int_version", self.other_version, "datagrams with reports of another version than 2; not read"),
            ("int_malformed", self.malformed, "datagrams or reports that contradict themselves; not read"),
            ("int_unread", self.unread, "reports of a type without hops; left out"),
            ("int_no_packet", self.no_packet, "reports without a packet: nothing identifies it; left out"),
            ("int_not_ip", self.not_ip, "reports on packets that are not IP; left out"),
            (
                "int_headers",
                self.malformed_int,
                "packets whose INT headers contradict themselves; their hops are missing",
            ),
            (
                "int_cut",
                self.cut,
                "packets whose report has fewer hops than their INT headers state; the others are missing",
            ),
            ("int_no_switch", self.no_switch, "hops that do not name their switch; left out"),
            ("int_no_wait", self.no_wait, "hops without a latency and without two times; left out"),
            ("int_backwards", self.backwards, "hops that a packet left before it came, by their times; left out"),
            ("int_too_many", self.too_many, "reports or hops of more switches than are kept apart; left out"),
            (
                "int_untimed",
                self.untimed,
                "hops with a latency only: their wait is exact, and their time that of the report's arrival",
            ),
            (
                "int_shifted",
                self.shifted,
                "clocks of switches that do not count from 1970, or were set: they count from a report's arrival",
            ),
        ];
        notes
            .into_iter()
            .filter_map(|(reason, count, meaning)| noted(reason, count, meaning))
            .collect::<Vec<_>>()
            .into_iter()
    }
}
