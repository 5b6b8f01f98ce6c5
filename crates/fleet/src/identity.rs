//! Names, roles, certificates and tokens.
