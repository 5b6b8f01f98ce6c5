//! Packets of all captures, in order.

use super::{Matcher, Seen, TapOutput};
use queuescope_wire::Nanos;

/// A capture, read packet by packet.
pub trait Feed {
    /// What can go wrong.
    type Error;

    /// The next packet, or none at the end.
    ///
    /// # Errors
    /// If it cannot be read.
    fn next(&mut self) -> Result<Option<Seen>, Self::Error>;
}

impl<E, F: FnMut() -> Result<Option<Seen>, E>> Feed for F {
    type Error = E;

    fn next(&mut self) -> Result<Option<Seen>, E> {
        self()
    }
}

/// Gives a matcher the packets of all captures: those on their way in when they can have come out. Each capture is read
/// once; how far one is ahead of the others is what their clocks say.
///
/// # Errors
/// Those of the captures.
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
    /// By the clock behind the router.
    time: Nanos,
    seen: Seen,
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
