//! What became of every packet at a tap.

/// Declares the counters once: as fields, and as rows for a report.
macro_rules! counters {
    ($($name:ident: $meaning:literal,)*) => {
        /// Packets on both sides of the router, by what became of them.
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
    ingress: "seen on their way in, all of them",
    ingress_no_fingerprint: "on their way in: not IP, or less captured than is compared; not looked for behind the router",
    matched: "seen on both sides",
    lost: "seen on their way in only, and others on their route came out here: lost in the router",
    elsewhere: "seen on their way in only, and nothing on their route came out here: routed elsewhere",
    ingress_copies: "seen on their way in again, where one came out: the capture has them twice",
    ingress_outside: "on their way in before the capture behind the router began, or too late for it",
    ingress_evicted: "on their way in: their place in the table was needed while they could still have come out",
    egress: "seen on their way out, all of them",
    egress_no_fingerprint: "on their way out: not IP, or less captured than is compared",
    reverse: "matched the other way round, by their TTL: on their way in behind the router",
    egress_copies: "seen on their way out again",
    untapped: "seen on their way out only, and nothing of their flow was seen on its way in: from a link that is not tapped, or the router itself",
    missed: "seen on their way out only, and others of their flow were seen on their way in: missed there, or the router's delay is longer than thought",
    egress_outside: "on their way out so early or late that they may have come in while a capture of that side was not running",
    ambiguous: "matched, where several that look the same were in the router; taken in order",
    met_empty: "matched, with a delay no longer than what is taken for none",
    early: "matched, and seen on their way out before they came in, by the clocks; taken to have had no delay",
    repeats: "on their way in, looking the same as one before, with nothing by which copies are known: copy or not",
    retransmissions: "TCP segments on their way in that were sent before",
    from_neighbours: "seen on their way out only, whose arrival was taken from the packets before and after",
    time_ran_back: "on their way out with a time before that of the packet before them; taken to leave with it",
}
