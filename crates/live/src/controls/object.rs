//! Compiled programs, fitted to a kernel. The loader of the probe knows no programs of this kind, but what it reads objects with does all
//! that they need: there are no maps in them, nor calls among them.

use aya::Btf;
use aya_obj::btf::BtfRelocationError;
use aya_obj::generated::bpf_insn;
use aya_obj::{Object, ParseError};
use std::ffi::CStr;

/// The programs of an object.
pub(super) struct Compiled(Object);

/// One of them: what it is called, and what it does.
pub(super) struct Function<'a> {
    pub name: &'a str,
    pub instructions: &'a [bpf_insn],
}

/// Why they cannot be had.
#[derive(Debug, thiserror::Error)]
pub(super) enum ObjectError {
    #[error("the compiled programs are others: {0}")]
    Parse(#[from] ParseError),
    #[error("{0}")]
    Relocation(#[from] BtfRelocationError),
}

impl Compiled {
    /// Those of an object, for a kernel of these types.
    pub fn of(object: &[u8], btf: &Btf) -> Result<Self, ObjectError> {
        let mut object = Object::parse(object)?;
        object.relocate_btf(btf)?;
        Ok(Self(object))
    }

    /// Each of them; it is called what the member of the kernel's structure is that it becomes.
    pub fn functions(&self) -> impl Iterator<Item = Function<'_>> {
        self.0
            .functions
            .values()
            .map(|function| Function { name: &function.name, instructions: &function.instructions })
    }

    pub fn license(&self) -> &CStr {
        &self.0.license
    }
}
