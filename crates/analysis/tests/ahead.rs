//! A thread that reads ahead changes nothing in a report.

use proptest::prelude::*;
use queuescope_analysis::{Analysis, AnalysisOptions, Scale};
use queuescope_ingest::records::Unknown;
use queuescope_ingest::{OpenedCapture, Queue, Stop};
use queuescope_meter::History;
use queuescope_report::model::Report;
use queuescope_wire::{Flows, Rate};
use std::io::{self, Cursor, Read, Write, pipe};
use std::os::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::thread;

/// The report of a capture, and the calls of the progress.
fn report(capture: OpenedCapture, queue: &Queue, ahead: bool, flows: usize) -> (Report, Vec<(u64, u64)>) {
    let mut options = AnalysisOptions::default();
    options.pictures = true;
    let mask = queue.mask(&options.granularities());
    let flows = Flows::masked(mask, &options.granularities(), flows);
    let (rate, mut calls) = (capture.rate(), Vec::new());
    let scale = Scale::of_queue(rate, queue.limit);
    let params = options.params(Unknown::NOTHING, History::Fifo, Some(rate), scale).unwrap();
    let params = if queue.is_fifo() { params } else { params.in_any_order() };
    let mut analysis = Analysis::new(flows, params, ()).unwrap();
    let mut progress = |read, packets| calls.push((read, packets));
    let Ok(source) = capture.reads_ahead(ahead).replay(queue, mask, &mut analysis, &mut progress);
    (analysis.finish().0.report(source), calls)
}

fn rate() -> Rate {
    "10mbps".parse().unwrap()
}

/// A frame of TCP or UDP over IPv4 or IPv6, of a flow, or of another protocol.
fn frame(flow: u16, length: u16) -> Vec<u8> {
    let protocol = if flow.is_multiple_of(3) { 17 } else { 6 };
    let mut frame = vec![2; 12];
    if flow % 11 == 10 {
        frame.extend([0x08, 0x06]);
        frame.resize(60, 0);
        return frame;
    }
    let [high, low] = flow.to_be_bytes();
    if flow % 5 == 4 {
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        frame.extend((length + 20).to_be_bytes());
        frame.extend([protocol, 64]);
        frame.extend([0x20; 14]);
        frame.extend([high, low]);
        frame.extend([0x30; 16]);
    } else {
        frame.extend([0x08, 0x00, 0x45, flow as u8 & 3]);
        frame.extend((length + 40).to_be_bytes());
        frame.extend([0, 1, 0x40, 0, 64, protocol, 0, 0, 10, 0, high, low, 10, 1, 0, low % 7]);
    }
    frame.extend([high, 80, 0x10, low, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0, 0, 0, 0, 0, 0, 0]);
    frame
}

/// A capture of frames, each with its time in microseconds and its length on the wire.
fn pcap(frames: &[(u64, u16, u16)]) -> Vec<u8> {
    let mut file = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1].map(u32::to_le_bytes).concat();
    for (at, flow, length) in frames {
        let data = frame(*flow, *length);
        let header = [(at / 1_000_000) as u32, (at % 1_000_000) as u32, data.len() as u32, on_wire(&data, *length)];
        file.extend(header.map(u32::to_le_bytes).concat());
        file.extend(data);
    }
    file
}

/// The same as pcapng, with an interface for every third frame that has another resolution, and a block of another kind between.
fn pcapng(frames: &[(u64, u16, u16)]) -> Vec<u8> {
    let block = |kind: u32, body: &[u8]| {
        let length = (12 + body.len() as u32).to_le_bytes();
        [&kind.to_le_bytes()[..], &length, body, &length].concat()
    };
    let mut file = block(0x0a0d_0d0a, &[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]);
    file.extend(block(1, &[1, 0, 0, 0, 0, 0, 4, 0]));
    file.extend(block(1, &[1, 0, 0, 0, 0, 0, 4, 0, 9, 0, 1, 0, 9, 0, 0, 0]));
    for (index, (at, flow, length)) in frames.iter().enumerate() {
        let data = frame(*flow, *length);
        let interface = u32::from(index % 3 == 2);
        let ticks = if interface == 1 { at * 1_000 } else { *at };
        let fields = [interface, (ticks >> 32) as u32, ticks as u32, data.len() as u32, on_wire(&data, *length)]
            .map(u32::to_le_bytes);
        let mut body = [fields.concat(), data].concat();
        body.resize(body.len().next_multiple_of(4), 0);
        file.extend(block(6, &body));
        if index % 50 == 49 {
            file.extend(block(5, &[0; 12]));
        }
    }
    file
}

fn on_wire(data: &[u8], length: u16) -> u32 {
    data.len() as u32 + u32::from(length)
}

/// Packed by gzip, zstd, xz, or not at all.
fn packed(bytes: &[u8], how: u8) -> Vec<u8> {
    match how {
        1 => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        2 => zstd::encode_all(bytes, 1).unwrap(),
        3 => {
            let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 0);
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        _ => bytes.to_vec(),
    }
}

/// Frames in bursts, of few or of many flows, some of which are super-packets.
fn frames() -> impl Strategy<Value = Vec<(u64, u16, u16)>> {
    let gap = prop_oneof![10 => 0..300_u64, 3 => 0..4_000_u64, 1 => Just(30_000), 1 => Just(2_500_000)];
    let flow = prop_oneof![4 => 0..30_u16, 1 => 0..3_000_u16];
    let length = prop_oneof![3 => 0..1_400_u16, 1 => Just(1_400), 1 => 1_400..8_000_u16];
    // A run of frames that are alike.
    let run = (gap, flow, length, 1..40_usize);
    prop::collection::vec(run, 0..300).prop_map(|runs| {
        let mut now = 1_700_000_000_000_000;
        let one = |(gap, flow, length, times): &(u64, u16, u16, usize)| {
            let alike: Vec<_> = (0..*times)
                .map(|_| {
                    now += gap;
                    (now, *flow, *length)
                })
                .collect();
            alike
        };
        runs.iter().flat_map(one).collect()
    })
}

fn queues() -> impl Strategy<Value = Queue> {
    let aqm =
        prop_oneof![4 => Just(None), 1 => Just(Some("codel")), 1 => Just(Some("fq-codel")), 1 => Just(Some("red"))];
    let limit = prop_oneof![Just("1s"), Just("20 packets"), Just("none")];
    (aqm, limit, any::<bool>(), any::<bool>()).prop_map(|(aqm, limit, split, ethernet)| {
        let queue = Queue::default().with_limit(limit.parse().unwrap());
        let queue = if ethernet { queue.with_overhead("ethernet".parse().unwrap()) } else { queue };
        let queue = queue.with_split_gso(split);
        aqm.map_or(queue.clone(), |aqm| queue.with_aqm(aqm.parse().unwrap()))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn the_report_is_the_same(
        frames in frames(), newer in any::<bool>(), how in 0..4_u8, queue in queues(),
        flows in prop_oneof![Just(20_usize), Just(1 << 14)], only in prop_oneof![3 => Just(None), 1 => Just(Some("tcp"))],
        damage in prop::collection::vec((any::<prop::sample::Index>(), 0..300_usize, any::<u8>()), 0..3),
        cut in prop::option::weighted(0.3, any::<prop::sample::Index>()), packed_damage in any::<bool>(),
    ) {
        let mut file = if newer { pcapng(&frames) } else { pcap(&frames) };
        let damaged = |bytes: &mut Vec<u8>| {
            for (at, count, byte) in &damage {
                let at = at.index(bytes.len());
                let end = (at + count).min(bytes.len());
                bytes[at..end].fill(*byte);
            }
            if let Some(cut) = cut {
                bytes.truncate(cut.index(bytes.len()));
            }
        };
        if !packed_damage {
            damaged(&mut file);
        }
        let mut file = packed(&file, how);
        if packed_damage {
            damaged(&mut file);
        }
        let open = || OpenedCapture::from_reader(Cursor::new(file.clone()), "made", rate(), only);
        prop_assume!(open().is_ok());
        let [with, without] = [true, false].map(|ahead| report(open().unwrap(), &queue, ahead, flows));
        prop_assert_eq!(with, without);
    }
}

#[test]
fn the_report_of_a_capture_with_much_progress_is_the_same() {
    let frames: Vec<_> = (0..150_000).map(|n| (1_700_000_000_000_000 + n * 250, (n * n % 97) as u16, 300)).collect();
    let file = pcap(&frames);
    let open = || OpenedCapture::from_reader(Cursor::new(file.clone()), "made", rate(), None).unwrap();
    let [with, without] = [true, false].map(|ahead| report(open(), &Queue::default(), ahead, 50));
    assert_eq!(with.1.iter().map(|(_, packets)| *packets).collect::<Vec<_>>(), [0, 65_536, 131_072, 150_000]);
    assert!(!with.0.bursts.is_empty());
    assert_eq!(with, without);
}

/// A path to the end of a pipe from which a capture is read.
fn path(end: &impl AsRawFd) -> PathBuf {
    format!("/proc/self/fd/{}", end.as_raw_fd()).into()
}

#[test]
fn a_capture_is_read_from_a_pipe_as_it_is_written() {
    let frames: Vec<_> = (0..4_000).map(|n| (1_700_000_000_000_000 + n * 400, (n * n % 97) as u16, 300)).collect();
    let file = pcap(&frames);
    let [mut with, mut without] = [true, false].map(|ahead| {
        let (end, mut begin) = pipe().unwrap();
        // Pieces end within records, so that the reader waits there, and some are small.
        let (bytes, stop) = (file.clone(), Stop::manual().unwrap());
        let writer = thread::spawn(move || bytes.chunks(777).for_each(|piece| begin.write_all(piece).unwrap()));
        let capture = OpenedCapture::open(&path(&end), rate(), None, Some(&stop)).unwrap();
        let (report, _) = report(capture, &Queue::default(), ahead, 1 << 14);
        writer.join().unwrap();
        report
    });
    assert_eq!(with.totals.packets, 4_000);
    (with.input.name, without.input.name) = (String::new(), String::new());
    assert_eq!(with, without);
}

#[test]
fn a_stop_ends_the_thread_while_it_waits() {
    let frames: Vec<_> = (0..3_000).map(|n| (1_700_000_000_000_000 + n * 400, 1, 300)).collect();
    let (end, mut begin) = pipe().unwrap();
    let stop = Stop::manual().unwrap();
    let requests = stop.clone();
    let bytes = pcap(&frames);
    let writer = thread::spawn(move || {
        begin.write_all(&bytes).unwrap();
        requests.request();
        // The pipe stays open.
        begin
    });
    let capture = OpenedCapture::open(&path(&end), rate(), None, Some(&stop)).unwrap();
    let (report, _) = report(capture, &Queue::default(), true, 1 << 14);
    assert!(stop.is_obeyed());
    assert_eq!(report.input.damage, None);
    drop(writer.join().unwrap());
}

/// A source that fails after some bytes.
struct Failing(Cursor<Vec<u8>>, bool);

impl Read for Failing {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read(into)?;
        assert!(read > 0 || !self.1, "the source panics");
        if read == 0 { Err(io::Error::new(io::ErrorKind::ConnectionReset, "gone")) } else { Ok(read) }
    }
}

#[test]
fn an_error_of_the_source_comes_behind_all_packets() {
    let frames: Vec<_> = (0..3_000).map(|n| (1_700_000_000_000_000 + n * 400, 1, 300)).collect();
    let open =
        |panics| OpenedCapture::from_reader(Failing(Cursor::new(pcap(&frames)), panics), "made", rate(), None).unwrap();
    let [with, without] = [true, false].map(|ahead| report(open(false), &Queue::default(), ahead, 1 << 14));
    assert_eq!(with.0.totals.packets, 3_000);
    assert!(with.0.input.damage.as_ref().is_some_and(|damage| damage.contains("gone")), "{:?}", with.0.input.damage);
    assert_eq!(with, without);
    let panics = catch_unwind(AssertUnwindSafe(|| report(open(true), &Queue::default(), true, 1 << 14)));
    let message = panics.unwrap_err().downcast::<&str>().unwrap();
    assert_eq!(*message, "the source panics");
}
