//! The terminal, while it is ours.

use super::{Key, View};
use anyhow::{Context, Result};
use queuescope_wire::Nanos;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use std::io::{self, Stdout};
use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A terminal whose keys are read one by one and that shows what is drawn. It is as before when this is dropped, and before a panic
/// is told.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    /// The terminal is ours; shared with who restores it on a panic.
    ours: Arc<AtomicBool>,
}

impl Screen {
    /// Takes the terminal of standard output.
    ///
    /// # Errors
    /// If it refuses.
    pub fn new() -> Result<Self> {
        let ours = Arc::new(AtomicBool::new(true));
        let shared = Arc::clone(&ours);
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |why| {
            restore(&shared);
            before(why);
        }));
        let take = || -> io::Result<_> {
            enable_raw_mode()?;
            execute!(io::stdout(), EnterAlternateScreen, Hide)?;
            Terminal::new(CrosstermBackend::new(io::stdout()))
        };
        match take() {
            Ok(terminal) => Ok(Self { terminal, ours }),
            Err(why) => {
                restore(&ours);
                Err(why).context("cannot draw on the terminal; --json tells lines instead")
            }
        }
    }

    /// Draws what there is to see at `now`.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub fn draw(&mut self, view: &mut View, now: Nanos) -> Result<()> {
        self.terminal.draw(|frame| view.draw(frame, now)).context("cannot draw on the terminal")?;
        Ok(())
    }

    /// The next key, if one is pressed within a time.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub fn keys(&mut self, timeout: Duration) -> Result<Option<Key>> {
        let read = || if event::poll(timeout)? { event::read().map(Some) } else { Ok(None) };
        let event = match read() {
            // A signal; whoever asked for an end by it is asked next.
            Err(why) if why.kind() == io::ErrorKind::Interrupted => None,
            other => other.context("cannot read keys from the terminal")?,
        };
        Ok(event.and_then(|event| key(&event)))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore(&self.ours);
    }
}

/// Gives the terminal back, once. A terminal that is gone needs nothing.
fn restore(ours: &AtomicBool) {
    if ours.swap(false, Ordering::Relaxed) {
        let _ = execute!(io::stdout(), Show, LeaveAlternateScreen);
        let _ = disable_raw_mode();
    }
}

fn key(event: &Event) -> Option<Key> {
    let key = match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => key,
        Event::Resize(..) => return Some(Key::Resized),
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
