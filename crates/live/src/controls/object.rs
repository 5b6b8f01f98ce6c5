//! Compiled programs, relocated for the running kernel. The probe's loader does not support programs of this type, but its parser does
//! all that they need, because they have no maps and no calls among them.

use aya::Btf;
use aya_obj::btf::BtfRelocationError;
use aya_obj::generated::bpf_insn;
use aya_obj::{Object, ParseError};
use std::ffi::CStr;

/// The programs of an object file.
pub(super) struct Compiled(Object);

/// A program: its name and its instructions.
pub(super) struct Function<'a> {
    pub name: &'a str,
    pub instructions: &'a [bpf_insn],
}

/// Why an object cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum ObjectError {
    #[error("the compiled programs are of another version: {0}")]
    Parse(ParseError),
    #[error(transparent)]
    Relocation(#[from] BtfRelocationError),
}

impl From<ParseError> for ObjectError {
    /// Its text has the cause, so it must not be a source as well.
    fn from(error: ParseError) -> Self {
        Self::Parse(error)
    }
}

impl Compiled {
    /// Parses an object, and relocates it for a kernel with these types.
    pub fn new(object: &[u8], btf: &Btf) -> Result<Self, ObjectError> {
        let mut object = Object::parse(object)?;
        object.relocate_btf(btf)?;
        Ok(Self(object))
    }

    /// The programs. Each is named after the member of the kernel's structure that it implements.
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
