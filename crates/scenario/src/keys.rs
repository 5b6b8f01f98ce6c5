//! What a scenario may say, once: a type lists its keys, and from that list files are read, the effective scenario is
//! written, and the schema and the reference are made.
//!
//! A key is one line: its name, the field that it fills, whose value before is the default, and what it means.

use crate::describe::Kind;
use crate::dom::Node;
use crate::explain::Written;
use crate::read::Findings;
use std::ops::RangeInclusive;

/// A table: its keys in the order in which they are written.
pub(crate) trait Table: Clone + PartialEq {
    /// One whose values are the defaults.
    fn fresh() -> Self;

    /// Lists the keys.
    fn keys<K: Keys>(&mut self, keys: &mut K);
}

/// One of several, each with parameters of its own. Written as a name, or as a table of the name and its parameters.
pub(crate) trait Choice: Clone + PartialEq {
    /// What is chosen, in one word.
    const WHAT: &'static str;

    /// One, to be read over.
    fn fresh() -> Self;

    /// All there are, with the defaults that they have where this one stands.
    fn options(&self) -> Vec<Self>;

    /// How it is written.
    fn name(&self) -> &'static str;

    /// What it is.
    fn about(&self) -> &'static str;

    /// Lists the keys of its parameters.
    fn keys<K: Keys>(&mut self, keys: &mut K);
}

/// Who goes through the keys of a table.
pub(crate) trait Keys {
    /// Whether it writes values down. For a reader, alternatives of which one must be named begin absent.
    const WRITES: bool = false;

    /// A key. Where it is absent, the field keeps its value.
    fn key<T: Field>(&mut self, name: &'static str, field: &mut T, doc: &'static str);

    /// The same for a value that has bounds.
    fn within<T: Bounded>(&mut self, name: &'static str, field: &mut T, bounds: RangeInclusive<T>, doc: &'static str);

    /// A key that is absent unless it means something; see [`Self::one_of`].
    fn maybe<T: Field>(&mut self, name: &'static str, field: &mut Option<T>, doc: &'static str);

    /// A key whose default is what another part of the scenario says.
    fn inherited<T: Field>(&mut self, name: &'static str, field: &mut T, from: &T, doc: &'static str);

    /// A list of tables; `fresh` makes the one of a number, with its defaults. Whether those are what another part of the
    /// scenario says is `inherited`.
    fn list<T: Table>(
        &mut self,
        name: &'static str,
        field: &mut Vec<T>,
        fresh: impl Fn(usize) -> T,
        inherited: bool,
        doc: &'static str,
    );

    /// Only one of these keys may stand there; `required` says that one must.
    fn one_of(&mut self, names: &'static [&'static str], required: bool);

    /// Of these two keys, each with the name of the value that leaves the other alone, only one may have another value. What
    /// breaks that, [`Self::ensure`] tells; an override of the one puts the other back.
    fn rivals(&mut self, keys: [(&'static str, &'static str); 2]) {
        let _ = keys;
    }

    /// This key must stand there.
    fn required(&mut self, name: &'static str) {
        let _ = name;
    }

    /// A rule about a key, or about what a path of keys below it leads to, that its type does not hold: if it is broken, what
    /// is wrong, and what helps.
    fn ensure(&mut self, name: &str, holds: bool, problem: impl FnOnce() -> (String, String)) {
        let _ = (name, holds, problem);
    }
}

/// A value that a key can have.
pub(crate) trait Field: Clone + PartialEq {
    /// Any value, to be read over.
    fn blank() -> Self;

    /// Becomes what is written, or tells why not.
    fn read(&mut self, node: &Node, findings: &mut Findings);

    /// As TOML that reads back.
    fn write(&self) -> Written;

    /// What can be written.
    fn kind() -> Kind;
}

/// A value that is less or more than another.
pub(crate) trait Bounded: Field + PartialOrd {}

/// Tables are fields, and so are choices; one blanket implementation for each would overlap.
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
            fn kind() -> $crate::describe::Kind {
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
            fn kind() -> $crate::describe::Kind {
                $crate::describe::choice_kind::<Self>()
            }
        })*
    };
}
pub(crate) use fields;

/// A [`Choice`] from one line for each option: its name, what it is, its defaults, and how the keys of its parameters are
/// listed. The first is what values are read over.
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

            fn keys<K: $crate::keys::Keys>(&mut self, $keys: &mut K) {
                match self {
                    $($pattern => $list),+
                }
            }
        }
    };
}
pub(crate) use choice;
