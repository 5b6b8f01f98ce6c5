//! The register of certificates that were issued, and those that are revoked.

use super::facts::CertificateFacts;
use super::files::{Folder, NewFile};
use super::lives::{LONGEST, SKEW};
use super::state::{Kind, StateFile};
use super::{Identity, IdentityError, MemberName, Role, Serial};
use arc_swap::ArcSwap;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

const FILE: Kind = Kind {
    name: "certificates.json",
    remedy: "restore it from a backup: without it, revoked certificates would be accepted again; if there is none, create another authority",
};

/// The most certificates of a name in the register. A member that renews in time has two.
const MOST: usize = 16;

/// The certificates that were issued to members and have not expired, and those that are revoked, in `certificates.json`.
///
/// A revoked name stays revoked: of its certificates, only those are accepted that were registered after the revocation, because an admin
/// invited the member again. A revocation is kept for 366 days, which no certificate outlives. A clock that is ahead by less than that while
/// something is written loses no revocation.
///
/// Any number of threads and processes may change one file; another process's changes are seen after [`refresh`](Self::refresh), or after a
/// change here.
#[derive(Debug)]
pub struct Revocations {
    file: StateFile<Content>,
    /// Held by the one that stores `current`, so that no older content replaces a newer one.
    turn: Mutex<()>,
    current: ArcSwap<Content>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    issued: BTreeMap<Serial, Entry>,
    /// When each was revoked, in seconds since 1970.
    revoked_serials: BTreeMap<Serial, u64>,
    revoked_names: BTreeMap<MemberName, u64>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    member: Identity,
    not_after: u64,
    /// The admin whose token it was issued for, or the certificate that it renews; absent: the coordinator's own, or unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    maker: Option<MemberName>,
}

impl Revocations {
    /// The file of a new authority, without certificates.
    pub(super) fn first() -> NewFile {
        StateFile::first(FILE, &Content::default())
    }

    /// Makes an empty file. Revoked certificates that have not expired are accepted again, if the file of an authority was lost.
    ///
    /// # Errors
    /// Fails if there is one, or if it cannot be written.
    pub fn create(dir: &Path) -> Result<(), IdentityError> {
        Folder::new(dir).lock()?.create_all(&[Self::first()])
    }

    /// Opens the register of a folder.
    ///
    /// # Errors
    /// Fails if the file is missing or damaged. A damaged file stays as it is.
    pub fn open(dir: &Path) -> Result<Self, IdentityError> {
        let file = StateFile::new(dir, FILE);
        let current = ArcSwap::from_pointee(file.load()?);
        Ok(Self { file, turn: Mutex::new(()), current })
    }

    /// Registers a member's certificate, before it is handed out; `renews` is the certificate with which the member requested it. Once this
    /// returns, the entry survives a loss of power.
    ///
    /// # Errors
    /// Fails if the certificate to renew is revoked, if the new one is a coordinator's, or if the file cannot be read or written.
    pub fn register(
        &self,
        issued: &CertificateFacts,
        renews: Option<&CertificateFacts>,
        now: u64,
    ) -> Result<(), IdentityError> {
        self.register_made(issued, renews, None, now)
    }

    /// The same for a certificate whose token an admin made.
    pub(super) fn register_made(
        &self,
        issued: &CertificateFacts,
        renews: Option<&CertificateFacts>,
        maker: Option<MemberName>,
        now: u64,
    ) -> Result<(), IdentityError> {
        let mut entry = Entry { member: issued.subject.member()?.clone(), not_after: issued.not_after, maker };
        self.change(now, |content| {
            renews.map_or(Ok(()), |old| content.check(old))?;
            if let Some(old) = renews.and_then(|old| content.issued.get(&old.serial)) {
                entry.maker.clone_from(&old.maker);
            }
            let name = entry.member.name.clone();
            content.issued.insert(issued.serial.clone(), entry);
            // Each first certificate needs a token; a member renews as often as it likes.
            if renews.is_some() {
                content.keep_newest(&name);
            }
            Ok(())
        })
    }

    /// Revokes all certificates of a name, of any role. Returns the number of them that have not expired.
    ///
    /// # Errors
    /// Fails if the file cannot be read or written.
    pub fn revoke(&self, name: &MemberName, now: u64) -> Result<u64, IdentityError> {
        self.change(now, |content| {
            let theirs = content.issued.iter().filter(|(_, entry)| entry.member.name == *name);
            let theirs: Vec<_> = theirs.map(|(serial, entry)| (serial.clone(), entry.not_after)).collect();
            let mut count = 0;
            for (serial, not_after) in theirs {
                let new = content.revoked_serials.insert(serial, now).is_none();
                count += u64::from(new && now <= not_after);
            }
            content.revoked_names.insert(name.clone(), now);
            Ok(count)
        })
    }

    /// Revokes one certificate. Returns whether it was registered and had not expired.
    ///
    /// # Errors
    /// Fails if the file cannot be read or written.
    pub fn revoke_serial(&self, serial: &Serial, now: u64) -> Result<bool, IdentityError> {
        self.change(now, |content| {
            content.revoked_serials.insert(serial.clone(), now);
            Ok(content.issued.get(serial).is_some_and(|entry| now <= entry.not_after))
        })
    }

    /// Whether a member's certificate is revoked. This reads memory only.
    #[must_use]
    pub fn is_revoked(&self, member: &Identity, serial: &Serial) -> bool {
        self.current.load().is_revoked(member, serial)
    }

    /// Checks a certificate that TLS has accepted, for each call on a connection that may be older than the revocation: it must be a member's,
    /// must not be revoked, and must not have expired. This reads memory only.
    ///
    /// # Errors
    /// Fails if one of these is not so.
    pub fn check(&self, certificate: &CertificateFacts, now: u64) -> Result<(), IdentityError> {
        self.current.load().check(certificate)?;
        certificate.check_expiry(now)
    }

    /// The number of members' certificates that are neither expired nor revoked.
    #[must_use]
    pub fn valid(&self, now: u64) -> u64 {
        let current = self.current.load();
        let valid = current
            .issued
            .iter()
            .filter(|(serial, entry)| now <= entry.not_after && !current.is_revoked(&entry.member, serial));
        valid.count() as u64
    }

    /// The names with a valid certificate of a role, each once.
    #[must_use]
    pub fn names(&self, role: Role, now: u64) -> Vec<String> {
        let current = self.current.load();
        let is_valid = |serial: &Serial, entry: &Entry| {
            entry.member.role == role && now <= entry.not_after && !current.is_revoked(&entry.member, serial)
        };
        let valid = current.issued.iter().filter(|(serial, entry)| is_valid(serial, entry));
        let names: BTreeSet<_> = valid.map(|(_, entry)| entry.member.name.to_string()).collect();
        names.into_iter().collect()
    }

    /// Whether certificates were issued to a name, or were revoked.
    pub(super) fn is_known(&self, name: &MemberName) -> bool {
        let current = self.current.load();
        current.revoked_names.contains_key(name) || current.issued.values().any(|entry| entry.member.name == *name)
    }

    /// The members with valid certificates whose tokens this name made, each once.
    #[must_use]
    pub fn invited_by(&self, maker: &MemberName, now: u64) -> Vec<Identity> {
        let current = self.current.load();
        let is_valid = |serial: &Serial, entry: &Entry| {
            entry.maker.as_ref() == Some(maker) && now <= entry.not_after && !current.is_revoked(&entry.member, serial)
        };
        let valid = current.issued.iter().filter(|(serial, entry)| is_valid(serial, entry));
        let mut members: Vec<_> = valid.map(|(_, entry)| entry.member.clone()).collect();
        members.sort_by_cached_key(ToString::to_string);
        members.dedup();
        members
    }

    /// Reads what other processes have changed.
    ///
    /// # Errors
    /// Fails if the file is missing or damaged; then the content in memory stays in use.
    pub fn refresh(&self) -> Result<(), IdentityError> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.current.store(Arc::new(self.file.load()?));
        Ok(())
    }

    fn change<R>(
        &self,
        now: u64,
        change: impl FnOnce(&mut Content) -> Result<R, IdentityError>,
    ) -> Result<R, IdentityError> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let (result, content) = self.file.update(|content| {
            let result = change(content)?;
            content.prune(now);
            Ok(result)
        })?;
        self.current.store(Arc::new(content));
        Ok(result)
    }
}

impl Content {
    fn is_revoked(&self, member: &Identity, serial: &Serial) -> bool {
        let by_name = || self.revoked_names.contains_key(&member.name) && !self.issued.contains_key(serial);
        self.revoked_serials.contains_key(serial) || by_name()
    }

    fn check(&self, certificate: &CertificateFacts) -> Result<(), IdentityError> {
        let member = certificate.subject.member()?;
        match self.is_revoked(member, &certificate.serial) {
            true => Err(IdentityError::Revoked { identity: member.clone(), serial: certificate.serial.clone() }),
            false => Ok(()),
        }
    }

    /// Forgets the oldest certificates of a name that renews too often: they stay valid until they expire, unless the name is revoked. So the file has a
    /// limit, whatever members do.
    fn keep_newest(&mut self, name: &MemberName) {
        let theirs = self.issued.iter().filter(|(_, entry)| entry.member.name == *name);
        let mut theirs: Vec<_> = theirs.map(|(serial, entry)| (entry.not_after, serial.clone())).collect();
        theirs.sort_by_key(|(not_after, _)| std::cmp::Reverse(*not_after));
        for (_, serial) in theirs.into_iter().skip(MOST) {
            self.issued.remove(&serial);
        }
    }

    /// Forgets certificates that have expired, by clocks that may be late; and revocations of certificates that must have expired.
    fn prune(&mut self, now: u64) {
        self.issued.retain(|_, entry| now <= entry.not_after.saturating_add(SKEW));
        let kept = |at: &u64| now <= at.saturating_add(LONGEST + SKEW);
        self.revoked_serials.retain(|_, at| kept(at));
        self.revoked_names.retain(|_, at| kept(at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Subject;

    const NOW: u64 = 1_795_000_000;
    const DAY: u64 = 86_400;

    fn opened() -> (tempfile::TempDir, Revocations) {
        let dir = tempfile::tempdir().unwrap();
        Revocations::create(dir.path()).unwrap();
        let revocations = Revocations::open(dir.path()).unwrap();
        (dir, revocations)
    }

    fn certificate(name: &str, role: &str, not_after: u64) -> CertificateFacts {
        let subject = Subject::Member(Identity::parse(name, role).unwrap());
        CertificateFacts { subject, serial: Serial::random().unwrap().0, not_before: NOW, not_after, names: Vec::new() }
    }

    fn revoked(revocations: &Revocations, certificate: &CertificateFacts) -> bool {
        revocations.is_revoked(certificate.subject.member().unwrap(), &certificate.serial)
    }

    #[test]
    fn a_revoked_name_has_no_certificates_until_it_is_invited_again() {
        let (dir, revocations) = opened();
        let [agent, admin, old, other] =
            [("a", "agent", DAY), ("a", "admin", DAY), ("a", "agent", 5), ("b", "agent", DAY)]
                .map(|(name, role, life)| certificate(name, role, NOW + life));
        for certificate in [&agent, &admin, &old, &other] {
            revocations.register(certificate, None, NOW).unwrap();
        }
        assert_eq!(revocations.valid(NOW), 4);
        let name = "a".parse().unwrap();
        assert_eq!(revocations.revoke(&name, NOW + 10).unwrap(), 2);
        assert_eq!(revocations.revoke(&name, NOW + 11).unwrap(), 0);
        let unregistered = certificate("a", "agent", NOW + DAY);
        let all = [&agent, &admin, &old, &unregistered, &other];
        assert_eq!(all.map(|certificate| revoked(&revocations, certificate)), [true, true, true, true, false]);
        let error = revocations.check(&agent, NOW + 10).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("the certificate {} of agent/a is revoked: an admin must invite this member again", agent.serial)
        );
        let again = certificate("a", "agent", NOW + DAY);
        revocations.register(&again, None, NOW + 12).unwrap();
        for revocations in [revocations, Revocations::open(dir.path()).unwrap()] {
            revocations.check(&again, NOW + 12).unwrap();
            assert!(revoked(&revocations, &agent));
            assert_eq!(revocations.valid(NOW + 12), 2);
        }
    }

    #[test]
    fn a_name_that_renews_too_often_has_a_limit_and_can_be_revoked() {
        let (_dir, revocations) = opened();
        let all: Vec<_> = (0..40).map(|day| certificate("a", "agent", NOW + (1 + day) * DAY)).collect();
        let other = certificate("b", "agent", NOW + 1);
        revocations.register(&all[0], None, NOW).unwrap();
        revocations.register(&other, None, NOW).unwrap();
        for pair in all.windows(2) {
            revocations.register(&pair[1], Some(&pair[0]), NOW).unwrap();
        }
        assert_eq!(revocations.valid(NOW), MOST as u64 + 1);
        assert_eq!(revocations.names(Role::Agent, NOW), ["a", "b"]);
        assert_eq!(revocations.names(Role::Agent, NOW + DAY), ["a"]);
        assert!(revocations.names(Role::Reader, NOW).is_empty());
        assert!(all.iter().all(|certificate| !revoked(&revocations, certificate)));
        revocations.revoke(&"a".parse().unwrap(), NOW).unwrap();
        assert!(all.iter().all(|certificate| revoked(&revocations, certificate)));
        assert_eq!(revocations.names(Role::Agent, NOW), ["b"]);
    }

    #[test]
    fn a_revoked_certificate_is_not_renewed() {
        let (_dir, revocations) = opened();
        let (old, new) = (certificate("a", "agent", NOW + DAY), certificate("a", "agent", NOW + DAY));
        revocations.register(&old, None, NOW).unwrap();
        assert!(revocations.revoke_serial(&old.serial, NOW).unwrap());
        assert!(!revocations.revoke_serial(&new.serial, NOW).unwrap());
        let error = revocations.register(&new, Some(&old), NOW).unwrap_err();
        assert!(matches!(error, IdentityError::Revoked { .. }), "{error}");
        assert_eq!(revocations.valid(NOW), 0);
    }

    #[test]
    fn expired_certificates_are_forgotten_and_revocations_stay_for_a_year() {
        let (_dir, revocations) = opened();
        let (short, long) = (certificate("a", "agent", NOW + 60), certificate("b", "agent", NOW + DAY));
        revocations.register(&short, None, NOW).unwrap();
        revocations.register(&long, None, NOW).unwrap();
        revocations.revoke(&"a".parse().unwrap(), NOW).unwrap();
        // A clock that jumps ahead by months, and back.
        let ahead = NOW + LONGEST;
        revocations.register(&certificate("c", "agent", ahead + DAY), None, ahead).unwrap();
        assert_eq!(revocations.current.load().issued.len(), 1);
        assert!(revoked(&revocations, &short));
        assert!(!revoked(&revocations, &long));
        let ahead = NOW + LONGEST + SKEW + 1;
        revocations.register(&certificate("d", "agent", ahead + DAY), None, ahead).unwrap();
        let current = revocations.current.load();
        assert_eq!((current.revoked_serials.len(), current.revoked_names.len()), (0, 0));
    }

    #[test]
    fn another_process_is_seen_after_a_refresh() {
        let (dir, ours) = opened();
        let theirs = Revocations::open(dir.path()).unwrap();
        let (one, other) = (certificate("a", "agent", NOW + DAY), certificate("b", "agent", NOW + DAY));
        ours.register(&one, None, NOW).unwrap();
        theirs.register(&other, None, NOW).unwrap();
        theirs.revoke(&"a".parse().unwrap(), NOW).unwrap();
        assert!(!revoked(&ours, &one));
        ours.refresh().unwrap();
        assert!(revoked(&ours, &one) && !revoked(&ours, &other));
    }

    #[test]
    fn expired_and_coordinators_certificates_fail_the_check() {
        let (_dir, revocations) = opened();
        let member = certificate("a", "agent", NOW + 10);
        revocations.check(&member, NOW + 10).unwrap();
        let error = revocations.check(&member, NOW + 11).unwrap_err().to_string();
        assert!(error.starts_with("the certificate of agent/a expired at 2026-11-18 11:06:50 UTC: "), "{error}");
        let coordinator = CertificateFacts { subject: Subject::Coordinator, ..member };
        assert!(matches!(revocations.check(&coordinator, NOW), Err(IdentityError::NotAMember)));
        assert!(matches!(revocations.register(&coordinator, None, NOW), Err(IdentityError::NotAMember)));
    }
}
