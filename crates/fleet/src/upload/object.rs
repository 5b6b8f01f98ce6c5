//! The names of uploaded volumes.
//!
//! `packet/host=web-1/date=2026-11-22/first_hour=16/STORE-FIRST-END-RECORDS-LOST.parquet`: below the name of the schema there are partitions in
//! Hive's layout, so one pattern reads the records of the whole fleet, and conditions on host and date leave out whole folders. The
//! file name has all that the catalogue of the folder knows of the positions, so a listing of the store is a complete inventory.

use crate::identity::MemberName;
use object_store::path::Path;
use queuescope_archive::SealedVolume;
use std::fmt;
use std::ops::Range;

/// The partition of the hour, in UTC, of a volume's first record. A volume has later records, too, also those of later hours.
pub const HOUR: &str = "first_hour";
/// The names of all partitions: columns for programs that read the layout. No attribute of a record may have one of these names.
pub const PARTITIONS: [&str; 3] = ["host", "date", HOUR];
/// The value of a partition that is null, as other programs write it.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";
/// Nanoseconds of an hour.
const AN_HOUR: u64 = 3_600_000_000_000;

/// What an object holds: the records of a volume of a host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct VolumeObject {
    /// The name of the records' schema.
    pub schema: String,
    /// The host.
    pub host: MemberName,
    /// The day of its records in UTC, `2026-11-22`; `None` if they have no time, or are of many days.
    pub date: Option<String>,
    /// The hour of its first record by time; `None` without a day.
    pub hour: Option<u8>,
    /// Names the folder on the host that has the positions.
    pub store: u64,
    /// The position of the first of the records, here and in objects of other days.
    pub first: u64,
    /// The position behind the last of them.
    pub end: u64,
    /// How many of the records are in this object.
    pub records: u64,
    /// The number of records that the host lost before these.
    pub lost: u64,
}

impl VolumeObject {
    /// The object of a volume in the folder `store` of a host.
    pub fn of(volume: &SealedVolume, schema: &str, host: &MemberName, store: u64) -> Self {
        let date = volume.day().strip_prefix("date=").filter(|date| *date != NULL);
        let hour = date.and(volume.times()).map(|(first, _)| (first / AN_HOUR % 24) as u8);
        let Range { start: first, end } = volume.positions();
        Self {
            schema: schema.to_owned(),
            host: host.clone(),
            date: date.map(str::to_owned),
            hour,
            store,
            first,
            end,
            records: volume.records(),
            lost: volume.lost(),
        }
    }

    /// The folder of a host's objects.
    pub fn folder(schema: &str, host: &MemberName) -> String {
        format!("{schema}/host={host}")
    }

    /// Parses a name below the place that is uploaded to; `None` if it is another object's.
    pub fn parse(path: &str) -> Option<Self> {
        let parts: Vec<_> = path.split('/').collect();
        let [schema, host, date, hour, file] = parts[..] else { return None };
        let value = |part: &str| (part != NULL).then(|| part.to_owned());
        let hour = value(hour.strip_prefix(HOUR)?.strip_prefix('=')?);
        let numbers = file.strip_suffix(".parquet")?.split('-').collect::<Vec<_>>();
        let [store, first, end, records, lost] = numbers[..] else { return None };
        let number = |text: &str| text.parse::<u64>().ok();
        let object = Self {
            schema: schema.to_owned(),
            host: host.strip_prefix("host=")?.parse().ok()?,
            date: value(date.strip_prefix("date=")?),
            hour: hour.map(|hour| hour.parse::<u8>().ok().filter(|hour| *hour < 24).ok_or(())).transpose().ok()?,
            store: u64::from_str_radix(store, 16).ok()?,
            first: number(first)?,
            end: number(end)?,
            records: number(records)?,
            lost: number(lost)?,
        };
        // One object has one name.
        let is_possible =
            !schema.is_empty() && object.first < object.end && object.records <= object.end - object.first;
        (is_possible && object.to_string() == path).then_some(object)
    }

    /// The name below a prefix.
    pub(super) fn path(&self, prefix: &Path) -> Path {
        self.to_string().split('/').fold(prefix.clone(), Path::join)
    }

    /// Whether both have records at the same positions and of the same days. A volume that was joined has those of others.
    pub fn overlaps(&self, other: &Self) -> bool {
        let is_same_host = (self.store, &self.schema, &self.host) == (other.store, &other.schema, &other.host);
        let in_common = self.first < other.end && other.first < self.end;
        is_same_host && in_common && (self.date == other.date || (self.first, self.end) != (other.first, other.end))
    }
}

impl fmt::Display for VolumeObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { schema, host, date, hour, store, first, end, records, lost } = self;
        let date = date.as_deref().unwrap_or(NULL);
        let hour = hour.map_or_else(|| NULL.to_owned(), |hour| format!("{hour:02}"));
        write!(
            f,
            "{schema}/host={host}/date={date}/{HOUR}={hour}/{store:016x}-{first:020}-{end:020}-{records}-{lost}.parquet"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NAME: &str = "packet/host=web-1/date=2026-11-22/first_hour=16/\
                        187c0de000000001-00000000000000000010-00000000000000000030-20-3.parquet";

    fn object() -> VolumeObject {
        VolumeObject {
            schema: "packet".to_owned(),
            host: "web-1".parse().expect("it is a name"),
            date: Some("2026-11-22".to_owned()),
            hour: Some(16),
            store: 0x187c_0de0_0000_0001,
            first: 10,
            end: 30,
            records: 20,
            lost: 3,
        }
    }

    #[test]
    fn a_name_says_what_an_object_holds() {
        assert_eq!(object().to_string(), NAME);
        assert_eq!(VolumeObject::parse(NAME), Some(object()));
        let no_day = VolumeObject { date: None, hour: None, ..object() };
        assert!(no_day.to_string().contains("/date=__HIVE_DEFAULT_PARTITION__/first_hour=__HIVE_DEFAULT_PARTITION__/"));
        assert_eq!(VolumeObject::parse(&no_day.to_string()), Some(no_day));
        assert_eq!(object().path(&Path::from("fleet/a")).as_ref(), format!("fleet/a/{NAME}"));
    }

    #[test]
    fn names_of_other_objects_are_not_parsed() {
        for (of, by) in [
            ("packet/", ""),
            ("packet/", "packet/packet/"),
            ("host=", "hosts="),
            ("web-1", ".."),
            ("date=2026", "day=2026"),
            ("first_hour=16", "hour=16"),
            ("first_hour=16", "first_hour=24"),
            ("first_hour=16", "first_hour=+6"),
            ("187c", "187C"),
            ("-20-3", "-21-3"),
            ("-20-3", "-20"),
            ("-20-3", "-020-3"),
            ("-0000000000000000003", "-0000000000000000000"),
            (".parquet", ".parquet#1"),
        ] {
            let name = NAME.replacen(of, by, 1);
            assert_ne!(name, NAME);
            assert_eq!(VolumeObject::parse(&name), None, "{name}");
        }
    }

    #[test]
    fn days_of_the_same_records_do_not_overlap_and_joined_volumes_do() {
        let other_day = VolumeObject { date: Some("2026-11-23".to_owned()), ..object() };
        assert!(!object().overlaps(&other_day));
        assert!(object().overlaps(&VolumeObject { first: 0, ..object() }));
        assert!(object().overlaps(&VolumeObject { first: 0, ..other_day }));
        assert!(!object().overlaps(&VolumeObject { first: 30, end: 40, ..object() }));
        assert!(!object().overlaps(&VolumeObject { store: 1, first: 0, ..object() }));
    }

    proptest! {
        /// Any text is refused, or is the one name of what it is parsed as.
        #[test]
        fn what_is_parsed_is_printed_the_same(text in "[a-z]{1,3}/host=[a-c./-]{1,3}/date=[0-9-]{1,3}/first_hour=[0-9]{2}/[0-9a-f-]{1,30}.parquet") {
            if let Some(object) = VolumeObject::parse(&text) {
                prop_assert_eq!(object.to_string(), text);
            }
        }
    }
}
