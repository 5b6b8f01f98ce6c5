//! `queuescope live` on a terminal: the view works, and the terminal is restored whatever ends the command. As root.

#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "tests run the command")]

use crate::namespaces;
use crate::pty;

use namespaces::Ends;
use pty::Pty;
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{Action, tcflow};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Two namespaces with a queue of 10 Mb/s between them, and a terminal. If they cannot be made, prints why, and returns `None`.
fn queue(test: &str) -> Option<(Ends, Pty)> {
    let ends = Ends::new("tbf rate 10mbit burst 20kb limit 400kb");
    ends.map_err(|why| println!("skipped: {test}: {why}")).ok().map(|ends| (ends, Pty::new()))
}

/// Starts the command on a terminal in the near namespace.
fn start(ends: &Ends, pty: &Pty, change: impl FnOnce(&mut Command)) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_queuescope"));
    command.args(["live", "near0"]);
    change(&mut command);
    spawn(ends, pty.on_it(&command))
}

fn spawn(ends: &Ends, mut command: Command) -> Child {
    ends.near.run(move || command.spawn().expect("setsid of util-linux is there"))
}

/// Sends a flow that fills the queue for 200 ms.
fn burst(ends: &Ends) {
    ends.near.run(|| {
        let socket = UdpSocket::bind("10.9.0.1:4000").expect("the port is free");
        // Nothing listens there, so a later send may fail with the ICMP error of an earlier one.
        (0..180).for_each(|_| drop(socket.send_to(&[0; 1400], "10.9.0.2:7")));
    });
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("it runs");
}

#[test]
fn the_view_shows_the_queue_handles_keys_and_restores_the_terminal() {
    let Some((ends, mut pty)) = queue("the_view_shows_the_queue_handles_keys_and_restores_the_terminal") else {
        return;
    };
    let mut child = start(&ends, &pty, |_| ());
    pty.until_text("near0 ");
    assert!(pty.screen().alternate_screen() && pty.screen().hide_cursor() && !pty.is_as_before());
    burst(&ends);
    pty.until_text("10.9.0.1:4000 >");
    pty.press("s");
    pty.until_text("sort: growth");
    pty.press("/nobody\r");
    pty.until_text("no flow matches the filter");
    pty.press("\x1b");
    pty.until(|screen| !screen.contents().contains("nobody"));
    // The keys are on the last line, whatever the size of the terminal.
    for (columns, rows) in [(200, 50), (20, 5), (1, 1), (80, 24)] {
        pty.resize(columns, rows);
        let keys: String = " q  quit".chars().take(columns.into()).collect();
        pty.until(|screen| {
            screen.rows(0, columns).nth(usize::from(rows) - 1).is_some_and(|row| row.starts_with(keys.trim_end()))
        });
    }
    pty.until_text("sort: growth");
    pty.press("q");
    pty.rest();
    pty.assert_as_before();
    // If the start took long, the flow has ramped, and its name stands behind that.
    assert!(
        child.wait().expect("it ends").success() && pty.text().contains(" 10.9.0.1:4000 > 10.9.0.2:7 udp"),
        "{}",
        pty.text()
    );
}

/// Fills the queue, and then sends 24 Mb/s for 20 s. It uses several sockets, since each may have only a limited amount in the queue.
fn overload(ends: &Ends) {
    const WIRE: u64 = 1442;
    /// The packets that fill the queue at once. If it filled slowly, a machine that stalls would make several bursts.
    const AT_ONCE: u64 = 120;
    ends.near.run(|| {
        let sockets: Vec<_> = (0..4).map(|_| UdpSocket::bind("10.9.0.1:0").expect("there is a port")).collect();
        let (since, mut sent) = (Instant::now(), 0);
        while since.elapsed() < Duration::from_secs(20) {
            let due = AT_ONCE + since.elapsed().as_micros() as u64 * 24 / 8 / WIRE;
            for number in sent..due {
                // Nothing listens there, so a later send may fail with the ICMP error of an earlier one.
                drop(sockets[number as usize % sockets.len()].send_to(&[0; 1400], "10.9.0.2:7"));
            }
            sent = due;
            // This keeps the rate, and waits for nothing.
            thread::sleep(Duration::from_millis(1));
        }
    });
}

/// Parses a number with commas.
fn whole(word: &str) -> Option<u64> {
    word.replace(',', "").parse().ok()
}

/// The drops that the view shows: of the whole queue, and the sum over bursts.
fn drops_seen(text: &str) -> Option<(u64, u64)> {
    let (before, _) = text.split_once(" dropped ")?;
    let bursts = text.lines().skip_while(|line| !line.trim_start().starts_with("bursts ")).skip(1);
    let of_bursts = bursts.filter_map(|line| whole(line.split_whitespace().nth(9)?));
    Some((whole(before.split_whitespace().last()?)?, of_bursts.sum()))
}

/// The drops that a report states: of the whole queue, and the sum over the bursts that it lists; and whether it lists all bursts.
fn drops_reported(text: &str) -> Option<(u64, u64, bool)> {
    let of_all = text.lines().find_map(|line| line.trim_start().strip_prefix("drops "))?;
    let bursts = text.lines().skip_while(|line| !line.ends_with(" drops")).skip(1);
    let is_burst = |line: &&str| line.split_whitespace().next().is_some_and(|word| word.parse::<u64>().is_ok());
    let of_bursts: Vec<_> = bursts.filter(is_burst).filter_map(|line| whole(line.split_whitespace().last()?)).collect();
    let all = text.lines().find_map(|line| whole(line.split_once(" burst")?.0))?;
    Some((of_all.split_whitespace().find_map(whole)?, of_bursts.iter().sum(), of_bursts.len() as u64 == all))
}

#[test]
fn a_burst_of_twenty_seconds_has_all_drops() {
    let test = "a_burst_of_twenty_seconds_has_all_drops";
    let ends = match Ends::new("tbf rate 20mbit burst 20kb latency 60ms") {
        Ok(ends) => ends,
        Err(why) => return println!("skipped: {test}: {why}"),
    };
    let mut pty = Pty::new();
    // The terminal is large enough for the whole report.
    pty.resize(80, 1000);
    let mut command = Command::new(env!("CARGO_BIN_EXE_queuescope"));
    command.args(["live", "near0", "--json"]).stdout(Stdio::piped());
    let mut lines = spawn(&ends, command);
    let mut printed = BufReader::new(lines.stdout.take().expect("it is piped")).lines();
    assert!(printed.next().is_some(), "it watches");
    let mut child = start(&ends, &pty, |_| ());
    pty.until_text("near0 ");
    thread::scope(|scope| {
        let sent = scope.spawn(|| overload(&ends));
        // The view has all drops when the burst has ended.
        pty.until(|screen| drops_seen(&screen.contents()).is_some_and(|(all, of_bursts)| all > 0 && all == of_bursts));
        sent.join().expect("it sends");
    });
    signal(&lines, Signal::INT);
    pty.press("q");
    pty.rest();
    assert!(child.wait().expect("it ends").success());
    // On a busy machine there may be more bursts than the text lists. JSON below has all.
    let (all, of_bursts, lists_all) = drops_reported(&pty.text()).unwrap_or_else(|| panic!("{}", pty.text()));
    assert!(all > 1_000 && of_bursts <= all, "{all} {of_bursts}: {}", pty.text());
    assert!(!lists_all || of_bursts == all, "{all} {of_bursts}: {}", pty.text());
    let printed: Vec<Value> = printed.map(|line| serde_json::from_str(&line.expect("text")).expect("JSON")).collect();
    assert!(lines.wait().expect("it ends").success());
    let (summary, bursts) = printed.split_last().expect("there is a summary");
    let of_bursts: u64 = bursts.iter().filter_map(|burst| burst["drops"].as_u64()).sum();
    let reasons = summary["totals"]["drops"].as_object().expect("there are reasons");
    let all: u64 = reasons.values().filter_map(Value::as_u64).sum();
    assert!(all > 1_000 && all == of_bursts, "{all} {of_bursts}: {summary}");
    let words = ["-s", "-j", "qdisc", "show", "dev", "near0", "root"];
    let shown = ends.near.run(move || Command::new("tc").args(words).output().expect("tc is there"));
    let shown: Value = serde_json::from_slice(&shown.stdout).expect("it is JSON");
    let (counted, unseen) = (shown[0]["drops"].as_u64().expect("a number"), &summary["skipped"]["unseen"]);
    assert!((all..=all + unseen.as_u64().unwrap_or(0)).contains(&counted), "{counted}, {all}: {summary}");
}

#[test]
fn a_key_pauses_acting() {
    let Some((ends, mut pty)) = queue("a_key_pauses_acting") else { return };
    let mut child = start(&ends, &pty, |command| _ = command.args(["--drop", "--for-real"]));
    pty.until_text("for real ");
    // A packet that arrives while others of its flow wait is dropped.
    pty.until(|screen| {
        burst(&ends);
        screen.contents().contains("/s dropped") && screen.contents().contains("100 %")
    });
    pty.press("p");
    pty.until_text("act again");
    assert!(pty.text().contains("paused "), "{}", pty.text());
    pty.press("p");
    pty.until_text("pause acting");
    pty.press("q");
    pty.rest();
    assert!(child.wait().expect("it ends").success() && pty.text().contains("1 acting_paused"), "{}", pty.text());
}

#[test]
fn a_signal_ends_it_and_restores_the_terminal() {
    let Some((ends, mut pty)) = queue("a_signal_ends_it_and_restores_the_terminal") else { return };
    for keys in ["TERM", "HUP", "QUIT", "\x03"] {
        let mut child = start(&ends, &pty, |_| ());
        pty.until(vt100::Screen::alternate_screen);
        match keys {
            "TERM" => signal(&child, Signal::TERM),
            "HUP" => signal(&child, Signal::HUP),
            "QUIT" => signal(&child, Signal::QUIT),
            keys => pty.press(keys),
        }
        pty.rest();
        pty.assert_as_before();
        assert!(child.wait().expect("it ends").success(), "{}", pty.text());
    }
}

#[test]
fn a_second_signal_kills_it_and_the_terminal_modes_are_restored() {
    let Some((ends, mut pty)) = queue("a_second_signal_kills_it_and_the_terminal_modes_are_restored") else { return };
    let mut child = start(&ends, &pty, |_| ());
    pty.until(vt100::Screen::alternate_screen);
    // The terminal accepts no output, as after Ctrl-S or when a connection is gone, so the command blocks when it writes.
    tcflow(pty.peer(), Action::OOff).expect("it is a terminal");
    signal(&child, Signal::INT);
    signal(&child, Signal::TERM);
    let status = child.wait().expect("it ends");
    assert!([Some(2), Some(15)].contains(&status.signal()) && pty.is_as_before(), "{status}");
}

#[test]
fn a_stopped_job_restores_the_terminal_until_it_continues() {
    let Some((ends, mut pty)) = queue("a_stopped_job_restores_the_terminal_until_it_continues") else { return };
    let mut shell = Command::new("sh");
    // With `-m`, a shell gives each job its own process group, as interactive shells do.
    let script = "set -m; \"$0\" live near0; echo it has stopped; read line; fg; echo it has ended with $?";
    shell.args(["-c", script, env!("CARGO_BIN_EXE_queuescope")]);
    let mut child = spawn(&ends, pty.on_it(&shell));
    pty.until_text("near0 ");
    pty.press("\x1a");
    pty.until_text("it has stopped");
    pty.assert_as_before();
    pty.press("\n");
    pty.until(|screen| screen.alternate_screen() && screen.contents().contains("near0 "));
    assert!(!pty.is_as_before());
    burst(&ends);
    pty.until_text("10.9.0.1:4000 >");
    pty.press("q");
    pty.until_text("it has ended with 0");
    pty.assert_as_before();
    child.wait().expect("it ends");
}

#[test]
fn it_does_not_stop_where_no_shell_could_continue_it() {
    let Some((ends, mut pty)) = queue("it_does_not_stop_where_no_shell_could_continue_it") else { return };
    let mut child = start(&ends, &pty, |_| ());
    pty.until_text("near0 ");
    pty.press("\x1a/as before");
    pty.until_text("as before_");
    pty.press("\rq");
    pty.rest();
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn a_terminal_that_cannot_be_drawn_on_gets_lines() {
    let Some((ends, mut pty)) = queue("a_terminal_that_cannot_be_drawn_on_gets_lines") else { return };
    pty.resize(120, 50);
    let prints_lines = |pty: &mut Pty, child: &mut Child, why: &str| {
        pty.until_text(why);
        burst(&ends);
        // The flow's share stands before its name, and its ramp too if sending took long.
        pty.until_text("  10.9.0.1:4000 > 10.9.0.2:7 udp");
        signal(child, Signal::INT);
        pty.rest();
        assert!(
            child.wait().expect("it ends").success() && pty.text().contains("with delays of 1.00 ms or more"),
            "{}",
            pty.text()
        );
        assert!(pty.is_as_before() && !pty.text().contains("sort: "), "{}", pty.text());
    };
    let mut child = start(&ends, &pty, |command| _ = command.env("TERM", "dumb"));
    prints_lines(&mut pty, &mut child, "TERM is dumb: bursts are printed as they end");
    let mut child = start(&ends, &pty, |command| _ = command.env_remove("TERM"));
    prints_lines(&mut pty, &mut child, "TERM is not set: ");
    let mut command = Command::new(env!("CARGO_BIN_EXE_queuescope"));
    command.args(["live", "near0"]).env("TERM", "xterm").stdin(Stdio::null()).stdout(pty.peer()).stderr(pty.peer());
    let mut child = spawn(&ends, command);
    prints_lines(&mut pty, &mut child, "standard input is not a terminal: ");
}
