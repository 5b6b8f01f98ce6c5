//! A pseudo-terminal: it shows what a program draws, and sends keys.

#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::disallowed_methods, reason = "a test that waits for too long must fail")]

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZero;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The controlling end of a pseudo-terminal, where the user would be.
pub struct Pty {
    end: File,
    shown: vt100::Parser,
    before: [u32; 4],
}

/// How long tests wait for something that must happen.
pub const PATIENCE: Duration = Duration::from_secs(60);

impl Pty {
    /// A terminal of 80 columns and 24 rows.
    pub fn new() -> Self {
        let end = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("there are terminals");
        grantpt(&end).and_then(|()| unlockpt(&end)).expect("it is ours");
        let before = modes(&tcgetattr(&end).expect("it is a terminal"));
        let mut pty = Self { end: File::from(end), shown: vt100::Parser::default(), before };
        pty.resize(80, 24);
        pty
    }

    /// The program's end.
    pub fn peer(&self) -> File {
        File::from(ioctl_tiocgptpeer(&self.end, OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("it is unlocked"))
    }

    /// Runs a command on the terminal, as the leader of a session of its own.
    pub fn run(&self, command: &Command) -> Child {
        self.on_it(command).spawn().expect("setsid of util-linux is there")
    }

    /// The command that [`Pty::run`] spawns.
    pub fn on_it(&self, command: &Command) -> Command {
        let mut session = Command::new("setsid");
        session.arg("--ctty").arg(command.get_program()).args(command.get_args());
        if let Some(folder) = command.get_current_dir() {
            session.current_dir(folder);
        }
        session.env("TERM", "xterm-256color");
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => session.env(name, value),
                None => session.env_remove(name),
            };
        }
        let end = || Stdio::from(self.peer());
        session.stdin(end()).stdout(end()).stderr(end());
        session
    }

    pub fn resize(&mut self, columns: u16, rows: u16) {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.end, size).expect("it is a terminal");
        let [rows, columns] = [rows, columns].map(|cells| NonZero::new(cells).expect("a terminal has cells"));
        self.shown.screen_mut().set_size(rows, columns);
    }

    pub fn press(&mut self, keys: &str) {
        self.end.write_all(keys.as_bytes()).expect("somebody has the other end");
    }

    pub fn screen(&self) -> &vt100::Screen {
        self.shown.screen()
    }

    pub fn text(&self) -> String {
        self.screen().contents()
    }

    /// Reads until a condition on the screen holds.
    pub fn until(&mut self, is_shown: impl Fn(&vt100::Screen) -> bool) {
        let since = Instant::now();
        while !is_shown(self.shown.screen()) {
            assert!(since.elapsed() < PATIENCE, "it is not shown, but\n{}", self.text());
            assert!(self.read(), "it has ended and shows\n{}", self.text());
        }
    }

    /// Reads until the screen contains a text.
    pub fn until_text(&mut self, text: &str) {
        self.until(|screen| screen.contents().contains(text));
    }

    /// Reads until no program has the other end any more.
    pub fn rest(&mut self) {
        let since = Instant::now();
        while self.read() {
            assert!(since.elapsed() < PATIENCE, "it does not end, and shows\n{}", self.text());
        }
    }

    fn read(&mut self) -> bool {
        let time = Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
        let ready = poll(&mut [PollFd::new(&self.end, PollFlags::IN)], Some(&time));
        assert!(ready != Ok(0), "nothing more comes, and it shows\n{}", self.text());
        let mut bytes = [0; 4096];
        match self.end.read(&mut bytes) {
            Ok(count) => self.shown.process(&bytes[..count]),
            Err(why) if why.raw_os_error() == Some(Errno::IO.raw_os_error()) => return false,
            Err(why) => panic!("{why}"),
        }
        true
    }

    /// Whether the terminal's modes are as before.
    pub fn is_as_before(&self) -> bool {
        modes(&tcgetattr(&self.end).expect("it is a terminal")) == self.before
    }

    /// Checks that the modes, the screen and the cursor are as before.
    pub fn assert_as_before(&self) {
        let screen = self.screen();
        assert!(self.is_as_before() && !screen.alternate_screen() && !screen.hide_cursor(), "{}", self.text());
    }
}

fn modes(of: &Termios) -> [u32; 4] {
    [of.input_modes.bits(), of.output_modes.bits(), of.control_modes.bits(), of.local_modes.bits()]
}
