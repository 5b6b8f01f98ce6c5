//! Counts of packets at a tap, by outcome.

/// Declares the counters once: as fields, and as rows for a report.
macro_rules! counters {
    ($($name:ident: $meaning:literal,)*) => {
        /// Packets on both sides of the router, by outcome.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct TapStats {
            $(#[doc = concat!("Packets: ", $meaning, ".")] pub $name: u64,)*
        }

        impl TapStats {
            /// Every counter as (name, count, meaning), in the order of the fields.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64, &'static str)> {
                [$((stringify!($name), self.$name, $meaning),)*].into_iter()
            }
        }
    };
}

counters! {
    ingress: "captured on their way in, all of them",
    ingress_no_fingerprint: "on their way in: not IP, or captured too short to be compared; they are not matched",
    matched: "captured on both sides",
    lost: "captured on their way in only, while others on their route came out here: lost in the router",
    routed_elsewhere: "captured on their way in only, and no packet on their route came out here: routed elsewhere",
    ingress_copies: "captured again on their way in, while one came out: the capture has them twice",
    ingress_outside: "on their way in before the capture behind the router started, or too late for it",
    ingress_evicted: "on their way in: removed from the full table while they could still have come out",
    egress: "captured on their way out, all of them",
    egress_no_fingerprint: "on their way out: not IP, or captured too short to be compared",
    reverse: "matched in the opposite direction, by their TTL: they came in behind the router",
    egress_copies: "captured again on their way out",
    untapped: "captured on their way out only, and no packet of their flow was captured on its way in: from a link without a capture, or from the router itself",
    missed_arrival: "captured on their way out only, while others of their flow were captured on their way in: missed there, or the router's delay is longer than assumed",
    egress_outside: "on their way out so early or late that they may have come in while no capture ran on that side",
    ambiguous: "matched while several with the same fingerprint were in the router; matched in order",
    no_delay: "matched, with a delay that counts as none",
    early: "matched, but by the clocks they came out before they came in; they count with no delay",
    repeats: "on their way in, with the same fingerprint as an earlier one; unknown whether they are copies",
    retransmissions: "retransmitted TCP segments on their way in",
    arrival_interpolated: "captured on their way out only, with an arrival interpolated from the packets before and after",
    time_ran_back: "on their way out with a time before that of the previous packet; they count as leaving with it",
}
