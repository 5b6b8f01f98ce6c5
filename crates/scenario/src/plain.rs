//! Values without units: numbers, booleans, text, and optional values.

use crate::describe::ValueKind;
use crate::dom::{Node, TomlValue};
use crate::explain::{Written, quoted};
use crate::keys::{Bounded, Field};
use crate::read::Findings;
use queuescope_text::Problem;
use std::num::{NonZeroU16, NonZeroU32};

/// Implements [`Field`] for whole numbers.
macro_rules! integers {
    ($($type:ty),*) => {
        $(impl Field for $type {
            fn blank() -> Self {
                0
            }
            fn read(&mut self, node: &Node, findings: &mut Findings) {
                // Numbers in TOML are at most 2^63 - 1.
                match node.value {
                    TomlValue::Integer(number) => match <$type>::try_from(number) {
                        Ok(value) => *self = value,
                        Err(_) => {
                            let (low, high) =
                                findings.bounds.clone().unwrap_or_else(|| (<$type>::MIN.to_string(), <$type>::MAX.to_string()));
                            let key = findings.key().to_owned();
                            findings.problem(|| {
                                let wrong = if number < 0 { format!("below {low}") } else { format!("above {high}") };
                                Problem::new(format!("`{key}` is out of bounds"))
                                    .at(node.place.clone(), wrong)
                                    .help(format!("use {low} to {high}"))
                            });
                        }
                    },
                    _ => findings.problem(|| {
                        Problem::new("this is not a whole number")
                            .at(node.place.clone(), format!("this is {}", match node.value {
                                TomlValue::Float(_) => "a number with a fraction",
                                _ => node.kind(),
                            }))
                            .help("write a whole number without quotes")
                    }),
                }
            }
            fn write(&self) -> Written {
                Written::Inline(self.to_string())
            }
            fn kind() -> ValueKind {
                ValueKind::Integer
            }
        }
        impl Bounded for $type {})*
    };
}

integers!(u8, u16, u32, u64, usize, i8);

/// Implements [`Field`] for whole numbers above zero.
macro_rules! positive {
    ($($type:ty),*) => {
        $(impl Field for $type {
            fn blank() -> Self {
                Self::MIN
            }
            fn read(&mut self, node: &Node, findings: &mut Findings) {
                let mut number = self.get();
                number.read(node, findings);
                match Self::new(number) {
                    Some(number) => *self = number,
                    None => {
                        let key = findings.key().to_owned();
                        findings.problem(|| {
                            Problem::new(format!("`{key}` is out of bounds")).at(node.place.clone(), "below 1")
                        });
                    }
                }
            }
            fn write(&self) -> Written {
                self.get().write()
            }
            fn kind() -> ValueKind {
                ValueKind::Integer
            }
        }
        impl Bounded for $type {})*
    };
}

positive!(NonZeroU16, NonZeroU32);

impl Field for f64 {
    fn blank() -> Self {
        0.0
    }

    fn read(&mut self, node: &Node, findings: &mut Findings) {
        let number = match node.value {
            TomlValue::Integer(number) => number as Self,
            TomlValue::Float(number) => number,
            _ => {
                return findings.problem(|| {
                    Problem::new("this is not a number")
                        .at(node.place.clone(), format!("this is {}", node.kind()))
                        .help("write a number without quotes")
                });
            }
        };
        if number.is_finite() {
            *self = number;
        } else {
            findings.problem(|| Problem::new("the number is not finite").at(node.place.clone(), "here"));
        }
    }

    fn write(&self) -> Written {
        Written::Inline(format!("{self:?}"))
    }

    fn kind() -> ValueKind {
        ValueKind::Number
    }
}

impl Bounded for f64 {}

impl Field for bool {
    fn blank() -> Self {
        false
    }

    fn read(&mut self, node: &Node, findings: &mut Findings) {
        match node.value {
            TomlValue::Bool(truth) => *self = truth,
            _ => findings.problem(|| {
                Problem::new("this is neither true nor false")
                    .at(node.place.clone(), format!("this is {}", node.kind()))
                    .help("write true or false, without quotes")
            }),
        }
    }

    fn write(&self) -> Written {
        Written::Inline(self.to_string())
    }

    fn kind() -> ValueKind {
        ValueKind::Bool
    }
}

impl Field for String {
    fn blank() -> Self {
        Self::new()
    }

    fn read(&mut self, node: &Node, findings: &mut Findings) {
        match &node.value {
            TomlValue::Text(text) => self.clone_from(text),
            _ => findings.problem(|| {
                Problem::new("this is not text")
                    .at(node.place.clone(), format!("this is {}", node.kind()))
                    .help("write it in quotes")
            }),
        }
    }

    fn write(&self) -> Written {
        Written::Inline(quoted(self))
    }

    fn kind() -> ValueKind {
        ValueKind::Text { what: "text", examples: &[], pattern: None }
    }
}

/// An optional value; no value is written `none`.
impl<T: Field> Field for Option<T> {
    fn blank() -> Self {
        None
    }

    fn read(&mut self, node: &Node, findings: &mut Findings) {
        if matches!(&node.value, TomlValue::Text(text) if text == "none") {
            *self = None;
            return;
        }
        let mut value = self.clone().unwrap_or_else(T::blank);
        let before = findings.count();
        value.read(node, findings);
        if findings.count() == before {
            *self = Some(value);
        }
    }

    fn write(&self) -> Written {
        self.as_ref().map_or_else(|| Written::Inline("\"none\"".to_owned()), Field::write)
    }

    fn kind() -> ValueKind {
        ValueKind::Optional(Box::new(T::kind()))
    }
}
