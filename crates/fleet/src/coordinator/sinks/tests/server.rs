//! A server of HTTP on loopback that behaves badly.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

/// Longer than a busy machine takes for anything that tests wait for.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// What a server does with a request that it has read.
#[derive(Debug, Clone)]
pub enum Behaviour {
    /// Sends this, and closes the connection.
    Say(&'static str),
    /// The same, a byte at a time.
    SayInBytes(&'static str),
    /// Sends the first without an end of the second.
    SayForEver(&'static str, &'static str),
    /// Sends nothing until the client closes the connection.
    Hang,
    /// Closes the connection before the request is read.
    CloseAtOnce,
}

/// A request.
#[derive(Debug)]
pub struct Got {
    /// The request line and the fields.
    pub head: String,
    /// The body.
    pub body: String,
}

impl Got {
    /// The value of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The numbers of alerts in the body.
    pub fn numbers(&self) -> Vec<u64> {
        let value: serde_json::Value = serde_json::from_str(&self.body).expect("it is JSON");
        value["alerts"]
            .as_array()
            .expect("it is a list")
            .iter()
            .map(|alert| alert["number"].as_u64().unwrap())
            .collect()
    }
}

/// Serves connections: each with the next behaviour, and the last one again and again.
pub fn serve(behaviours: &[Behaviour]) -> (SocketAddr, Receiver<Got>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback is there");
    let address = listener.local_addr().expect("it listens");
    let (go, got) = channel();
    let behaviours = behaviours.to_vec();
    thread::spawn(move || {
        let mut number = 0;
        while let Ok((stream, _)) = listener.accept() {
            let behaviour = behaviours[number.min(behaviours.len() - 1)].clone();
            number += 1;
            if matches!(behaviour, Behaviour::CloseAtOnce) {
                continue;
            }
            let go = go.clone();
            // One that hangs keeps no other from its answer.
            thread::spawn(move || {
                if let Some(request) = read(&stream)
                    && go.send(request).is_ok()
                {
                    // The client may close the connection early.
                    let _ = behave(stream, &behaviour);
                }
            });
        }
    });
    (address, got)
}

/// Reads a request with a `Content-Length`.
pub fn read(stream: impl Read) -> Option<Got> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let got = Got { head, body: String::new() };
    let length: usize = got.field("content-length")?.parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Got { body: String::from_utf8(body).ok()?, ..got })
}

fn behave(mut stream: TcpStream, behaviour: &Behaviour) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    match behaviour {
        Behaviour::Say(text) => stream.write_all(text.as_bytes()),
        Behaviour::SayInBytes(text) => text.bytes().try_for_each(|byte| stream.write_all(&[byte])),
        Behaviour::SayForEver(first, rest) => {
            stream.write_all(first.as_bytes())?;
            loop {
                stream.write_all(rest.as_bytes())?;
            }
        }
        Behaviour::Hang => stream.read(&mut [0]).map(drop),
        Behaviour::CloseAtOnce => Ok(()),
    }
}
