//! The units of a hold in one column: for each unit its number as the difference from the one
//! before, its price, its version, as variable-length integers (LEB128: seven bits a byte, low bits
//! first).

use soldonce_core::{Amount, HeldUnit, UnitNo, Version};

use super::{Damaged, to_i64};

/// Most bytes of a 64-bit number.
const NUMBER_BYTES_MAX: u32 = 10;

pub(crate) fn pack(units: &[HeldUnit]) -> Result<Vec<u8>, Damaged> {
    let mut packed = Vec::with_capacity(units.len() * 6);
    let mut before = 0;
    for held in units {
        let number = u64::from(held.unit.0);
        let price = u64::try_from(held.price.minor())
            .map_err(|_| Damaged::new("holds", format!("{:?} has a negative price", held.unit)))?;
        // Units are sorted and distinct; the number of the first one is stored as it is.
        put(&mut packed, number.saturating_sub(before));
        put(&mut packed, price);
        put(&mut packed, held.version.0);
        before = number;
    }
    Ok(packed)
}

pub(crate) fn unpack(packed: &[u8]) -> Option<Vec<HeldUnit>> {
    let mut units = Vec::with_capacity(packed.len() / 4);
    let mut rest = packed.iter().copied();
    let mut number = 0_u64;
    while rest.len() > 0 {
        number = number.checked_add(take(&mut rest)?)?;
        let price = to_i64(take(&mut rest)?).ok()?;
        let version = Version(take(&mut rest)?);
        let unit = UnitNo(u32::try_from(number).ok()?);
        units.push(HeldUnit {
            unit,
            price: Amount::from_minor(price),
            version,
        });
    }
    Some(units)
}

fn put(packed: &mut Vec<u8>, number: u64) {
    let mut rest = number;
    while rest >= 0x80 {
        packed.push(low_bits(rest) | 0x80);
        rest >>= 7;
    }
    packed.push(low_bits(rest));
}

fn low_bits(number: u64) -> u8 {
    u8::try_from(number & 0x7f).unwrap_or(0x7f)
}

fn take(rest: &mut impl Iterator<Item = u8>) -> Option<u64> {
    let mut number = 0_u64;
    for place in 0..NUMBER_BYTES_MAX {
        let byte = rest.next()?;
        let bits = u64::from(byte & 0x7f);
        let shifted = bits.checked_shl(7 * place)?;
        if shifted >> (7 * place) != bits {
            return None;
        }
        number |= shifted;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_survive_packing() {
        let unit = |unit, price, version| HeldUnit {
            unit: UnitNo(unit),
            price: Amount::from_minor(price),
            version: Version(version),
        };
        let units = [
            unit(0, 0, 1),
            unit(1, 127, 128),
            unit(300, i64::MAX, u64::MAX),
            unit(u32::MAX, 5, 9),
        ];
        for count in 0..=units.len() {
            let packed = pack(&units[..count]).unwrap();
            assert_eq!(unpack(&packed).as_deref(), Some(&units[..count]));
        }
        assert!(pack(&[unit(1, -1, 1)]).is_err());
    }

    #[test]
    fn cut_and_overlong_bytes_are_refused() {
        assert_eq!(unpack(&[1, 2]), None);
        assert_eq!(unpack(&[0x80]), None);
        assert_eq!(unpack(&[0xff; 11]), None);
        assert_eq!(
            unpack(&[0xff, 0xff, 0xff, 0xff, 0x7f, 1, 1]),
            None,
            "no unit has this number"
        );
    }
}
