//! Expressions to text, which parses as the same expression.

use super::{Expr, Number, Relation, Scope, Test};
use crate::{Attribute, Kind, Schema};

impl Expr {
    /// Text that [`Scope::parse`] with the same scope reads as the same expression, unless the text
    /// is longer or deeper than the limits: pcap's words are written as tests of attributes.
    pub fn text(&self, scope: &Scope) -> String {
        let mut text = String::new();
        self.write(scope, &mut text, Rank::Any);
        text
    }

    fn write(&self, scope: &Scope, text: &mut String, rank: Rank) {
        match self {
            Self::Constant(constant) => text.push_str(if *constant { "true" } else { "false" }),
            Self::Test(test) => test.write(scope, text),
            Self::Not(expr) => {
                text.push_str("not ");
                expr.write(scope, text, Rank::Not);
            }
            Self::All(each) => list(each, " and ", scope, text, Rank::All, rank > Rank::All),
            Self::Any(each) => list(each, " or ", scope, text, Rank::Any, rank > Rank::Any),
        }
    }
}

/// How tightly the surrounding operator binds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Any,
    All,
    Not,
}

fn list(each: &[Expr], operator: &str, scope: &Scope, text: &mut String, rank: Rank, parentheses: bool) {
    if parentheses {
        text.push('(');
    }
    for (index, expr) in each.iter().enumerate() {
        if index > 0 {
            text.push_str(operator);
        }
        expr.write(scope, text, rank);
    }
    if parentheses {
        text.push(')');
    }
}

impl Test {
    fn write(&self, scope: &Scope, text: &mut String) {
        let schema: &Schema = scope.schema();
        match self {
            Self::Compare { attribute, relation, key } => {
                let attribute = schema.attribute(*attribute);
                text.push_str(&format!("{} {} {}", attribute.name, relation.symbol(), attribute.text_of(*key)));
            }
            Self::Within { attribute, ranges } => {
                let attribute = schema.attribute(*attribute);
                let parts: Vec<_> = ranges.iter().map(|range| range_text(attribute, range)).collect();
                match parts.as_slice() {
                    [only] => text.push_str(&format!("{} in {only}", attribute.name)),
                    several => text.push_str(&format!("{} in {{{}}}", attribute.name, several.join(", "))),
                }
            }
            Self::Mask { attribute, mask, value, equal } => {
                let attribute = schema.attribute(*attribute);
                let relation = if *equal { Relation::Equal } else { Relation::NotEqual }.symbol();
                if let Some(wildcard) = attribute.text_of_wildcard(*mask, *value) {
                    text.push_str(&format!("{} {relation} {wildcard}", attribute.name));
                    return;
                }
                text.push_str(&format!("{} & {}", attribute.name, attribute.text_of(*mask)));
                match (value, equal) {
                    (0, false) => {}
                    (0, true) => text.push_str(" == 0"),
                    (value, _) => text.push_str(&format!(" {relation} {}", attribute.text_of(*value))),
                }
            }
            Self::Aggregate(test, relation) => {
                let attribute = schema.attribute(test.attribute);
                let aggregate = scope.name(test.aggregate).unwrap_or("?");
                text.push_str(&format!("{} {} {aggregate}", attribute.name, relation.symbol()));
                text.push_str(&offset_text(attribute, test.offset));
            }
        }
    }
}

/// The offset that is added to an aggregate, as text.
fn offset_text(attribute: &Attribute, offset: Number) -> String {
    let signed = |negative: bool, amount: String| format!(" {} {amount}", if negative { '-' } else { '+' });
    match offset {
        Number::Signed(0) | Number::Unsigned(0) => String::new(),
        Number::Float(0.0) => String::new(),
        Number::Float(number) => signed(number < 0.0, format!("{:?}", number.abs())),
        Number::Signed(number) => signed(number < 0, amount_text(attribute, number.unsigned_abs())),
        Number::Unsigned(number) => signed(false, amount_text(attribute, number)),
    }
}

fn amount_text(attribute: &Attribute, amount: u128) -> String {
    match attribute.kind {
        Kind::Time | Kind::Size => attribute.text_of(amount),
        _ => amount.to_string(),
    }
}

/// A range as a value, a prefix, or two values.
fn range_text(attribute: &Attribute, (low, high): (u128, u128)) -> String {
    let first = attribute.text_of(low);
    if low == high {
        return first;
    }
    let size = high - low;
    let aligned = size & size.wrapping_add(1) == 0 && low & size == 0;
    if aligned && matches!(attribute.kind, Kind::Ipv4 | Kind::Ipv6 | Kind::Address) {
        let bits = if attribute.kind == Kind::Ipv6 || first.contains(':') { 128 } else { 32 };
        let rest = 128 - size.leading_zeros();
        // An IPv4 range that reaches beyond its family is a range of both.
        if rest <= bits {
            return format!("{first}/{}", bits - rest);
        }
    }
    format!("{first}..{}", attribute.text_of(high))
}
