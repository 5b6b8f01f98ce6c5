//! What the coordinator counts for a monitoring system.

use super::home::Home;
use queuescope_fleet::protocol::{QueryRequest, State};
use queuescope_wire::Nanos;

const MINUTE: u64 = 60_000_000_000;

#[tokio::test(flavor = "multi_thread")]
async fn the_coordinator_counts_what_it_does() {
    let home = Home::start().await;
    let before = home.measures();
    assert_eq!((before.members["here"], before.cuts.made, before.questions), (0, 0, 0));
    let host = home.host("host").await;
    home.wait_for("host", State::Answered).await;
    let mut admin = home.admin().await;
    admin.cut(&[], Nanos(MINUTE)).await.expect("nobody else makes one");
    admin.cut(&["nobody".to_owned()], Nanos(MINUTE)).await.expect("nobody else makes one");
    let request = QueryRequest { select: "count".to_owned(), within: 60_000, ..QueryRequest::default() };
    admin.query(request).await.expect("it answers");
    home.join("ana", "reader").await;
    let _refused = home.client("ana").await.invite("bob", "admin", Nanos(MINUTE)).await.expect_err("readers may not");
    let measures = home.measures();
    assert_eq!((measures.members["here"], measures.members["absent"]), (1, 0));
    assert_eq!((measures.cuts.made, measures.cuts.void, measures.cuts.partial), (2, 0, 1));
    assert!(measures.cuts.time > Nanos::ZERO);
    assert_eq!((measures.questions, measures.replies["here"], measures.replies["late"]), (1, 1, 0));
    assert_eq!(measures.calls_refused, 1);
    assert!(measures.connections >= 2, "{measures:?}");
    assert!(measures.rejected.iter().all(|(_, count)| *count == 0), "{measures:?}");
    host.serving.abort();
    home.wait_for("host", State::Absent).await;
    assert_eq!(home.measures().members["absent"], 1);
}
