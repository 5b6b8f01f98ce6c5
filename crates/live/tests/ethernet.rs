//! Frames of an interface that are read and written in place of a switch, as root.

use crate::common::{Ends, until};
use queuescope_live::{EthernetError, EthernetPort, Incoming, Namespace, Transfer};

/// Two hosts with a cable between them; none, with a message, where they cannot be made.
fn ends(test: &str) -> Option<Ends> {
    Ends::needing(&["namespaces"], "pfifo limit 1000").map_err(|why| println!("skipped: {test}: {why}")).ok()
}

/// The addresses of frames from the near to the far end.
const ADDRESSES: [u8; 12] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];

fn frame(behind: &[u8]) -> Vec<u8> {
    [&ADDRESSES[..], behind].concat()
}

/// The next frame from the near end that a port receives. The kernel sends frames of its own.
fn received(port: &EthernetPort, incoming: &mut Incoming) -> Vec<u8> {
    until("a frame arrives", || {
        if port.read(incoming).expect("it is up") != Transfer::Done {
            return None;
        }
        let mut frames = Vec::new();
        while let Some(frame) = incoming.take() {
            frames.push(frame.to_vec());
        }
        frames.into_iter().find(|frame| frame.starts_with(&ADDRESSES))
    })
}

#[test]
fn frames_arrive_as_they_were_written() {
    let Some(ends) = ends("frames_arrive_as_they_were_written") else { return };
    let open = |place: &Namespace, name: &'static str| place.run(move || EthernetPort::open(name).expect("it is up"));
    let (near, far) = (open(&ends.near, "near0"), open(&ends.far, "far0"));
    assert_eq!((near.name(), near.mtu(), far.mtu()), ("near0", 1500, 1500));
    let frames = [
        frame(&[&[0x88, 0xb5, 1, 2, 8, 0][..], &[7; 60]].concat()),
        // An EtherType that nobody knows, and no payload.
        frame(&[0x88, 0xb6]),
        frame(&[&[0x81, 0x00, 0xa0, 5, 8, 0][..], &[7; 1496]].concat()),
        frame(&[&[0x88, 0xa8, 0, 7, 0x81, 0x00, 0, 5, 8, 0][..], &[7; 100]].concat()),
        frame(&[&[0x08, 0x00][..], &[7; 1500]].concat()),
    ];
    let mut incoming = Incoming::default();
    for frame in &frames {
        let (addresses, rest) = frame.split_at(12);
        assert_eq!(near.write([addresses, rest, &[]]).expect("it is up"), Transfer::Done);
        assert_eq!(&received(&far, &mut incoming), frame);
    }
    let too_long = frame(&[&[0x08, 0x00][..], &[7; 1501]].concat());
    assert_eq!(near.write([&too_long, &[], &[]]).expect("it is up"), Transfer::Unfit);
    assert_eq!(far.unread().expect("it counts"), 0);
}

#[test]
fn an_interface_that_cannot_be_opened_is_named() {
    let Some(ends) = ends("an_interface_that_cannot_be_opened_is_named") else { return };
    let open = |name: &'static str| ends.far.run(move || EthernetPort::open(name).expect_err("it cannot be opened"));
    let error = open("near0");
    assert!(matches!(error, EthernetError::NoInterface { .. }), "{error:?}");
    assert_eq!(error.to_string(), "there is no interface near0 here; `ip link` lists all");
    let error = open("lo");
    assert!(matches!(error, EthernetError::Kind { .. }), "{error:?}");
    ends.far.run(|| crate::common::ip("ip link set far0 down")).expect("it is there");
    let error = open("far0");
    assert!(matches!(error, EthernetError::Down { .. }), "{error:?}");
    assert_eq!(error.to_string(), "the interface far0 is down: bring it up with `ip link set far0 up`");
}

/// An interface that goes down while it is open is an error, not a silence.
#[test]
fn an_interface_that_goes_down_is_an_error() {
    let Some(ends) = ends("an_interface_that_goes_down_is_an_error") else { return };
    let port = ends.far.run(|| EthernetPort::open("far0").expect("it is up"));
    ends.far.run(|| crate::common::ip("ip link set far0 down")).expect("it is there");
    let mut incoming = Incoming::default();
    let error = until("the kernel reports it", || port.read(&mut incoming).err());
    assert_eq!(error.kind(), std::io::ErrorKind::NetworkDown);
}
