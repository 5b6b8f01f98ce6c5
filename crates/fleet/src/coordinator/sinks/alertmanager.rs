//! Alerts for Prometheus Alertmanager: `POST /api/v2/alerts` of its API (`api/v2/openapi.yaml`).

use super::delivery::Outgoing;
use super::text::{cut, number, summary};
use queuescope_log::date_text;
use queuescope_wire::Nanos;
use serde::Serialize;
use std::collections::BTreeMap;

/// How long an alert is active in Alertmanager after it fired, or after it was sent if that was later: 5 minutes, the default of
/// Alertmanager's `resolve_timeout`. An alert of the fleet is a moment, and has no end of its own.
pub(super) const ACTIVE: Nanos = Nanos(300_000_000_000);
/// The path below the URL of Alertmanager.
pub(super) const PATH: &str = "/api/v2/alerts";
/// The most bytes of a label and of an annotation. Alertmanager copies both to its peers, and shows them in notifications.
const LABEL: usize = 1_024;
const ANNOTATION: usize = 8_192;

/// A `postableAlert`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Postable {
    labels: BTreeMap<&'static str, String>,
    annotations: BTreeMap<&'static str, String>,
    starts_at: String,
    ends_at: String,
}

/// The body of the request. `now` is the time of sending since 1970: an alert that ended before would notify nobody.
pub(super) fn body(alerts: &[Outgoing], now: Nanos) -> Vec<u8> {
    let alerts: Vec<_> = alerts.iter().map(|alert| Postable::of(alert, now)).collect();
    // Texts can always be written to memory.
    serde_json::to_vec(&alerts).unwrap_or_default()
}

impl Postable {
    fn of(outgoing: &Outgoing, now: Nanos) -> Self {
        let Outgoing { alert, repeats, .. } = outgoing;
        // Labels say which alert it is: an equal one prolongs it. An empty label is the same as none, and one label is needed.
        let name = if alert.trigger.is_empty() { "alert" } else { &alert.trigger };
        let labels =
            [("alertname", name), ("member", &alert.member), ("severity", "warning"), ("source", "queuescope")];
        let repeats = if *repeats > 0 { repeats.to_string() } else { String::new() };
        let annotations = [
            ("summary", summary(outgoing)),
            ("detail", alert.detail.clone()),
            ("value", number(alert.value)),
            ("packets", alert.packets.to_string()),
            ("number", alert.number.to_string()),
            ("repeats", repeats),
        ];
        let ends = alert.at.max(now.0).saturating_add(ACTIVE.0);
        Self {
            labels: labels.map(|(key, text)| (key, cut(text, LABEL))).into_iter().filter(is_there).collect(),
            annotations: annotations
                .map(|(key, text)| (key, cut(&text, ANNOTATION)))
                .into_iter()
                .filter(is_there)
                .collect(),
            starts_at: date_text(Nanos(alert.at)),
            ends_at: date_text(Nanos(ends)),
        }
    }
}

fn is_there((_, text): &(&str, String)) -> bool {
    !text.is_empty()
}

#[cfg(test)]
mod tests {
    use super::super::examples::{HOSTILE, alert, hostile, plain, repeated};
    use super::*;
    use queuescope_log::parse_date;
    use serde_json::Value;

    #[test]
    fn golden() {
        let now = parse_date("2021-07-23T16:57:00Z").unwrap();
        assert_eq!(
            String::from_utf8(body(&[repeated(2)], now)).unwrap(),
            "[{\"labels\":{\"alertname\":\"busy\",\"member\":\"web-1\",\"severity\":\"warning\",\"source\":\"queuescope\"},\
             \"annotations\":{\"detail\":\"src_ip 10.0.0.4\",\"number\":\"1\",\"packets\":\"2643\",\"repeats\":\"2\",\
             \"summary\":\"busy fired on web-1: value 81024.0, packets 2643, repeats left out 2\",\"value\":\"81024.0\"},\
             \"startsAt\":\"2021-07-23T16:56:47.207693000Z\",\"endsAt\":\"2021-07-23T17:02:00.000000000Z\"}]"
        );
    }

    #[test]
    fn an_alert_ends_after_it_began() {
        let mut late = alert(1, "");
        late.alert.at = u64::MAX;
        for now in [Nanos(0), Nanos(u64::MAX)] {
            let value: Value = serde_json::from_slice(&body(&[late.clone(), plain()], now)).unwrap();
            for alert in value.as_array().unwrap() {
                assert!(alert["startsAt"].as_str() <= alert["endsAt"].as_str(), "{alert}");
            }
        }
    }

    #[test]
    fn each_alert_has_a_name_and_no_empty_label() {
        let mut nameless = alert(1, "");
        (nameless.alert.trigger, nameless.alert.member) = (String::new(), String::new());
        let value: Value = serde_json::from_slice(&body(&[nameless], Nanos(0))).unwrap();
        let labels = value[0]["labels"].as_object().unwrap();
        assert_eq!((&labels["alertname"], labels.get("member")), (&"alert".into(), None));
    }

    #[test]
    fn hostile_texts_stay_values() {
        for text in HOSTILE {
            let value: Value = serde_json::from_slice(&body(&[hostile(text)], Nanos(0))).unwrap();
            assert_eq!(value[0]["labels"]["alertname"], cut(text, LABEL));
            assert_eq!(value[0]["labels"]["member"], cut(text, LABEL));
            assert_eq!(value[0]["annotations"]["detail"], cut(text, ANNOTATION));
        }
    }
}
