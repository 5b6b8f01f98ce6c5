//! What notes mean.

pub const UNSEEN: &str = "packets that came and were neither seen to leave nor dropped: an empty queue of some kinds (pfifo, bfifo, \
                      pfifo_fast) and an interface without one (noqueue, such as lo) let them past without a wait; or they are still in \
                      it, or the kernel left them out";
pub const UNSTAMPED: &str = "packets that left without the time at which they came: they came before, or the qdisc has overwritten it; \
                         counted as not having waited";
pub const REQUEUED: &str =
    "packets that the device gave back and that left once more; they count as having left at first";
pub const REQUEUED_UNSEEN: &str =
    "packets that the device gave back and that left once more while the kernel ran no program";
pub const UNTOLD: &str = "packets that were to be told, and found no room: this program did not keep up";
pub const UNEXAMINED: &str = "packets that waited for less than half of tau and were only counted: which of them an expression is about is not \
                              known, so delays are those of packets that were told (--every-packet tells all)";
pub const BULK: &str = "times that more than 16 packets left at once; those behind the sixteenth were not looked at";
pub const GONE: &str = "interface is gone; what was seen before is told";
pub const NOT_IP: &str = "packets that are not IP, of those that had a queue before or behind them; those of the same addresses of Ethernet are a flow";
