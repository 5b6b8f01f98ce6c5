//! Splits text into tokens.
//!
//! A word is a name, a number with its unit, or an address; the parser knows which by its position. So a
//! word may contain dots, colons and stars, but not two dots in a row, which separate the ends of a range. Signs are within a
//! word in exponents and dates only.

use super::Relation;
use crate::schema::date_length;
use queuescope_text::{Problem, quoted};
use std::ops::Range;

/// A token, and its span.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token<'a> {
    pub kind: Kind<'a>,
    pub span: Range<usize>,
}

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind<'a> {
    Word(&'a str),
    Relation(Relation),
    And,
    Or,
    Not,
    /// `&`
    Bits,
    /// `|`
    Join,
    Plus,
    Minus,
    Slash,
    Comma,
    /// `..`
    To,
    Open,
    Close,
    OpenSet,
    CloseSet,
    End,
}

/// All tokens; the last one is [`Kind::End`].
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, Box<Problem>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        // pcap puts a backslash before a name that is also a keyword: `ether proto \ip`.
        let escape = c == '\\' && text[at + 1..].starts_with(char::is_alphabetic);
        if c.is_whitespace() || escape {
            at += c.len_utf8();
            continue;
        }
        let (kind, length) = token(&text[at..], c).ok_or_else(|| unexpected(text, at, c))?;
        tokens.push(Token { kind, span: at..at + length });
        at += length;
    }
    tokens.push(Token { kind: Kind::End, span: text.len()..text.len() });
    Ok(tokens)
}

/// The token that `rest` begins with, and its length.
fn token(rest: &str, first: char) -> Option<(Kind<'_>, usize)> {
    const SYMBOLS: &[(&str, Kind<'static>)] = &[
        ("&&", Kind::And),
        ("||", Kind::Or),
        ("==", Kind::Relation(Relation::Equal)),
        ("!=", Kind::Relation(Relation::NotEqual)),
        ("<=", Kind::Relation(Relation::AtMost)),
        (">=", Kind::Relation(Relation::AtLeast)),
        ("..", Kind::To),
        ("=", Kind::Relation(Relation::Equal)),
        ("<", Kind::Relation(Relation::Less)),
        (">", Kind::Relation(Relation::Greater)),
        ("!", Kind::Not),
        ("&", Kind::Bits),
        ("|", Kind::Join),
        ("+", Kind::Plus),
        ("-", Kind::Minus),
        ("/", Kind::Slash),
        (",", Kind::Comma),
        ("(", Kind::Open),
        (")", Kind::Close),
        ("{", Kind::OpenSet),
        ("}", Kind::CloseSet),
    ];
    let symbol = SYMBOLS.iter().find(|(symbol, _)| rest.starts_with(symbol));
    symbol.map(|(symbol, kind)| (*kind, symbol.len())).or_else(|| {
        is_word(first).then(|| {
            let date = date_length(rest, is_word);
            let word = if date > 0 { &rest[..date] } else { word(rest) };
            (Kind::Word(word), word.len())
        })
    })
}

/// The word that `rest` begins with.
fn word(rest: &str) -> &str {
    let mut end = 0;
    for (at, c) in rest.char_indices() {
        let exponent = matches!(c, '+' | '-')
            && is_mantissa(&rest[..at])
            && rest[at + 1..].starts_with(|c: char| c.is_ascii_digit());
        if !(is_word(c) || exponent) || rest[at..].starts_with("..") {
            break;
        }
        end = at + c.len_utf8();
    }
    &rest[..end]
}

/// Whether the text is the part of a number before the sign of its exponent, such as `1.5e` in `1.5e-7`.
fn is_mantissa(text: &str) -> bool {
    let Some(digits) = text.strip_suffix(['e', 'E']) else { return false };
    digits.starts_with(|c: char| c.is_ascii_digit()) && digits.bytes().all(|c| c.is_ascii_digit() || c == b'.')
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | ':' | '*')
}

fn unexpected(text: &str, at: usize, c: char) -> Box<Problem> {
    let problem = Problem::new(format!("'{}' means nothing here", quoted(&c.to_string())));
    let problem = problem.at(&(at..at + c.len_utf8()), "not part of an expression");
    Box::new(match c {
        '[' | ']' => {
            let word = text[..at].trim_end().rsplit(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
            let help = match word {
                "tcp" => "bytes of a header are not read; test an attribute, as in `tcp_flags & SYN`".to_owned(),
                _ => "bytes of a header are not read; test an attribute, as in `ttl < 3`".to_owned(),
            };
            problem.help(help)
        }
        '"' | '\'' => problem.help("names and values stand without quotes"),
        '~' => problem.help("`like` compares with a wildcard: src_ip like 192.*.*.1"),
        '^' => problem.help("there is no exclusive or; write (a and not b) or (b and not a)"),
        _ => problem,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        tokens(text).unwrap().iter().map(|token| &text[token.span.clone()]).collect()
    }

    #[test]
    fn words_hold_numbers_with_units_and_addresses() {
        assert_eq!(words("pktSize<100B&&ts>=1.5ms"), ["pktSize", "<", "100B", "&&", "ts", ">=", "1.5ms", ""]);
        assert_eq!(words("10.1.3.0/24 ::1 192.*.*.1"), ["10.1.3.0", "/", "24", "::1", "192.*.*.1", ""]);
        assert_eq!(words("1000..2000 ::1..::5 1-5"), ["1000", "..", "2000", "::1", "..", "::5", "1", "-", "5", ""]);
        assert_eq!(words("1.5e-7 -2e+3 0x1e-3 TS-3"), ["1.5e-7", "-", "2e+3", "0x1e", "-", "3", "TS", "-", "3", ""]);
        assert_eq!(words(" 10µs\n"), ["10µs", ""]);
        let dates = "ts>=2021-07-23T16:56:49.5+02:00..2021-07-24 1000-20";
        assert_eq!(
            words(dates),
            ["ts", ">=", "2021-07-23T16:56:49.5+02:00", "..", "2021-07-24", "1000", "-", "20", ""]
        );
    }

    #[test]
    fn characters_that_begin_no_token_are_refused() {
        for text in ["a # b", "tcp[13]", "\"x\"", "a ~ b", "\u{0}", "é$"] {
            assert!(tokens(text).is_err(), "{text}");
        }
    }
}
