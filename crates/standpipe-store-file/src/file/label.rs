//! The label at the start of a pool's file: which pool it belongs to, in which format.
//!
//! It is written once and protected by a checksum. Bytes in and out; nothing here touches a file.

use standpipe_store::{PoolName, hash};

use crate::file::head::{CHECKSUM_SEED, seal};

/// The bytes of the label.
pub(crate) const LABEL_SIZE: usize = 1_024;

/// The version of the byte layout. A higher one belongs to a newer program. Since version 2 a head
/// carries the last records.
const FORMAT: u32 = 2;
const MAGIC: &[u8; 16] = b"standpipe pool\n\0";

/// What a label says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Label {
    /// The file belongs to the pool of this name.
    Pool(String),
    /// The file belongs to the pool of this name, and an older program wrote it.
    Older(String),
    /// A newer program wrote the file, in this format.
    Newer(u32),
    /// The bytes are not a label, or are damaged.
    Unreadable,
}

/// Encodes the label of a pool's file.
pub(crate) fn encode_label(pool: &PoolName) -> [u8; LABEL_SIZE] {
    let mut bytes = [0; LABEL_SIZE];
    let name = pool.as_str().as_bytes();
    bytes[..16].copy_from_slice(MAGIC);
    bytes[16..20].copy_from_slice(&FORMAT.to_le_bytes());
    bytes[20..22].copy_from_slice(&u16::try_from(name.len()).unwrap_or(0).to_le_bytes());
    bytes[22..22 + name.len()].copy_from_slice(name);
    seal(&mut bytes);
    bytes
}

/// Decodes a label.
pub(crate) fn decode_label(bytes: &[u8]) -> Label {
    let verified = |bytes: &[u8]| {
        let (content, sum) = bytes.split_last_chunk::<8>()?;
        let right = content.len() == LABEL_SIZE - 8
            && content.starts_with(MAGIC)
            && hash(CHECKSUM_SEED, content) == u64::from_le_bytes(*sum);
        right.then(|| content.to_vec())
    };
    let Some(content) = verified(bytes) else { return Label::Unreadable };
    let format = u32::from_le_bytes(content[16..20].try_into().unwrap_or_default());
    if format > FORMAT {
        return Label::Newer(format);
    }
    let length = usize::from(u16::from_le_bytes(content[20..22].try_into().unwrap_or_default()));
    let name = content.get(22..22 + length).and_then(|name| std::str::from_utf8(name).ok());
    match name.map(str::to_owned) {
        Some(name) if format < FORMAT => Label::Older(name),
        Some(name) => Label::Pool(name),
        None => Label::Unreadable,
    }
}

/// Replaces the format version in a label's bytes.
#[cfg(feature = "harm")]
pub(crate) fn set_format(bytes: &mut [u8], format: u32) {
    bytes[16..20].copy_from_slice(&format.to_le_bytes());
    seal(&mut bytes[..LABEL_SIZE]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_formats_are_told_apart() {
        let pool: PoolName = "anthropic/sonnet".parse().unwrap();
        let of_format = |format: u32| {
            let mut bytes = encode_label(&pool);
            bytes[16..20].copy_from_slice(&format.to_le_bytes());
            seal(&mut bytes);
            decode_label(&bytes)
        };
        assert_eq!(of_format(FORMAT - 1), Label::Older(pool.as_str().to_owned()));
        assert_eq!(of_format(FORMAT), Label::Pool(pool.as_str().to_owned()));
        assert_eq!(of_format(FORMAT + 1), Label::Newer(FORMAT + 1));
    }

    #[test]
    fn a_label_comes_back_and_every_flipped_bit_is_seen() {
        let pool: PoolName = "anthropic/sonnet".parse().unwrap();
        let bytes = encode_label(&pool);
        assert_eq!(decode_label(&bytes), Label::Pool("anthropic/sonnet".to_owned()));
        for bit in 0..LABEL_SIZE * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode_label(&flipped), Label::Unreadable, "bit {bit}");
        }
    }
}
