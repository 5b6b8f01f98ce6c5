//! Alerts as messages of syslog (RFC 5424).

use super::delivery::Outgoing;
use super::text::{clean, cut, number, summary};
use queuescope_log::date_text;
use queuescope_wire::Nanos;

/// Facility 3 (daemons), severity 4 (warning): RFC 5424, section 6.2.1.
const PRIORITY: u8 = 3 * 8 + 4;
/// The name of the structured data. 32473 is the enterprise number for examples (RFC 5612): this project has none of its own.
const ELEMENT: &str = "alert@32473";
/// The most bytes of a datagram, which receivers should take (RFC 5426, section 3.2).
pub(super) const DATAGRAM: usize = 2_048;
/// The most bytes of a message over TCP, which common receivers take by default.
pub(super) const STREAM: usize = 8_192;
/// The most bytes of a value of structured data before escapes, and of the host's name (RFC 5424, section 6.2.4).
const VALUE: usize = 256;
const HOST: usize = 255;
/// UTF-8 text begins with this (RFC 5424, section 6.4). Text in ASCII needs none.
const MARK: &str = "\u{feff}";

/// A message of at most `most` bytes, which is [`DATAGRAM`] or more. Longer texts are cut.
pub(super) fn message(outgoing: &Outgoing, most: usize) -> Vec<u8> {
    let Outgoing { alert, repeats, .. } = outgoing;
    // At most six digits of a second.
    let time = format!("{}Z", cut_time(&date_text(Nanos(alert.at))));
    let mut message = format!("<{PRIORITY}>1 {time} {} queuescope - alert [{ELEMENT}", host(&alert.member));
    let (value, packets, alert_number) = (number(alert.value), alert.packets.to_string(), alert.number.to_string());
    let repeats = if *repeats > 0 { repeats.to_string() } else { String::new() };
    let parameters = [
        ("number", &alert_number),
        ("host", &alert.member),
        ("trigger", &alert.trigger),
        ("value", &value),
        ("packets", &packets),
        ("repeats", &repeats),
    ];
    for (name, text) in parameters {
        if !text.is_empty() {
            message += &format!(" {name}=\"{}\"", escaped(&cut(&clean(text), VALUE)));
        }
    }
    message += "] ";
    let mut text = cut(&summary(outgoing), 2 * VALUE);
    if !alert.detail.is_empty() {
        text += &format!("; {}", clean(&alert.detail));
    }
    if !text.is_ascii() {
        message += MARK;
    }
    message += &cut(&text, most.saturating_sub(message.len()));
    message.into_bytes()
}

/// A message with its length in front of it, for a stream: octet counting (RFC 6587, section 3.4.1).
pub(super) fn framed(message: &[u8]) -> Vec<u8> {
    [format!("{} ", message.len()).as_bytes(), message].concat()
}

/// `HOSTNAME`: printable ASCII without spaces; `-` if there is none.
fn host(member: &str) -> String {
    let printable = |c: char| if c.is_ascii_graphic() { c } else { '?' };
    let name: String = member.chars().take(HOST).map(printable).collect();
    if name.is_empty() { "-".to_owned() } else { name }
}

/// `PARAM-VALUE`: backslashes before `"`, `\` and `]` (section 6.3.3).
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '"' | '\\' | ']') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// `2021-07-23T16:56:49.500000`, without later digits and the zone.
fn cut_time(date: &str) -> &str {
    date.get(..26).unwrap_or(date)
}

#[cfg(test)]
mod tests {
    use super::super::examples::{HOSTILE, alert, hostile, repeated};
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// The parts of a message, by the grammar of RFC 5424, section 6, for one element.
    struct Parsed {
        header: Vec<String>,
        element: String,
        parameters: BTreeMap<String, String>,
        text: String,
    }

    fn parsed(message: &[u8]) -> Parsed {
        let message = str::from_utf8(message).expect("it is UTF-8");
        let mut words = message.splitn(7, ' ');
        let header: Vec<_> = words.by_ref().take(6).map(str::to_owned).collect();
        let rest = words.next().and_then(|rest| rest.strip_prefix('[')).expect("it has structured data");
        let (element, mut rest) = rest.split_once(' ').expect("it has parameters");
        let mut parameters = BTreeMap::new();
        loop {
            let (name, value) = rest.split_once("=\"").expect("a parameter has a value");
            let (mut text, mut chars) = (String::new(), value.char_indices());
            let end = loop {
                match chars.next().expect("a value ends") {
                    (_, '\\') => text.push(chars.next().expect("something is escaped").1),
                    (at, '"') => break at + 1,
                    (_, ']') => panic!("] is escaped"),
                    (_, other) => text.push(other),
                }
            };
            assert!(parameters.insert(name.to_owned(), text).is_none());
            rest = &value[end..];
            if let Some(text) = rest.strip_prefix("] ") {
                return Parsed { header, element: element.to_owned(), parameters, text: text.to_owned() };
            }
            rest = rest.strip_prefix(' ').expect("parameters are separated");
        }
    }

    #[test]
    fn golden() {
        let text = |outgoing: &Outgoing| String::from_utf8(message(outgoing, DATAGRAM)).unwrap();
        assert_eq!(
            text(&repeated(2)),
            "<28>1 2021-07-23T16:56:47.207693Z web-1 queuescope - alert [alert@32473 number=\"1\" host=\"web-1\" \
             trigger=\"busy\" value=\"81024.0\" packets=\"2643\" repeats=\"2\"] \
             busy fired on web-1: value 81024.0, packets 2643, repeats left out 2; src_ip 10.0.0.4"
        );
        let mut of_coordinator = alert(7, "é");
        of_coordinator.alert.member = String::new();
        assert_eq!(
            text(&of_coordinator),
            "<28>1 2021-07-23T16:56:47.207693Z - queuescope - alert [alert@32473 number=\"7\" trigger=\"busy\" \
             value=\"81024.0\" packets=\"2643\"] \u{feff}busy fired: value 81024.0, packets 2643; é"
        );
        assert_eq!(framed("é".as_bytes()), "2 é".as_bytes());
    }

    #[test]
    fn hostile_texts_stay_values() {
        for text in HOSTILE {
            for most in [DATAGRAM, STREAM] {
                let message = message(&hostile(text), most);
                assert!(message.len() <= most);
                let parsed = parsed(&message);
                assert_eq!(parsed.parameters["trigger"], cut(&clean(text), VALUE));
                assert_eq!(parsed.header.len(), 6, "{:?}", parsed.header);
            }
        }
    }

    proptest! {
        #[test]
        fn any_alert_is_one_message_of_the_grammar(
            trigger in any::<String>(), member in any::<String>(), detail in any::<String>(), value in any::<f64>(), at in any::<u64>(),
        ) {
            let mut outgoing = alert(u64::MAX, &detail);
            (outgoing.alert.trigger, outgoing.alert.member) = (trigger.clone(), member.clone());
            (outgoing.alert.value, outgoing.alert.at, outgoing.alert.packets) = (value, at, u64::MAX);
            let message = message(&outgoing, DATAGRAM);
            prop_assert!(message.len() <= DATAGRAM);
            let Parsed { header, element, parameters, text } = parsed(&message);
            prop_assert_eq!(&element, ELEMENT);
            prop_assert_eq!(&header[0], "<28>1");
            prop_assert!(header.iter().all(|word| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_graphic())));
            let shown = |text: &str| (!text.is_empty()).then(|| cut(&clean(text), VALUE));
            prop_assert_eq!(parameters.get("trigger").cloned(), shown(&trigger));
            prop_assert_eq!(parameters.get("host").cloned(), shown(&member));
            prop_assert!(!text.contains(char::is_control) && text.is_ascii() != text.starts_with(MARK));
        }
    }
}
