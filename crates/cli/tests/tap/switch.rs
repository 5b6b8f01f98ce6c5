//! A pair of captures as a switch beside the router gets it from taps, through the program `conquest-legacy`.

#![allow(dead_code, reason = "tests and examples use a part each")]

use crate::tap_pair::{Pair, Record, TAPPED};
use queuescope_p4::Gress;
use queuescope_p4::algorithms::ConQuestLegacyParams;
use queuescope_p4::ir::{Input, Interpreter, ParsedFrame, Polynomial, SwitchProgram};
use queuescope_sketch::Expiry;
use queuescope_wire::Nanos;
use std::collections::BTreeMap;

/// A frame that the switch processes.
pub struct Processed {
    pub time: Nanos,
    pub inputs: ParsedFrame,
    /// The packet's index in the original capture, and whether it comes from the link out. None for generated packets.
    pub packet: Option<(usize, bool)>,
}

/// The frames of the tapped links, and those of the packet generator, in the order of time. The switch has one clock.
pub fn processed(pair: &Pair, params: &ConQuestLegacyParams) -> Vec<Processed> {
    let tapped = pair.ingress[..TAPPED].iter().zip(&params.ingress);
    let records = tapped.flat_map(|(records, port)| records.iter().map(move |record| (record, *port, false)));
    let records = records.chain(pair.egress.iter().map(|record| (record, params.egress, true)));
    let frame = |(record, port, is_out): (&Record, u16, bool)| {
        let inputs = ParsedFrame::new(&record.data).with(Input::ArrivalPort, port.into());
        let inputs = inputs.with(Input::Arrived, record.time.0);
        Processed { time: record.time, inputs, packet: Some((record.id, is_out)) }
    };
    let mut all: Vec<_> = records.map(frame).collect();
    let sketch = &params.tapped.sketch;
    let ends = all.iter().map(|it| it.time).min().zip(all.iter().map(|it| it.time).max());
    if let (Some((first, last)), Expiry::Clean { .. }) = (ends, sketch.expiry) {
        let period = sketch.window.0 / sketch.columns as u64;
        all.extend((first.0.div_ceil(period)..=last.0 / period).map(|number| {
            let time = Nanos(number * period);
            let inputs = ParsedFrame::default().with(Input::Generated, 1).with(Input::Arrived, time.0);
            Processed { time, inputs, packet: None }
        }));
    }
    // Of the same time: what comes in, what leaves, and what is generated.
    all.sort_by_key(|it| (it.time, it.packet.map_or(2, |(_, is_out)| u8::from(is_out))));
    all
}

/// What the program did with the packets of a pair.
#[derive(Default)]
pub struct Switched {
    /// The delay of each packet that left and was seen before, by index.
    pub delays: BTreeMap<usize, Nanos>,
    /// The estimate for each packet that is reported.
    pub estimates: BTreeMap<usize, u32>,
    /// The packets that came and are not in the table, by index, with the packet that has their place.
    pub occupied: BTreeMap<usize, usize>,
    /// How many of these have the digest of the packet that has their place.
    pub repeated: usize,
    /// What became of all: the register `fates`.
    pub fates: Vec<u64>,
}

/// Runs the program. `params` report all packets that have a delay: their `tau` is 0, and so is their threshold, so that a packet without a wait is the only one
/// without a report.
pub fn through_switch(program: &SwitchProgram, params: &ConQuestLegacyParams, frames: &[Processed]) -> Switched {
    assert_eq!((params.tapped.tau, params.tapped.threshold), (Nanos::ZERO, 0), "all are reported");
    let mut interpreter = Interpreter::new(program, u64::MAX);
    let [.., of_slot, of_digest] = Polynomial::ALL;
    let mut switched = Switched::default();
    let mut places: BTreeMap<u64, usize> = BTreeMap::new();
    for frame in frames {
        let input = |input| frame.inputs.input(input);
        let place = of_slot.hash_packet(&input) % u64::from(params.tapped.slots);
        let word = |interpreter: &Interpreter<'_>| interpreter.words(0).expect("it is the first")[place as usize];
        let before = word(&interpreter);
        let fate = interpreter.run_at(Gress::Ingress, &input, &mut |_bits| 0);
        let Some((id, is_out)) = frame.packet else { continue };
        if is_out {
            if let Some(report) = fate.reported {
                switched.delays.insert(id, Nanos(report.delay.into()));
                switched.estimates.insert(id, report.estimate);
            }
        } else if word(&interpreter) == before {
            switched.occupied.insert(id, places.get(&place).copied().unwrap_or(id));
            switched.repeated += usize::from(of_digest.hash_packet(&input) == before & u64::from(u32::MAX));
        } else {
            places.insert(place, id);
        }
    }
    let last = program.registers().len() - 1;
    switched.fates = interpreter.words(last).unwrap_or_default().to_vec();
    switched
}
