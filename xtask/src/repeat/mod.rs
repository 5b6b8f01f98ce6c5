//! Makes a large capture from a small one: the same packets repeatedly, each time later and with other addresses.
//!
//! One pass finds the times and addresses of all packets. A repetition only changes those words in the single copy in
//! memory and writes it, so the speed is about that of the output.

mod addresses;
mod capture;
mod shift;

use anyhow::{Context, bail, ensure};
use capture::Capture;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};

/// How much to produce.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Goal {
    Times(u64),
    Packets(u64),
    Bytes(u64),
}

/// `repeat IN OUT (--times N | --packets N | --bytes N)`.
pub fn run(arguments: &[String]) -> anyhow::Result<()> {
    let (input, output, goal) = parse_arguments(arguments)?;
    let mut capture = Capture::parse(read(input)?).with_context(|| format!("{input} cannot be repeated"))?;
    let times = match goal {
        Goal::Times(times) => times,
        Goal::Packets(packets) => packets.div_ceil(capture.packets() as u64),
        Goal::Bytes(bytes) => bytes.div_ceil(capture.record_bytes() as u64),
    };
    capture.check(times)?;
    let written = match output {
        "-" => write(&mut capture, times, io::stdout().lock()),
        path => File::create(path).and_then(|file| write(&mut capture, times, file)),
    };
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
        other => other.with_context(|| format!("{output} could not be written"))?,
    }
    let bare = match capture.without_addresses() {
        0 => String::new(),
        count => format!("; {count} packets of each repetition have no IP address, so their flows are repeated"),
    };
    eprintln!(
        "repeat: {} packets x {times} = {} packets, {} flows (five-tuples), {} bytes{bare}",
        capture.packets(),
        capture.packets() as u64 * times,
        capture.flows() as u64 * times,
        capture::GLOBAL_HEADER as u64 + capture.record_bytes() as u64 * times,
    );
    Ok(())
}

fn write(capture: &mut Capture, times: u64, output: impl Write) -> io::Result<()> {
    let mut output = BufWriter::with_capacity(1 << 20, output);
    output.write_all(capture.header())?;
    for repetition in 0..times {
        output.write_all(capture.repetition(repetition))?;
    }
    output.flush()
}

fn read(path: &str) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match path {
        "-" => io::stdin().lock().read_to_end(&mut bytes),
        path => File::open(path).and_then(|mut file| file.read_to_end(&mut bytes)),
    }
    .with_context(|| format!("{path} could not be read"))?;
    Ok(bytes)
}

fn parse_arguments(arguments: &[String]) -> anyhow::Result<(&str, &str, Goal)> {
    let mut files = Vec::new();
    let mut goal = None;
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let make: fn(u64) -> Goal = match argument.as_str() {
            "--times" => Goal::Times,
            "--packets" => Goal::Packets,
            "--bytes" => Goal::Bytes,
            unknown if unknown.starts_with("--") => {
                bail!("unknown option '{unknown}' of repeat; see cargo xtask --help")
            }
            file => {
                files.push(file);
                continue;
            }
        };
        let value = rest.next().with_context(|| format!("{argument} needs a number"))?;
        let number = value.replace('_', "").parse().ok().filter(|&number: &u64| number > 0);
        let number = number.with_context(|| format!("{argument} needs a number above zero, not '{value}'"))?;
        ensure!(goal.replace(make(number)).is_none(), "--times, --packets and --bytes exclude each other");
    }
    let (&[input, output], Some(goal)) = (&files[..], goal) else {
        bail!("repeat needs an input, an output, and one of --times, --packets and --bytes; see cargo xtask --help");
    };
    Ok((input, output, goal))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> anyhow::Result<Goal> {
        let arguments: Vec<_> = text.split_whitespace().map(str::to_owned).collect();
        parse_arguments(&arguments).map(|(_, _, goal)| goal)
    }

    #[test]
    fn arguments() {
        assert_eq!(parse("a b --times 3").unwrap(), Goal::Times(3));
        assert_eq!(parse("--packets 10_000_000 a -").unwrap(), Goal::Packets(10_000_000));
        for wrong in ["", "a b", "a --times 3", "a b c --times 3", "a b --times 0", "a b --times", "a b --thrice 3"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert!(parse("a b --times 3 --bytes 4").unwrap_err().to_string().contains("exclude"));
    }
}
