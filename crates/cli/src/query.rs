//! `queuescope query`: which packets of a capture, by an expression, and what is worked out of them.

mod ask;
mod load;
mod show;

use crate::args::Query;
use crate::outcome::{Outcome, print};
use anyhow::{Result, anyhow};
use ask::Asked;
use load::Loaded;
use queuescope_log::{Dnf, Schema, Scope, TextError};
use std::io;

/// Columns that an error may take.
const COLUMNS: usize = 100;

/// Runs `query`.
///
/// # Errors
/// If nothing could be done: no input, an expression that means nothing, or an answer that cannot be written.
pub fn run(args: &Query) -> Result<Outcome> {
    let schema = Schema::packet();
    if args.attributes {
        print(false, |_| Ok(()), |out| show::attributes(schema, out))?;
        return Ok(Outcome::Whole);
    }
    let Some(file) = &args.file else { return Err(anyhow!("name a file")) };
    // What is wrong with the question is told before anything is read.
    let expression = expression(schema, args.expression.as_deref().unwrap_or_default())?;
    let asked = Asked::of(args, schema)?;
    let indexes = ask::attributes("--index", args.index.as_deref(), schema)?;
    let loaded = load::capture(file, args)?;
    for index in indexes {
        loaded.log.add_index(index);
    }
    answer(args, &loaded, &asked, &expression)?;
    Ok(Outcome::of(loaded.damage))
}

/// An expression in its normal form.
///
/// # Errors
/// What is wrong with it, in its text.
pub fn expression(schema: &Schema, text: &str) -> Result<Dnf> {
    let scope = Scope::new(schema);
    let expr = scope.parse(text).map_err(|error| told(&error))?;
    Ok(expr.dnf(&scope)?)
}

fn told(error: &TextError) -> anyhow::Error {
    let colour = anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never;
    anyhow!("{}", error.render(COLUMNS, colour))
}

fn answer(args: &Query, loaded: &Loaded, asked: &Asked, expression: &Dnf) -> Result<()> {
    let snapshot = loaded.log.snapshot();
    let mut query = snapshot.query().matching(expression);
    if let Some(from) = args.from {
        query = query.from(loaded.first.saturating_add(from).0);
    }
    if let Some(to) = args.to {
        query = query.to(loaded.first.saturating_add(to).0);
    }
    if args.explain {
        let found = query.matched().count();
        return print(
            args.json,
            |out| show::explained_json(&query.explain(), found, out),
            |out| show::explained(&query.explain(), found, out),
        );
    }
    let form = show::Form::of(args);
    print(
        args.json || args.csv,
        |out| show::rows(asked, &query, loaded, form, out),
        |out| show::rows(asked, &query, loaded, form, out),
    )
}
