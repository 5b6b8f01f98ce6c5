//! Aggregate functions, as people write them: `count`, `sum(length)`.

use crate::derive::Function;
use crate::schema::{AttributeId, Schema};
use queuescope_text::{Problem, did_you_mean, quoted};
use std::ops::Range;

/// The known functions, for errors.
const KNOWN: [&str; 7] = ["count", "sum", "min", "max", "mean", "stddev", "distinct"];

impl Function {
    /// Reads `count`, or `sum`, `min`, `max`, `mean` (also `avg`), `stddev` or `distinct` of an attribute, such as `sum(length)`.
    ///
    /// # Errors
    /// Returns what is wrong with it, and where.
    pub fn read(text: &str, schema: &Schema) -> Result<Self, Problem> {
        if text == "count" || text == "count()" {
            return Ok(Self::Count);
        }
        let whole = 0..text.len();
        let Some((function, rest)) = text.split_once('(') else {
            return Err(unknown(text, whole));
        };
        let Some(inside) = rest.strip_suffix(')') else {
            return Err(Problem::new(format!("`{text}` is not closed")).at(whole, "here").help("write sum(length)"));
        };
        if function.trim() == "count" {
            let problem = Problem::new("`count` is of packets, not of an attribute").at(whole, "here");
            return Err(problem.help("count"));
        }
        let start = function.len() + 1;
        let inner = start..start + inside.len();
        let id = comparable(inside.trim(), inner.clone(), schema)?;
        let attribute = schema.attribute(id);
        match function.trim() {
            "min" => Ok(Self::Min(id)),
            "max" => Ok(Self::Max(id)),
            "distinct" => Ok(Self::Distinct(id)),
            "sum" if attribute.kind.is_number() => Ok(Self::Sum(id)),
            "mean" | "avg" if attribute.kind.is_number() => Ok(Self::Mean(id)),
            "stddev" if attribute.kind.is_number() => Ok(Self::Deviation(id)),
            "sum" | "mean" | "avg" | "stddev" => {
                let message = format!("`{}` is not a number, so its values cannot be added", attribute.name);
                Err(Problem::new(message).at(inner, "here"))
            }
            other => Err(unknown(other, 0..function.len())),
        }
    }

    /// Its text, which [`read`](Self::read) reads; for a user's function a description that it does not read.
    pub fn text(&self, schema: &Schema) -> String {
        let of = |function: &str, id: &AttributeId| format!("{function}({})", schema.attribute(*id).name);
        match self {
            Self::Count => "count".to_owned(),
            Self::Sum(id) => of("sum", id),
            Self::Min(id) => of("min", id),
            Self::Max(id) => of("max", id),
            Self::Mean(id) => of("mean", id),
            Self::Deviation(id) => of("stddev", id),
            Self::Distinct(id) => of("distinct", id),
            Self::User(_) => "a function of the user's".to_owned(),
        }
    }
}

fn unknown(word: &str, span: Range<usize>) -> Problem {
    let help = did_you_mean(word, KNOWN.into_iter()).unwrap_or_else(|| format!("there are {}", KNOWN.join(", ")));
    Problem::new(format!("there is no function `{}`", quoted(word))).at(span, "this").help(help)
}

fn comparable(word: &str, span: Range<usize>, schema: &Schema) -> Result<AttributeId, Problem> {
    let id = attribute(word, span.clone(), schema)?;
    if schema.attribute(id).is_comparable() {
        return Ok(id);
    }
    Err(Problem::new(format!("values of `{word}` are not compared")).at(span, "it has too many bytes"))
}

/// The attribute with this name.
pub(super) fn attribute(word: &str, span: Range<usize>, schema: &Schema) -> Result<AttributeId, Problem> {
    schema.find(word).ok_or_else(|| {
        let what = match word {
            "" => "an attribute is missing".to_owned(),
            _ => format!("there is no attribute `{}`", quoted(word)),
        };
        let help = did_you_mean(word, schema.names()).unwrap_or_else(|| schema.listed());
        Problem::new(what).at(span, "here").help(help)
    })
}
