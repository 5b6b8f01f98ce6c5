//! What a folder of packets holds, as Arrow batches:
//!
//! ```text
//! queuescope record data/demo.pcap.xz --log traffic
//! cargo run --release -p queuescope --features archive --example query_arrow -- traffic 'tcp and length > 1000B'
//! ```

use queuescope::archive::{ArchiveQuery, History};
use queuescope::log::Scope;
use queuescope::log::arrow::Batches;
use std::error::Error;
use std::ops::ControlFlow;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [folder, expression] = arguments.as_slice() else { return Err("usage: query_arrow FOLDER EXPRESSION".into()) };
    let history = History::open(Path::new(folder))?;
    let schema = history.schema();
    let scope = Scope::new(schema);
    let expression = scope.parse(expression)?.dnf(&scope)?;
    let names = ["at", "src_ip", "dst_ip", "length"];
    let columns: Vec<_> = names.iter().filter_map(|name| schema.find(name)).collect();

    let mut batches = Batches::new(schema, &columns, 8_192);
    let (mut rows, mut failure) = (0, None);
    let ask = ArchiveQuery { expression: &expression, from: 0, to: u64::MAX, needed: &columns };
    history.each(ask, &mut |_, record| match batches.push(record) {
        Ok(None) => ControlFlow::Continue(()),
        Ok(Some(batch)) => {
            // A batch goes to whatever reads Arrow.
            rows += batch.num_rows();
            ControlFlow::Continue(())
        }
        Err(why) => {
            failure = Some(why);
            ControlFlow::Break(())
        }
    })?;
    if let Some(why) = failure {
        return Err(why.into());
    }
    rows += batches.rest()?.map_or(0, |batch| batch.num_rows());
    println!("{rows} packets, with {}", batches.schema());
    Ok(())
}
