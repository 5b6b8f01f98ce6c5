//! Lines on standard error that are no part of an answer.

/// Writes a note.
pub fn note(text: &str) {
    anstream::eprintln!("{}note:{} {text}", NOTE.render(), NOTE.render_reset());
}

const NOTE: anstyle::Style = anstyle::AnsiColor::Yellow.on_default().bold();
