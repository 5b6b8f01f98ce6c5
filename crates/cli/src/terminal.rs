//! Notes on standard error, beside the output of a command.

/// Prints `text` as a note on standard error.
pub fn note(text: &str) {
    anstream::eprintln!("{}note:{} {text}", NOTE.render(), NOTE.render_reset());
}

const NOTE: anstyle::Style = anstyle::AnsiColor::Yellow.on_default().bold();
