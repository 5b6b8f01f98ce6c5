//! The keys of scenarios, each listed once. Reading a file, writing the effective scenario, the schema and the
//! reference all follow from the same list.
//!
//! A key is one line: its name, the field that it sets, and its description. The value of the field before reading is
//! the default.

use crate::describe::ValueKind;
use crate::dom::Node;
use crate::explain::Written;
use crate::read::Findings;
use std::ops::RangeInclusive;

/// A table of a scenario, with its keys in the order in which they are written.
pub(crate) trait Table: Clone + PartialEq {
    /// A table with the default values.
    fn fresh() -> Self;

    /// Lists the keys.
    fn keys<K: KeyVisitor>(&mut self, keys: &mut K);
}

/// One of several options, each with its own parameters. It is written as a name, or as a table of the name and its
/// parameters.
pub(crate) trait Choice: Clone + PartialEq {
    /// The name of the choice in messages and in the reference, such as "discipline".
    const WHAT: &'static str;

    /// Any option, as the initial value for reading.
    fn fresh() -> Self;

    /// All options, with their defaults in the context of this one.
    fn options(&self) -> Vec<Self>;

    /// The name of the option in a scenario.
    fn name(&self) -> &'static str;

    /// What the option is, in a sentence.
    fn about(&self) -> &'static str;

    /// Lists the keys of its parameters.
    fn keys<K: KeyVisitor>(&mut self, keys: &mut K);
}

/// A visitor of the keys of a table: the reader, the writer, or the description.
pub(crate) trait KeyVisitor {
    /// Whether the visitor writes values. For a reader, all keys of a group of which one is required start absent.
    const WRITES: bool = false;

    /// A key. If it is absent, the field keeps its value.
    fn key<T: Field>(&mut self, name: &'static str, field: &mut T, doc: &'static str);

    /// A key whose value has bounds.
    fn within<T: Bounded>(&mut self, name: &'static str, field: &mut T, bounds: RangeInclusive<T>, doc: &'static str);

    /// A key of a group of alternatives, absent unless it is chosen; see [`Self::one_of`].
    fn maybe<T: Field>(&mut self, name: &'static str, field: &mut Option<T>, doc: &'static str);

    /// A key whose default is the value of another part of the scenario, `from`.
    fn inherited<T: Field>(&mut self, name: &'static str, field: &mut T, from: &T, doc: &'static str);

    /// A list of tables. `fresh` returns the table of an index with its defaults. `inherited`: these defaults come from
    /// another part of the scenario.
    fn list<T: Table>(
        &mut self,
        name: &'static str,
        field: &mut Vec<T>,
        fresh: impl Fn(usize) -> T,
        inherited: bool,
        doc: &'static str,
    );

    /// At most one of these keys may be written; with `required`, exactly one.
    fn one_of(&mut self, names: &'static [&'static str], required: bool);

    /// Two keys that exclude each other, each with the name of its neutral value: at most one may have another value.
    /// An override of one key resets the other to its neutral value. [`Self::ensure`] reports violations in files.
    fn rivals(&mut self, keys: [(&'static str, &'static str); 2]) {
        let _ = keys;
    }

    /// This key must be written.
    fn required(&mut self, name: &'static str) {
        let _ = name;
    }

    /// A rule about a key, or about a path of keys below it, that its type does not enforce. If it does not hold,
    /// `problem` returns a message and a help text.
    fn ensure(&mut self, name: &str, holds: bool, problem: impl FnOnce() -> (String, String)) {
        let _ = (name, holds, problem);
    }
}

/// A type of values.
pub(crate) trait Field: Clone + PartialEq {
    /// Any value, as the initial value for reading.
    fn blank() -> Self;

    /// Reads a value, or reports why it cannot.
    fn read(&mut self, node: &Node, findings: &mut Findings);

    /// Writes the value as TOML that reads back.
    fn write(&self) -> Written;

    /// Describes the values that can be written.
    fn kind() -> ValueKind;
}

/// A type of values that can have bounds.
pub(crate) trait Bounded: Field + PartialOrd {}

/// Implements [`Field`] for tables and choices. Two blanket implementations would overlap.
macro_rules! fields {
    (tables: $($table:ty),*; choices: $($choice:ty),*) => {
        $(impl $crate::keys::Field for $table {
            fn blank() -> Self {
                <Self as $crate::keys::Table>::fresh()
            }
            fn read(&mut self, node: &$crate::dom::Node, findings: &mut $crate::read::Findings) {
                $crate::read::read_table(self, node, findings);
            }
            fn write(&self) -> $crate::explain::Written {
                $crate::explain::write_table(self)
            }
            fn kind() -> $crate::describe::ValueKind {
                $crate::describe::table_kind::<Self>()
            }
        })*
        $(impl $crate::keys::Field for $choice {
            fn blank() -> Self {
                <Self as $crate::keys::Choice>::fresh()
            }
            fn read(&mut self, node: &$crate::dom::Node, findings: &mut $crate::read::Findings) {
                $crate::read::read_choice(self, node, findings);
            }
            fn write(&self) -> $crate::explain::Written {
                $crate::explain::write_choice(self)
            }
            fn kind() -> $crate::describe::ValueKind {
                $crate::describe::choice_kind::<Self>()
            }
        })*
    };
}
pub(crate) use fields;

/// Implements [`Choice`] from one line for each option: its name, a description, its defaults, and the keys of its
/// parameters. The first option is the initial value for reading.
macro_rules! choice {
    ($type:ty, $what:literal, $keys:ident; $($name:literal, $about:literal, $default:expr, $pattern:pat => $list:expr;)+) => {
        $crate::keys::fields!(tables:; choices: $type);

        impl $crate::keys::Choice for $type {
            const WHAT: &'static str = $what;

            fn fresh() -> Self {
                let all = [$(|| $default),+] as [fn() -> Self; _];
                all[0]()
            }

            fn options(&self) -> Vec<Self> {
                vec![$($default),+]
            }

            fn name(&self) -> &'static str {
                #[allow(unused_variables, reason = "the parameters are for the keys")]
                match self {
                    $($pattern => $name),+
                }
            }

            fn about(&self) -> &'static str {
                #[allow(unused_variables, reason = "the parameters are for the keys")]
                match self {
                    $($pattern => $about),+
                }
            }

            fn keys<K: $crate::keys::KeyVisitor>(&mut self, $keys: &mut K) {
                match self {
                    $($pattern => $list),+
                }
            }
        }
    };
}
pub(crate) use choice;
