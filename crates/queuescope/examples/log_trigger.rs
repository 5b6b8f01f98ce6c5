//! Headers of a capture in memory, with a trigger: `cargo run --release -p queuescope --features log --example log_trigger -- data/demo.pcap.xz`.

use queuescope::ingest::open_capture;
use queuescope::ingest::records::{Frames, Records};
use queuescope::log::{Definitions, Log, Memory, Options};
use queuescope::wire::parse::{LinkType, Parser, Tunnel};
use std::error::Error;

const DEFINITIONS: &str = r#"
[[filter]]
name = "segments"
expression = "tcp"

[[aggregate]]
name = "bytes"
function = "sum(length)"
filter = "segments"

[[trigger]]
name = "busy"
condition = "bytes > 100kB"
period = "10ms"
window = "100ms"
"#;

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("usage: log_trigger FILE")?;
    let schema = Frames::schema();
    let log = Log::new(schema.clone(), Options { records: 1 << 22, memory: Memory::Lazy })?;
    let defined = Definitions::parse("example", DEFINITIONS, schema)?.apply(&log)?;
    let mut monitor = defined.monitor(&log)?;

    let (mut parser, mut frames) = (Parser::new(Tunnel::Outer), Frames::default());
    let mut capture = open_capture(file.as_ref())?;
    while let Some(record) = capture.next_record()? {
        let time = frames.time(&record).unwrap_or_default();
        // The triggers that are due by now are looked at before the packet counts.
        monitor.pass(time.0, |name, alert| {
            if alert.new {
                println!("{name} at {time}: {} bytes", alert.value.to_f64());
            }
        });
        let frame = parser.parse(LinkType::from_dlt(record.link), record.original_len, record.data);
        if log.append(frames.fill(&record, Some(time), &frame)).refused > 0 {
            return Err("the log is full".into());
        }
    }
    println!("{} packets", log.snapshot().len());
    Ok(())
}
