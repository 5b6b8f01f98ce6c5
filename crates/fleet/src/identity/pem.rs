//! Texts in PEM.

use super::IdentityError;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// The most bytes of a certificate's text: that of a coordinator with a hundred of the longest names has 36 KB.
pub(super) const LONGEST: usize = 48 << 10;
const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";

/// The sections of a text, each from its line `BEGIN` to its line `END`. Text between them is left out; so is a section that does not end.
pub(super) fn sections(text: &str) -> Vec<&str> {
    let mut sections = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(BEGIN) {
        rest = &rest[start..];
        let Some(end) = rest.find(END) else { break };
        let start = rest[..end].rfind(BEGIN).unwrap_or(0);
        let end = rest[end..].find('\n').map_or(rest.len(), |line| end + line + 1);
        sections.push(&rest[start..end]);
        rest = &rest[end..];
    }
    sections
}

/// The certificate of a text that has exactly one section, and that section.
///
/// # Errors
/// Fails if there are none or several, or if it is not a certificate's.
pub(super) fn certificate(what: &'static str, text: &str) -> Result<(CertificateDer<'static>, String), IdentityError> {
    let wrong = |why: String| IdentityError::Pem { what, why };
    if text.len() > LONGEST {
        return Err(wrong(format!("it has {} bytes, and can have {LONGEST}", text.len())));
    }
    let [section] = sections(text)[..] else {
        return Err(wrong(format!("it has {} sections in PEM, and must have one", sections(text).len())));
    };
    let der = CertificateDer::from_pem_slice(section.as_bytes());
    let der = der.map_err(|error| wrong(format!("it is not a certificate in PEM ({error})")))?;
    Ok((der, format!("{}\n", section.trim_end())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sections_are_found_between_other_text() {
        let one = "-----BEGIN A-----\nQUJD\n-----END A-----\n";
        assert_eq!(sections(""), [""; 0]);
        assert_eq!(sections(&format!("a comment\n{one}more\n{one}")), [one, one]);
        assert_eq!(sections(one.trim_end()), [one.trim_end()]);
        assert_eq!(sections("-----BEGIN A-----\nQUJD\n"), [""; 0]);
    }

    #[test]
    fn a_section_without_an_end_does_not_take_the_next_with_it() {
        let one = "-----BEGIN A-----\nQUJD\n-----END A-----\n";
        assert_eq!(sections(&format!("-----BEGIN A-----\nQUJD\n{one}")), [one]);
    }

    #[test]
    fn exactly_one_certificate_is_taken() {
        let taken = |text: &str| certificate("it", text);
        let one = "-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----";
        let (der, text) = taken(one).unwrap();
        assert_eq!((der.as_ref(), text), (&b"ABC"[..], format!("{one}\n")));
        let why = |text: &str| taken(text).unwrap_err().to_string();
        assert_eq!(why(""), "it is not usable: it has 0 sections in PEM, and must have one");
        assert_eq!(why(&format!("{one}\n{one}")), "it is not usable: it has 2 sections in PEM, and must have one");
        assert!(why(&one.replace("CERTIFICATE", "PRIVATE KEY")).contains("it is not a certificate in PEM"));
        assert_eq!(why(&" ".repeat(LONGEST + 1)), "it is not usable: it has 49153 bytes, and can have 49152");
    }

    proptest! {
        #[test]
        fn any_text_is_taken_or_refused(text in any::<String>(), parts in "(-----BEGIN |-----END |CERTIFICATE-----|\n|QUJD|é){0,12}") {
            for text in [&text, &parts] {
                let total: usize = sections(text).iter().map(|section| section.len()).sum();
                prop_assert!(total <= text.len());
                if let Ok((_, section)) = certificate("it", text) {
                    prop_assert!(section.starts_with("-----BEGIN CERTIFICATE-----"));
                }
            }
        }
    }
}
