//! Alerts as JSON: a line each for files, and a list for webhooks.

use super::delivery::Outgoing;
use queuescope_log::date_text;
use queuescope_wire::Nanos;
use serde::Serialize;

/// The version of the list. New fields need no new version.
const FORMAT_VERSION: u32 = 1;

/// An alert, with the names that `fleet alerts` prints.
#[derive(Debug, Serialize)]
struct Line<'a> {
    number: u64,
    /// Empty if the coordinator raised it.
    host: &'a str,
    trigger: &'a str,
    at_ns: String,
    /// The same time for people.
    time: String,
    /// `null` if it is not a finite number, which JSON does not have.
    value: Option<f64>,
    packets: u64,
    #[serde(skip_serializing_if = "str::is_empty")]
    detail: &'a str,
    /// Equal alerts that were left out before it.
    #[serde(skip_serializing_if = "is_zero")]
    repeats: u64,
}

/// A list of alerts.
#[derive(Debug, Serialize)]
struct List<'a> {
    format_version: u32,
    kind: &'static str,
    coordinator: &'a str,
    alerts: Vec<Line<'a>>,
}

/// A line of JSON for each alert.
pub(super) fn lines(alerts: &[Outgoing]) -> Vec<u8> {
    let mut lines = Vec::new();
    for alert in alerts {
        // Texts and numbers can always be written to memory.
        lines.extend(serde_json::to_vec(&Line::of(alert)).unwrap_or_default());
        lines.push(b'\n');
    }
    lines
}

/// The body of a request to a webhook. `coordinator` is the fingerprint of the fleet's authority: alert numbers are unique within it.
pub(super) fn list(coordinator: &str, alerts: &[Outgoing]) -> Vec<u8> {
    let alerts = alerts.iter().map(Line::of).collect();
    let list = List { format_version: FORMAT_VERSION, kind: "alerts", coordinator, alerts };
    serde_json::to_vec(&list).unwrap_or_default()
}

impl<'a> Line<'a> {
    fn of(outgoing: &'a Outgoing) -> Self {
        let Outgoing { alert, repeats, .. } = outgoing;
        Self {
            number: alert.number,
            host: &alert.member,
            trigger: &alert.trigger,
            at_ns: alert.at.to_string(),
            time: date_text(Nanos(alert.at)),
            value: Some(alert.value).filter(|value| value.is_finite()),
            packets: alert.packets,
            detail: &alert.detail,
            repeats: *repeats,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::super::examples::{HOSTILE, alert, hostile, plain, repeated};
    use super::*;
    use serde_json::Value;

    #[test]
    fn golden() {
        let text = String::from_utf8(lines(&[alert(2, ""), repeated(3)])).unwrap();
        assert_eq!(
            text,
            "{\"number\":2,\"host\":\"web-1\",\"trigger\":\"busy\",\"at_ns\":\"1627059407207693000\",\
             \"time\":\"2021-07-23T16:56:47.207693000Z\",\"value\":81024.0,\"packets\":2643}\n\
             {\"number\":1,\"host\":\"web-1\",\"trigger\":\"busy\",\"at_ns\":\"1627059407207693000\",\
             \"time\":\"2021-07-23T16:56:47.207693000Z\",\"value\":81024.0,\"packets\":2643,\
             \"detail\":\"src_ip 10.0.0.4\",\"repeats\":3}\n"
        );
        let body = String::from_utf8(list("c0ffee", &[alert(2, "")])).unwrap();
        assert_eq!(
            body,
            "{\"format_version\":1,\"kind\":\"alerts\",\"coordinator\":\"c0ffee\",\"alerts\":[{\"number\":2,\
             \"host\":\"web-1\",\"trigger\":\"busy\",\"at_ns\":\"1627059407207693000\",\
             \"time\":\"2021-07-23T16:56:47.207693000Z\",\"value\":81024.0,\"packets\":2643}]}"
        );
    }

    #[test]
    fn hostile_texts_stay_values_of_one_line() {
        for text in HOSTILE {
            let bytes = lines(&[hostile(text), plain()]);
            let text_lines: Vec<_> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
            assert_eq!(text_lines.len(), 2);
            let value: Value = serde_json::from_slice(text_lines[0]).unwrap();
            for key in ["host", "trigger", "detail"] {
                assert_eq!(value[key], *text);
            }
            assert_eq!(value["value"], Value::Null);
        }
    }
}
