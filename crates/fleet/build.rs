//! Makes Rust of the protocol, without a compiler that users would have to install.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=proto");
    let protocol = protox::compile(["proto/fleet.proto"], ["proto"])?;
    tonic_prost_build::configure().compile_fds(protocol)?;
    Ok(())
}
