//! The keys of Veno.

use super::shared::{COUNTING, ONLY_IF_LIMITED, RTT};
use super::{FACTOR, optional};
use crate::keys::KeyVisitor;
use crate::value::names;
use queuescope_tcp::congestion::{VenoPace, VenoParams, VenoSampling};

pub(crate) fn veno<K: KeyVisitor>(params: &mut VenoParams, keys: &mut K) {
    keys.within("beta", &mut params.beta, FACTOR, "The number of queued packets from which the path is congested.");
    keys.within(
        "random-loss",
        &mut params.random_loss,
        0.01..=0.99,
        "The factor of the window after a loss on a path that is not congested.",
    );
    keys.key(
        "judges-timeouts",
        &mut params.judges_timeouts,
        "Whether the number of queued packets also decides the reduction after a timeout.",
    );
    optional(
        keys,
        "parts",
        &mut params.parts,
        &(1..=1_000_000),
        "The parts of a segment in which queued packets are counted, rounded.",
    );
    keys.key("sampling", &mut params.sampling, "The round-trip time that is compared with the smallest.");
    keys.key("pace", &mut params.pace, "How the window grows on a congested path.");
    keys.key("reduced", &mut params.reduced, "The quantity that a reduction is a fraction of.");
    keys.key("counting", &mut params.counting, COUNTING);
    keys.key("rtt", &mut params.rtt, RTT);
    keys.key(
        "forgets-on-loss",
        &mut params.forgets_on_loss,
        "Whether the smallest round-trip time is forgotten after a loss.",
    );
    keys.key(
        "forgets-when-idle",
        &mut params.forgets_when_idle,
        "Whether the smallest round-trip time is forgotten when the flow is idle.",
    );
    keys.key("only-if-limited", &mut params.only_if_limited, ONLY_IF_LIMITED);
}

names! {
    VenoSampling, "a round-trip time of Veno":
        "smoothed" = VenoSampling::Smoothed, "smallest" = VenoSampling::Smallest,
        "smallest-recounted" = VenoSampling::SmallestRecounted;
    VenoPace, "a pace of Veno":
        "every-other-ack" = VenoPace::EveryOtherAck, "every-other-window" = VenoPace::EveryOtherWindow;
}
