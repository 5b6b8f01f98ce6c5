//! Renewal while connections are made.

use super::common::{COORDINATOR, Fleet, NOW, TestClock, connect};
use queuescope_fleet::identity::{Credentials, CurrentCredentials, IdentityError, Lives, PendingKey, client_config};
use std::fs;
use std::path::Path;

const LIFE: u64 = 7 * 86_400;

/// The serial numbers that the server and the client saw of each other.
async fn serials(fleet: &Fleet, client: &std::sync::Arc<rustls::ClientConfig>) -> (String, String) {
    let (server, client) = connect(&fleet.server, client, COORDINATOR).await;
    (server.unwrap().peer.unwrap().serial.to_string(), client.unwrap().peer.unwrap().serial.to_string())
}

fn file(dir: &Path) -> Vec<u8> {
    fs::read(dir.join("credentials.pem")).unwrap()
}

#[tokio::test]
async fn new_connections_use_the_new_certificates() {
    let fleet = Fleet::new();
    let home = tempfile::tempdir().unwrap();
    let member = CurrentCredentials::new(fleet.member("web-1", "agent"));
    member.get().save(home.path()).unwrap();
    let client = client_config(&member, TestClock::at(NOW)).unwrap();
    let before = serials(&fleet, &client).await;

    let later = member.get().renew_at();
    assert_eq!(later, NOW + LIFE / 3 * 2);
    let pending = PendingKey::generate().unwrap();
    let issued = fleet.registrar.renew(member.get().facts(), pending.request(), later).unwrap();
    let new = member.renew(home.path(), pending, &issued.pem, later).unwrap();
    fleet.registrar.renew_own(&fleet.coordinator, later).unwrap();

    fleet.clock.set(later);
    let client_clock = TestClock::at(later);
    let same_client = client_config(&member, client_clock).unwrap();
    // The configuration that was made before the renewal, and whose clock stands: the new certificate of the coordinator is not valid yet.
    assert!(connect(&fleet.server, &client, COORDINATOR).await.1.unwrap_err().contains("not valid yet"));
    let after = serials(&fleet, &same_client).await;
    assert_eq!(after.0, issued.facts.serial.to_string());
    assert!(before.0 != after.0 && before.1 != after.1);
    assert_eq!(Credentials::load(home.path()).unwrap().unwrap().facts(), new.facts());
    assert_eq!(new.facts().not_after, later + LIFE);
}

/// One configuration on each side, from before the renewal.
#[tokio::test]
async fn a_configuration_in_use_takes_the_new_certificate() {
    let fleet = Fleet::new();
    let home = tempfile::tempdir().unwrap();
    let member = CurrentCredentials::new(fleet.member("web-1", "agent"));
    let clock = TestClock::at(NOW);
    let client = client_config(&member, clock.clone()).unwrap();
    let before = serials(&fleet, &client).await;
    let later = NOW + LIFE / 2;
    let pending = PendingKey::generate().unwrap();
    let issued = fleet.registrar.renew(member.get().facts(), pending.request(), later).unwrap();
    member.renew(home.path(), pending, &issued.pem, later).unwrap();
    fleet.registrar.renew_own(&fleet.coordinator, later).unwrap();
    clock.set(later);
    fleet.clock.set(later);
    let after = serials(&fleet, &client).await;
    assert_eq!(after, (member.get().facts().serial.to_string(), fleet.coordinator.get().facts().serial.to_string()));
    assert!(before.0 != after.0 && before.1 != after.1);
}

#[tokio::test]
async fn a_broken_answer_changes_nothing() {
    let (fleet, other) = (Fleet::new(), Fleet::new());
    let home = tempfile::tempdir().unwrap();
    let member = CurrentCredentials::new(fleet.member("web-1", "agent"));
    member.get().save(home.path()).unwrap();
    let client = client_config(&member, TestClock::at(NOW)).unwrap();
    let (before, stored) = (serials(&fleet, &client).await, file(home.path()));

    let answer = |fleet: &Fleet, name: &str, pending: &PendingKey, now: u64| {
        let old = fleet.member(name, "agent");
        fleet.registrar.renew(old.facts(), pending.request(), now).unwrap().pem
    };
    let attempt = |answer: &dyn Fn(&PendingKey) -> String, now: u64| {
        let pending = PendingKey::generate().unwrap();
        let text = answer(&pending);
        member.renew(home.path(), pending, &text, now).unwrap_err().with_causes()
    };
    let good = |pending: &PendingKey| answer(&fleet, "web-1", pending, NOW);
    let authority = fleet.registrar.authority().certificate_pem().to_owned();
    for (answer, now, why) in [
        (
            &(|_: &PendingKey| String::new()) as &dyn Fn(&PendingKey) -> String,
            NOW,
            "the certificate is not usable: it has 0 sections in PEM",
        ),
        (&|pending| good(pending)[..200].to_owned(), NOW, "the certificate is not usable: it has 0 sections in PEM"),
        (&|pending| good(pending).replace('M', "N"), NOW, "it is not X.509"),
        (&|pending| good(pending) + &authority, NOW, "the certificate is not usable: it has 2 sections in PEM"),
        (&|_| authority.clone(), NOW, "it names 0 identities"),
        (&|_| good(&PendingKey::generate().unwrap()), NOW, "the certificate of agent/web-1 is for another private key"),
        (
            &|pending| answer(&fleet, "web-2", pending, NOW),
            NOW,
            "the new certificate is for agent/web-2, and must be for agent/web-1",
        ),
        (&|pending| answer(&other, "web-1", pending, NOW), NOW, "does not pass the check against the authority"),
        (&good, NOW + LIFE + 1, "certificate expired"),
        (&|pending| answer(&fleet, "web-1", pending, NOW + 1000), NOW, "certificate not valid yet"),
        (&|pending| answer(&fleet, "web-1", pending, NOW - 1), NOW, "before the one in use"),
    ] {
        let error = attempt(answer, now);
        assert!(error.contains(why), "{error}");
        assert_eq!(file(home.path()), stored);
    }
    assert_eq!(serials(&fleet, &client).await, before);
    // A folder that cannot be written: the new certificate is good, and the old one stays in both places.
    let pending = PendingKey::generate().unwrap();
    let text = good(&pending);
    let place = home.path().join("file");
    fs::write(&place, "").unwrap();
    let error = member.renew(&place, pending, &text, NOW).unwrap_err();
    assert!(matches!(error, IdentityError::File { .. }), "{error}");
    assert_eq!(serials(&fleet, &client).await, before);
}

#[test]
fn credentials_come_back_from_their_file_and_damage_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let fleet = Fleet::new();
    let home = tempfile::tempdir().unwrap();
    assert!(Credentials::load(home.path()).unwrap().is_none());
    let credentials = fleet.member("web-1", "operator");
    credentials.save(home.path()).unwrap();
    let loaded = Credentials::load(home.path()).unwrap().unwrap();
    assert_eq!((loaded.facts(), loaded.authority()), (credentials.facts(), credentials.authority()));
    assert!(!loaded.is_expired(NOW + LIFE) && loaded.is_expired(NOW + LIFE + 1));
    assert!(!format!("{loaded:?}").contains("PRIVATE"));

    let path = home.path().join("credentials.pem");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let why = || Credentials::load(home.path()).unwrap_err().to_string();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(why().contains("credentials.pem has mode 0644, so other users can read it"), "{}", why());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let whole = file(home.path());
    for length in (0..whole.len() - 30).step_by(61) {
        fs::write(&path, &whole[..length]).unwrap();
        assert!(why().contains("credentials.pem is damaged: it has "), "{length}: {}", why());
        assert_eq!(file(home.path()), whole[..length]);
    }
    // The key of one member and the certificate of another.
    let text = String::from_utf8(whole).unwrap();
    let key = &text[..text.find("-----BEGIN CERT").unwrap()];
    fleet.member("web-2", "operator").save(home.path()).unwrap();
    let other = String::from_utf8(file(home.path())).unwrap();
    let mixed = format!("{key}{}", &other[other.find("-----BEGIN CERT").unwrap()..]);
    fs::write(&path, mixed).unwrap();
    assert!(why().contains("damaged: the certificate of operator/web-2 is for another private key"), "{}", why());
}

#[test]
fn a_coordinator_renews_itself_when_it_opens_its_folder() {
    let fleet = Fleet::new();
    let old = fleet.coordinator.get();
    let open = |now| fleet.registrar.credentials(now).unwrap().get();
    assert_eq!(open(old.renew_at() - 1).facts(), old.facts());
    let late = old.facts().not_after + 1000;
    let new = open(late);
    assert_eq!((new.facts().not_before, &new.facts().names), (late - 300, &old.facts().names));
    assert_eq!(Credentials::load(fleet.dir.path()).unwrap().unwrap().facts(), new.facts());
    let names = ["new.example".try_into().unwrap()];
    assert_eq!(fleet.registrar.rename(&names, late).unwrap().get().facts().names, names);
    // The authority is at its end: the old certificate serves while it lasts.
    let end = fleet.registrar.authority().not_after();
    let last = open(end - 100);
    assert_eq!(last.facts().not_after, end);
    assert_eq!(open(end).facts(), last.facts());
    let error = fleet.registrar.credentials(end + 1).unwrap_err();
    assert!(matches!(error, IdentityError::AuthorityExpired { .. }), "{error}");
    assert!(Lives::default().coordinator.as_secs() == LIFE);
}
