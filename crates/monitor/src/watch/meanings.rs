//! The meanings of notes about a watched interface.

pub const UNSEEN: &str = "packets that arrived, or left by the count of the qdisc, but were not seen to leave or be dropped: an empty queue of some kinds (pfifo, bfifo, \
                      pfifo_fast) and an interface without one (noqueue, such as lo) let packets pass without queueing; or the packets \
                      are still in the queue, or the kernel missed them";
pub const UNSEEN_GONE: &str = "packets that left the queue, or passed it while it was empty, and were not seen: the kernel missed them, or the queue is of a kind that lets them pass";
pub const HARDLY_WAITED: &str =
    "packets that waited for less than half of tau and are not recorded one by one (--every-packet records all)";
pub const UNSTAMPED: &str = "packets without an enqueue time: they arrived before the probe was attached, or the qdisc has overwritten the time; \
                         they are in no percentile of the delay";
pub const UNJUDGED: &str = "congested packets of which it is unknown how much of their flow left meanwhile: they came as the queue began to build, or \
                        their flow lost its place in the table; they do not count as contributing";
pub const REQUEUED: &str =
    "packets that the device returned to the queue and that left again; they count as leaving at the first time";
pub const REQUEUED_UNSEEN: &str =
    "packets that the device returned to the queue and that left again while the kernel ran no probe";
pub const UNTOLD: &str = "packets, and with --every-packet drops, that were not handed over because the ring buffer was full: this program did not keep up";
pub const UNEXAMINED: &str = "packets that waited for less than half of tau and were only counted: it is unknown which of them an expression \
                              selects, so delays cover only packets that were handed over (--every-packet hands over all)";
pub const BULK: &str = "times that more than 16 packets left at once; those after the sixteenth were not examined";
pub const GONE: &str = "interface is gone; the report covers the time before";
pub const TC_DROPS: &str = "drops as the qdisc that dropped them counts (tc -s): a super-packet that it drops whole is one; all other counts of drops are in \
                        packets on the wire";
pub const NOT_IP: &str = "packets that are not IP, among those that found or left a queue (as the kernel counts them; `non_ip` has those of them that \
                      were handed over); their flow is their MAC addresses and EtherType";
