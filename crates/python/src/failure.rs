//! Errors of the engine as exceptions of the package.

use pyo3::import_exception;
use pyo3::prelude::*;
use queuescope::analysis;
use queuescope::ingest;
use queuescope::pcap::OpenError;
use queuescope::recording;
use queuescope::run;
use queuescope::table::TableError;
use queuescope_text::TextError;
use std::error::Error;
use std::io;

import_exception!(queuescope._errors, QueuescopeError);
import_exception!(queuescope._errors, InvalidValueError);
import_exception!(queuescope._errors, ExpressionError);
import_exception!(queuescope._errors, InputError);
import_exception!(queuescope._errors, MissingFileError);
import_exception!(queuescope._errors, EngineError);

/// Why a call failed.
#[derive(Debug)]
pub enum Failure {
    /// An argument has a wrong value.
    Value(String),
    /// A text that the user wrote is wrong; the message points at the place.
    Text(String),
    /// A file does not exist.
    Missing(String),
    /// An input cannot be read, or an output cannot be written.
    Input(String),
    /// The engine panicked, which is a defect of it.
    Panic(String),
    /// Code in Python failed.
    Python(PyErr),
}

/// What a function of the engine returns.
pub type Outcome<T> = Result<T, Failure>;

impl Failure {
    /// An argument that cannot be parsed.
    pub fn value(error: impl Error) -> Self {
        Self::Value(with_causes(&error))
    }

    /// An input that cannot be read, or an output that cannot be written.
    pub fn input(error: impl Error) -> Self {
        let mut cause: Option<&(dyn Error + 'static)> = error.source();
        while let Some(inner) = cause {
            if inner.downcast_ref::<io::Error>().is_some_and(|why| why.kind() == io::ErrorKind::NotFound) {
                return Self::Missing(with_causes(&error));
            }
            cause = inner.source();
        }
        Self::Input(with_causes(&error))
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Value(message) => InvalidValueError::new_err(in_python(&message)),
            Failure::Text(message) => ExpressionError::new_err(in_python(&message)),
            Failure::Missing(message) => MissingFileError::new_err(in_python(&message)),
            Failure::Input(message) => InputError::new_err(in_python(&message)),
            Failure::Panic(message) => EngineError::new_err(message),
            Failure::Python(error) => error,
        }
    }
}

impl From<TextError> for Failure {
    fn from(error: TextError) -> Self {
        Self::Text(error.to_string())
    }
}

impl From<ingest::ExpressionError> for Failure {
    fn from(error: ingest::ExpressionError) -> Self {
        Self::Text(with_causes(&error))
    }
}

impl From<ingest::Error> for Failure {
    fn from(error: ingest::Error) -> Self {
        match error {
            ingest::Error::Capture(error) => error.into(),
            ingest::Error::Table(error) => error.into(),
            ingest::Error::Expression(error) => error.into(),
            error => Self::input(error),
        }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Missing { .. } => Self::Missing(with_causes(&error)),
            error => Self::input(error),
        }
    }
}

impl From<TableError> for Failure {
    fn from(error: TableError) -> Self {
        match &error {
            TableError::Open { error: why, .. } if why.kind() == io::ErrorKind::NotFound => {
                Self::Missing(with_causes(&error))
            }
            TableError::MissingColumn { .. } | TableError::AmbiguousColumn { .. } | TableError::ColumnType { .. } => {
                Self::value(error)
            }
            _ => Self::input(error),
        }
    }
}

impl From<recording::Error> for Failure {
    fn from(error: recording::Error) -> Self {
        use recording::Error;
        match error {
            Error::Text(error) => error.into(),
            Error::Expression(error) => error.into(),
            Error::Definitions { ref why, .. } => Self::Text(format!("{error}\n{why}")),
            Error::Absent(_) => Self::Missing(with_causes(&error)),
            error => Self::input(error),
        }
    }
}

impl From<run::Error> for Failure {
    fn from(error: run::Error) -> Self {
        match error {
            run::Error::Text(error) => error.into(),
            run::Error::Cells(cells) => match &cells.first {
                run::Error::Text(first) => Self::Text(cells.message(&first.to_string())),
                _ => Self::Value(cells.to_string()),
            },
            run::Error::Capture(error) => error.into(),
            error @ (run::Error::Build(_)
            | run::Error::NoLinks
            | run::Error::NoLink { .. }
            | run::Error::Full { .. }) => Self::value(error),
            error => Self::input(error),
        }
    }
}

impl From<analysis::Error> for Failure {
    fn from(error: analysis::Error) -> Self {
        match error {
            analysis::Error::Input(error) => error.into(),
            analysis::Error::Show(error @ analysis::ShowError::Expression(_)) => Self::Text(with_causes(&error)),
            analysis::Error::Show(error) => {
                Self::Value(format!("show= chooses flows, victims= chooses packets: {error}"))
            }
            error => Self::value(error),
        }
    }
}

/// The message of an error and those of its causes, unless they repeat it.
pub fn with_causes(error: &dyn Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let text = inner.to_string();
        if !message.contains(&text) {
            message.push_str(": ");
            message.push_str(&text);
        }
        cause = inner.source();
    }
    message
}

/// A message of the engine with the command's options as arguments of the package: `--time-unit` becomes `time_unit=`.
fn in_python(message: &str) -> String {
    OPTIONS.iter().fold(message.to_owned(), |text, option| {
        if !text.contains(option) {
            return text;
        }
        let name = option.trim_start_matches('-').replace('-', "_");
        text.replace(option, &format!("{name}="))
    })
}

/// Options that messages name. An option precedes those whose names begin with its name, if there are any.
const OPTIONS: &[&str] = &[
    "--across-classes",
    "--aqm",
    "--columns",
    "--departures",
    "--input",
    "--show",
    "--time-unit",
    "--victims",
    "--where",
];
