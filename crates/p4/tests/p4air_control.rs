//! The control plane that removes P4air's ended flows: beside the Rust type, and on BMv2.

#![allow(clippy::disallowed_methods, reason = "the tests run other programs, on files that they write")]

use crate::bmv2;
use crate::compiled;
use crate::frames::{self, Acts, Arrival, Model, PORTS, address, arrivals, frame_build, plan};
use queuescope_p4::Gress;
use queuescope_p4::algorithms::p4air_control;
use queuescope_p4::ir::{Architecture, Input, PacketFate, ParsedFrame, Polynomial, passing};
use queuescope_queue::{
    FlowTable, GroupActions, P4airParams, SwitchNote, SwitchP4air, SwitchP4airParams, SwitchPacket, SwitchRegister,
    SwitchTcp,
};
use queuescope_sketch::FingerprintParams;
use queuescope_wire::Nanos;
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

/// As in [`compiled::p4air`].
fn params() -> SwitchP4airParams {
    let table = FlowTable::Hashed { entries: 128, seed: 0 };
    let fingerprint = FingerprintParams { default_rtt: Nanos(200_000), ..FingerprintParams::default() };
    let p4air = P4airParams { table, fingerprint, delay_passes: 2, ..P4airParams::default() };
    SwitchP4airParams { p4air, ..SwitchP4airParams::default() }
}

/// The Rust type after some passes, and the flows that it has seen: their ports and hashes.
fn after_passes(seed: u64, count: usize) -> (SwitchP4air, Vec<(u16, u32)>) {
    let mut switch = SwitchP4air::new(params()).expect("a switch can have these");
    let mut flows = Vec::new();
    passing(seed, count, |pass| {
        let input = |input| pass.input(input);
        let [entry, sent, before, each, bytes @ ..] = pass.note;
        let [round, group, queue, is_newest, request, to, giver, passes] = bytes.map(|slot| slot as u8);
        let mut note =
            SwitchNote { entry, sent, before, each, round, group, queue, is_newest, request, to, giver, passes };
        let mut fate = PacketFate::default();
        if pass.gress == Gress::Egress {
            fate.fed_back = switch.behind_the_queue(pass.depth, &mut note);
        } else {
            let hash = |polynomial: Polynomial, input: &dyn Fn(Input) -> u64| polynomial.hash(input);
            let flags = input(Input::TcpFlags);
            let tcp = SwitchTcp { syn: flags & 2 != 0, ack: flags & 16 != 0, window: input(Input::Window) as u16 };
            let packet = SwitchPacket {
                port: input(Input::Port) as u16,
                arrival_port: input(Input::ArrivalPort) as u16,
                arrived: pass.now,
                flow: Polynomial::Ethernet.hash(&input) as u32,
                reverse: Polynomial::reversed(hash, Polynomial::Ethernet, &input) as u32,
                has_data: pass.has_data(),
                tcp: pass.is_tcp().then_some(tcp),
            };
            if packet.has_data && !flows.contains(&(packet.port, packet.flow)) {
                flows.push((packet.port, packet.flow));
            }
            let found = switch.before_the_queue(&packet, &mut note, pass.is_back);
            (fate.dropped, fate.fed_back, fate.recirculated) = (found.dropped, found.copied, found.recirculated);
        }
        let SwitchNote { round, group, queue, is_newest, request, to, giver, passes, .. } = note;
        let bytes = [round, group, queue, is_newest, request, to, giver, passes].map(u16::from);
        fate.note[..4].copy_from_slice(&[note.entry, note.sent, note.before, note.each]);
        fate.note[4..].copy_from_slice(&bytes);
        fate
    });
    (switch, flows)
}

/// All words before the queue, by the names of their registers.
fn words(switch: &SwitchP4air) -> Value {
    let of = |(number, register): (usize, SwitchRegister)| {
        (register.name.to_owned(), json!(switch.words(number).expect("it is there")))
    };
    SwitchRegister::ALL.into_iter().enumerate().map(of).collect::<serde_json::Map<_, _>>().into()
}

/// The control plane without its last lines, which run it.
fn module() -> String {
    let script = p4air_control(&params()).expect("a switch can have these");
    let (module, _) = script.split_once("\nif __name__").expect("it runs as a program");
    module.to_owned()
}

/// Runs Python with an input; none, with a message, where there is none.
fn python(test: &str, program: &str, input: &str) -> Option<String> {
    let mut command = Command::new("python3");
    let started = command.args(["-c", program]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut child) = started else {
        println!("skipped: {test}: there is no program python3");
        return None;
    };
    let mut stdin = child.stdin.take().expect("it is piped");
    stdin.write_all(input.as_bytes()).expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success());
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

const REMOVE: &str = "
import json

class Words:
    def __init__(self, words):
        self.words = words
    def read(self, name, index):
        return self.words[name][index]
    def write(self, name, index, value):
        self.words[name][index] = value

case = json.load(sys.stdin)
words = Words(case['words'])
removed = [remove(words, port, entry) for port, entry in case['flows']]
print(json.dumps([removed, words.words]))
";

#[test]
fn it_removes_flows_as_the_rust_type_does() {
    let test = "it_removes_flows_as_the_rust_type_does";
    for (seed, count) in [(1, 4_000), (2, 20_000), (3, 60_000)] {
        let (mut switch, flows) = after_passes(seed, count);
        let entries: Vec<_> = flows.iter().map(|(port, flow)| json!([port, switch.params().entry(*flow)])).collect();
        let case = json!({ "words": words(&switch), "flows": entries }).to_string();
        let Some(printed) = python(test, &(module() + REMOVE), &case) else { return };
        let found: Value = serde_json::from_str(&printed).expect("it is JSON");
        let removed: Vec<_> = flows.iter().map(|(port, flow)| switch.remove(*port, *flow)).collect();
        assert!(removed.iter().filter(|it| **it).count() > 10, "{removed:?}");
        assert_eq!(found, json!([removed, words(&switch)]), "seed {seed}");
    }
}

const ROUNDS: &str = "
import json

rounds, idle = json.load(sys.stdin)
ended = Ended(idle)
print(json.dumps([ended.round(now, *words) for now, words in rounds]))
";

/// Of four entries, the first has no flow, the second sends all the time, the third pauses, and the fourth ends.
#[test]
fn a_flow_has_ended_when_nothing_was_written_for_the_time() {
    let round = |now: f64, third: u32, groups: [u32; 4]| {
        let second = now as u32;
        json!([now, [groups, [7, second, third, 5], [0, 0, third / 2, 9]]])
    };
    let all = [0, 1, 2, 4];
    let rounds = json!([
        round(0.0, 1, all),
        round(4.0, 1, all),
        round(9.0, 2, all),
        round(10.0, 2, all),
        // Its group is cleared, and then it is another flow.
        round(12.0, 3, [0, 1, 2, 0]),
        round(20.0, 3, all),
        round(22.0, 3, all),
        round(29.0, 4, all),
        round(30.0, 4, all),
    ]);
    let test = "a_flow_has_ended_when_nothing_was_written_for_the_time";
    let Some(printed) = python(test, &(module() + ROUNDS), &json!([rounds, 10]).to_string()) else { return };
    let found: Value = serde_json::from_str(&printed).expect("it is JSON");
    assert_eq!(found, json!([[], [], [], [3], [], [], [2], [], [3]]));
}

/// The places of registers.
fn register(name: &str) -> usize {
    SwitchRegister::ALL.iter().position(|it| it.name == name).expect("there is such a register")
}

/// Flows of one port on BMv2: some send no more and are removed, which frees their entries; and then send again, and are counted again.
#[test]
fn it_frees_the_entries_of_ended_flows_on_bmv2() {
    let Some(tools) = bmv2::tools("it_frees_the_entries_of_ended_flows_on_bmv2") else { return };
    let program = compiled::p4air(GroupActions::default());
    let mut model = Model::new(&program, (0..PORTS).map(|port| (address(port), port)));
    // Data to port 0 only. ACKs go elsewhere, and so does data of other flows.
    let is_ours = |arrival: &Arrival| arrival.frame.get(..6) == Some(&address(0)[..]);
    let all: Vec<_> = arrivals(&program, 1, 6_000).into_iter().filter(is_ours).collect();
    let (before, after) = all.split_at(all.len() / 2);
    // A source's address ends with the number of its flow: every other flow goes on.
    let goes_on = |arrival: &&Arrival| ParsedFrame::new(&arrival.frame).input(Input::Source).is_multiple_of(2);
    let state = |model: &Model<'_>| {
        let words = ["flow_group", "sent", "round_end"].map(|name| model.interpreter.words(register(name)));
        words.map(|words| words.expect("it is there").to_vec())
    };
    let first = plan(&program, &mut model, before.iter());
    let then = state(&model);
    let second = plan(&program, &mut model, after.iter().filter(goes_on));
    let now = state(&model);
    let is_idle = |entry: &usize| then[0][*entry] > 0 && (0..3).all(|word| then[word][*entry] == now[word][*entry]);
    let idle: Vec<_> = (0..now[0].len()).filter(is_idle).collect();
    let active = (0..now[0].len()).filter(|entry| now[0][*entry] > 0 && !is_idle(entry)).count();
    assert!(idle.len() > 3 && active > 3, "{idle:?}, {active}");
    // The same flows again, ten seconds later.
    let later = before.iter().cloned().map(|mut arrival| {
        arrival.intrinsics.ingress_global_timestamp += 10_000_000;
        arrival
    });
    let third = plan(&program, &mut model, later.collect::<Vec<_>>().iter());
    assert_ne!(model.acts, Acts::default());

    let folder = tempfile::tempdir().expect("there is room");
    let path = |name: &str| folder.path().join(name);
    bmv2::compile(tools.p4c(), folder.path(), "p4air", &frame_build(&program), Architecture::V1model);
    let plans = json!({ "first": first, "second": second, "third": third, "idle": idle });
    fs::write(path("plan.json"), plans.to_string()).expect("there is room");
    fs::write(path("control.py"), p4air_control(&params()).expect("a switch can have these")).expect("there is room");
    fs::write(path("frames.py"), frames::SCRIPT).expect("there is room");
    fs::write(path("ageing.py"), include_str!("p4air_control/ageing.py")).expect("there is room");
    let mut command = Command::new("unshare");
    command.args(["-n", "python3"]).arg(path("ageing.py")).arg(tools.switch()).arg(path("p4air.json"));
    command.arg(tools.switch().with_file_name("simple_switch_CLI")).arg(path("plan.json"));
    let output = command.output().expect("unshare is there");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}");
    println!("{}", printed.trim_end());
}
