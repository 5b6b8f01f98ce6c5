//! The right side of a comparison: values, ranges, masks, aggregates.

use super::lex::Kind;
use super::parse::{Parsed, Parser, is};
use super::{AggregateTest, Expr, Number, Ranges, Relation, Test};
use crate::schema::{begins_as_date, low_bits, name_problem};
use crate::{Attribute, AttributeId, Kind as Class};
use queuescope_text::did_you_mean;
use queuescope_text::{Problem, quoted};
use std::ops::Range;

impl Parser<'_> {
    /// Reads the rest of a comparison of an attribute.
    pub fn comparison(&mut self, name: &str) -> Parsed<Expr> {
        let Some(id) = self.scope.schema().find(name) else { return Err(self.unknown(name)) };
        let attribute = self.attribute(id);
        if !attribute.is_comparable() {
            let bytes = attribute.place.bits / 8;
            let message = format!("`{name}` is {bytes} bytes, and at most 16 can be compared");
            return Err(self.wrong(message, "only carried"));
        }
        self.next();
        match self.peek() {
            Kind::Relation(relation) => {
                self.next();
                self.relation(id, attribute, relation).map(Expr::Test)
            }
            Kind::Bits => {
                self.next();
                self.mask(id, attribute).map(Expr::Test)
            }
            Kind::Word(word) if is(word, "like") => {
                self.next();
                self.wildcard(id, attribute, true).map(Expr::Test)
            }
            Kind::Word(word) if is(word, "in") => {
                self.next();
                self.within(id, attribute)
            }
            // `not in`; the caller has checked that.
            _ => {
                self.next();
                self.next();
                Ok(self.within(id, attribute)?.not())
            }
        }
    }

    fn relation(&mut self, id: AttributeId, attribute: &Attribute, relation: Relation) -> Parsed<Test> {
        let equal = matches!(relation, Relation::Equal | Relation::NotEqual);
        if let Kind::Word(word) = self.peek() {
            if word.contains('*') && equal {
                return self.wildcard(id, attribute, relation == Relation::Equal);
            }
            if attribute.key_of(word).is_err()
                && let Some(aggregate) = self.scope.aggregate(word)
            {
                self.next();
                self.count(1)?;
                let offset = self.offset(attribute)?;
                return Ok(Test::Aggregate(AggregateTest { attribute: id, aggregate, offset }, relation));
            }
        }
        let (key, span) = if self.peek() == Kind::Open { self.joined(attribute)? } else { self.value(attribute)? };
        if self.peek() == Kind::Slash {
            let length = if let Kind::Word(length) = self.peek_at(1) { quoted(length) } else { "8".to_owned() };
            let text = format!("`in` asks for a prefix: {} in {}/{length}", attribute.name, &self.text[span.clone()]);
            let problem = Problem::new(format!("a prefix cannot be compared by `{}`", relation.symbol()));
            return Err(Box::new(problem.at(self.span(), "a prefix").help(text)));
        }
        if matches!(self.peek(), Kind::Plus | Kind::Minus) {
            let problem = self.wrong("an offset can only be added to an aggregate", "not here");
            return Err(if attribute.kind == Class::Time { Box::new(problem.help(TIMES)) } else { problem });
        }
        Ok(Test::Compare { attribute: id, relation, key })
    }

    /// Reads the offset that is added to an aggregate.
    fn offset(&mut self, attribute: &Attribute) -> Parsed<Number> {
        let float = attribute.kind == Class::Float;
        let negative = match self.peek() {
            Kind::Plus => false,
            Kind::Minus => true,
            _ if float => return Ok(Number::Float(0.0)),
            _ => return Ok(Number::Signed(0)),
        };
        if !attribute.kind.is_number() {
            let message = format!("nothing can be added to {}", attribute.kind.describe());
            return Err(self.wrong(message, "not here"));
        }
        self.next();
        let (text, span) = self.word(attribute)?;
        let amount = if float {
            let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
            number.map(Number::Float).ok_or_else(|| format!("'{}' is not a number", quoted(text)))
        } else {
            attribute.amount_of(text).map(Number::Signed)
        };
        match amount {
            Ok(Number::Float(amount)) if negative => Ok(Number::Float(-amount)),
            Ok(Number::Signed(amount)) if negative => Ok(Number::Signed(-amount)),
            Ok(amount) => Ok(amount),
            Err(why) => Err(Box::new(Problem::new(why).at(&span, "what is added"))),
        }
    }

    fn mask(&mut self, id: AttributeId, attribute: &Attribute) -> Parsed<Test> {
        if !attribute.kind.has_bits() {
            let message = format!("`{}` is {}, whose bits cannot be tested", attribute.name, attribute.kind.describe());
            return Err(self.wrong(message, "not here"));
        }
        let (mask, _) = self.joined(attribute)?;
        let Kind::Relation(relation) = self.peek() else {
            return Ok(Test::Mask { attribute: id, mask, value: 0, equal: false });
        };
        if !matches!(relation, Relation::Equal | Relation::NotEqual) {
            return Err(self.wrong("bits are compared by `==` and `!=`", "not by this"));
        }
        self.next();
        // `0` is valid with every mask, whatever the kind.
        let (value, _) = match self.peek() {
            Kind::Word("0") => {
                let span = self.span();
                self.next();
                (0, span)
            }
            Kind::Open => self.joined(attribute)?,
            _ => self.value(attribute)?,
        };
        Ok(Test::Mask { attribute: id, mask, value, equal: relation == Relation::Equal })
    }

    /// A value, or several in parentheses joined by `|`.
    fn joined(&mut self, attribute: &Attribute) -> Parsed<(u128, Range<usize>)> {
        if self.peek() != Kind::Open {
            return self.value(attribute);
        }
        let open = self.span();
        self.next();
        let (mut joined, _) = self.value(attribute)?;
        while self.peek() == Kind::Join {
            self.next();
            joined |= self.value(attribute)?.0;
        }
        if self.peek() != Kind::Close {
            let found = self.found();
            let problem = Problem::new(format!("`|` or `)` is expected, not {found}"));
            return Err(Box::new(problem.at(self.span(), "here").at(&open, "for this")));
        }
        let end = self.span().end;
        self.next();
        Ok((joined, open.start..end))
    }

    fn wildcard(&mut self, id: AttributeId, attribute: &Attribute, equal: bool) -> Parsed<Test> {
        let (text, span) = self.word(attribute)?;
        self.count(1)?;
        match attribute.wildcard(text) {
            Ok((mask, value)) => Ok(Test::Mask { attribute: id, mask, value, equal }),
            Err(why) => Err(Box::new(Problem::new(why).at(&span, "not a wildcard"))),
        }
    }

    /// A prefix, a range, a value, or several of these in braces.
    fn within(&mut self, id: AttributeId, attribute: &Attribute) -> Parsed<Expr> {
        let mut found = Vec::new();
        if self.peek() == Kind::OpenSet {
            let open = self.span();
            self.next();
            loop {
                found.push(self.range(attribute)?);
                match self.peek() {
                    Kind::Comma => self.next(),
                    Kind::CloseSet => break self.next(),
                    _ => {
                        let what = self.found();
                        let problem = Problem::new(format!("`,` or `}}` is expected, not {what}"));
                        return Err(Box::new(problem.at(self.span(), "here").at(&open, "for this")));
                    }
                }
            }
        } else {
            found.push(self.range(attribute)?);
        }
        Ok(Expr::Test(Test::Within { attribute: id, ranges: Ranges::new(found) }))
    }

    /// A prefix, a range or a value, as its first and last key.
    pub fn range(&mut self, attribute: &Attribute) -> Parsed<(u128, u128)> {
        let (low, span) = self.value(attribute)?;
        match self.peek() {
            Kind::Slash => {
                self.next();
                self.prefix(attribute, low, &span)
            }
            Kind::To => {
                self.next();
                let (high, end) = self.value(attribute)?;
                self.ordered(attribute, (low, high), span.start..end.end)
            }
            _ => Ok((low, low)),
        }
    }

    /// A range, if its ends are in order.
    pub fn ordered(
        &self,
        attribute: &Attribute,
        (low, high): (u128, u128),
        span: Range<usize>,
    ) -> Parsed<(u128, u128)> {
        if low <= high {
            return Ok((low, high));
        }
        let message =
            format!("no `{}` is from {} to {}", attribute.name, attribute.text_of(low), attribute.text_of(high));
        Err(Box::new(Problem::new(message).at(&span, "the wrong way round")))
    }

    /// The addresses with a prefix, whose length is the next token.
    pub fn prefix(&mut self, attribute: &Attribute, low: u128, span: &Range<usize>) -> Parsed<(u128, u128)> {
        // An IPv4 address among addresses of both families has 96 bits before it.
        let before = match attribute.kind {
            Class::Ipv4 | Class::Ipv6 => 0,
            Class::Address if !self.text[span.clone()].contains(':') => 96,
            Class::Address => 0,
            _ => {
                let message = format!(
                    "`{}` is {}, and only IP addresses have prefixes",
                    attribute.name,
                    attribute.kind.describe()
                );
                return Err(self.wrong(message, "a prefix"));
            }
        };
        let most = attribute.place.bits - before;
        let length = match self.peek() {
            Kind::Word(word) => word.parse::<u32>().ok().filter(|length| *length <= most && word.len() <= 3),
            _ => None,
        };
        let Some(length) = length else {
            return Err(self.wrong(format!("a prefix has 0 to {most} bits"), "not a length"));
        };
        let end = self.span().end;
        self.next();
        let rest = low_bits(most - length);
        if low & rest != 0 {
            let first = attribute.text_of(low & !rest);
            let problem = Problem::new(format!("bits are set behind the first {length}"));
            let problem = problem.at(&(span.start..end), "what of these?");
            return Err(Box::new(problem.help(format!("the prefix is {first}/{length}"))));
        }
        Ok((low, low | rest))
    }

    /// A value of an attribute.
    pub fn value(&mut self, attribute: &Attribute) -> Parsed<(u128, Range<usize>)> {
        let minus = self.span();
        let signed = matches!(attribute.kind, Class::Signed | Class::Float);
        let negative = signed && self.peek() == Kind::Minus;
        if negative {
            self.next();
        }
        let (word, span) = self.word(attribute)?;
        self.count(1)?;
        let key = if negative { attribute.key_of(&format!("-{word}")) } else { attribute.key_of(word) };
        match key {
            Ok(key) => Ok((key, if negative { minus.start..span.end } else { span })),
            Err(why) => Err(self.not_a_value(attribute, word, why, &span)),
        }
    }

    fn not_a_value(&self, attribute: &Attribute, word: &str, why: String, span: &Range<usize>) -> Box<Problem> {
        if self.scope.schema().find(word).is_some() {
            let problem =
                Problem::new(format!("`{word}` is an attribute, and attributes are not compared with each other"));
            return Box::new(problem.at(span, "a value or an aggregate is expected"));
        }
        let name = attribute.kind.is_number() && name_problem(word).is_ok();
        let why = match (name, self.scope.aggregates().next()) {
            (true, Some(_)) => {
                format!("'{}' is neither a value of `{}` nor an aggregate", quoted(word), attribute.name)
            }
            (true, None) => format!("'{}' is not a value of `{}`", quoted(word), attribute.name),
            _ => why,
        };
        let label = if name {
            format!("{} is expected", attribute.kind.describe())
        } else {
            format!("not a value of `{}`", attribute.name)
        };
        let problem = Problem::new(why).at(span, label);
        let names = || attribute.values.iter().map(|(name, _)| name.as_str());
        let near = did_you_mean(word, names().chain(self.scope.aggregates()));
        Box::new(match near {
            Some(near) => problem.help(near),
            None if word.contains('*') => {
                problem.help(format!("a wildcard stands behind `like`: {} like {word}", attribute.name))
            }
            None if word.starts_with(char::is_alphabetic) && names().next().is_some() => {
                let names: Vec<_> = names().collect();
                problem.help(format!("names of its values are {}", names.join(", ")))
            }
            // The error about a date shows how dates are written.
            None if attribute.kind == Class::Time && !begins_as_date(word) => problem.help(TIMES),
            None => problem,
        })
    }
}

/// How times are written.
const TIMES: &str = "a time is written as 1.5ms or 1627059409s, and a date as 2021-07-23 or 2021-07-23T16:56:49Z";
