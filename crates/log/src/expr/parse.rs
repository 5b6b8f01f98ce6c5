//! Tokens to an expression, by recursive descent.

use super::lex::{Kind, Token, tokens};
use super::pcap::Keyword;
use super::{Expr, Relation, Scope, Test, reserved};
use crate::{Attribute, AttributeId};
use queuescope_text::nearest;
use queuescope_text::{Problem, quoted};
use std::ops::Range;

/// The result of a step of the parser.
pub(super) type Parsed<T> = Result<T, Box<Problem>>;

/// The state of the parser.
pub(super) struct Parser<'a> {
    pub scope: &'a Scope<'a>,
    pub text: &'a str,
    tokens: Vec<Token<'a>>,
    at: usize,
    depth: usize,
    tests: usize,
    /// The keyword of pcap's last test in this pair of parentheses, for values that follow without a word.
    pub keyword: Option<Keyword>,
}

/// An operand of `and`, `or` or `not`, and whether it is written in pcap's words.
struct Operand {
    expr: Expr,
    pcap: bool,
}

impl<'a> Parser<'a> {
    /// Parses a whole text.
    pub fn parse(scope: &'a Scope<'a>, text: &'a str) -> Parsed<Expr> {
        let most = scope.limits().text;
        if text.len() > most {
            return Err(Box::new(Problem::new(format!(
                "the expression has {} bytes, and at most {most} are read",
                text.len()
            ))));
        }
        let mut parser = Self { scope, text, tokens: tokens(text)?, at: 0, depth: 0, tests: 0, keyword: None };
        if parser.peek() == Kind::End {
            return Ok(Expr::Constant(true));
        }
        let expr = parser.expr()?;
        match parser.peek() {
            Kind::End => Ok(expr),
            Kind::Close => Err(parser.wrong("there is no `(` for this `)`", "one too many")),
            Kind::Join => {
                let problem = parser.wrong("`|` joins bits within parentheses", "not here");
                Err(Box::new(problem.help("tcp_flags & (SYN|ACK); `or` and `||` stand between two tests")))
            }
            _ => {
                let found = parser.found();
                let problem = parser.wrong(format!("the test before {found} has ended"), "what is this?");
                Err(Box::new(problem.help("`and` or `or` stands between two tests")))
            }
        }
    }

    /// Tests with operators between them; `and` binds tighter than `or`.
    fn expr(&mut self) -> Parsed<Expr> {
        let mut any = Vec::new();
        let first = self.unary()?;
        let mut pcap = first.pcap;
        let mut all = vec![first.expr];
        // The first `or`, and the first `and` behind it: pcap gives both the same precedence.
        let (mut or, mut and_behind) = (None, None);
        loop {
            let span = self.span();
            if self.operator(Kind::And, "and") {
                if or.is_some() && and_behind.is_none() {
                    and_behind = Some(span);
                }
            } else if self.operator(Kind::Or, "or") {
                or = or.or(Some(span));
                any.push(Expr::all(std::mem::take(&mut all)));
            } else {
                break;
            }
            let next = self.unary()?;
            pcap |= next.pcap;
            all.push(next.expr);
        }
        if let (true, Some(or), Some(and)) = (pcap, or, and_behind) {
            let problem = Problem::new("`or` before `and`: with pcap's words this can mean two things")
                .at(&or, "tcpdump would do this first")
                .at(&and, "here, this binds tighter")
                .help("write parentheses: (a or b) and c, or a or (b and c)");
            return Err(Box::new(problem));
        }
        any.push(Expr::all(all));
        Ok(Expr::any(any))
    }

    fn unary(&mut self) -> Parsed<Operand> {
        if self.operator(Kind::Not, "not") {
            return self.deeper(|parser| {
                let operand = parser.unary()?;
                Ok(Operand { expr: operand.expr.not(), ..operand })
            });
        }
        self.primary()
    }

    fn primary(&mut self) -> Parsed<Operand> {
        let plain = |expr| Ok(Operand { expr, pcap: false });
        let word = match self.peek() {
            Kind::Word(word) => word,
            Kind::Open => return self.parenthesis(),
            Kind::End => return Err(self.wrong("the expression ends where a test is expected", "here")),
            _ => {
                let found = self.found();
                return Err(self.wrong(format!("a test is expected, not {found}"), "not a test"));
            }
        };
        let compared = match self.peek_at(1) {
            Kind::Relation(_) | Kind::Bits => true,
            Kind::Word(next) => is(next, "in") || is(next, "like") || (is(next, "not") && self.word_at(2, "in")),
            Kind::Not => self.word_at(2, "in"),
            _ => false,
        };
        if let Some(constant) = [("true", true), ("false", false)].iter().find(|(name, _)| is(word, name)) {
            self.next();
            self.count(1)?;
            return plain(Expr::Constant(constant.1));
        }
        if reserved::is_operator(word) {
            return Err(self.wrong(format!("a test is expected, not the operator `{word}`"), "not a test"));
        }
        if compared {
            return plain(self.comparison(word)?);
        }
        if reserved::is_pcap(word) {
            return Ok(Operand { expr: self.primitive()?, pcap: true });
        }
        if let Some(keyword) = self.keyword.filter(|_| is_value(word)) {
            return Ok(Operand { expr: self.value_of_keyword(keyword)?, pcap: true });
        }
        // The names of filters, for queries within queries, could be looked up here: they are also an `Expr`.
        match self.scope.schema().find(word) {
            Some(id) if self.attribute(id).place.bits == 1 => {
                self.next();
                self.count(1)?;
                plain(Expr::Test(Test::Compare { attribute: id, relation: Relation::NotEqual, key: 0 }))
            }
            Some(id) => {
                let attribute = self.attribute(id);
                let problem = Problem::new(format!("`{word}` alone is not a test")).at(self.span(), "compare it");
                let example = attribute.text_of(1);
                Err(Box::new(problem.help(format!("it is {}, as in `{word} == {example}`", attribute.kind.describe()))))
            }
            None => Err(self.unknown(word)),
        }
    }

    fn parenthesis(&mut self) -> Parsed<Operand> {
        let open = self.span();
        self.next();
        let keyword = self.keyword.take();
        let expr = self.deeper(Self::expr)?;
        self.keyword = keyword;
        if self.peek() != Kind::Close {
            let found = self.found();
            let problem = Problem::new(format!("`)` is expected, not {found}"));
            return Err(Box::new(problem.at(self.span(), "here").at(&open, "for this")));
        }
        self.next();
        Ok(Operand { expr, pcap: false })
    }

    /// The next token, which must be a word.
    pub fn word(&mut self, attribute: &Attribute) -> Parsed<(&'a str, Range<usize>)> {
        let span = self.span();
        match self.peek() {
            Kind::Word(word) => {
                self.next();
                Ok((word, span))
            }
            _ => {
                let found = self.found();
                Err(self.wrong(format!("{} is expected, not {found}", attribute.kind.describe()), "here"))
            }
        }
    }

    /// An error about an unknown name.
    pub fn unknown(&self, word: &str) -> Box<Problem> {
        let schema = self.scope.schema();
        if is_value(word) {
            let problem = Problem::new(format!("a test begins with an attribute, not with '{}'", quoted(word)));
            return Box::new(problem.at(self.span(), "a value").help("a value stands behind: dst_port == 80"));
        }
        if self.scope.aggregate(word).is_some() {
            let problem = Problem::new(format!("a test begins with an attribute, not with the aggregate `{word}`"));
            return Box::new(
                problem.at(self.span(), "an aggregate").help("an aggregate stands behind: seqNo < MAXSEQ"),
            );
        }
        if reserved::is_pcap(word) {
            let problem = Problem::new(format!("`{word}` is not an attribute, and is not compared"));
            return Box::new(problem.at(self.span(), "a test by itself, as pcap has it"));
        }
        let problem = Problem::new(format!("`{}` has no attribute '{}'", schema.name(), quoted(word)));
        let problem = problem.at(self.span(), "unknown name");
        let near = nearest(word, schema.names().chain(reserved::pcap_words()));
        Box::new(match near {
            Some(near) => problem.help(format!("did you mean `{near}`?")),
            None => problem.help(schema.listed()),
        })
    }

    /// Parses something nested, if that is not too deep.
    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        let most = self.scope.limits().depth;
        if self.depth >= most {
            let message = format!("the expression is too deep: parentheses and negations within {most} others");
            return Err(self.wrong(message, "from here on"));
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    /// Counts tests that have been read.
    pub fn count(&mut self, tests: usize) -> Parsed<()> {
        self.tests += tests;
        let most = self.scope.limits().tests;
        if self.tests > most {
            return Err(self.wrong(format!("the expression has more than {most} tests"), "up to here"));
        }
        Ok(())
    }

    pub fn attribute(&self, id: AttributeId) -> &'a Attribute {
        self.scope.schema().attribute(id)
    }

    pub fn peek(&self) -> Kind<'a> {
        self.peek_at(0)
    }

    pub fn peek_at(&self, ahead: usize) -> Kind<'a> {
        self.tokens.get(self.at + ahead).map_or(Kind::End, |token| token.kind)
    }

    /// Whether the token at this distance is this word.
    pub fn word_at(&self, ahead: usize, word: &str) -> bool {
        matches!(self.peek_at(ahead), Kind::Word(found) if is(found, word))
    }

    /// The span of the next token.
    pub fn span(&self) -> Range<usize> {
        self.tokens.get(self.at).map_or(self.text.len()..self.text.len(), |token| token.span.clone())
    }

    /// The next token, for messages.
    pub fn found(&self) -> String {
        let text = self.text.get(self.span()).unwrap_or_default();
        if text.is_empty() { "the end".to_owned() } else { format!("'{}'", quoted(text)) }
    }

    pub fn next(&mut self) {
        self.at = (self.at + 1).min(self.tokens.len());
    }

    /// Consumes an operator, if it is next.
    pub fn operator(&mut self, symbol: Kind, word: &str) -> bool {
        let there = self.peek() == symbol || self.word_at(0, word);
        if there {
            self.next();
        }
        there
    }

    /// An error about the next token.
    pub fn wrong(&self, message: impl Into<String>, label: &str) -> Box<Problem> {
        Box::new(Problem::new(message).at(self.span(), label))
    }
}

/// Whether this is the operator or constant; letter case does not matter.
pub(super) fn is(found: &str, word: &str) -> bool {
    found.eq_ignore_ascii_case(word)
}

/// Whether a word is not a name but a number or an address.
fn is_value(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit() || c == '*') || word.contains(['.', ':'])
}
