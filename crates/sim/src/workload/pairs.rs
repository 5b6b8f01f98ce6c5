//! Senders and receivers of flows.

use super::{Random, WorkloadError};

/// Senders and receivers of flows. Hosts are numbers that the builder of the network chooses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pairs {
    /// Always the same pair.
    Fixed {
        /// The sender.
        from: usize,
        /// The receiver.
        to: usize,
    },
    /// These pairs one after another; flows that start together have one each. An incast has a single receiver.
    InTurn(Vec<(usize, usize)>),
    /// Any sender, and any other host as receiver: each such pair is equally likely for each flow. A host that is listed twice
    /// is drawn twice as often.
    Uniform {
        /// The senders.
        from: Vec<usize>,
        /// The receivers.
        to: Vec<usize>,
    },
    /// Each host sends to one other and receives from one other for the whole run. The permutation is drawn at the start; all
    /// are equally likely. The sender of each flow is drawn at random.
    Permutation(Vec<usize>),
}

impl Pairs {
    /// All of `senders` to one receiver.
    pub fn to_one(senders: impl IntoIterator<Item = usize>, receiver: usize) -> Self {
        Self::InTurn(senders.into_iter().map(|sender| (sender, receiver)).collect())
    }
}

/// Draws pairs.
#[derive(Debug, Clone)]
pub(super) struct Draw {
    pairs: Drawn,
    random: Random,
}

#[derive(Debug, Clone)]
enum Drawn {
    InTurn(Vec<(usize, usize)>),
    Uniform(Vec<usize>, Vec<usize>),
    AnyOf(Vec<(usize, usize)>),
}

impl Draw {
    pub fn new(pairs: &Pairs, mut random: Random) -> Result<Self, WorkloadError> {
        let apart = |pairs: Vec<(usize, usize)>| match pairs.iter().find(|(from, to)| from == to) {
            Some((host, _)) => Err(WorkloadError::Itself { host: *host }),
            None if pairs.is_empty() => Err(WorkloadError::NoPair),
            None => Ok(pairs),
        };
        let pairs = match pairs {
            Pairs::Fixed { from, to } => Drawn::InTurn(apart(vec![(*from, *to)])?),
            Pairs::InTurn(pairs) => Drawn::InTurn(apart(pairs.clone())?),
            Pairs::Uniform { from, to } => {
                // Two different hosts are among them, unless all are the same host.
                let first = from.first().ok_or(WorkloadError::NoPair)?;
                if to.is_empty() || from.iter().chain(to).all(|host| host == first) {
                    return Err(WorkloadError::NoPair);
                }
                Drawn::Uniform(from.clone(), to.clone())
            }
            Pairs::Permutation(hosts) => Drawn::AnyOf(arrange(hosts, &mut random)?),
        };
        Ok(Self { pairs, random })
    }

    /// The pair for the flow with this number.
    #[inline]
    pub fn draw(&mut self, number: usize) -> (usize, usize) {
        let random = &mut self.random;
        let mut any = |count: usize| random.below(count as u64) as usize;
        match &self.pairs {
            Drawn::InTurn(pairs) => pairs[number % pairs.len()],
            Drawn::AnyOf(pairs) => pairs[any(pairs.len())],
            Drawn::Uniform(from, to) => loop {
                let pair = (from[any(from.len())], to[any(to.len())]);
                if pair.0 != pair.1 {
                    break pair;
                }
            },
        }
    }
}

/// Assigns each host another one. More than a third of all permutations leave no host to itself: draws until one does.
fn arrange(hosts: &[usize], random: &mut Random) -> Result<Vec<(usize, usize)>, WorkloadError> {
    let mut order = hosts.to_vec();
    order.sort_unstable();
    if let Some(twice) = order.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(WorkloadError::Twice { host: twice[0] });
    }
    if hosts.len() < 2 {
        return Err(WorkloadError::NoPair);
    }
    loop {
        random.shuffle(&mut order);
        if hosts.iter().zip(&order).all(|(from, to)| from != to) {
            return Ok(hosts.iter().copied().zip(order).collect());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn draws(pairs: &Pairs, seed: u64, flows: usize) -> BTreeMap<(usize, usize), u32> {
        let mut draw = Draw::new(pairs, Random::new(seed)).unwrap();
        let mut counts = BTreeMap::new();
        (0..flows).for_each(|number| *counts.entry(draw.draw(number)).or_default() += 1);
        counts
    }

    #[test]
    fn fixed_pairs_and_pairs_in_turn_are_as_they_stand() {
        assert_eq!(draws(&Pairs::Fixed { from: 4, to: 2 }, 1, 10), BTreeMap::from([((4, 2), 10)]));
        let incast = Pairs::to_one([1, 2, 3], 9);
        assert_eq!(draws(&incast, 1, 9), BTreeMap::from([((1, 9), 3), ((2, 9), 3), ((3, 9), 3)]));
    }

    #[test]
    fn uniform_pairs_are_all_as_likely_and_never_to_oneself() {
        let counts = draws(&Pairs::Uniform { from: vec![0, 1, 2], to: vec![0, 1, 2, 3] }, 1, 90_000);
        assert_eq!(counts.len(), 9);
        // Five standard deviations.
        assert!(counts.values().all(|count| count.abs_diff(10_000) < 472), "{counts:?}");
    }

    #[test]
    fn a_permutation_is_a_fixed_arrangement() {
        let hosts: Vec<_> = (10..30).collect();
        let counts = draws(&Pairs::Permutation(hosts.clone()), 1, 20_000);
        assert_eq!(counts.keys().map(|(from, _)| *from).collect::<Vec<_>>(), hosts);
        let mut receivers: Vec<_> = counts.keys().map(|(_, to)| *to).collect();
        receivers.sort_unstable();
        assert_eq!(receivers, hosts);
        assert!(counts.keys().all(|(from, to)| from != to));
        assert!(counts.values().all(|count| count.abs_diff(1_000) < 155), "{counts:?}");
        assert_ne!(
            counts.keys().collect::<Vec<_>>(),
            draws(&Pairs::Permutation(hosts), 2, 20_000).keys().collect::<Vec<_>>()
        );
        // Three hosts have two possible permutations, equally likely.
        let ahead =
            (0..4_000).filter(|seed| draws(&Pairs::Permutation(vec![0, 1, 2]), *seed, 50).contains_key(&(0, 1)));
        assert!(ahead.count().abs_diff(2_000) < 159);
    }

    #[test]
    fn impossible_pairs_say_why() {
        let why = |pairs| Draw::new(&pairs, Random::new(0)).unwrap_err();
        assert_eq!(why(Pairs::Fixed { from: 3, to: 3 }), WorkloadError::Itself { host: 3 });
        assert_eq!(why(Pairs::to_one([1, 2, 9], 9)), WorkloadError::Itself { host: 9 });
        assert_eq!(why(Pairs::InTurn(Vec::new())), WorkloadError::NoPair);
        assert_eq!(why(Pairs::Uniform { from: vec![1], to: vec![1, 1] }), WorkloadError::NoPair);
        assert_eq!(why(Pairs::Uniform { from: vec![1], to: Vec::new() }), WorkloadError::NoPair);
        assert_eq!(why(Pairs::Permutation(vec![1])), WorkloadError::NoPair);
        assert_eq!(why(Pairs::Permutation(vec![1, 2, 1])), WorkloadError::Twice { host: 1 });
    }
}
