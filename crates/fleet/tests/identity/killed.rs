//! A process that lets members join is killed, again and again: no token that it has taken is good once more, and no certificate that it has
//! handed out is missing from the register. `QUEUESCOPE_KILLS` sets the number of kills (10 if it is not set).

#![allow(clippy::disallowed_methods, reason = "a test starts processes; its environment sets how many")]

use super::common::{Fleet, HOUR, NOW};
use queuescope_fleet::identity::{
    Identity, IdentityError, Lives, PendingKey, Registrar, Revocations, Serial, Token, TokenError, Tokens,
};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// The folder that a child process uses.
const FOLDER: &str = "QUEUESCOPE_TEST_IDENTITIES";

fn web() -> Identity {
    Identity::parse("web-1", "agent").unwrap()
}

/// The child process: invites and joins without end, and prints each token and serial number afterwards.
#[test]
fn child() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let registrar = Registrar::open(Path::new(&folder), Lives::default()).unwrap();
    let mut out = std::io::stdout().lock();
    let pending = PendingKey::generate().unwrap();
    // More than are ever waited for: a child whose parent has died ends.
    for _ in 0..10_000 {
        let token = registrar.invite(&web(), HOUR, NOW).unwrap();
        let issued = registrar.join(&token.text(), pending.request(), NOW).unwrap();
        writeln!(out, "joined {} {}", token.text(), issued.facts.serial).expect("somebody listens");
    }
}

#[test]
fn nothing_that_was_acknowledged_is_lost() {
    if std::env::var(FOLDER).is_ok() {
        return;
    }
    let rounds = std::env::var("QUEUESCOPE_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(10);
    let fleet = Fleet::new();
    let mut joined = Vec::new();
    for round in 0..rounds {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "identity::killed::child", "--nocapture"])
            .env(FOLDER, fleet.dir.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // It is killed while it does the next one.
        let enough = 1 + round % 7;
        let mut seen = 0;
        while seen < enough {
            let line = lines.next().expect("the child ended").unwrap();
            seen += note(&line, &mut joined);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        for line in lines {
            note(&line.unwrap(), &mut joined);
        }
        let tokens = Tokens::open(fleet.dir.path(), fleet.registrar.authority().fingerprint()).unwrap();
        let register = Revocations::open(fleet.dir.path()).unwrap();
        assert!(register.valid(NOW) >= joined.len() as u64);
        for (token, _) in &joined {
            let error = tokens.redeem(token, NOW).unwrap_err();
            assert!(matches!(error, IdentityError::Token(TokenError::Used { .. })), "round {round}: {error}");
        }
    }
    assert!(joined.len() >= rounds);
    fleet.registrar.revoke(&web().name, NOW).unwrap();
    let register = Revocations::open(fleet.dir.path()).unwrap();
    for (_, serial) in &joined {
        assert!(register.is_revoked(&web(), serial));
    }
}

/// Notes what a line says. The last line of a killed process may be cut short.
fn note(line: &str, joined: &mut Vec<(Token, Serial)>) -> usize {
    let Some((_, rest)) = line.split_once("joined ") else { return 0 };
    let parts = rest.split_once(' ').and_then(|(token, serial)| Some((token.parse().ok()?, serial.parse().ok()?)));
    let before = joined.len();
    joined.extend(parts.filter(|(_, serial): &(Token, Serial)| serial.to_string().len() == 32));
    joined.len() - before
}
