//! Integers as strings of decimal digits.
//!
//! JSON numbers are doubles in JavaScript and in many other readers, and a double is exact only up to 2^53. Fields that
//! can exceed that are strings, always, so that a reader needs one way to read them: points in time, lengths of runs and
//! bursts, byte totals and seeds. Format 1 wrote numbers, which are still read.

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserializer, Serializer};
use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::str::FromStr;

/// The schema of such a string.
#[derive(Debug)]
pub struct Decimal;

impl schemars::JsonSchema for Decimal {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Decimal".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "An integer as a string of decimal digits, since it can exceed 2^53.",
            "type": "string",
            "pattern": "^-?[0-9]+$",
        })
    }
}

/// Writes an integer as a string of its digits.
///
/// # Errors
/// Returns the error of the serializer.
pub fn serialize<T: Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// Reads an integer from a string of digits, or from a number as in format 1.
///
/// # Errors
/// Returns an error for other text, other types, and integers outside the range of `T`.
pub fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: FromStr + TryFrom<u64> + TryFrom<i64>,
    D: Deserializer<'de>,
{
    deserializer.deserialize_any(Digits(PhantomData))
}

/// Fields that may be none.
pub mod option {
    use super::{Digits, Display, FromStr, PhantomData};
    use serde::{Deserialize, Deserializer, Serializer};

    /// Writes an integer as a string of its digits, or none.
    ///
    /// # Errors
    /// Returns the error of the serializer.
    pub fn serialize<T: Display, S: Serializer>(value: &Option<T>, serializer: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => serializer.collect_str(value),
            None => serializer.serialize_none(),
        }
    }

    /// Reads what [`serialize`] writes, or a number as in format 1.
    ///
    /// # Errors
    /// As [`super::deserialize`].
    pub fn deserialize<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
    where
        T: FromStr + TryFrom<u64> + TryFrom<i64>,
        D: Deserializer<'de>,
    {
        /// A value that is there.
        struct Given<T>(T);

        impl<'de, T: FromStr + TryFrom<u64> + TryFrom<i64>> Deserialize<'de> for Given<T> {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(Digits(PhantomData)).map(Self)
            }
        }

        Ok(Option::<Given<T>>::deserialize(deserializer)?.map(|Given(value)| value))
    }
}

/// Reads an integer from digits or from a number.
struct Digits<T>(PhantomData<T>);

impl<T: FromStr + TryFrom<u64> + TryFrom<i64>> Visitor<'_> for Digits<T> {
    type Value = T;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an integer, or a string of its decimal digits")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<T, E> {
        T::try_from(value).map_err(|_| E::invalid_value(Unexpected::Unsigned(value), &self))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<T, E> {
        T::try_from(value).map_err(|_| E::invalid_value(Unexpected::Signed(value), &self))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::{Deserialize, Serialize};

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Fields {
        #[serde(with = "super")]
        count: u64,
        #[serde(with = "super")]
        offset: i64,
        #[serde(default, with = "super::option")]
        end: Option<u64>,
    }

    #[test]
    fn integers_are_digits() {
        let fields = Fields { count: u64::MAX, offset: -5, end: None };
        assert_eq!(
            serde_json::to_string(&fields).unwrap(),
            r#"{"count":"18446744073709551615","offset":"-5","end":null}"#
        );
    }

    #[test]
    fn other_text_is_refused() {
        for text in [
            r#"{"count":"12x","offset":"0"}"#,
            r#"{"count":"-1","offset":"0"}"#,
            r#"{"count":-1,"offset":"0"}"#,
            r#"{"count":1.5,"offset":"0"}"#,
            r#"{"count":"18446744073709551616","offset":"0"}"#,
            r#"{"count":null,"offset":"0"}"#,
        ] {
            assert!(serde_json::from_str::<Fields>(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn all_integers_come_back(count: u64, offset: i64, end: Option<u64>) {
            let fields = Fields { count, offset, end };
            let text = serde_json::to_string(&fields).unwrap();
            prop_assert_eq!(serde_json::from_str::<Fields>(&text).unwrap(), fields);
        }

        #[test]
        fn numbers_of_format_1_are_read(count: u64, offset: i64, end: Option<u64>) {
            let text = serde_json::json!({ "count": count, "offset": offset, "end": end }).to_string();
            prop_assert_eq!(serde_json::from_str::<Fields>(&text).unwrap(), Fields { count, offset, end });
        }
    }
}
