//! Passes the packets of all captures to a matcher, in order.

use super::{Matcher, TapOutput, TapPacket};
use queuescope_wire::Nanos;

/// A capture that is read packet by packet.
pub trait Feed {
    /// The error of reading.
    type Error;

    /// The next packet, or none at the end.
    ///
    /// # Errors
    /// Returns the error of reading.
    fn next(&mut self) -> Result<Option<TapPacket>, Self::Error>;
}

impl<E, F: FnMut() -> Result<Option<TapPacket>, E>> Feed for F {
    type Error = E;

    fn next(&mut self) -> Result<Option<TapPacket>, E> {
        self()
    }
}

/// Passes the packets of all captures to a matcher. A packet on its way in is passed on before any packet that it could be on its way
/// out. Each capture is read once; the clocks determine how far one is read ahead of the others.
///
/// # Errors
/// Returns the errors of the captures.
pub fn drive<I: Feed, O: Feed<Error = I::Error>>(
    ingress: &mut [I],
    egress: &mut O,
    matcher: &mut Matcher,
    output: &mut impl TapOutput,
) -> Result<(), I::Error> {
    let mut heads = Vec::with_capacity(ingress.len());
    for (link, feed) in ingress.iter_mut().enumerate() {
        heads.push(Head::read(link, feed, matcher)?);
    }
    let early = matcher.params().early;
    let mut leaving = egress.next()?;
    loop {
        let first = heads.iter().enumerate().filter_map(|(link, head)| Some((head.as_ref()?.time, link))).min();
        match (first, &leaving) {
            (Some((time, link)), _) if leaving.as_ref().is_none_or(|seen| time <= seen.time.saturating_add(early)) => {
                if let Some(head) = heads[link].take() {
                    matcher.ingress(link, &head.seen, output);
                }
                heads[link] = Head::read(link, &mut ingress[link], matcher)?;
            }
            (_, Some(seen)) => {
                matcher.egress(seen, output);
                leaving = egress.next()?;
                if leaving.is_none() {
                    matcher.egress_ended();
                }
            }
            _ => break,
        }
    }
    matcher.finish(output);
    Ok(())
}

/// The next packet of a link.
struct Head {
    /// The capture time by the clock behind the router.
    time: Nanos,
    seen: TapPacket,
}

impl Head {
    fn read<F: Feed>(link: usize, feed: &mut F, matcher: &mut Matcher) -> Result<Option<Self>, F::Error> {
        let next = feed.next()?;
        if next.is_none() {
            matcher.ingress_ended(link);
        }
        Ok(next.map(|seen| Self { time: matcher.convert(link, seen.time), seen }))
    }
}
