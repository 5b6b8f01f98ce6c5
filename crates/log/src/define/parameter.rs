//! Parameters of a text: `{switch}` is replaced by the value of the parameter `switch`, wherever it occurs.

use super::LONGEST_TEXT;
use super::part::among;
use crate::schema::{name_problem, toml_problem};
use queuescope_text::{Problem, TextError, quoted};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use toml::Spanned;

/// The part of a text that declares its parameters.
#[derive(Deserialize)]
struct File {
    #[serde(default)]
    parameters: BTreeMap<Spanned<String>, Parameter>,
}

/// A parameter as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameter {
    /// For people.
    #[serde(rename = "about")]
    _about: String,
    /// Its value, if none is given.
    default: Option<Spanned<String>>,
}

/// The text with the values of its parameters, which its table `parameters` declares. Parameters that `values` does not set have the defaults of
/// the text. `name` names the text in errors.
///
/// # Errors
/// Fails if the text is not TOML, if a parameter has no value, or if `values` names an unknown parameter.
pub fn fill_parameters<'a>(name: &str, text: &'a str, values: &[(&str, &str)]) -> Result<Cow<'a, str>, TextError> {
    // A text that is too long is refused when it is read.
    if text.len() > LONGEST_TEXT {
        return Ok(text.into());
    }
    // If it is not TOML before the values are inserted, it is not TOML afterwards.
    let File { parameters } =
        toml::from_str(text).map_err(|found| TextError::new(name, text, vec![toml_problem(&found)]))?;
    let mut problems = Vec::new();
    let mut taken = BTreeMap::new();
    for (parameter, Parameter { default, .. }) in &parameters {
        let span = parameter.span();
        if let Err(why) = name_problem(parameter.get_ref()) {
            let message = format!("'{}' cannot name a parameter: {why}", quoted(parameter.get_ref()));
            problems.push(Problem::new(message).at(span, "not possible"));
            continue;
        }
        let given = values.iter().rev().find(|(name, _)| name == parameter.get_ref()).map(|(_, value)| *value);
        match given.or(default.as_ref().map(|default| default.get_ref().as_str())) {
            Some(value) if value.contains(['"', '\'', '\\']) || value.contains(char::is_control) => {
                let message = format!("'{}' cannot be a value of `{}`", quoted(value), parameter.get_ref());
                problems.push(Problem::new(message).at(span, "it would end the text that it is in"));
            }
            Some(value) => {
                taken.insert(format!("{{{}}}", parameter.get_ref()), value);
            }
            None => {
                let problem =
                    Problem::new(format!("`{}` has no value", parameter.get_ref())).at(span, "this parameter");
                problems.push(problem.help(format!("give it one: {}=...", parameter.get_ref())));
            }
        }
    }
    for (unknown, _) in values.iter().filter(|(name, _)| !parameters.keys().any(|known| known.get_ref() == name)) {
        let help = among(unknown, parameters.keys().map(|known| known.get_ref().as_str()));
        problems.push(Problem::new(format!("there is no parameter `{}`", quoted(unknown))).help_if(help));
    }
    if !problems.is_empty() {
        return Err(TextError::new(name, text, problems));
    }
    Ok(put(text, &taken))
}

/// Inserts the values. A value is not searched for parameters again.
fn put<'a>(text: &'a str, values: &BTreeMap<String, &str>) -> Cow<'a, str> {
    if values.is_empty() {
        return text.into();
    }
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let (before, from) = rest.split_at(open);
        filled.push_str(before);
        let end = from.find('}').map_or(from.len(), |end| end + 1);
        // Sets have braces too: text in braces that is not a parameter stays.
        let (put, length) = values.get(&from[..end]).map_or(("{", 1), |value| (*value, end));
        filled.push_str(put);
        rest = &from[length..];
    }
    filled.push_str(rest);
    filled.into()
}
