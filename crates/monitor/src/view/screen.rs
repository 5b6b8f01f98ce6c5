//! The terminal, while it is ours.

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

/// A terminal whose keys are read one by one and that shows what is drawn. It is as before when this is dropped, before a panic
/// of the thread that took it is told, and while the process is stopped. Panics of other threads are told when it is given back.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    /// SIGTSTP came: the process is to stop.
    stops: Arc<AtomicBool>,
    /// SIGCONT came: somebody else may have had the terminal.
    goes_on: Arc<AtomicBool>,
}

/// Whose the terminal is. There is one, and who gives it back may be any thread: one that panics, or that takes signals.
static HELD: Mutex<Held> = Mutex::new(Held::No);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    No,
    Ours,
    /// The process is about to end, and takes it no more.
    Over,
}

/// What other threads said as they panicked while the terminal was ours.
static UNTOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());
/// More is not kept.
const MOST: usize = 8;

/// How long a terminal may let who gives it back wait before the process ends.
const PATIENCE: Duration = Duration::from_millis(200);

impl Screen {
    /// Why nothing can be drawn, or no key read, where standard output is a terminal.
    #[expect(clippy::disallowed_methods, reason = "TERM says what the terminal can do")]
    pub fn obstacle() -> Option<&'static str> {
        obstacle(io::stdin().is_terminal(), std::env::var_os("TERM").as_deref())
    }

    /// Takes the terminal of standard output.
    ///
    /// # Errors
    /// If it refuses.
    pub fn new() -> Result<Self, ScreenError> {
        let (before, own) = (panic::take_hook(), thread::current().id());
        panic::set_hook(Box::new(move |why| {
            let thread = thread::current();
            // What this thread does goes on.
            if thread.id() != own && *held() == Held::Ours {
                keep(format!("thread '{}' {why}", thread.name().unwrap_or_default()));
                return;
            }
            give_back(Held::No);
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
            .inspect_err(|_| give_back(Held::No))
            .map_err(ScreenError::of("cannot draw on the terminal; --json tells lines instead"))
    }

    /// Draws what there is to see at `now`.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub fn draw(&mut self, view: &View, now: Nanos) -> Result<(), ScreenError> {
        if *held() == Held::Ours {
            self.terminal
                .draw(|frame| view.draw(frame, now))
                .map_err(ScreenError::of("cannot draw on the terminal"))?;
        }
        Ok(())
    }

    /// The next key, if one is pressed within a time. Stops the process where that was asked for.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub fn keys(&mut self, timeout: Duration) -> Result<Option<Key>, ScreenError> {
        if self.stops.swap(false, Ordering::Relaxed) {
            give_back(Held::No);
            // Until somebody lets it go on.
            low_level::emulate_default_handler(SIGTSTP).map_err(ScreenError::of("cannot stop"))?;
            self.goes_on.store(true, Ordering::Relaxed);
        }
        if self.goes_on.swap(false, Ordering::Relaxed) {
            self.again()?;
            return Ok(Some(Key::Anew));
        }
        let read = || if event::poll(timeout)? { event::read().map(Some) } else { Ok(None) };
        let event = match read() {
            // A signal; whoever asked for an end by it is asked next.
            Err(why) if why.kind() == io::ErrorKind::Interrupted => None,
            other => other.map_err(ScreenError::of("cannot read keys from the terminal"))?,
        };
        if event.as_ref().is_some_and(is_stop) {
            job::stop().map_err(ScreenError::of("cannot stop"))?;
            return Ok(Some(Key::Anew));
        }
        Ok(event.and_then(|event| key(&event)))
    }

    /// Takes the terminal once more: who had it meanwhile left it as it wanted.
    fn again(&mut self) -> Result<(), ScreenError> {
        give_back(Held::No);
        // A new one knows of nothing that would be there already.
        let taken = take().and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout())));
        self.terminal = taken.map_err(ScreenError::of("cannot draw on the terminal again"))?;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back(Held::No);
        let untold = mem::take(&mut *UNTOLD.lock().unwrap_or_else(PoisonError::into_inner));
        untold.iter().for_each(|text| anstream::eprintln!("{text}"));
    }
}

/// Keeps a text that would spoil what is drawn.
fn keep(text: String) {
    let mut untold = UNTOLD.lock().unwrap_or_else(PoisonError::into_inner);
    if untold.len() < MOST {
        untold.push(text);
    }
}

/// Gives the terminal back for good, since the process ends at once. A terminal that takes nothing more does not hold that up.
pub fn give_up() {
    let (tell, told) = channel();
    let begun = thread::Builder::new().spawn(move || {
        give_back(Held::Over);
        // Who waited for it may have gone.
        let _ = tell.send(());
    });
    if begun.is_ok() {
        let _ = told.recv_timeout(PATIENCE);
    }
}

fn obstacle(reads_keys: bool, kind: Option<&OsStr>) -> Option<&'static str> {
    match kind.and_then(OsStr::to_str) {
        _ if !reads_keys => Some("standard input is no terminal"),
        _ if kind.is_none_or(OsStr::is_empty) => Some("TERM is not set"),
        Some("dumb") => Some("TERM is dumb"),
        _ => None,
    }
}

fn take() -> io::Result<()> {
    let mut held = held();
    if *held == Held::Over {
        return Ok(());
    }
    enable_raw_mode()?;
    *held = Held::Ours;
    drop(held);
    execute!(io::stdout(), EnterAlternateScreen, Hide)
}

/// Gives the terminal back, if it is ours: its modes first, which takes no time. A terminal that is gone needs nothing.
fn give_back(then: Held) {
    let mut held = held();
    let before = if *held == Held::Over { Held::Over } else { mem::replace(&mut *held, then) };
    if before == Held::Ours {
        let _ = disable_raw_mode();
        drop(held);
        let _ = execute!(io::stdout(), Show, LeaveAlternateScreen);
    }
}

fn held() -> MutexGuard<'static, Held> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ctrl-Z, which is no signal while keys are read one by one.
fn is_stop(event: &Event) -> bool {
    let Event::Key(key) = event else { return false };
    key.code == KeyCode::Char('z') && key.modifiers.contains(KeyModifiers::CONTROL) && key.kind == KeyEventKind::Press
}

fn key(event: &Event) -> Option<Key> {
    let key = match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => key,
        Event::Resize(..) => return Some(Key::Anew),
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
        let told = |reads_keys, kind: &str| obstacle(reads_keys, Some(kind.as_ref()));
        assert_eq!(told(true, "xterm-256color"), None);
        assert_eq!(told(false, "xterm"), Some("standard input is no terminal"));
        assert_eq!(told(true, "dumb"), Some("TERM is dumb"));
        assert_eq!([told(true, ""), obstacle(true, None)], [Some("TERM is not set"); 2]);
    }

    /// What is on a terminal after a test that is ignored was run on it, and whether that passed.
    #[allow(clippy::disallowed_methods, reason = "the test runs another")]
    fn run(test: &str) -> (String, bool) {
        let mut pty = Pty::new();
        // So that all that is told stays in sight.
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
    fn a_panic_gives_the_terminal_back_before_it_is_told() {
        let (text, passed) = run("panics_on_a_terminal");
        assert!(!passed && text.contains("as it was drawn"), "{text}");
    }

    /// Takes a terminal and panics: the other test runs it on one.
    #[test]
    #[ignore = "takes the terminal"]
    fn panics_on_a_terminal() {
        let _screen = Screen::new().unwrap();
        panic!("as it was drawn");
    }

    #[test]
    fn a_panic_of_another_thread_leaves_the_terminal_and_is_told_later() {
        let (text, passed) = run("panics_beside_a_terminal");
        assert!(passed && text.contains("thread 'owners' panicked at ") && text.contains("as it was beside"), "{text}");
    }

    /// Takes a terminal while another thread panics: the other test runs it on one.
    #[test]
    #[ignore = "takes the terminal"]
    fn panics_beside_a_terminal() {
        let _screen = Screen::new().unwrap();
        let beside = thread::Builder::new().name("owners".to_owned()).spawn(|| panic!("as it was beside"));
        assert!(beside.unwrap().join().is_err());
        assert_eq!(*held(), Held::Ours);
    }
}
