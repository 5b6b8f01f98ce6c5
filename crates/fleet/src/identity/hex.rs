//! Lowercase hexadecimal digits.

/// The digits of these bytes.
pub(super) fn encode(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|digit| char::from(b"0123456789abcdef"[digit as usize]))
        .collect()
}

/// The bytes of exactly `2 * N` digits.
pub(super) fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = pair.iter().try_fold(0, |byte, &digit| Some(byte << 4 | value(digit)?))?;
    }
    Some(bytes)
}

/// Whether these are pairs of lowercase digits.
pub(super) fn is_pairs(text: &str) -> bool {
    text.len().is_multiple_of(2) && text.bytes().all(|digit| value(digit).is_some())
}

fn value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_and_other_texts_do_not() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(decode::<256>(&encode(&bytes)).map(Vec::from), Some(bytes));
        assert_eq!(encode(&[0, 15, 160, 255]), "000fa0ff");
        for wrong in ["", "0", "000", "0g", "0F", " 0", "é"] {
            assert_eq!(decode::<1>(wrong), None, "{wrong}");
        }
    }
}
