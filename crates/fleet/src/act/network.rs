//! Blocks of addresses: `10.0.0.0/8`.

use std::net::IpAddr;
use std::str::FromStr;

/// A block of addresses with a common prefix, or one address.
///
/// ```
/// use queuescope_fleet::act::AddressBlock;
///
/// let block: AddressBlock = "10.0.0.0/8".parse()?;
/// assert!(block.contains("10.1.2.3".parse().unwrap()));
/// assert!("10.0.0.1/8".parse::<AddressBlock>().is_err());
/// # Ok::<_, queuescope_fleet::act::AddressBlockError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressBlock {
    address: IpAddr,
    prefix: u8,
}

/// Why a text is not a block of addresses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressBlockError {
    /// Its form.
    #[error("'{0}' is not a network: use 10.0.0.0/8, 2001:db8::/32, or one address")]
    Form(String),
    /// The address has bits after the prefix.
    #[error("'{text}' has bits after its prefix: use {block}")]
    Bits {
        /// The text.
        text: String,
        /// The block that the address is in.
        block: String,
    },
}

impl AddressBlock {
    /// Whether an address is in the block.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4() && cut(address, self.prefix) == self.address
    }
}

impl FromStr for AddressBlock {
    type Err = AddressBlockError;

    fn from_str(text: &str) -> Result<Self, AddressBlockError> {
        let wrong = || AddressBlockError::Form(text.chars().take(64).collect());
        let (address, prefix) = text.split_once('/').map_or((text, None), |(address, prefix)| (address, Some(prefix)));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.map_or(Ok(longest), str::parse).map_err(|_| wrong())?;
        if prefix > longest {
            return Err(wrong());
        }
        let first = cut(address, prefix);
        if first != address {
            return Err(AddressBlockError::Bits { text: text.to_owned(), block: format!("{first}/{prefix}") });
        }
        Ok(Self { address, prefix })
    }
}

/// An address without the bits after a prefix.
fn cut(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix.min(32))).unwrap_or(0);
            IpAddr::V4((address.to_bits() & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix.min(128))).unwrap_or(0);
            IpAddr::V6((address.to_bits() & mask).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    proptest! {
        /// A block has an address exactly if their first bits are the same.
        #[test]
        fn blocks_have_what_begins_alike(a in any::<u128>(), near in 0..128u32, b in any::<u128>(), prefix in 0u8..=128) {
            // Mostly, the two differ in late bits only.
            let b = a ^ (b >> near);
            let bits = |all: u128, width: u8| (0..prefix.min(width)).map(move |at| all >> (width - 1 - at) & 1);
            let block = AddressBlock { address: cut(Ipv6Addr::from_bits(a).into(), prefix), prefix };
            prop_assert_eq!(block.contains(Ipv6Addr::from_bits(b).into()), bits(a, 128).eq(bits(b, 128)));
            let (a, b, prefix) = (a as u32, b as u32, prefix % 33);
            let block = AddressBlock { address: cut(Ipv4Addr::from_bits(a).into(), prefix), prefix };
            let bits = |all: u32| (0..prefix).map(move |at| all >> (31 - at) & 1);
            prop_assert_eq!(block.contains(Ipv4Addr::from_bits(b).into()), bits(a).eq(bits(b)));
            prop_assert!(!block.contains(Ipv6Addr::from_bits(b.into()).into()));
        }

        #[test]
        fn any_text_is_a_block_or_an_error(text in "[0-9a-f.:/]{0,20}") {
            if let Ok(block) = text.parse::<AddressBlock>() {
                prop_assert!(block.contains(block.address));
            }
        }
    }

    #[test]
    fn errors_name_what_is_meant() {
        let error = |text: &str| text.parse::<AddressBlock>().unwrap_err().to_string();
        assert_eq!(error("10.0.0.1/8"), "'10.0.0.1/8' has bits after its prefix: use 10.0.0.0/8");
        for text in ["", "/", "10.0.0.0/", "10.0.0.0/33", "::/129", "web-1", "10.0.0.0/8/8"] {
            assert!(error(text).contains("is not a network"), "{text}");
        }
    }
}
