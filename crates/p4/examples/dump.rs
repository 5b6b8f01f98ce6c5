use queuescope_p4::algorithms::p4air_with;
use queuescope_p4::ir::*;
use queuescope_queue::*;
fn main() {
    let kind = std::env::args().nth(1).unwrap();
    let entries: u32 = std::env::args().nth(2).map_or(65536, |s| s.parse().unwrap());
    let p4air = P4airParams { table: FlowTable::Hashed { entries, seed: 0 }, ..P4airParams::default() };
    let p = p4air_with(&SwitchP4airParams { p4air, ..Default::default() }).unwrap();
    match kind.as_str() {
        "test" => println!("{}", TestBuild::new(&p).print()),
        "v1model" => println!("{}", print(&p, Architecture::V1model)),
        "tna" => println!("{}", print(&p, Architecture::Tna)),
        "fit" => println!("{:#?}", queuescope_p4::Fit::new(&p.steps(), &queuescope_p4::Target::tofino())),
        _ => println!("{}", explain(&p)),
    }
}
