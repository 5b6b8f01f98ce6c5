//! The file that says what the others of a folder are.

use queuescope_p4::ir::{SwitchProgram, Trace};

/// What the files are, and how the packets are replayed.
pub(super) fn of_bmv2(program: &SwitchProgram, [has_entries, has_control]: [bool; 2], trace: &Trace) -> String {
    let (name, period) = (program.name(), program.period());
    let (of_entries, fill) =
        if has_entries { (README_OF_ENTRIES, "    simple_switch_CLI < NAME.cli\n") } else { ("", "") };
    let of_control = match (has_control, name) {
        (false, _) => "",
        (true, "p4air") => README_OF_CONTROL_OF_P4AIR,
        _ => README_OF_CONTROL,
    };
    let Trace { packets, generated, dropped, marked, reported } = trace;
    let acts = match (dropped, marked) {
        _ if *reported > 0 => format!("the program reports {reported}"),
        (0, 0) => "the program drops and marks none with these parameters".to_owned(),
        _ => format!("the program drops {dropped} and marks {marked}"),
    };
    let all = packets.len();
    let is_abc = name.starts_with("abc-");
    let to_run = match name {
        "conquest-legacy" => README_OF_TAPS.to_owned(),
        _ => README_OF_RUNNING
            .replace("BORDER\n", if is_abc { README_OF_BORDER } else { "" })
            // Without the option, BMv2 has one queue, and drops the packets of others.
            .replace("OPTIONS", if program.chooses_queues() { "-- --priority-queues 8 " } else { "" }),
    };
    let acts = match generated {
        0 => format!("Of the {all} packets, {acts}."),
        _ => format!("Of the {all} packets, the packet generator would send {generated}. Of the others, {acts}."),
    };
    let text = README
        .replace("RUNNING\n", &to_run)
        .replace("GENERATED\n", if period.is_some() { README_OF_GENERATED } else { "" })
        .replace("PERIOD", &period.map(|period| period.to_string()).unwrap_or_default())
        .replace("ENTRIES\n", of_entries)
        .replace("CONTROL\n", of_control)
        .replace("FILL\n", fill)
        .replace("ACTS", &acts);
    aligned(&text.replace("NAME", name))
}

/// What the files for Tofino are, and what the switch needs besides.
pub(super) fn of_tna(program: &SwitchProgram, [has_entries, has_control]: [bool; 2]) -> String {
    let generated =
        program.period().map_or(String::new(), |period| README_OF_GENERATOR.replace("PERIOD", &period.0.to_string()));
    let text = README_OF_TNA
        .replace("ENTRIES\n", if has_entries { README_OF_BFRT } else { "" })
        .replace("CONTROL\n", if has_control { README_OF_CONTROL_OF_TNA } else { "" })
        .replace("ADDRESSES\n", if program.is_off_path() { "" } else { README_OF_ADDRESSES })
        .replace("GENERATED\n", &generated);
    aligned(&text.replace("NAME", program.name()))
}

/// The text with what follows the tabs of its lines in one column.
fn aligned(text: &str) -> String {
    let cells = || text.lines().map(|line| line.split_once('\t'));
    let width = cells().flatten().map(|(file, _)| file.chars().count()).max().unwrap_or(0);
    let lines = cells().zip(text.lines()).map(|(cells, line)| match cells {
        Some((file, about)) => format!("{file:<width$}  {about}\n"),
        None => format!("{line}\n"),
    });
    lines.collect()
}

const README_OF_ENTRIES: &str = "\
NAME.cli\tthe entries of its tables, as commands of simple_switch_CLI; if the program has hashes or
\tsends copies back, their polynomials and the mirror session, too
NAME.p4runtime.json\tthe entries alone for P4Runtime, by name: the configuration of the
\tcontroller in the P4 tutorials (github.com/p4lang/tutorials, utils/p4runtime_lib)
";

const README_OF_CONTROL: &str = "\
NAME.control.py\tits control plane: python3 NAME.control.py PORT..., while the switch runs
";

const README_OF_CONTROL_OF_P4AIR: &str = "\
NAME.control.py\tits control plane, which removes flows that have ended: python3 NAME.control.py PORT, while the
\tswitch runs; PORT is the one by which all managed flows leave
";

const README_OF_RUNNING: &str = "\
To run it between two interfaces, as root (in bash):

    make -f NAME.mk
    for i in left right; do ip link set $i up; ethtool -K $i tx off gso off tso off gro off; done
    simple_switch -i 0@left -i 1@right NAME.json OPTIONS&
FILL
    echo table_add MainIngress.forward MainIngress.send 02:00:00:00:00:0b '=>' 1 | simple_switch_CLI

The last command is for each address: frames to others are dropped, broadcasts too. So hosts need each other's address:
ip neigh add. p4 generate --forward 02:00:00:00:00:0b=1 writes the command into a file. The interfaces of the hosts need
the same ethtool command, because BMv2 does not complete checksums and does not segment. Stop the switch (kill %1) before the
test by hand below: both use the same control port.
GENERATED
BORDER
";

const README_OF_TAPS: &str = "\
To run it beside a router, as root (in bash), with the taps of three links into the router, that of the link out, and a
collector, by their ports in NAME.cli:

    make -f NAME.mk
    simple_switch -i 1@in1 -i 2@in2 -i 3@in3 -i 4@out -i 5@collector NAME.json &
FILL

It forwards nothing: only reports leave, by the port of the collector. The collector's link takes frames of 22 bytes more.
GENERATED
";

const README_OF_GENERATED: &str = "
BMv2 has no packet generator. Send a frame with the EtherType 0x88b5 for each port every PERIOD, to an address that is
forwarded to that port: others are dropped. Without these frames, the program does not do what generated packets do
(NAME.p4 says what that is). BMv2 is too slow for short periods: fewer columns, or longer windows, need fewer frames.
";

const README_OF_BORDER: &str = "
p4 generate --border 1 puts port 1 on the other side of the domain's border: of the edge, into the domain; of the core and the
exit, out of it. Interfaces within the domain need an MTU of 4 bytes more.
";

const README_OF_TNA: &str = "\
NAME.p4\tfor a Tofino (TNA)
NAME.mk\tcompiles it with p4c (make -f NAME.mk): the folder NAME.tofino, whose logs queuescope p4 report reads
ENTRIES
CONTROL

The switch needs more, which depends on it: its ports with their rates, and
ADDRESSES
GENERATED
NAME.p4 says what the program does. These programs have been compiled, and not run on a switch.
A test with packets is written for v1model only.
";

const README_OF_BFRT: &str = "\
NAME.bfrt.py\tthe entries of its tables, and what else it needs, for bfrt_python
";

const README_OF_CONTROL_OF_TNA: &str = "\
NAME.control.py\tits control plane, for bfrt_python
";

const README_OF_ADDRESSES: &str = "\
- an entry of the table forward for each address (action send, with the port): frames to others are dropped
";

const README_OF_GENERATOR: &str = "\
- the packet generator: an application with a periodic timer, which sends a packet every PERIOD ns by the generator's port of
  the pipe (68)
- multicast group 1, with a copy to each port that the program manages
Without the last two, the program does not do what generated packets do.
";

const README: &str = "\
The program

NAME.p4\tfor BMv2's simple_switch
NAME.mk\tcompiles it with p4c (make -f NAME.mk): NAME.json, and NAME.p4info.txtpb for P4Runtime
ENTRIES
CONTROL

RUNNING

The test

NAME.test.p4\tthe same program, except that its inputs and random numbers come in a header, and its
\tdecisions and the words of its registers leave in it. It sends each packet back.
NAME.sent.pcap\tpackets for it: Ethernet frames of the EtherType 0x88b6, with this header
NAME.expected.pcap\tthe packets as they must come back
NAME.replay.py\tsends the packets, and compares

ACTS

To compile the test and run it, as root: make -f NAME.mk replay

By hand, as root, with tcpreplay and tcpdump (in bash):

    make -f NAME.mk test
    ip link add near type veth peer name far
    ip link set near up
    ip link set far up
    simple_switch -i 0@far NAME.test.json &
FILL
    tcpdump -i near -Q in -w received.pcap ether proto 0x88b6 &
    tcpreplay -i near --pps 100 NAME.sent.pcap
    kill %2
    diff <(tcpdump -t -xx -r NAME.expected.pcap) <(tcpdump -t -xx -r received.pcap) && echo the same

Restart the switch before each replay: its registers keep their words.
";
