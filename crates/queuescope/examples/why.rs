//! Why a packet of a capture waited: `cargo run --release -p queuescope --example why -- data/demo.pcap.xz 20mbps 1000`.

use queuescope::analysis::why::{Question, Recorder};
use queuescope::ingest::{OpenedCapture, Queue};
use queuescope::report::text;
use queuescope::wire::{Flows, KeyMask};
use std::error::Error;
use std::io;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [file, rate, packet] = arguments.as_slice() else { return Err("usage: why FILE RATE PACKET".into()) };
    let mut question = Question::default();
    question.packet = Some(packet.parse()?);

    let flows = ["5tuple".parse()?];
    let mut recorder = Recorder::new(Flows::new(&flows, usize::MAX), question);
    let capture = OpenedCapture::open(Path::new(file), rate.parse()?, None, None)?;
    let source = capture.replay(&Queue::default(), KeyMask::covering(&flows), &mut recorder, &mut |_, _| ())?;
    text::write_why(&recorder.answer(source)?, &mut io::stdout())?;
    Ok(())
}
