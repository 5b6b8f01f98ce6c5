//! A build of a program for whole frames: as it is printed, except that what BMv2 alone knows comes in a header in front of each frame.

use queuescope_p4::ir::{Architecture, SwitchProgram, TestBuild, print};

/// The EtherType of frames that carry another one.
pub const ETHER_TYPE: u16 = 0x88b6;
/// The bytes in front of the frame that is carried.
pub const HEADER: usize = 44;

/// What BMv2 would give in place of its clock, its queue and its random numbers. The names are those of `v1model.p4`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Intrinsics {
    /// When the packet arrived, in microseconds.
    pub ingress_global_timestamp: u64,
    /// When it left the queue, in microseconds.
    pub egress_global_timestamp: u64,
    /// How long it waited, in microseconds.
    pub deq_timedelta: u32,
    /// The packets in the queue when it came.
    pub enq_qdepth: u32,
    /// The packets in the queue when it left.
    pub deq_qdepth: u32,
    /// The numbers that it draws.
    pub random: [u32; 2],
}

impl Intrinsics {
    /// The header, with the Ethernet header that it begins with.
    pub fn header(&self) -> Vec<u8> {
        let mut header = [2, 0, 0, 0, 0, 0xfe, 2, 0, 0, 0, 0, 0xff].to_vec();
        header.extend(ETHER_TYPE.to_be_bytes());
        for time in [self.ingress_global_timestamp, self.egress_global_timestamp] {
            header.extend(&time.to_be_bytes()[2..]);
        }
        header.extend(self.deq_timedelta.to_be_bytes());
        header
            .extend([self.enq_qdepth, self.deq_qdepth].into_iter().flat_map(|depth| depth.to_be_bytes()[1..].to_vec()));
        header.extend(self.random.into_iter().flat_map(u32::to_be_bytes));
        assert_eq!(header.len(), HEADER);
        header
    }
}

const TEST_HEADER: &str = "\
header test_h {
    bit<96> addresses;
    bit<16> ether_type;
    bit<48> ingress_global_timestamp;
    bit<48> egress_global_timestamp;
    bit<32> deq_timedelta;
    bit<5> unused_before_enq_qdepth;
    bit<19> enq_qdepth;
    bit<5> unused_before_deq_qdepth;
    bit<19> deq_qdepth;
    bit<32> random_0;
    bit<32> random_1;
}

struct headers_t {
    test_h test;
";

/// What comes in the header.
const FROM_HEADER: [&str; 5] =
    ["ingress_global_timestamp", "egress_global_timestamp", "deq_timedelta", "enq_qdepth", "deq_qdepth"];
/// What the build leaves to BMv2.
const FROM_BMV2: [&str; 5] = ["ingress_port", "egress_spec", "egress_port", "priority", "instance_type"];
const FIELD: &str = "standard_metadata.";

/// The text of the program, with the header in front of its parser and its deparser. All else is as printed.
///
/// # Panics
/// Fails if the text has something from BMv2 that is not known here, so that no field of its own stays in a comparison.
pub fn frame_build(program: &SwitchProgram) -> String {
    let mut text = print(program, Architecture::V1model);
    let deparser = "control MainDeparser(packet_out packet, in headers_t hdr) {\n    apply {\n";
    let parser = "    state start {\n";
    let length = format!("({FIELD}packet_length - 32w{HEADER})");
    for (from, to) in [
        ("struct headers_t {\n", TEST_HEADER.to_owned()),
        (deparser, format!("{deparser}        packet.emit(hdr.test);\n")),
        (parser, format!("{parser}        packet.extract(hdr.test);\n")),
    ] {
        assert_eq!(text.matches(from).count(), 1, "{from} in {}", program.name());
        text = text.replace(from, &to);
    }
    for name in FROM_HEADER {
        text = text.replace(&format!("{FIELD}{name}"), &format!("hdr.test.{name}"));
    }
    let is_known = |name: &str| FROM_BMV2.iter().any(|known| name.starts_with(known));
    for rest in text.split(FIELD).skip(1) {
        assert!(rest.starts_with("packet_length") || is_known(rest), "{}: {}", program.name(), &rest[..40]);
    }
    let text = text.replace(&format!("{FIELD}packet_length"), &length);
    // Where a packet draws one number at most, all calls take the first.
    let (drawn, calls) = (TestBuild::new(program).random(), text.matches(CALL).count());
    assert!(drawn <= 1 || drawn == calls && drawn == 2, "{}: {drawn} numbers in {calls} calls", program.name());
    let mut before = 0;
    let line = |line: &str| {
        let number = if drawn == 2 { before } else { 0 };
        before += line.matches(CALL).count();
        random(line, number) + "\n"
    };
    text.lines().map(line).collect()
}

const CALL: &str = "random(";

/// `random(drawn, 0, 32w0xffffffff);` with the number from the header.
fn random(line: &str, number: usize) -> String {
    let Some((before, call)) = line.split_once(CALL) else { return line.to_owned() };
    let drawn = |call: &str| {
        let (name, limits) = call.split_once(", 0, ")?;
        let bits: u32 = limits.split_once('w')?.0.parse().ok()?;
        Some(format!("{before}{name} = hdr.test.random_{number}[{}:0];", bits - 1))
    };
    drawn(call).unwrap_or_else(|| panic!("{line}"))
}

#[test]
fn the_build_differs_from_the_program_where_bmv2_decides_only() {
    for program in crate::compiled::programs() {
        let (printed, build) = (print(&program, Architecture::V1model), frame_build(&program));
        let is_own = |line: &&str| !build.lines().any(|it| it == *line);
        let changed: Vec<_> = printed.lines().filter(is_own).collect();
        let is_of_bmv2 = |line: &&str| line.contains("random(") || line.contains(FIELD);
        assert!(changed.iter().all(is_of_bmv2), "{}: {changed:?}", program.name());
        assert!(changed.len() <= 12, "{}: {changed:?}", program.name());
    }
}
