//! Commands on recorded folders: `log compact`, `keep`, `export`, `verify` and `info`.

#![allow(clippy::disallowed_methods, reason = "tests read what the program wrote")]

use crate::common::{at_times, command, file, printed, run};
use queuescope_log::LAST_TIME;
use std::path::Path;

/// The lines about records, without the line about the query.
fn rows(text: &str) -> Vec<String> {
    text.lines().filter(|line| !line.contains("\"kind\":\"answer\"")).map(str::to_owned).collect()
}

fn csv(log: &Path) -> Vec<String> {
    rows(&printed(run("query --csv --select ts,src_ip,dst_ip,length", &[log]), 0))
}

#[test]
fn a_folder_says_later_what_a_sample_left_out() {
    let folder = tempfile::tempdir().expect("there is room");
    let (log, demo) = (folder.path().join("log"), file("data/demo.pcap.xz"));
    let recorded = printed(run("record --sample 1/4 --log", &[&log, &demo]), 0);
    let count = |text: &str| {
        let line = text.lines().find(|line| line.contains(" packets left out by --sample"))?;
        line.split(" packets left out").next()?.split_whitespace().last().map(str::to_owned)
    };
    let left_out = count(&recorded).unwrap_or_else(|| panic!("{recorded}"));
    let now = printed(run("query --select count", &[&log]), 0);
    assert_eq!(count(&now).as_ref(), Some(&left_out), "{now}");
    // Of another time, nothing was left out.
    let before = printed(run("query --select count --from 2001-01-01 --to 2002-01-01", &[&log]), 0);
    assert_eq!(count(&before), None, "{before}");
    // The folder stays whole in the eyes of those that check it.
    printed(run("log verify", &[&log]), 0);
}

#[test]
fn short_recordings_are_joined_and_old_ones_are_removed() {
    let folder = tempfile::tempdir().expect("there is room");
    let (log, demo) = (folder.path().join("log"), file("data/demo.pcap.xz"));
    for chosen in ["tcp", "udp", "tcp"] {
        printed(run(&format!("record --index dst_ip --where {chosen} --log"), &[&log, &demo]), 0);
    }
    let before = csv(&log);
    let info = printed(run("log info", &[&log]), 0);
    assert!(info.contains("volumes  3, ") && info.contains("journals 0, ") && info.contains("dst_ip of 3"), "{info}");
    assert!(info.contains(" UTC to ") && info.contains(" a record") && !info.contains("removed"), "{info}");
    let compacted = printed(run("log compact", &[&log]), 0);
    assert!(compacted.contains("9 files") && compacted.contains("3 files"), "{compacted}");
    assert_eq!(csv(&log), before);
    assert_eq!(printed(run("log verify", &[&log]), 0).matches("intact").count(), 1);
    let info = printed(run("log info", &[&log]), 0);
    assert!(info.contains("volumes  1, ") && info.contains("dst_ip of 1"), "{info}");

    // All packets are of about the same time.
    let kept = printed(run("log keep --for 1d --size 1GB", &[&log]), 0);
    assert!(kept.starts_with("deleted: volumes 0, "), "{kept}");
    assert_eq!(csv(&log), before);
    let kept = printed(run("log keep --size 1kB", &[&log]), 0);
    // The newest volume stays, however small the limit is.
    assert!(kept.starts_with("deleted: volumes 0, ") && kept.contains("the newest volume is always kept"), "{kept}");
    assert_eq!(csv(&log), before);
}

#[test]
fn an_export_has_what_the_query_prints() {
    let folder = tempfile::tempdir().expect("there is room");
    let (log, demo) = (folder.path().join("log"), file("data/demo.pcap.xz"));
    printed(run("record --log", &[&log, &demo]), 0);
    let attributes = printed(run("query --attributes", &[&log]), 0);
    let attributes: Vec<_> = attributes.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let all = attributes.join(",");
    for (form, end) in [("--csv", "csv"), ("--json", "jsonl")] {
        let out = folder.path().join(format!("udp.{end}"));
        let output = printed(run("log export --from 1s --to 3s", &[&log, &out, Path::new("udp")]), 0);
        let queried =
            printed(run(&format!("query --from 1s --to 3s {form} --select {all}"), &[&log, Path::new("udp")]), 0);
        let written = std::fs::read_to_string(&out).expect("it was written");
        assert_eq!(rows(&written), rows(&queried));
        let records = rows(&written).len() - usize::from(end == "csv");
        assert!(
            records > 10 && output.replace(',', "").starts_with(&format!("{records} of 18949 records of ")),
            "{output}"
        );
    }
    let out = folder.path().join("udp.parquet");
    printed(run("log export", &[&log, &out, Path::new("udp")]), 0);
    let same = folder.path().join("same.parquet");
    printed(run(&format!("query --select {all} --parquet"), &[&same, &log, Path::new("udp")]), 0);
    assert_eq!(std::fs::read(&out).expect("it was written"), std::fs::read(&same).expect("it was written"));
    // An unusable range or file type is refused.
    for words in ["log export --from 3s --to 1s", "log export"] {
        let out = if words.contains("from") { folder.path().join("none.csv") } else { folder.path().join("none.xlsx") };
        assert_eq!(run(words, &[&log, &out]).status.code(), Some(2));
        assert!(!out.exists());
    }
}

#[test]
fn old_packets_are_removed_during_recording() {
    let folder = tempfile::tempdir().expect("there is room");
    let (log, demo) = (folder.path().join("log"), file("data/demo.pcap.xz"));
    printed(run("record --log", &[&log, &demo]), 0);
    // Two recordings of the capture exceed the limit.
    let recorded = printed(run("record --keep-size 300kB --log", &[&log, &demo]), 0);
    assert!(recorded.contains("18,949 packets removed"), "{recorded}");
    assert_eq!(printed(run("query --select count --csv", &[&log]), 0), "count\n18949\n");
    let info = printed(run("log info", &[&log]), 0);
    assert!(info.contains("removed") && info.contains("volumes  1, "), "{info}");
    // No packet is older than the newest by that much.
    let recorded = printed(run("record --keep-for 1h --log", &[&log, &demo]), 0);
    assert!(!recorded.contains("packets removed"), "{recorded}");
}

#[test]
fn missing_files_are_reported_and_stop_further_recording() {
    let folder = tempfile::tempdir().expect("there is room");
    let (log, demo) = (folder.path().join("log"), file("data/demo.pcap.xz"));
    for chosen in ["tcp", "udp"] {
        printed(run(&format!("record --index dst_ip --where {chosen} --log"), &[&log, &demo]), 0);
    }
    let day = std::fs::read_dir(log.join("beside")).expect("it is there").next().expect("there is one");
    let victim = day.expect("it is there").path().join("00000000000000000000.dst_ip.index");
    let bytes = std::fs::read(&victim).expect("it is there");
    std::fs::remove_file(&victim).expect("it is there");
    let verified = printed(run("log verify", &[&log]), 1);
    assert!(verified.contains("damaged, 00000000000000000000.dst_ip.index: it is not there"), "{verified}");
    assert_eq!(verified.matches("intact").count(), 1, "{verified}");
    let info = printed(run("log info", &[&log]), 1);
    assert!(info.contains("volumes  2, "), "{info}");
    let refused = run("record --log", &[&log, &demo]);
    let errors = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        refused.status.code() == Some(2) && errors.contains("dst_ip.index") && errors.contains("log verify"),
        "{errors}"
    );
    std::fs::write(&victim, bytes).expect("there is room");
    printed(run("record --log", &[&log, &demo]), 0);
    assert_eq!(printed(run("log verify", &[&log]), 0).matches("intact").count(), 3);
}

#[test]
fn a_torn_end_is_reported_but_is_not_damage() {
    let folder = tempfile::tempdir().expect("there is room");
    let (log, demo) = (folder.path().join("log"), file("data/demo.pcap.xz"));
    printed(run("record --log", &[&log, &demo]), 0);
    // A recorder that is killed can leave a journal whose header is incomplete.
    std::fs::write(log.join("00000000000000018949.journal"), "QSJOU").expect("there is room");
    let verified = printed(run("log verify", &[&log]), 0);
    assert!(verified.contains("torn end, 5 bytes: cut off by the next recording"), "{verified}");
    printed(run("log info", &[&log]), 0);
    let again = run("record --log", &[&log, &demo]);
    assert!(String::from_utf8_lossy(&again.stderr).contains("5 bytes at the end"), "{again:?}");
    std::fs::write(log.join("00000000000000037898.journal"), "QSJOU").expect("there is room");
    let compacted = run("log compact", &[&log]);
    assert!(String::from_utf8_lossy(&compacted.stderr).contains("5 bytes at the end"), "{compacted:?}");
}

#[test]
fn aggregates_are_printed_with_units_also_if_they_were_not_stored() {
    let folder = tempfile::tempdir().expect("there is room");
    let (log, demo) = (folder.path().join("log"), file("data/demo.pcap.xz"));
    let defined = "--aggregate all=count --aggregate bytes=sum(length) --aggregate longest=max(length)";
    printed(run(&format!("record {defined} --log"), &[&log, &demo]), 0);
    let info = printed(run("log info", &[&log]), 0);
    let has = |info: &str| {
        info.contains("all      18,949 records\n")
            && info.contains(" bytes\nlongest  ")
            && info.trim_end().contains("B")
    };
    assert!(has(&info) && !info.contains("computed from the records"), "{info}");
    std::fs::write(log.join("aggregates.json"), "{}").expect("there is room");
    let output = run("record --where icmp --log", &[&log, &demo]);
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("aggregates were computed from the records"),
        "{output:?}"
    );
    std::fs::remove_file(log.join("aggregates.json")).expect("it is there");
    let info = printed(run("log info", &[&log]), 0);
    assert!(info.contains("bytes    ") && info.contains("(computed from the records, because"), "{info}");
    // Without its definitions, the folder's aggregates are unknown.
    std::fs::remove_file(log.join("definitions.toml")).expect("it is there");
    let refused = run("record --log", &[&log, &demo]);
    let errors = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && errors.contains("definitions.toml is not there"), "{errors}");
}

#[test]
fn a_damaged_folder_yields_what_can_be_read() {
    let folder = tempfile::tempdir().expect("there is room");
    let (log, demo) = (folder.path().join("log"), file("data/demo.pcap.xz"));
    printed(run("record --log", &[&log, &demo]), 0);
    let day =
        std::fs::read_dir(log.join("archive")).expect("it is there").next().expect("one day").expect("it is read");
    let volume = std::fs::read_dir(day.path()).expect("it is there").next().expect("one volume").expect("it is read");
    let mut bytes = std::fs::read(volume.path()).expect("it is there");
    let middle = bytes.len() / 2;
    bytes[middle..middle + 100].fill(0xff);
    std::fs::write(volume.path(), &bytes).expect("there is room");
    let text = printed(run("query --select src_mac,tcp_seq,ts", &[&log]), 1);
    assert!(text.ends_with(&format!(" of an unknown number of packets of {}\n", log.display())), "{text}");
    let json = printed(run("query --json --select src_mac,tcp_seq,ts", &[&log]), 1);
    assert!(json.contains("\"records\":null"), "{json}");
    // The export has what could be read.
    let out = folder.path().join("out.csv");
    let output = printed(run("log export", &[&log, &out]), 1);
    assert!(output.contains(" of an unknown number of records of ") && out.exists(), "{output}");
}

#[test]
fn a_failed_export_leaves_files_as_they_were() {
    let folder = tempfile::tempdir().expect("there is room");
    let (log, demo) = (folder.path().join("log"), file("data/demo.pcap.xz"));
    printed(run("record --log", &[&log, &demo]), 0);
    let out = folder.path().join("out");
    std::fs::create_dir(&out).expect("there is room");
    for end in ["csv", "jsonl", "parquet"] {
        let path = out.join(format!("all.{end}"));
        std::fs::write(&path, "before").expect("there is room");
        // Limit the size of files, in blocks of 512 or 1024 bytes.
        let limited = |words: &str| {
            let words = format!("trap '' XFSZ; ulimit -f 64; exec \"$0\" {words}");
            let mut command = std::process::Command::new("sh");
            command.args(["-c", &words]).args([Path::new(env!("CARGO_BIN_EXE_queuescope")), &log, &path]);
            command.output().expect("there is a shell")
        };
        let failed = limited("log export \"$1\" \"$2\"");
        assert_eq!(failed.status.code(), Some(2), "{failed:?}");
        assert!(String::from_utf8_lossy(&failed.stderr).contains("cannot write "), "{failed:?}");
        if end == "parquet" {
            assert_eq!(limited("query \"$1\" --parquet \"$2\"").status.code(), Some(2));
        }
        assert_eq!(std::fs::read_to_string(&path).expect("it is there"), "before");
    }
    assert_eq!(std::fs::read_dir(&out).expect("it is there").count(), 3);
}

#[test]
fn options_for_captures_are_refused_for_folders() {
    let folder = tempfile::tempdir().expect("there is room");
    let (log, demo) = (folder.path().join("log"), file("data/demo.pcap.xz"));
    printed(run("analyze --rate 20mbps --limit 100ms --log", &[&log, &demo]), 0);
    let refused = run("query --inner", &[&log]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("record --inner"), "{refused:?}");
    assert_eq!(printed(refused, 2), "");
    // Two plans are explained: one for the packets that match, one for those in the queue with them.
    let explained = printed(run("query --in-queue --explain", &[&log, Path::new("delay > 70ms")]), 0);
    let (found, there) = explained.split_once("then, for the packets that were in a queue with those:\n").expect("two");
    assert!(found.contains("read") && there.contains("read"), "{explained}");
    let counted = printed(run("query --in-queue --select count", &[&log, Path::new("delay > 70ms")]), 0);
    let last = |text: &str| text.lines().last().and_then(|line| line.split(" packets").next().map(str::to_owned));
    assert_eq!(last(&explained), last(&counted));
}

#[test]
fn packets_with_times_that_no_folder_can_have_are_counted() {
    let folder = tempfile::tempdir().expect("there is room");
    let (log, capture) = (folder.path().join("log"), folder.path().join("a.pcapng"));
    let all = [0, 1, 1_700_000_000_000_000_000, LAST_TIME, LAST_TIME + 1, i64::MAX as u64, u64::MAX, 7];
    std::fs::write(&capture, at_times(&all)).expect("there is room");
    let recorded = printed(run("record --aggregate n=count --trigger t=n>1000 --log", &[&log, &capture]), 1);
    assert!(recorded.starts_with("5 packets of "), "{recorded}");
    assert!(recorded.contains("3 packets left out: their times are in the year 2262 or later"), "{recorded}");
    let times = |path: &Path| rows(&printed(run("query --csv --select ts", &[path]), 0));
    let found = times(&log);
    assert_eq!(found, ["ts", "0", "1", "1700000000000000000", "9214646399999999999", "7"]);
    // A query of the capture itself finds all of them, but no column of times can hold them.
    assert_eq!(times(&capture).len(), 1 + all.len());
    let table = folder.path().join("a.parquet");
    let refused = run("query --limit 100 --parquet", &[&table, &capture]);
    let errors = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(2) && errors.contains("from the year 2262 on"), "{errors}");
    assert!(!table.exists());
    assert_eq!(printed(run("query --select count --csv --to 60s", &[&log]), 0), "count\n3\n");
}

#[test]
fn triggers_that_are_evaluated_too_often_are_refused() {
    let folder = tempfile::tempdir().expect("there is room");
    let (log, demo) = (folder.path().join("log"), file("data/demo.pcap.xz"));
    let record = |trigger: &str| {
        let refused = run(&format!("record --aggregate x=sum(length) --trigger {trigger} --log"), &[&log, &demo]);
        assert_eq!(refused.status.code(), Some(2));
        assert!(!log.exists());
        String::from_utf8_lossy(&refused.stderr).into_owned()
    };
    let errors = record("t=x>1B@1ns/65536ns");
    assert!(errors.contains("a period is 1us or longer") && errors.contains("1,000,000,000 times"), "{errors}");
}

#[cfg(unix)]
#[test]
fn definitions_have_a_size_limit_and_the_alerts_file_must_not_be_a_link() {
    let folder = tempfile::tempdir().expect("there is room");
    let (log, demo) = (folder.path().join("log"), file("data/demo.pcap.xz"));
    let refused = run("record --definitions /dev/zero --log", &[&log, &demo]);
    let errors = String::from_utf8_lossy(&refused.stderr);
    assert!(
        refused.status.code() == Some(2) && errors.contains("/dev/zero") && errors.contains("more than"),
        "{errors}"
    );
    let record = "record --aggregate n=count --trigger t=n>1 --log";
    printed(run(record, &[&log, &demo]), 0);
    let (alerts, other) = (log.join("alerts.jsonl"), folder.path().join("other"));
    let whole = std::fs::read(&alerts).expect("it is there");
    std::fs::rename(&alerts, &other).expect("it is there");
    std::fs::write(&other, "somebody's, without an end of a line").expect("there is room");
    std::os::unix::fs::symlink(&other, &alerts).expect("there is room");
    for words in [record, "watch --all"] {
        let paths = if words == record { vec![&*log, &*demo] } else { vec![&*log] };
        let refused = run(words, &paths);
        let errors = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(2) && errors.contains("it is a symbolic link"), "{words}: {errors}");
    }
    assert_eq!(std::fs::read(&other).expect("it is there"), b"somebody's, without an end of a line");
    std::fs::remove_file(&alerts).expect("it is there");
    // A recorder that failed to start has not acknowledged the missing alerts.
    let verified = run("log verify", &[&log]);
    let errors = String::from_utf8_lossy(&verified.stderr);
    let lacks = format!("alerts.jsonl is damaged: it is not there, and had {} bytes", whole.len());
    assert!(verified.status.code() == Some(1) && errors.contains(&lacks), "{errors}");
    // Only a line that was cut short is removed from the end of the alerts. A recording that finds alerts missing exits with 1.
    for (wrong, status) in [(vec![b'x'; 5000], 2), ([&whole[..], b"{\"kind\":"].concat(), 0)] {
        std::fs::write(&alerts, &wrong).expect("there is room");
        printed(run(record, &[&log, &demo]), status);
        let now = std::fs::read(&alerts).expect("it is there");
        assert!(if status == 2 { now == wrong } else { now.starts_with(&whole) && now.ends_with(b"\n") });
    }
}

#[test]
fn a_lock_that_is_damaged_is_reported_by_each_command_and_by_the_recording_that_writes_it_again() {
    let folder = tempfile::tempdir().expect("there is room");
    let (log, demo) = (folder.path().join("log"), file("data/demo.pcap.xz"));
    printed(run("record --log", &[&log, &demo]), 0);
    let (lock, out) = (log.join("lock"), folder.path().join("out.csv"));
    std::fs::remove_file(&lock).expect("it is there");
    std::fs::create_dir(&lock).expect("there is room");
    for (words, paths) in [("query --select count", vec![&*log]), ("log export", vec![&*log, &*out])] {
        let ended = run(words, &paths);
        let errors = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(1), "{words}: {errors}");
        assert!(errors.contains("lock is damaged: it is a folder") && errors.contains("not be noticed"), "{errors}");
    }
    let verified = run("log verify", &[&log]);
    let errors = String::from_utf8_lossy(&verified.stderr);
    assert!(
        verified.status.code() == Some(1) && errors.contains("lock is damaged") && !errors.contains("more)"),
        "{errors}"
    );
    // A recording writes it again, exits with 1, and the next one is whole.
    std::fs::remove_dir(&lock).expect("it is there");
    for status in [1, 0] {
        let recorded = run("record --log", &[&log, &demo]);
        assert_eq!(recorded.status.code(), Some(status), "{}", String::from_utf8_lossy(&recorded.stderr));
        printed(run("log verify", &[&log]), 0);
    }
}

#[cfg(unix)]
#[test]
fn a_folder_that_is_not_accessible_is_not_reported_as_absent() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::process::CommandExt;
    const NOBODY: u32 = 65_534;
    let folder = tempfile::tempdir().expect("there is room");
    let commands =
        ["log info", "log verify", "log compact", "log keep --size 1GB", "watch", "record data/demo.pcap.xz --log"];
    let check = |words: &str, output: std::process::Output, why: &str| {
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words}: {errors}");
        assert!(errors.contains(why) && !errors.contains("does not exist"), "{words}: {errors}");
    };
    // Whether a link to itself leads to a folder is unknown, even to root.
    let loops = folder.path().join("loops");
    symlink(&loops, &loops).expect("there is room");
    for words in &commands[..5] {
        check(words, run(words, &[&loops]), "symbolic links");
    }
    let log = folder.path().join("above/log");
    std::fs::create_dir(folder.path().join("above")).expect("there is room");
    printed(run("record data/demo.pcap.xz --log", &[&log]), 0);
    let set = |path: &Path, mode| {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("it is the own folder");
    };
    set(folder.path(), 0o755);
    for closed in [log.as_path(), log.parent().expect("it has one")] {
        set(closed, 0o000);
        for words in commands {
            let mut command = command(words, &[&log]);
            if rustix::process::geteuid().is_root() {
                command.uid(NOBODY).gid(NOBODY);
            }
            match command.output() {
                Ok(output) => check(words, output, "Permission denied"),
                Err(error) => {
                    println!("skipped: a_folder_that_is_not_accessible_is_not_reported_as_absent: {error}");
                    break;
                }
            }
        }
        set(closed, 0o755);
    }
}

#[cfg(unix)]
#[test]
fn too_little_address_space_is_explained() {
    let folder = tempfile::tempdir().expect("there is room");
    let words = ["record", "data/demo.pcap.xz", "--log"];
    let command = command("", &[]);
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", "ulimit -v 150000 && exec \"$0\" \"$@\""]).arg(command.get_program());
    let output =
        limited.args(words).arg(folder.path().join("log")).current_dir(file("")).output().expect("there is a shell");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("bytes of address space") && errors.contains("ulimit -v"), "{errors}");
}

#[test]
fn packets_from_the_future_are_counted_and_make_no_others_old() {
    let folder = tempfile::tempdir().expect("there is room");
    let log = folder.path().join("log");
    let day = 86_400_000_000_000;
    // 2020, and 2096.
    let (start, future) = (1_600_000_000_000_000_000, 126 * 365 * day);
    for time in [start, future, start + day, start + 2 * day] {
        let capture = folder.path().join("one.pcapng");
        std::fs::write(&capture, at_times(&[time])).expect("there is room");
        printed(run("record --keep-for 7d --log", &[&log, &capture]), 0);
    }
    let kept = printed(run("log keep --for 7d", &[&log]), 0);
    assert!(kept.contains("deleted: volumes 0, ") && kept.contains("more than a day in the future: 1;"), "{kept}");
    assert_eq!(printed(run("query --select count --csv", &[&log]), 0), "count\n4\n");
    // The volume from the future is as old as the one after it.
    let kept = printed(run("log keep --for 1h", &[&log]), 0);
    assert!(kept.contains("deleted: volumes 3, ") && !kept.contains("future"), "{kept}");
}
