//! The terminal while a view is drawn on it.

use super::{Key, View, job};
use crate::error::ScreenError;
use queuescope_wire::Nanos;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use signal_hook::consts::{SIGCONT, SIGTSTP};
use signal_hook::{flag, low_level};
use std::ffi::OsStr;
use std::io::{self, IsTerminal, Stdout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{mem, panic, thread};

/// A terminal in raw mode on which a view is drawn. It is restored when this value is dropped, while the process is stopped, and
/// before the thread that took it panics. Panics of other threads are printed after it is restored.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    /// SIGTSTP arrived: the process must stop.
    stops: Arc<AtomicBool>,
    /// SIGCONT arrived: another program may have used the terminal.
    goes_on: Arc<AtomicBool>,
}

/// Whether the terminal is taken. There is only one terminal, and any thread may restore it: one that panics, or one that handles
/// signals.
static TERMINAL: Mutex<TerminalState> = Mutex::new(TerminalState::Restored);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TerminalState {
    Restored,
    Taken,
    /// The process is about to end and must not take the terminal again.
    Final,
}

/// Panic messages of other threads while the terminal was taken.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());
/// The maximum number of panic messages that are kept.
const MAX_PANICS: usize = 8;

/// How long the process waits at its end for the terminal to be restored.
const TIMEOUT: Duration = Duration::from_millis(200);

impl Screen {
    /// Why no view can be drawn, or no key read, although standard output is a terminal.
    #[expect(clippy::disallowed_methods, reason = "TERM says what the terminal can do")]
    pub fn obstacle() -> Option<&'static str> {
        obstacle(io::stdin().is_terminal(), std::env::var_os("TERM").as_deref())
    }

    /// Takes the terminal of standard output.
    ///
    /// # Errors
    /// Fails if the terminal cannot be set to raw mode or drawn on.
    pub fn new() -> Result<Self, ScreenError> {
        let (before, own) = (panic::take_hook(), thread::current().id());
        panic::set_hook(Box::new(move |why| {
            let thread = thread::current();
            // The thread that draws continues.
            if thread.id() != own && *terminal_state() == TerminalState::Taken {
                keep(format!("thread '{}' {why}", thread.name().unwrap_or_default()));
                return;
            }
            restore(TerminalState::Restored);
            before(why);
        }));
        let take = || -> io::Result<_> {
            let [stops, goes_on] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
            flag::register(SIGTSTP, Arc::clone(&stops))?;
            flag::register(SIGCONT, Arc::clone(&goes_on))?;
            take()?;
            Ok(Self { terminal: Terminal::new(CrosstermBackend::new(io::stdout()))?, stops, goes_on })
        };
        take()
            .inspect_err(|_| restore(TerminalState::Restored))
            .map_err(ScreenError::new("cannot draw on the terminal; --json prints lines instead"))
    }

    /// Draws the view as of `now`.
    ///
    /// # Errors
    /// Fails if the terminal is gone.
    pub fn draw(&mut self, view: &View, now: Nanos) -> Result<(), ScreenError> {
        if *terminal_state() == TerminalState::Taken {
            self.terminal
                .draw(|frame| view.draw(frame, now))
                .map_err(ScreenError::new("cannot draw on the terminal"))?;
        }
        Ok(())
    }

    /// The next key, if one is pressed within `timeout`. Stops the process if the terminal or another process wants that.
    ///
    /// # Errors
    /// Fails if the terminal is gone.
    pub fn keys(&mut self, timeout: Duration) -> Result<Option<Key>, ScreenError> {
        if self.stops.swap(false, Ordering::Relaxed) {
            restore(TerminalState::Restored);
            // Returns after SIGCONT.
            low_level::emulate_default_handler(SIGTSTP).map_err(ScreenError::new("cannot stop"))?;
            self.goes_on.store(true, Ordering::Relaxed);
        }
        if self.goes_on.swap(false, Ordering::Relaxed) {
            self.again()?;
            return Ok(Some(Key::Redraw));
        }
        let read = || if event::poll(timeout)? { event::read().map(Some) } else { Ok(None) };
        let event = match read() {
            // A signal; the caller checks next whether it ends the process.
            Err(why) if why.kind() == io::ErrorKind::Interrupted => None,
            other => other.map_err(ScreenError::new("cannot read keys from the terminal"))?,
        };
        if event.as_ref().is_some_and(is_stop) {
            job::stop().map_err(ScreenError::new("cannot stop"))?;
            return Ok(Some(Key::Redraw));
        }
        Ok(event.and_then(|event| key(&event)))
    }

    /// Takes the terminal again after another program may have used it.
    fn again(&mut self) -> Result<(), ScreenError> {
        restore(TerminalState::Restored);
        // A new `Terminal` does not assume that anything is on the screen.
        let taken = take().and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout())));
        self.terminal = taken.map_err(ScreenError::new("cannot draw on the terminal again"))?;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore(TerminalState::Restored);
        let panics = mem::take(&mut *PANICS.lock().unwrap_or_else(PoisonError::into_inner));
        panics.iter().for_each(|text| anstream::eprintln!("{text}"));
    }
}

/// Keeps a panic message that would spoil the view.
fn keep(text: String) {
    let mut panics = PANICS.lock().unwrap_or_else(PoisonError::into_inner);
    if panics.len() < MAX_PANICS {
        panics.push(text);
    }
}

/// Restores the terminal for good, because the process ends. A terminal that blocks delays the end by 200 ms at most.
pub fn give_up() {
    let (done, restored) = channel();
    let spawned = thread::Builder::new().spawn(move || {
        restore(TerminalState::Final);
        // After the timeout nobody waits any more.
        let _ = done.send(());
    });
    if spawned.is_ok() {
        let _ = restored.recv_timeout(TIMEOUT);
    }
}

fn obstacle(reads_keys: bool, kind: Option<&OsStr>) -> Option<&'static str> {
    match kind.and_then(OsStr::to_str) {
        _ if !reads_keys => Some("standard input is not a terminal"),
        _ if kind.is_none_or(OsStr::is_empty) => Some("TERM is not set"),
        Some("dumb") => Some("TERM is dumb"),
        _ => None,
    }
}

fn take() -> io::Result<()> {
    let mut state = terminal_state();
    if *state == TerminalState::Final {
        return Ok(());
    }
    enable_raw_mode()?;
    *state = TerminalState::Taken;
    drop(state);
    execute!(io::stdout(), EnterAlternateScreen, Hide)
}

/// Restores the terminal if it is taken: its modes first, which never blocks. A terminal that is gone needs no more.
fn restore(then: TerminalState) {
    let mut state = terminal_state();
    let before = if *state == TerminalState::Final { TerminalState::Final } else { mem::replace(&mut *state, then) };
    if before == TerminalState::Taken {
        let _ = disable_raw_mode();
        drop(state);
        let _ = execute!(io::stdout(), Show, LeaveAlternateScreen);
    }
}

fn terminal_state() -> MutexGuard<'static, TerminalState> {
    TERMINAL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ctrl-Z, which raises no signal in raw mode.
fn is_stop(event: &Event) -> bool {
    let Event::Key(key) = event else { return false };
    key.code == KeyCode::Char('z') && key.modifiers.contains(KeyModifiers::CONTROL) && key.kind == KeyEventKind::Press
}

fn key(event: &Event) -> Option<Key> {
    let key = match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => key,
        Event::Resize(..) => return Some(Key::Redraw),
        _ => return None,
    };
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Some(Key::Interrupt),
        KeyCode::Char(letter) if !key.modifiers.contains(KeyModifiers::CONTROL) => Some(Key::Char(letter)),
        KeyCode::Enter => Some(Key::Enter),
        KeyCode::Esc => Some(Key::Escape),
        KeyCode::Backspace => Some(Key::Back),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::tests::pty::Pty;

    #[test]
    fn a_view_needs_keys_and_a_terminal_that_can_be_drawn_on() {
        let obstacle_for = |reads_keys, kind: &str| obstacle(reads_keys, Some(kind.as_ref()));
        assert_eq!(obstacle_for(true, "xterm-256color"), None);
        assert_eq!(obstacle_for(false, "xterm"), Some("standard input is not a terminal"));
        assert_eq!(obstacle_for(true, "dumb"), Some("TERM is dumb"));
        assert_eq!([obstacle_for(true, ""), obstacle(true, None)], [Some("TERM is not set"); 2]);
    }

    /// Runs an ignored test on a terminal: the text on the screen afterwards, and whether the test passed.
    #[allow(clippy::disallowed_methods, reason = "the test runs another")]
    fn run(test: &str) -> (String, bool) {
        let mut pty = Pty::new();
        // Large enough to show all output.
        pty.resize(80, 200);
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        let test = format!("view::screen::tests::{test}");
        command.args(["--exact", &test, "--ignored", "--nocapture", "--test-threads=1"]);
        let mut child = pty.run(&command);
        pty.rest();
        pty.assert_as_before();
        (pty.text(), child.wait().unwrap().success())
    }

    #[test]
    fn a_panic_gives_the_terminal_back_before_its_message() {
        let (text, passed) = run("panics_on_a_terminal");
        assert!(!passed && text.contains("as it was drawn"), "{text}");
    }

    /// Takes a terminal and panics; run by the test above.
    #[test]
    #[ignore = "takes the terminal"]
    fn panics_on_a_terminal() {
        let _screen = Screen::new().unwrap();
        panic!("as it was drawn");
    }

    #[test]
    fn a_panic_of_another_thread_is_printed_after_the_view() {
        let (text, passed) = run("panics_beside_a_terminal");
        assert!(passed && text.contains("thread 'owners' panicked at ") && text.contains("as it was beside"), "{text}");
    }

    /// Takes a terminal while another thread panics; run by the test above.
    #[test]
    #[ignore = "takes the terminal"]
    fn panics_beside_a_terminal() {
        let _screen = Screen::new().unwrap();
        let beside = thread::Builder::new().name("owners".to_owned()).spawn(|| panic!("as it was beside"));
        assert!(beside.unwrap().join().is_err());
        assert_eq!(*terminal_state(), TerminalState::Taken);
    }
}
