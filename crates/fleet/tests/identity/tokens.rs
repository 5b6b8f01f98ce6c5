//! Tokens, used by several threads at once, and joining with them.

use super::common::{Fleet, HOUR, NOW};
use queuescope_fleet::identity::{Identity, IdentityError, PendingKey, Registrar, Token, TokenError, Tokens};
use queuescope_fleet::identity::{Lives, Revocations};
use std::fs;
use std::sync::{Arc, Barrier};
use std::thread;

fn web() -> Identity {
    Identity::parse("web-1", "agent").unwrap()
}

/// Half of the threads share one handle; the others have handles of their own, as other processes would.
#[test]
fn of_32_threads_with_one_token_exactly_one_joins() {
    let fleet = Fleet::new();
    let token = fleet.registrar.invite(&web(), HOUR, NOW).unwrap();
    let shared = Arc::new(Registrar::open(fleet.dir.path(), Lives::default()).unwrap());
    let start = Arc::new(Barrier::new(32));
    let threads = (0..32).map(|thread| {
        let own = Arc::new(Registrar::open(fleet.dir.path(), Lives::default()).unwrap());
        let (registrar, start, text) =
            (if thread % 2 == 0 { shared.clone() } else { own }, start.clone(), token.text());
        let pending = PendingKey::generate().unwrap();
        thread::spawn(move || {
            start.wait();
            registrar.join(&text, pending.request(), NOW)
        })
    });
    let threads: Vec<_> = threads.collect();
    let results: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    let joined: Vec<_> = results.iter().filter_map(|result| result.as_ref().ok()).collect();
    assert_eq!(joined.len(), 1);
    assert_eq!(joined[0].facts.subject.to_string(), "agent/web-1");
    let used =
        |result: &&Result<_, IdentityError>| matches!(result, Err(IdentityError::Token(TokenError::Used { .. })));
    assert_eq!(results.iter().filter(used).count(), 31);
    assert_eq!(Revocations::open(fleet.dir.path()).unwrap().valid(NOW), 1);
}

#[test]
fn a_wrong_request_leaves_the_token_and_a_wrong_token_issues_nothing() {
    let fleet = Fleet::new();
    let token = fleet.registrar.invite(&web(), HOUR, NOW).unwrap();
    let pending = PendingKey::generate().unwrap();
    let error = fleet.registrar.join(&token.text(), "hello", NOW).unwrap_err();
    assert!(matches!(error, IdentityError::Request { .. }), "{error}");
    let join = |text: &str, now| fleet.registrar.join(text, pending.request(), now).unwrap_err();
    let error = join("hello", NOW);
    assert!(matches!(error, IdentityError::Token(TokenError::Malformed(_))), "{error}");
    let error = join(&token.text(), NOW + 3600);
    assert!(matches!(error, IdentityError::Token(TokenError::Expired { .. })), "{error}");
    let theirs = Fleet::new().registrar.invite(&web(), HOUR, NOW).unwrap();
    let error = join(&theirs.text(), NOW);
    assert!(matches!(error, IdentityError::Token(TokenError::OtherAuthority { .. })), "{error}");
    assert_eq!(fleet.registrar.revocations().valid(NOW), 0);
    fleet.registrar.join(&token.text(), pending.request(), NOW).unwrap();
    assert_eq!(fleet.registrar.revocations().valid(NOW), 1);
}

#[test]
fn a_revoked_name_loses_its_tokens_and_its_renewals() {
    let fleet = Fleet::new();
    let member = fleet.member("web-1", "agent");
    let token = fleet.registrar.invite(&web(), HOUR, NOW).unwrap();
    let pending = PendingKey::generate().unwrap();
    assert_eq!(fleet.registrar.revoke(&web().name, NOW).unwrap().certificates, 1);
    let error = fleet.registrar.join(&token.text(), pending.request(), NOW).unwrap_err();
    assert!(matches!(error, IdentityError::Token(TokenError::Unknown { .. })), "{error}");
    let error = fleet.registrar.renew(member.facts(), pending.request(), NOW).unwrap_err();
    assert!(matches!(error, IdentityError::Revoked { .. }), "{error}");
    let again = fleet.member("web-1", "agent");
    fleet.registrar.renew(again.facts(), pending.request(), NOW).unwrap();
    let error = fleet.registrar.renew(again.facts(), pending.request(), again.facts().not_after + 1).unwrap_err();
    assert!(matches!(error, IdentityError::Expired { .. }), "{error}");
    let error = fleet.registrar.renew(fleet.coordinator.get().facts(), pending.request(), NOW).unwrap_err();
    assert!(matches!(error, IdentityError::NotAMember), "{error}");
}

/// Revocations and renewals at the same time: whatever comes first, no certificate of the name is left.
#[test]
fn no_renewal_escapes_a_revocation() {
    let fleet = Fleet::new();
    let member = fleet.member("web-1", "agent");
    let start = Barrier::new(9);
    let renewed = thread::scope(|scope| {
        let renew = || {
            let pending = PendingKey::generate().unwrap();
            start.wait();
            fleet.registrar.renew(member.facts(), pending.request(), NOW).ok()
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(renew)).collect();
        start.wait();
        fleet.registrar.revoke(&web().name, NOW).unwrap();
        threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    for issued in renewed {
        assert!(fleet.registrar.revocations().is_revoked(&web(), &issued.facts.serial));
    }
    assert_eq!(fleet.registrar.revocations().valid(NOW), 0);
}

#[test]
fn a_damaged_or_lost_file_is_reported_and_left_as_it_is() {
    let fleet = Fleet::new();
    let token = fleet.registrar.invite(&web(), HOUR, NOW).unwrap();
    let pending = PendingKey::generate().unwrap();
    for name in ["tokens.json", "certificates.json"] {
        let path = fleet.dir.path().join(name);
        let whole = fs::read(&path).unwrap();
        let damaged = [&whole[..whole.len() / 2], b"", b"{}", b"{\"format\":1,\"sha256\":\"\",\"content\":{}}"];
        for bytes in damaged {
            fs::write(&path, bytes).unwrap();
            let error = Registrar::open(fleet.dir.path(), Lives::default()).unwrap_err().to_string();
            assert!(
                error.contains(&format!("{name} is damaged: it")) && error.contains("; restore it from a backup"),
                "{error}"
            );
            assert_eq!(fs::read(&path).unwrap(), bytes);
        }
        // Also while the coordinator runs.
        let error = match name {
            "tokens.json" => fleet.registrar.join(&token.text(), pending.request(), NOW).map(drop),
            _ => fleet.registrar.revoke(&web().name, NOW).map(drop),
        };
        assert!(error.unwrap_err().to_string().contains(&format!("{name} is damaged: it")));
        fs::remove_file(&path).unwrap();
        let error = Registrar::open(fleet.dir.path(), Lives::default()).unwrap_err().to_string();
        assert!(
            error.starts_with("there is no ") && error.contains(&format!("{name}: restore it from a backup")),
            "{error}"
        );
        match name {
            "tokens.json" => Tokens::create(fleet.dir.path()).unwrap(),
            _ => Revocations::create(fleet.dir.path()).unwrap(),
        }
        Registrar::open(fleet.dir.path(), Lives::default()).unwrap();
    }
    let token: Token = token.text().parse().unwrap();
    let error = fleet.registrar.tokens().redeem(&token, NOW).unwrap_err();
    assert!(matches!(error, IdentityError::Token(TokenError::Unknown { .. })), "{error}");
}

#[test]
fn tokens_end_with_the_admin_who_made_them() {
    let fleet = Fleet::new();
    let (first, second) = (fleet.member("ana", "admin"), fleet.member("bob", "admin"));
    let of_ana = |name: &str, role: &str| {
        let member = Identity::parse(name, role).unwrap();
        fleet.registrar.invite_by(first.facts(), &member, HOUR, NOW).unwrap()
    };
    let join = |token: &Token| {
        let pending = PendingKey::generate().unwrap();
        fleet.registrar.join(&token.text(), pending.request(), NOW).map(|issued| issued.facts)
    };
    let joined = join(&of_ana("web-1", "agent")).unwrap();
    let (open, of_bob) = (of_ana("eve", "admin"), {
        let member = Identity::parse("carl", "reader").unwrap();
        fleet.registrar.invite_by(second.facts(), &member, HOUR, NOW).unwrap()
    });
    let pending = PendingKey::generate().unwrap();
    let renewed = fleet.registrar.renew(&joined, pending.request(), NOW).unwrap();
    let ended = fleet.registrar.revoke(&"ana".parse().unwrap(), NOW).unwrap();
    assert_eq!((ended.certificates, ended.tokens), (1, 1));
    // Who joined before stays, and is named once, also with a renewed certificate.
    assert_eq!(ended.invited, [Identity::parse("web-1", "agent").unwrap()]);
    fleet.registrar.revocations().check(&renewed.facts, NOW).unwrap();
    let error = join(&open).unwrap_err();
    assert!(matches!(error, IdentityError::Token(TokenError::Unknown { .. })), "{error}");
    join(&of_bob).unwrap();
    let eve = Identity::parse("eve", "admin").unwrap();
    let error = fleet.registrar.invite_by(first.facts(), &eve, HOUR, NOW).unwrap_err();
    assert!(matches!(error, IdentityError::Revoked { .. }), "{error}");
}

#[test]
fn the_last_admin_and_unknown_names_are_not_revoked() {
    let fleet = Fleet::new();
    let name = |text: &str| text.parse().unwrap();
    let error = fleet.registrar.revoke(&name("nobody"), NOW).unwrap_err();
    assert!(error.to_string().starts_with("there is no member nobody to revoke: "), "{error}");
    let ana = fleet.member("ana", "admin");
    let _reader = fleet.member("bob", "reader");
    let error = fleet.registrar.revoke(&name("ana"), NOW).unwrap_err();
    let text = "ana is the last admin, and without one nobody can invite or revoke: invite another ";
    assert!(error.to_string().starts_with(text), "{error}");
    fleet.registrar.revocations().check(ana.facts(), NOW).unwrap();
    // One that has expired does not count.
    let later = ana.facts().not_after + 1;
    let _other = fleet.member("carl", "admin");
    assert!(fleet.registrar.revoke(&name("ana"), NOW).is_ok_and(|ended| ended.certificates == 1));
    assert!(fleet.registrar.revoke(&name("carl"), NOW).is_err());
    assert_eq!(fleet.registrar.revoke(&name("carl"), later).unwrap().certificates, 0);
    // A name that was revoked can be revoked again, and so can one that has a token only.
    assert_eq!(fleet.registrar.revoke(&name("ana"), NOW).unwrap().certificates, 0);
    fleet.registrar.invite(&web(), HOUR, NOW).unwrap();
    assert_eq!(fleet.registrar.revoke(&web().name, NOW).unwrap().tokens, 1);
}
