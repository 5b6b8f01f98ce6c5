//! The event queue, in order of time.

use queuescope_wire::Nanos;

/// Future events. Events of the same time come in the order in which they were pushed, so that a run is a function of its
/// inputs; but links are served last, so that a packet which arrives as another departs still finds that one in the queue
/// (ConQuest definition 3.1).
///
/// Alternatively *in turn*, as in ns-3: an event that is implied by another one, such as the end of a transmission and the
/// arrival at the other end by the start of the transmission, takes its place among events of the same time at that moment, whenever it is pushed.
///
/// A heap with four children per node, as one cache line holds four keys. A key has 128 bits: the time, whether a link is
/// served, a serial number, and the event. An event usually causes another one soon. So the place of the
/// event that was taken last stays free for the next one that is pushed, which then has a short way to move.
#[derive(Debug, Default)]
pub(crate) struct Events {
    heap: Vec<u128>,
    /// Whether the first place is free.
    hole: bool,
    serial: u64,
    in_turn: bool,
}

/// A place among events of the same time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Turn(u64);

/// An event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// A link is free, and packets wait for it.
    Serve(u32),
    /// The first packet in flight on a link reaches its other end.
    Arrive(u32),
    /// A discipline's timer.
    QueueTimer(u32),
    /// A sender's timer.
    SenderTimer(u32),
    /// A receiver's timer.
    ReceiverTimer(u32),
    /// A source of datagrams sends.
    Datagram(u32),
    /// A workload's next flow starts.
    Start(u32),
    /// A workload's flows stop.
    Stop(u32),
    /// A switch's timer.
    SwitchTimer(u32),
    /// Recirculated packets come to a switch's ingress again.
    Recirculated(u32),
    /// The warm-up ends: earlier counts are discarded.
    WarmedUp,
    /// The state is sampled.
    Sample,
}

/// Bits of the index within an event, and of the event with its kind.
const INDEX: u32 = 24;
const CODE: u32 = INDEX + 4;
const CHILDREN: usize = 4;
/// The bit that makes links be served last, and the serial numbers below it.
const LATE: u64 = 1 << 63;
const SERIALS: u64 = LATE >> CODE;

impl Events {
    /// The highest index of an event.
    pub const MOST: u32 = (1 << INDEX) - 1;

    /// From now on events come in turn.
    pub fn come_in_turn(&mut self) {
        self.in_turn = true;
    }

    /// Whether events come in turn.
    #[inline]
    pub fn are_in_turn(&self) -> bool {
        self.in_turn
    }

    /// Takes a turn now for an event that is pushed later. The event must be pushed before 2^35 further turns are taken, which is the number
    /// of serial numbers; otherwise it comes late among events of its time.
    #[inline]
    pub fn turn(&mut self) -> Turn {
        if self.in_turn { self.next() } else { Turn::default() }
    }

    /// Pushes an event at `at`, in a turn that was taken for it; or in a turn taken now, unless events come in turn.
    #[inline]
    pub fn push_in_turn(&mut self, at: Nanos, event: Event, turn: Turn) {
        let turn = if self.in_turn { turn } else { self.next() };
        let late = if matches!(event, Event::Serve(_)) && !self.in_turn { LATE } else { 0 };
        let key = u128::from(at.0) << 64 | u128::from(late | turn.0 << CODE | u64::from(event.code()));
        if self.hole {
            self.hole = false;
            self.sink(key);
        } else {
            self.heap.push(key);
            self.rise(key);
        }
    }

    /// Pushes an event at `at`.
    #[inline]
    pub fn push(&mut self, at: Nanos, event: Event) {
        let turn = self.turn();
        self.push_in_turn(at, event, turn);
    }

    #[inline]
    fn next(&mut self) -> Turn {
        self.serial += 1;
        if self.serial == SERIALS {
            self.renumber();
        }
        Turn(self.serial)
    }

    /// The time of the first event.
    #[inline]
    pub fn next_time(&self) -> Option<Nanos> {
        let first = if self.hole { self.heap.iter().take(1 + CHILDREN).skip(1).min() } else { self.heap.first() };
        first.map(|key| Nanos((key >> 64) as u64))
    }

    /// Takes the first event, with its time.
    #[inline]
    pub fn pop(&mut self) -> Option<(Nanos, Event)> {
        self.fill();
        let first = *self.heap.first()?;
        self.hole = true;
        Some((Nanos((first >> 64) as u64), Event::from_code(first as u32 & ((1 << CODE) - 1))))
    }

    /// Fills the free first place.
    #[inline]
    fn fill(&mut self) {
        if std::mem::take(&mut self.hole)
            && let Some(last) = self.heap.pop()
            && !self.heap.is_empty()
        {
            self.sink(last);
        }
    }

    /// Gives the waiting events the first serial numbers, in their order.
    #[cold]
    fn renumber(&mut self) {
        self.fill();
        self.heap.sort_unstable();
        for (serial, key) in (1u64..).zip(&mut self.heap) {
            let others = u128::MAX << 64 | u128::from(LATE | ((1 << CODE) - 1));
            *key = *key & others | u128::from(serial << CODE);
        }
        self.serial = self.heap.len() as u64 + 1;
    }

    /// The last slot of the heap is free for `key`, which moves up to its place.
    #[inline]
    fn rise(&mut self, key: u128) {
        let mut at = self.heap.len() - 1;
        while at > 0 {
            let parent = (at - 1) / CHILDREN;
            if self.heap[parent] <= key {
                break;
            }
            self.heap[at] = self.heap[parent];
            at = parent;
        }
        self.heap[at] = key;
    }

    /// The root is free for `key`, which moves down to its place.
    #[inline]
    fn sink(&mut self, key: u128) {
        let heap = &mut self.heap[..];
        let mut at = 0;
        loop {
            let first = at * CHILDREN + 1;
            let least = if let Some(&[a, b, c, d]) = heap.get(first..first + CHILDREN) {
                let (left, right) = (u32::from(b < a), 2 + u32::from(d < c));
                let (least_left, least_right) = (a.min(b), c.min(d));
                first + (if least_right < least_left { right } else { left }) as usize
            } else if let Some((offset, _)) =
                heap.get(first..).and_then(|rest| rest.iter().enumerate().min_by_key(|(_, key)| **key))
            {
                first + offset
            } else {
                break;
            };
            if key <= heap[least] {
                break;
            }
            heap[at] = heap[least];
            at = least;
        }
        heap[at] = key;
    }
}

impl Event {
    #[inline]
    fn code(self) -> u32 {
        let (kind, index) = match self {
            Self::Serve(index) => (0, index),
            Self::Arrive(index) => (1, index),
            Self::QueueTimer(index) => (2, index),
            Self::SenderTimer(index) => (3, index),
            Self::ReceiverTimer(index) => (4, index),
            Self::Datagram(index) => (5, index),
            Self::Start(index) => (6, index),
            Self::Stop(index) => (7, index),
            Self::SwitchTimer(index) => (8, index),
            Self::Recirculated(index) => (9, index),
            Self::WarmedUp => (10, 0),
            Self::Sample => (11, 0),
        };
        debug_assert!(index <= Events::MOST);
        kind << INDEX | index
    }

    #[inline]
    fn from_code(code: u32) -> Self {
        let index = code & Events::MOST;
        match code >> INDEX {
            0 => Self::Serve(index),
            1 => Self::Arrive(index),
            2 => Self::QueueTimer(index),
            3 => Self::SenderTimer(index),
            4 => Self::ReceiverTimer(index),
            5 => Self::Datagram(index),
            6 => Self::Start(index),
            7 => Self::Stop(index),
            8 => Self::SwitchTimer(index),
            9 => Self::Recirculated(index),
            10 => Self::WarmedUp,
            _ => Self::Sample,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_event_is_its_code() {
        for event in [
            Event::Serve(0),
            Event::Arrive(1),
            Event::QueueTimer(2),
            Event::SenderTimer(Events::MOST),
            Event::ReceiverTimer(4),
            Event::Datagram(5),
            Event::Start(6),
            Event::Stop(7),
            Event::SwitchTimer(7),
            Event::Recirculated(8),
            Event::WarmedUp,
            Event::Sample,
        ] {
            assert_eq!(Event::from_code(event.code()), event);
        }
    }

    #[test]
    fn in_turn_the_place_is_that_of_when_it_was_taken() {
        for in_turn in [false, true] {
            let mut events = Events { in_turn, ..Events::default() };
            let (served, arrives) = (events.turn(), events.turn());
            events.push(Nanos(7), Event::SenderTimer(1));
            events.push_in_turn(Nanos(7), Event::Arrive(2), arrives);
            events.push_in_turn(Nanos(7), Event::Serve(3), served);
            let order: Vec<_> = std::iter::from_fn(|| events.pop()).map(|(_, event)| event).collect();
            let mut expected = [Event::SenderTimer(1), Event::Arrive(2), Event::Serve(3)];
            if in_turn {
                expected.reverse();
            }
            assert_eq!(order, expected);
        }
    }

    proptest! {
        /// Compares with a stable sort by time, for all points at which serial numbers run out.
        #[test]
        fn events_come_in_order_of_time_then_of_pushing(
            steps in prop::collection::vec(prop::option::of((0..20u64, any::<bool>())), 0..300), left in 1..400u64
        ) {
            let (mut events, mut model) = (Events { serial: SERIALS - left, ..Events::default() }, Vec::new());
            for (n, step) in steps.iter().enumerate() {
                match step {
                    Some((at, late)) => {
                        let event = if *late { Event::Serve(n as u32) } else { Event::Arrive(n as u32) };
                        events.push(Nanos(*at), event);
                        model.push((Nanos(*at), event));
                        model.sort_by_key(|(at, event)| (*at, matches!(event, Event::Serve(_))));
                    }
                    None => {
                        prop_assert_eq!(events.next_time(), model.first().map(|(at, _)| *at));
                        prop_assert_eq!(events.pop(), (!model.is_empty()).then(|| model.remove(0)));
                    }
                }
            }
            while let Some(event) = events.pop() {
                prop_assert_eq!(event, model.remove(0));
            }
            prop_assert!(model.is_empty());
        }
    }
}
